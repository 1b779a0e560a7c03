"""The Gram matrix of sparse rows."""

from .compiler import kernel


@kernel
def gram_rows(indptr, indices, data, t_indptr, t_indices, t_data, start, out):
    """See the twin in reference/gram.py."""
    for i in range(out.shape[0]):
        row = out[i]
        last = start + i
        for p in range(indptr[last], indptr[last + 1]):
            column, value = indices[p], data[p]
            for q in range(t_indptr[column], t_indptr[column + 1]):
                if t_indices[q] > last:
                    break
                row[t_indices[q]] += value * t_data[q]
