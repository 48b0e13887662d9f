"""Vectors for benchmarks where there is no real data of a size: the same two sets wherever they are named.

mixture: 2,000 centres of 40 |N(0,1)| in each column; a point is one of them + 3 N(0,1) + z B, with z of 16 N(0,1) and B a fixed
16 x columns matrix of 6 N(0,1); within 0 and 255, as bytes are. mixture.hpp has it in C++, with other random numbers.
manifold: 24 smooth coordinates, bent into 128 columns: near rows lie in no clusters.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
_CENTRES = 2000
_BLOCK = 20_000  # points made at a time


def mixture(rows: int, cols: int = 128, seed: int = 1, rounded: bool = True) -> Vectors:
    """Centres and directions are the same for every seed, so that queries of one seed have neighbours of another."""
    fixed = np.random.default_rng(2)
    centres = 40 * np.abs(fixed.standard_normal((_CENTRES, cols)))
    directions = 6 * fixed.standard_normal((16, cols))
    drawn = np.random.default_rng(seed)
    out = np.empty((rows, cols), np.float32)
    for first in range(0, rows, _BLOCK):
        count = min(_BLOCK, rows - first)
        points = centres[drawn.integers(_CENTRES, size=count)] + 3 * drawn.standard_normal((count, cols))
        points += drawn.standard_normal((count, 16)) @ directions
        out[first : first + count] = np.clip(np.rint(points) if rounded else points, 0, 255)
    return out


def manifold(rows: int, seed: int = 1) -> Vectors:
    fixed = np.random.default_rng(1)
    first, second = fixed.standard_normal((24, 128)), fixed.standard_normal((128, 128)) / 11
    drawn = np.random.default_rng(seed)
    out = np.empty((rows, 128), np.float32)
    for start in range(0, rows, _BLOCK):
        z = drawn.standard_normal((min(_BLOCK, rows - start), 24))
        out[start : start + len(z)] = 30 * np.tanh(z @ first / 5) @ second
    return out
