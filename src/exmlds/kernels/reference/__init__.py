"""Reference kernels: slow and obvious twins in NumPy and plain Python."""
