"""What the tests share: random vectors, and the slow obvious search that results are compared with."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from made_up_arrays import MadeUp, OnGpu

from kith import _kith, _libraries

METRICS = ["l2", "sqeuclidean", "inner_product", "cosine", "l1", "linf", "chi_square", "hamming"]


def probing(index: Any, count: int) -> dict[str, int]:
    """Arguments of a search that looks at so many lists: none for an index without lists, which refuses `probes`."""
    return {"probes": count} if "IVF" in index.factory else {}


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
    if metric == "hamming":
        bits = np.unpackbits(np.asarray(queries)[:, None, :] ^ np.asarray(base)[None, :, :], axis=2)
        return bits.sum(axis=2, dtype=np.float64)
    differences = q[:, None, :] - x[None, :, :]
    if metric == "l1":
        return np.abs(differences).sum(axis=2)
    if metric == "linf":
        return np.abs(differences).max(axis=2)
    if metric == "chi_square":
        sums = q[:, None, :] + x[None, :, :]
        return np.divide(differences**2, sums, out=np.zeros(sums.shape), where=sums > 0).sum(axis=2)
    squares = (differences**2).sum(axis=2)
    return np.sqrt(squares) if metric == "l2" else squares


@pytest.fixture
def check_exact() -> Callable[..., None]:
    """Fails unless `found` is the exact answer, up to the order of rows whose distances differ by rounding alone."""

    def check(found: Any, queries: Any, base: Any, k: int, metric: str, keep: Any = None) -> None:
        true = distances_of(queries, base, metric)
        if keep is not None:  # the rows that a filter left
            true[:, ~keep] = -np.inf if metric == "inner_product" else np.inf
        kept = min(k, true.shape[1] if keep is None else np.count_nonzero(keep))
        assert found.ids.shape == found.distances.shape == (true.shape[0], k)
        assert found.ids.dtype == np.int64 and found.distances.dtype == np.float32
        nearest = np.sort(-true if metric == "inner_product" else true, axis=1)[:, :kept]
        if metric == "inner_product":
            nearest = -nearest
        scale = np.abs(true[np.isfinite(true)]).max(initial=1.0)
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
    """Random vectors of a shape: normal for floating types, all values for uint8 and int8."""

    def make(rows: int, cols: int, dtype: Any = np.float32) -> np.ndarray:
        if np.dtype(dtype).kind in "iu":
            return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (rows, cols), dtype=dtype, endpoint=True)
        return rng.standard_normal((rows, cols)).astype(dtype)

    return make


@pytest.fixture
def vectors_for(vectors: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Random vectors that a metric takes."""

    def make(metric: str, rows: int, cols: int, dtype: Any = np.float32) -> np.ndarray:
        if metric == "hamming":
            return vectors(rows, cols, np.uint8)
        made = vectors(rows, cols, dtype)
        return abs(made) if metric == "chi_square" and np.dtype(dtype) != np.uint8 else made

    return make


@pytest.fixture
def made_up(monkeypatch):
    """Has OnGpu belong to that library, and the search itself done by a stand-in that notes what it was given."""
    monkeypatch.setitem(_libraries._KNOWN, OnGpu.__module__, MadeUp())
    monkeypatch.setattr(_libraries, "_SEEN", weakref.WeakKeyDictionary())  # where it has another
    calls = []

    def filled(out, dtype, value):
        assert isinstance(out, _kith.DeviceArray) and out.dtype == np.dtype(dtype).name
        count = int(np.prod(out.shape))
        pointer = out.__cuda_array_interface__["data"][0]
        np.frombuffer((ctypes.c_char * (count * np.dtype(dtype).itemsize)).from_address(pointer), dtype)[:] = value

    def knn(queries, base, k, metric, finite, rows, options, out, comm=None):
        calls.append((queries, base, options, out))
        if out is not None:
            filled(out[0], np.int64, 5)
            filled(out[1], np.float32, 0.5)
            return None
        return np.full((len(queries), k), 5), np.full((len(queries), k), 0.5, np.float32)

    def knn_graph(x, k, metric, method, finite, params, options, out, comm):
        return knn(x, x, k, metric, finite, None, options, out), {"method": "made up"}

    def pairwise_distances(x, y, metric, finite, options, out):
        calls.append((x, y, options, out))
        filled(out, np.float32, 0.25)

    monkeypatch.setattr(_kith, "knn", knn)
    monkeypatch.setattr(_kith, "knn_graph", knn_graph)
    monkeypatch.setattr(_kith, "pairwise_distances", pairwise_distances)
    return calls
