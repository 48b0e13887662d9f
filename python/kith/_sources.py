"""Vectors that are read piece by piece: files, lists and patterns of files, and whatever has a shape, a dtype and slices."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Protocol, Union, cast

import numpy as np

from kith._arrays import DTYPE_NAMES, Matrix, VectorsLike
from kith._files import PathLike, path_bytes
from kith._parquet import ParquetRows, is_parquet


class Sliceable(Protocol):
    """What h5py's datasets, zarr's arrays and their like have."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> Any: ...

    def __getitem__(self, rows: slice, /) -> Any: ...


# A file, a pattern, several of them, or rows that are sliced.
SourceLike = Union[PathLike, Sequence[PathLike], Sliceable]


class SlicedRows:
    """Rows of an object that has slices, as the library asks for them."""

    def __init__(self, rows: Sliceable) -> None:
        self._rows = rows
        self.path = f"a {type(rows).__module__.split('.')[0]} {type(rows).__name__}"
        self.shape = tuple(int(size) for size in rows.shape)
        self.dtype = DTYPE_NAMES[np.dtype(rows.dtype)]

    def read(self, first: int, count: int) -> Matrix:
        return np.ascontiguousarray(self._rows[first : first + count])


# As the compiled module takes it.
Source = Union[bytes, "list[bytes]", SlicedRows, ParquetRows]


def is_path(x: object) -> bool:
    """Whether `x` names a file, or a pattern of files."""
    return isinstance(x, (str, os.PathLike))


def as_source(x: Any) -> Source | None:
    """`x` as a source that the compiled module reads piece by piece; None for an array, which it reads in place."""
    if is_path(x):
        return ParquetRows([os.fspath(x)]) if is_parquet(x) else path_bytes(x)
    if isinstance(x, (list, tuple)) and len(x) > 0 and all(is_path(path) for path in x):
        if any(is_parquet(path) for path in x):
            return ParquetRows([os.fspath(path) for path in x])
        return [path_bytes(path) for path in x]
    return SlicedRows(x) if _is_sliceable(x) else None


def array_of(x: VectorsLike | SourceLike) -> VectorsLike:
    """`x`, typed as an array; for what `as_source` returned None of."""
    return cast(VectorsLike, x)


def wrapped(x: Any) -> Source | None:
    """As `as_source`, but a plain numpy array becomes a source too."""
    source = as_source(x)
    if source is None and isinstance(x, np.ndarray) and x.ndim == 2 and x.dtype in DTYPE_NAMES:
        return SlicedRows(x)
    return source


def _is_sliceable(x: Any) -> bool:
    """Of a dtype that can be read in pieces. Arrays in memory, from numpy or with DLPack, are read in place."""
    if isinstance(x, np.ndarray) or hasattr(x, "__dlpack__") or hasattr(x, "__cuda_array_interface__"):
        return False
    if not hasattr(type(x), "__getitem__") or hasattr(x, "iloc") or hasattr(x, "tocsr"):  # tables, sparse matrices
        return False
    shape, dtype = getattr(x, "shape", None), getattr(x, "dtype", None)
    if not isinstance(shape, tuple) or len(shape) != 2:
        return False
    try:
        return np.dtype(dtype) in DTYPE_NAMES
    except TypeError:
        return False
