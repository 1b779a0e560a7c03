"""The kernels, compiled by numba."""
