"""What every search has in common: its result, one query or many, arrays or files, and where the result goes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Optional

import numpy as np
import numpy.typing as npt

from kith._arrays import Matrix, VectorsLike, as_queries
from kith._files import PathLike, path_bytes

Output = tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]
Fresh = Optional[Output]
# (queries, out) -> fresh arrays, or None after filling out
SearchStep = Callable[[Matrix, Optional[Output]], Fresh]


class Neighbors(NamedTuple):
    """The neighbours of each query, nearest first.

    Where there are fewer than k vectors, the rest is id -1 at distance inf (-inf for ``inner_product``).

    Attributes
    ----------
    ids : numpy.ndarray of int64
        (queries, k), or (k,) for one query given as a 1-D array: row numbers of the base.
    distances : numpy.ndarray of float32
        Of the same shape, in the metric's unit.
    """

    ids: npt.NDArray[np.int64]
    distances: npt.NDArray[np.float32]


def file_pair(queries: VectorsLike | PathLike, base: VectorsLike | PathLike) -> tuple[bytes, bytes]:
    """The paths of queries and base, of which one at least is a path."""
    if isinstance(queries, (str, os.PathLike)) and isinstance(base, (str, os.PathLike)):
        return path_bytes(queries), path_bytes(base)
    raise TypeError("an array and a path; pass two paths, or read the file with kith.read_vectors(path)")


def search_with(
    step: SearchStep, queries: VectorsLike, out: Output | None, searched: Iterable[Matrix] = ()
) -> Neighbors:
    """Runs `step` for one query or many, into `out` or fresh arrays; in the `searched` ones `out` must not lie."""
    matrix, single = as_queries(queries)
    given = None if out is None else writable_output(out, axes=1 if single else 2)
    if given is not None:
        for array, name in zip(given, ("ids", "distances")):
            if any(np.may_share_memory(array, read) for read in (matrix, *searched)):
                raise ValueError(f"out: {name} share memory with the vectors that are searched; give other arrays")
    return as_neighbors(step(matrix, given), out, single=single)


def as_neighbors(fresh: Fresh, out: Output | None, *, single: bool = False) -> Neighbors:
    if fresh is None:
        assert out is not None
        return Neighbors(*out)
    ids, distances = fresh
    ids = ids.view(np.int64)  # the same eight bytes under numpy's usual name for them
    return Neighbors(ids[0], distances[0]) if single else Neighbors(ids, distances)


def writable_output(out: Output, *, axes: int) -> Output:
    """The caller's arrays as matrices that the library can fill. Their lengths are checked where they are known."""
    if not isinstance(out, tuple) or len(out) != 2:
        raise TypeError("out must be a tuple of two arrays: ids (int64) and distances (float32)")
    ids = _writable_matrix(out[0], "ids", np.dtype(np.int64), axes)
    distances = _writable_matrix(out[1], "distances", np.dtype(np.float32), axes)
    if np.may_share_memory(ids, distances):
        raise ValueError("out: ids and distances share memory; give two separate arrays")
    return ids, distances


def _writable_matrix(array: Any, name: str, dtype: np.dtype[Any], axes: int) -> npt.NDArray[Any]:
    if not isinstance(array, np.ndarray) or array.dtype != dtype:
        kind = str(array.dtype) if isinstance(array, np.ndarray) else type(array).__name__
        raise TypeError(f"out: {name} must be a numpy array of {dtype}, not {kind}")
    if array.ndim != axes:
        raise ValueError(f"out: {name} has shape {array.shape}; it must be {'(k,)' if axes == 1 else '(queries, k)'}")
    if not (array.flags.c_contiguous and array.flags.aligned and array.flags.writeable):
        raise ValueError(f"out: {name} must be C-contiguous and writable")
    return array.reshape(1, -1) if axes == 1 else array
