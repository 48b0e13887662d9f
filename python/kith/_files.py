"""Vectors and ids in files."""

from __future__ import annotations

import os
from typing import Any, SupportsIndex, Union

import numpy as np
import numpy.typing as npt

from kith import _kith
from kith._arrays import Matrix, VectorsLike, readable_in_place, to_numpy
from kith._options import whole_number

PathLike = Union[str, "os.PathLike[str]"]


def path_bytes(path: PathLike) -> bytes:
    """The path as the system knows it."""
    encoded = os.fsencode(path)
    if b"\0" in encoded:
        raise ValueError(f"the path {path!r} holds a null character")
    return encoded


def read_vectors(path: PathLike, first: SupportsIndex = 0, count: SupportsIndex | None = None) -> npt.NDArray[Any]:
    """Read vectors, or ids, from a file.

    The ending of its name tells the format: ``.fbin`` (float32), ``.u8bin`` (uint8), ``.ibin`` (int32 ids) or ``.npy``.

    Parameters
    ----------
    path : str or path-like
        The file.
    first : int, default 0
        The row to begin with.
    count : int, optional
        How many rows; to the end if not given.

    Returns
    -------
    numpy.ndarray
        (rows, columns): float32 or uint8 for vectors, int64 for ids. The array owns the memory that was read into:
        nothing is copied.

    Raises
    ------
    OSError
        The system refused: FileNotFoundError, PermissionError, ...
    CorruptFileError
        The file does not hold what its header promises.
    ValueError
        An unknown ending, or rows that the file does not have.

    Examples
    --------
    >>> base = kith.read_vectors("base.fbin")                       # doctest: +SKIP
    >>> part = kith.read_vectors("base.fbin", first=1000, count=10)  # doctest: +SKIP
    """
    rows = None if count is None else whole_number(count, "count")
    read = _kith.read_vectors(path_bytes(path), whole_number(first, "first"), rows)
    return read.view(np.int64) if read.dtype == np.int64 else read  # numpy's usual name for these eight bytes


def write_vectors(path: PathLike, array: VectorsLike) -> None:
    """Write vectors, or ids, to a file.

    A temporary file is filled beside the target and put in its place at the end: what was there before stays whole
    until then, also after an error or Ctrl-C.

    Parameters
    ----------
    path : str or path-like
        The target. The ending of its name tells the format: ``.fbin`` (float32), ``.u8bin`` (uint8), ``.ibin`` (ids
        that fit int32) or ``.npy`` (float32, uint8, or ids as int64).
    array : array_like, (rows, columns)
        float32 or uint8 vectors, or ids of any integer type. float64 is refused: rounding it is your decision, made
        with ``array.astype(numpy.float32)``.

    Raises
    ------
    OSError
        The system refused: no space left, no permission, ...
    TypeError
        A dtype that no format holds.
    ValueError
        An unknown ending, a dtype that this format does not hold, an id that is too large.

    Examples
    --------
    >>> kith.write_vectors("base.fbin", np.zeros((1000, 128), np.float32))  # doctest: +SKIP
    """
    target = path_bytes(path)
    values = to_numpy(array, "array")
    if values.ndim != 2:
        raise ValueError(f"array has {values.ndim} axes (shape {values.shape}); it must be 2-D, one vector per row")
    holds_ids = target.endswith(b".ibin")
    if values.dtype.kind in "iu" and (values.dtype != np.uint8 or holds_ids):
        _kith.write_ids(target, _as_int64(values))
    elif values.dtype in (np.dtype(np.float32), np.dtype(np.uint8)):
        _kith.write_vectors(target, values if readable_in_place(values) else np.array(values, order="C"))
    else:
        raise TypeError(f"array is {values.dtype}; files hold float32, uint8 or integer ids: convert it with astype")


def _as_int64(values: Matrix) -> npt.NDArray[np.int64]:
    if values.dtype == np.uint64 and values.size > 0 and values.max() > np.iinfo(np.int64).max:
        raise ValueError(f"array holds the id {values.max()}; ids are int64")
    return np.ascontiguousarray(values, dtype=np.int64)
