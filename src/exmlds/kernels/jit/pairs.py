"""Inner products of rows that are given in pairs."""

from .compiler import reordering_kernel


@reordering_kernel
def pair_products(indptr, indices, A, B, start, products):
    """See the twin in reference/pairs.py."""
    first = indptr[start]
    rank = A.shape[1]
    row = start
    for p in range(len(products)):
        while indptr[row + 1] <= first + p:
            row += 1
        column = indices[first + p]
        total = A[row, 0] * 0
        for f in range(rank):
            total += A[row, f] * B[column, f]
        products[p] = total
