"""Quantized matrices."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array

from exmlds.stages import quantize


@pytest.mark.parametrize(("storage", "error"), [("float32", 0), ("float16", 1e-3), ("int8", 4e-3)])
def test_pack_and_unpack(storage: str, error: float, rng: np.random.Generator) -> None:
    A = rng.normal(size=(20, 6)).astype(np.float32)
    A[3] = 0
    packed = quantize.pack(A, storage)
    assert packed.values.dtype == np.dtype(storage)
    largest = np.abs(A).max(axis=1, keepdims=True)
    assert (np.abs(quantize.unpack(packed) - A) <= error * np.maximum(largest, 1e-9)).all()
    np.testing.assert_array_equal(quantize.unpack(packed, slice(2, 5)), quantize.unpack(packed)[2:5])
    np.testing.assert_array_equal(quantize.unpack(packed, np.array([7, 1])), quantize.unpack(packed)[[7, 1]])


@pytest.mark.parametrize("storage", quantize.STORAGES)
def test_products(storage: str, rng: np.random.Generator) -> None:
    X = csr_matrix(random_array((5, 20), density=0.2, random_state=rng, dtype=np.float32))
    packed = quantize.pack(rng.normal(size=(20, 6)).astype(np.float32), storage)
    expected = X.toarray() @ quantize.unpack(packed)
    every = np.arange(20)
    np.testing.assert_allclose(quantize.times(X, packed, every), expected, atol=1e-5)
    np.testing.assert_allclose(quantize.times(X.toarray(), packed, every), expected, atol=1e-5)
    np.testing.assert_array_equal(
        quantize.times(csr_matrix((2, 20), dtype=np.float32), packed, every), np.zeros((2, 6))
    )


def test_values_beyond_float16_are_clipped() -> None:
    packed = quantize.pack(np.array([[1e6, -1e6]], np.float32), "float16")
    assert quantize.unpack(packed).tolist() == [[65504.0, -65504.0]]


@pytest.mark.parametrize("storage", quantize.STORAGES)
def test_product_with_some_columns(storage: str, rng: np.random.Generator) -> None:
    X = csr_matrix(rng.random((5, 30), dtype=np.float32) * (rng.random((5, 30)) < 0.3))
    columns = np.flatnonzero(rng.random(30) < 0.5)
    packed = quantize.pack(rng.normal(size=(len(columns), 4)), storage)
    expected = X[:, columns].toarray() @ quantize.unpack(packed)
    np.testing.assert_allclose(quantize.times(X, packed, columns), expected, atol=1e-5)
    for row in range(5):
        np.testing.assert_allclose(quantize.times(X[row], packed, columns), expected[[row]], atol=1e-5)
    none = quantize.pack(np.zeros((0, 4)), storage)
    assert quantize.times(X[0], none, columns[:0]).tolist() == [[0, 0, 0, 0]]
