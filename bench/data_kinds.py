"""Kinds of data by name, as hard for a k-NN graph as what users bring: for benchmarks that go over all of them.

    rows = make("zipf_clusters", 100_000, seed=1)

Rows are float32 and depend on the name, their number and the seed alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.float32]
Random = np.random.Generator
_COLS = 128


def _clusters(count: int, spread: float, weights: npt.NDArray[Any] | None = None) -> Callable[[int, Random], Rows]:
    """Clusters around centres of N(0, 1); `spread` is that of a column within one."""

    def make_rows(rows: int, drawn: Random) -> Rows:
        centres = drawn.standard_normal((count, _COLS), np.float32)
        chosen = drawn.choice(count, rows, p=weights)
        return centres[chosen] + np.float32(spread) * drawn.standard_normal((rows, _COLS), np.float32)

    return make_rows


def _zipf(count: int) -> npt.NDArray[Any]:
    weights = 1 / np.arange(1, count + 1)
    return weights / weights.sum()


def _uniform(cols: int = _COLS) -> Callable[[int, Random], Rows]:
    return lambda rows, drawn: drawn.random((rows, cols), np.float32)


def _normal(rows: int, drawn: Random) -> Rows:
    return drawn.standard_normal((rows, _COLS), np.float32)


def _far_outliers(rows: int, drawn: Random) -> Rows:
    x = _clusters(1000, 0.3)(rows, drawn)
    x[drawn.choice(rows, max(1, rows // 1000), replace=False)] *= 1000
    return x


def _distinct(rows: int, drawn: Random) -> Rows:
    return _normal(1000, drawn)[drawn.integers(0, 1000, rows)]


def _half_equal(rows: int, drawn: Random) -> Rows:
    x = _clusters(1000, 0.3)(rows, drawn)
    x[drawn.permutation(rows)[: rows // 2]] = x[0]
    return x


def _lattice(rows: int, drawn: Random) -> Rows:
    return drawn.integers(0, 4, (rows, 12)).astype(np.float32)


def _sparse(rows: int, drawn: Random) -> Rows:
    return (drawn.random((rows, 256)) < 0.03).astype(np.float32)


def _lognormal(rows: int, drawn: Random) -> Rows:
    return np.exp(_normal(rows, drawn))


def _four_decades(rows: int, drawn: Random) -> Rows:
    x = _clusters(1000, 0.3)(rows, drawn)
    return x * (10 ** (4 * drawn.random((rows, 1), np.float32) - 2)).astype(np.float32)


def _random_walk(rows: int, drawn: Random) -> Rows:
    return np.cumsum(drawn.standard_normal((rows, 32), np.float32), axis=0, dtype=np.float32)


def _low_rank(cols: int, rank: int = 16) -> Callable[[int, Random], Rows]:
    def make_rows(rows: int, drawn: Random) -> Rows:
        directions = drawn.standard_normal((rank, cols), np.float32)
        x = drawn.standard_normal((rows, rank), np.float32) @ directions
        return x + np.float32(0.05) * drawn.standard_normal((rows, cols), np.float32)

    return make_rows


def _hubs(rows: int, drawn: Random) -> Rows:
    """Rows on a sphere of many columns and some near its middle, which are near to all."""
    x = _normal(rows, drawn)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    x[: max(1, rows // 1000)] *= np.float32(0.1)
    return x


def _line(rows: int, drawn: Random) -> Rows:
    return drawn.random((rows, 1), np.float32) * drawn.standard_normal((1, 8), np.float32)


_KINDS: dict[str, Callable[[int, Random], Rows]] = {
    "uniform": _uniform(),
    "normal": _normal,
    "clusters_10": _clusters(10, 0.01),
    "clusters_100": _clusters(100, 0.01),
    "clusters_20000": _clusters(20_000, 0.01),
    "zipf_clusters": _clusters(2000, 0.1, _zipf(2000)),
    "far_outliers": _far_outliers,
    "distinct_1000": _distinct,
    "half_equal": _half_equal,
    "lattice": _lattice,
    "sparse": _sparse,
    "lognormal": _lognormal,
    "four_decades": _four_decades,
    "random_walk": _random_walk,
    "low_rank_256": _low_rank(256),
    "low_rank_1024": _low_rank(1024),
    "hubs": _hubs,
    "line": _line,
    "columns_1": _uniform(1),
    "columns_2": _uniform(2),
    "columns_4": _uniform(4),
}
NAMES = tuple(_KINDS)
# By another metric than l2.
METRICS = {"sparse": "cosine"}


def make(name: str, rows: int, seed: int = 1) -> Rows:
    return np.ascontiguousarray(_KINDS[name](rows, np.random.default_rng(seed)), np.float32)
