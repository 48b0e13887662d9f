"""Files of the ANN benchmarks' format, and what is found in them: two u32, rows and columns, before the values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[Any]


def read_bin(path: Path, dtype: Any) -> Rows:
    with open(path, "rb") as file:
        rows, cols = np.fromfile(file, np.uint32, 2)
        return np.fromfile(file, dtype, int(rows) * int(cols)).reshape(rows, cols)


def write_fbin(path: Path, values: Rows) -> None:
    with open(path, "wb") as file:
        np.array(values.shape, np.uint32).tofile(file)
        np.ascontiguousarray(values, np.float32).tofile(file)


def sift(folder: Path) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """A million rows, those to train with, and queries: sift1m_{base,learn,query}.u8bin as floats."""
    base, learn, queries = (read_bin(folder / f"sift1m_{part}.u8bin", np.uint8).astype(np.float32) for part in ("base", "learn", "query"))
    return base, learn, queries


def first_recalls(found: Rows, truth: Rows, depths: Sequence[int] = (1, 10, 100)) -> list[float]:
    """The share of queries whose nearest row is among the first 1, 10 and 100 that were found."""
    return [float((found[:, :depth] == truth[: len(found), :1]).any(axis=1).mean()) for depth in depths]
