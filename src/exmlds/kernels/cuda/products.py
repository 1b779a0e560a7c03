"""Products of blocks of a matrix on a graphics card; blocks that are used again stay there."""

from __future__ import annotations

import numpy as np

from .device import current

Array = np.ndarray

THREADS = 128  # in a block, for the columns of a row


def multiply_csr(indptr: Array, indices: Array, data: Array, Q: Array, out: Array) -> None:
    """See the twin in reference/products.py."""
    if not out.size:
        return
    with current().working() as device:
        block = (
            device.resident(indptr, np.int64),
            device.resident(indices, np.uint32),
            device.resident(data, np.float32),
        )
        found = device.empty(out.shape, np.float32)
        given = *block, device.resident(Q, np.float32), np.int32(Q.shape[1]), found
        device.launch("products", "multiply_csr", len(out), *given, threads=THREADS)
        device.to_host(found, out)


def multiply_dense(A: Array, Q: Array, out: Array) -> None:
    """See the twin in reference/products.py."""
    with current().working() as device:
        device.to_host(device.resident(A, np.float32) @ device.resident(Q, np.float32), out)
