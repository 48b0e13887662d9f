"""Vectors in Parquet files: a column of lists of numbers, read through pyarrow, row group by row group."""

from __future__ import annotations

import glob
import os
from bisect import bisect_right
from typing import Any

import numpy as np

from kith._arrays import DTYPE_NAMES, Matrix

# What a list's values become: as they are where Kith has the dtype, else float32. pandas writes lists of double.
_DTYPES = {"float": "f32", "halffloat": "f16", "uint8": "u8", "int8": "i8", "double": "f32"}
_INTEGERS = {f"{sign}int{bits}": "f32" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_NUMPY = {name: dtype for dtype, name in DTYPE_NAMES.items()}


def is_parquet(path: Any) -> bool:
    """Whether the path, or the pattern, names Parquet files; behind them ``::`` and a column may stand."""
    text = os.fspath(path)
    return isinstance(text, str) and (text.endswith(".parquet") or ".parquet::" in text)


class ParquetRows:
    """The vectors of a column of one or several files, as the library asks for them.

    The column is the one behind ``::``, or the only one of fixed-size lists, or of lists of floating-point numbers, or of
    integers. Lists of any length must all have the length of the first. One row group is in memory at a time, which no memory
    limit counts.
    """

    def __init__(self, paths: list[Any]) -> None:
        self._files: list[tuple[str, str, int]] = []  # path, column, row group
        self._firsts: list[int] = []  # row of each
        self.dtype = ""
        self._rows = self._cols = 0
        self._kept: tuple[int, Matrix] | None = None
        if not all(is_parquet(path) for path in paths):
            raise ValueError("a list of files holds .parquet files and others; files that are read as one are of one kind")
        for path in paths:
            file, mark, column = str(path).partition(".parquet::")
            self._open(file + ".parquet" if mark else file, column)
        self.path = str(paths[0]) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"

    @property
    def shape(self) -> tuple[int, int]:
        return self._rows, self._cols

    def _open(self, pattern: str, column: str) -> None:
        matches = [pattern] if os.path.exists(pattern) else sorted(glob.glob(pattern), key=os.fsencode)
        for path in matches or [pattern]:
            file = _parquet().ParquetFile(path)
            name, cols, dtype = _vectors_of(file, path, column)
            if self.dtype and (cols, dtype) != (self._cols, self.dtype):
                raise ValueError(
                    f"{path!r} holds vectors of {cols} x {dtype}, and those before it {self._cols} x {self.dtype}; files "
                    "that are read as one have the same dtype and columns"
                )
            self._cols, self.dtype = cols, dtype
            for group in range(file.num_row_groups):
                self._files.append((path, name, group))
                self._firsts.append(self._rows)
                self._rows += file.metadata.row_group(group).num_rows
            file.close()

    def read(self, first: int, count: int) -> Matrix:
        out = np.empty((count, self._cols), _NUMPY[self.dtype])
        done = 0
        number = bisect_right(self._firsts, first) - 1
        while done < count:
            rows = self._group(number)
            begin = first + done - self._firsts[number]
            some = rows[begin : begin + count - done]
            out[done : done + len(some)] = some
            done += len(some)
            number += 1
        return out

    def _group(self, number: int) -> Matrix:
        kept = self._kept  # another thread may put another group there
        if kept is None or kept[0] != number:
            self._kept = None
            path, column, group = self._files[number]
            with _parquet().ParquetFile(path) as file:
                lists = file.read_row_group(group, columns=[column]).column(0).combine_chunks()
            flat = lists.flatten()
            if lists.null_count or flat.null_count:
                raise ValueError(f"{path!r}: column {column!r} has missing values in row group {group}; fill or drop them")
            lengths = lists.value_lengths().to_numpy(zero_copy_only=False)
            if (lengths != self._cols).any():
                row = int(np.argmax(lengths != self._cols))
                raise ValueError(
                    f"{path!r}: column {column!r} holds {lengths[row]} numbers in row {row} of row group {group}, and "
                    f"{self._cols} in the first; vectors have one length"
                )
            values = flat.to_numpy(zero_copy_only=False)
            with np.errstate(over="ignore"):
                narrow = values.astype(_NUMPY[self.dtype], copy=False)
            if narrow.dtype != values.dtype and values.dtype.kind == "f" and (np.isinf(narrow) & np.isfinite(values)).any():
                raise ValueError(f"{path!r}: column {column!r} holds numbers beyond float32 in row group {group}; scale them")
            kept = number, narrow.reshape(-1, self._cols)
            self._kept = kept
        return kept[1]


def _vectors_of(file: Any, path: str, column: str) -> tuple[str, int, str]:
    """Name, columns and dtype of the column of vectors."""
    fixed, floats, integers = [], [], []
    for field in file.schema_arrow:
        if column not in ("", field.name) or not hasattr(field.type, "value_type"):
            continue
        value, size = str(field.type.value_type), getattr(field.type, "list_size", None)  # fixed-size lists alone have one
        if size is not None and value in _DTYPES:
            fixed.append((field.name, int(size), _DTYPES[value]))
        elif value in ("float", "halffloat", "double"):
            floats.append((field.name, int(size or 0), _DTYPES[value]))
        elif value in _INTEGERS:
            integers.append((field.name, int(size or 0), _INTEGERS[value]))
    found = fixed or floats or integers
    if len(found) == 1:
        name, cols, dtype = found[0]
        return name, cols or _first_length(file, path, name), dtype
    if found:
        names = ", ".join(name for name, _, _ in found)
        raise ValueError(f"{path!r} has several columns of vectors ({names}); name one: {path}::{found[0][0]}")
    wanted = f"column {column!r} of" if column else "a column of"
    raise ValueError(f"{path!r} has not {wanted} lists of numbers; it has {', '.join(f'{f.name} ({f.type})' for f in file.schema_arrow)}")


def _first_length(file: Any, path: str, column: str) -> int:
    for batch in file.iter_batches(batch_size=1, columns=[column]):
        length = batch.column(0).value_lengths()[0].as_py()
        if length:
            return int(length)
        break
    raise ValueError(f"{path!r}: column {column!r} has no first vector, whose length would be that of all")


def _parquet() -> Any:
    try:
        import pyarrow.parquet  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        raise ImportError("a .parquet file is read through pyarrow, which is missing: pip install pyarrow") from None
    return pyarrow.parquet
