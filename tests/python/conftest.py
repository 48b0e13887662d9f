"""What the tests share: random vectors, and the slow obvious search that results are compared with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

def distances_of(queries: Any, base: Any, metric: str) -> np.ndarray:
    """Every distance, in float64."""
    q = np.asarray(queries, dtype=np.float64)
    x = np.asarray(base, dtype=np.float64)
    if metric == "inner_product":
        return q @ x.T
    if metric == "cosine":
        norms = np.linalg.norm(q, axis=1)[:, None] * np.linalg.norm(x, axis=1)[None, :]
        cosine = np.divide(q @ x.T, norms, out=np.zeros(norms.shape), where=norms > 0)
        return 1 - cosine
    squares = ((q[:, None, :] - x[None, :, :]) ** 2).sum(axis=2)
    return np.sqrt(squares) if metric == "l2" else squares


@pytest.fixture
def check_exact() -> Callable[..., None]:
    """Fails unless `found` is the exact answer, up to the order of rows whose distances differ by rounding alone."""

    def check(found: Any, queries: Any, base: Any, k: int, metric: str) -> None:
        true = distances_of(queries, base, metric)
        rows = true.shape[1]
        kept = min(k, rows)
        assert found.ids.shape == found.distances.shape == (true.shape[0], k)
        assert found.ids.dtype == np.int64 and found.distances.dtype == np.float32
        nearest = np.sort(-true if metric == "inner_product" else true, axis=1)[:, :kept]
        if metric == "inner_product":
            nearest = -nearest
        scale = np.abs(true).max(initial=1.0)
        np.testing.assert_allclose(found.distances[:, :kept], nearest, rtol=1e-5, atol=1e-6 * scale)
        claimed = np.take_along_axis(true, found.ids[:, :kept], axis=1)
        np.testing.assert_allclose(claimed, nearest, rtol=1e-5, atol=1e-6 * scale)
        for row in found.ids[:, :kept]:
            assert len(set(row.tolist())) == kept
        assert (found.ids[:, kept:] == -1).all()
        assert (found.distances[:, kept:] == (-np.inf if metric == "inner_product" else np.inf)).all()

    return check


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240607)


@pytest.fixture
def vectors(rng: np.random.Generator) -> Callable[..., np.ndarray]:
    """Random vectors of a shape: normal for floats, all values for uint8 and int8."""

    def make(rows: int, cols: int, dtype: Any = np.float32) -> np.ndarray:
        if np.dtype(dtype).kind in "iu":
            return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, (rows, cols), dtype=dtype)
        return rng.standard_normal((rows, cols)).astype(dtype)

    return make
