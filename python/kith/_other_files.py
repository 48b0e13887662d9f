"""Vectors in files that Kith's searches do not read by pieces: what ``kith convert`` takes besides, read whole.

That is .npy of float64, of other integers, of another byte order or in Fortran order, .npz, tables of numbers and Parquet.
"""

from __future__ import annotations

import os
import re
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from kith._parquet import ParquetRows, is_parquet
from kith._to_npy import array_in

_TABLES = (".csv", ".tsv", ".txt")
_STORED = {np.dtype(name) for name in ("<f4", "<f2", "u1", "i1", "<i4", "<i8")}  # in .npy files, as the library reads them
_NAMES_OF_ROWS = ("", "Unnamed: 0", "index", "id")  # over a column that pandas has put before the others


def read_other(path: str) -> npt.NDArray[Any] | None:
    """The vectors of such a file; None for those that the library reads. What is wider than float32 is rounded to it."""
    if is_parquet(path):
        rows = ParquetRows([path])
        return rows.read(0, rows.shape[0])
    if path.endswith(".npz") or ".npz::" in path:
        return matrix(array_in(path), repr(path))
    if path.endswith(".npy"):
        array = _array(path)
        return None if array is None else matrix(array, repr(path))
    return _table(path) if path.endswith(_TABLES) else None


def matrix(array: Any, name: str) -> npt.NDArray[Any]:
    """An array as vectors; `name` is the file's, for errors."""
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


def _array(path: str) -> Any:
    """A mapped .npy file that holds what the library does not read; None for others, and for damaged ones, of which it says more."""
    if not os.path.isfile(path):  # numpy would wait for a pipe's writer
        return None
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError):
        return None
    read = array.ndim != 2 or array.dtype.kind not in "fiu" or (array.dtype in _STORED and array.flags.c_contiguous)
    return None if read else array


def _table(path: str) -> npt.NDArray[Any]:
    """Numbers between commas, semicolons, tabs or spaces, a vector a line, as ``kith convert`` reads them.

    A first line that holds something else than numbers is a heading, and so is 0,1,2,..., which pandas writes over columns without
    names. A first column without a name there, or with that of an index, holds the numbers or names of rows, and is left out.
    """
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        lines = (line for line in file if line.strip())
        first, second = next(lines, ""), next(lines, "")
    between = next((sign for sign in ",;\t" if sign in first), None)
    words = _words(first, between)
    named = not all(map(_is_number, words))
    counts = not named and len(words) > 1 and second != "" and words == [str(place) for place in range(len(words))]
    left_out = 1 if named and between and len(words) > 1 and words[0] in _NAMES_OF_ROWS else 0
    if counts:
        warnings.warn(f"{path!r}: the first line, 0 to {len(words) - 1}, was taken for pandas' heading, and not for a vector", stacklevel=5)
    elif left_out:
        warnings.warn(f"{path!r}: the first column was taken for the numbers or names of rows, and left out", stacklevel=5)
    if not (second if named or counts else first):
        raise ValueError(f"{path!r} holds no line of numbers")
    columns = range(left_out, len(_words(second, between))) if left_out else None
    try:
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            numbers = (line.rstrip().rstrip(between or "").replace('"', "") for line in file if line.strip())
            if named or counts:
                next(numbers)
            table = np.loadtxt(numbers, np.float64, comments=None, delimiter=between, ndmin=2, usecols=columns)
    except ValueError as error:
        told = re.sub(r"could not convert string (.+) to float64 at row (\d+), column \d+\.", r"row \2: \1 is no number", str(error))
        raise ValueError(f"{path!r}: {told}; keep columns of numbers alone") from None
    return matrix(table, repr(path))


def _words(line: str, between: str | None) -> list[str]:
    """Of a line without what may end it: a separator behind the last."""
    line = line.strip("\r\n ").rstrip(between or "")
    return [word.strip().strip('"') for word in (line.split(between) if between else line.split())]


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
