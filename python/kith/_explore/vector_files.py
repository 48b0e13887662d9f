"""Vectors in files, for ``kith explore --vectors``: what Kith reads, and what ``kith convert`` takes besides.

That is .npy of float64, of wide integers or in Fortran order, .npz, tables of numbers and Parquet. They are read whole, into memory.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from kith._files import read_vectors
from kith._parquet import ParquetRows, is_parquet
from kith._to_npy import array_in

_TABLES = (".csv", ".tsv", ".txt")


def vectors_in(path: str) -> npt.NDArray[Any]:
    """The vectors of a file; ``-`` is .npy from stdin. Numbers that are wider than float32 are rounded to it."""
    if path == "-":
        return _matrix(np.load(sys.stdin.buffer, allow_pickle=False), "what stdin brought")
    if os.path.isdir(path):
        raise ValueError(f"{path!r} is a folder; --vectors is a file of vectors, and --items the folder of images")
    if is_parquet(path):
        rows = ParquetRows([path])
        return rows.read(0, rows.shape[0])
    if path.endswith(".npz") or ".npz::" in path:
        return _matrix(array_in(path), repr(path))
    if path.endswith(".npy"):
        return _matrix(np.load(path, allow_pickle=False), repr(path))
    if path.endswith(_TABLES):
        return _table(path)
    return read_vectors(path)


def _matrix(array: Any, name: str) -> npt.NDArray[Any]:
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise ValueError(f"{name} is {array.dtype} of shape {array.shape}; vectors are numbers, (rows, dimension)")
    if array.dtype in (np.float32, np.float16, np.uint8, np.int8):
        return np.ascontiguousarray(array)
    with np.errstate(over="ignore"):
        narrow: npt.NDArray[Any] = array.astype(np.float32, order="C")
    lost = ~np.isfinite(narrow) & np.isfinite(array) if array.dtype.kind == "f" else np.zeros(0, bool)
    if lost.any():
        row, column = (int(place) for place in np.argwhere(lost)[0])
        raise ValueError(f"{name}, row {row}, column {column}: {array[row, column]} is too large for float32")
    return narrow


def _table(path: str) -> npt.NDArray[Any]:
    """Numbers between commas, semicolons, tabs or spaces, a vector a line. A first line without a number is a heading."""
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        first = next((line for line in file if line.strip()), "")
    between = next((sign for sign in ",;\t" if sign in first), None)
    words = [word.strip().strip('"') for word in (first.split(between) if between else first.split())]
    heading = not all(map(_is_number, filter(None, words)))
    try:
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            lines = (line.rstrip().rstrip(between or "").replace('"', "") for line in file if line.strip())
            if heading:
                next(lines)
            table = np.loadtxt(lines, np.float64, comments=None, delimiter=between, ndmin=2)
    except ValueError as error:
        raise ValueError(f"{path!r}: {error}; keep columns of numbers alone") from None
    if table.size == 0:
        raise ValueError(f"{path!r} holds no line of numbers")
    return _matrix(table, repr(path))


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
