"""The slow, obvious twins of the kernels: what they compute, in NumPy and plain Python."""
