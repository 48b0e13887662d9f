"""The common part of all searches: results, one query or many, arrays or files, and output arrays."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Optional, Union

import numpy as np
import numpy.typing as npt

from kith._arrays import Array, Matrix, Vectors, VectorsLike, as_queries, refuse_kith_file, share_memory
from kith._device_arrays import on_device, writable_on_device
from kith._kith import CallOptions, DeviceArray, check_result_size
from kith._libraries import TORCH, TensorPlace, library_of
from kith._other_names import refuse_result_name
from kith._sources import SlicedRows, Source, SourceLike, as_source, wrapped

# (ids, distances), the caller's.
Output = tuple[Array, Array]
Found = tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]
Given = Union[Found, tuple[DeviceArray, DeviceArray]]
# (queries, out) -> fresh arrays, or None after filling out
SearchStep = Callable[[Vectors, Optional[Given]], Optional[Found]]


if TYPE_CHECKING:
    from typing_extensions import TypeVar

    IdsArray = TypeVar("IdsArray", default=Any)
    DistancesArray = TypeVar("DistancesArray", default=Any)

    class _Neighbors(NamedTuple, Generic[IdsArray, DistancesArray]):
        ids: IdsArray
        distances: DistancesArray

else:  # before Python 3.11 a named tuple cannot be generic

    class _Neighbors(NamedTuple):
        ids: Any
        distances: Any

        __class_getitem__ = classmethod(GenericAlias)

    IdsArray = DistancesArray = Any


class Neighbors(_Neighbors[IdsArray, DistancesArray]):
    """The neighbours of each query, nearest first: a named tuple ``(ids, distances)``.

    If there are fewer than k vectors, results are padded with id -1 at distance inf (-inf for ``inner_product``).

    The arrays have the queries' type (torch, cupy, jax, else numpy) and are on the queries' device. jax has no int64 unless
    ``jax_enable_x64`` is set.

    Attributes
    ----------
    ids : array of int64
        (queries, k), or (k,) for one query given as a 1-D array: row numbers of the base.
    distances : array of float32
        Of the same shape, in the metric's unit.
    """

    __slots__ = ()

    if not TYPE_CHECKING:  # type checkers know both names

        def __getattr__(self, name):
            refuse_result_name(type(self).__name__, self._fields, name)


def source_pair(queries: VectorsLike | SourceLike, base: VectorsLike | SourceLike) -> tuple[Source, Source] | None:
    """Queries and base to be read piece by piece, where both or one of them are; None for two arrays.

    Beside a source of slices a numpy array is accepted; other arrays turn the source into an array, as numpy does.
    """
    for given, name in ((queries, "queries"), (base, "base")):
        if isinstance(given, (str, os.PathLike)):
            refuse_kith_file(given, name)
    sources = as_source(queries), as_source(base)
    if sources[0] is not None and sources[1] is not None:
        return sources[0], sources[1]
    if sources[0] is None and sources[1] is None:
        return None
    if all(source is None or isinstance(source, SlicedRows) for source in sources):
        pair = wrapped(queries), wrapped(base)
        return None if pair[0] is None or pair[1] is None else (pair[0], pair[1])
    file, array = ("queries", "base") if sources[1] is None else ("base", "queries")
    raise TypeError(f"{file} is a path and {array} an array; pass two paths, or read the file with kith.read_vectors(path)")


def search_with(
    step: SearchStep,
    queries: VectorsLike,
    k: int,
    out: Output | None,
    options: CallOptions,
    searched: Iterable[Vectors] = (),
) -> Neighbors:
    """Runs `step` for one query or many, into `out` or new arrays; `out` must not overlap the `searched` ones."""
    matrix, single = as_queries(queries, options.stream)
    axes = 1 if single else 2
    if out is not None:
        given = writable_output(out, axes=axes, stream=options.stream)
        reads = (matrix, *searched)
        for i, name in enumerate(("ids", "distances")):
            if any(share_memory(given[i], read) for read in reads):
                raise ValueError(f"out: {name} share memory with the vectors that are searched; give other arrays")
        step(matrix, given)
        return Neighbors(*out)
    return fresh_neighbors(step, queries, matrix, k, options, single=single)


def fresh_neighbors(
    step: SearchStep,
    given: VectorsLike,
    matrix: Vectors,
    k: int,
    options: CallOptions,
    *,
    single: bool = False,
    rows: int | None = None,
) -> Neighbors:
    """Runs `step` for `matrix`, the readable form of `given`, into new arrays of its library, in its memory.

    They have a row for each of `matrix`, or `rows` rows.
    """
    library = library_of(given)
    if isinstance(matrix, DeviceArray):
        count = matrix.shape[0] if rows is None else rows
        check_result_size(1 if single else count, k)
        shape = (k,) if single else (count, k)
        ids = library.empty(shape, "int64", matrix.device)
        distances = library.empty(shape, "float32", matrix.device)
        step(matrix, (library.export(ids, options.stream, "ids"), library.export(distances, options.stream, "distances")))
        return Neighbors(library.finished(ids), library.finished(distances))
    ids, distances = as_neighbors(step(matrix, None), None, single=single)
    return Neighbors(library.from_host(ids, given), library.from_host(distances, given))


def as_neighbors(fresh: Found | None, out: Output | None, *, single: bool = False) -> Neighbors:
    if fresh is None:
        assert out is not None
        return Neighbors(*out)
    ids, distances = fresh
    ids = ids.view(np.int64)  # the same eight bytes under numpy's usual name for them
    return Neighbors(ids[0], distances[0]) if single else Neighbors(ids, distances)


# plain_neighbors(Neighbors, found) is `Neighbors(*found)`, which takes several times as long.
plain_neighbors: Callable[[type[Neighbors], tuple[Any, Any]], Neighbors] = tuple.__new__


def tensor_place(x: Any, threads: int, k: int = 1) -> TensorPlace | None:
    """The address of a plain tensor in a GPU's memory, for a fast path to the library; None for anything else."""
    place = TORCH.place(x) if library_of(x) is TORCH else None
    plain = place is not None and 0 not in place and 0 <= threads < 2**31 and 0 < k < 2**31
    return place if plain else None


def neighbors_of_tensors(queries: Any, k: int, search: Callable[[int, int, int, int], None]) -> tuple[Any, Any]:
    """New (ids, distances) in the memory of plain queries, after search(device, stream, address of ids, of distances)."""
    check_result_size(queries.shape[0], k)
    ids, distances = TORCH.fresh_neighbors(queries, k)
    search(queries.get_device(), TORCH.stream(queries), ids.data_ptr(), distances.data_ptr())
    return ids, distances


def writable_output(out: Output, *, axes: int, stream: int = 0) -> Given:
    """The caller's arrays as matrices that the library can fill. Their lengths are checked if they are known."""
    if not isinstance(out, tuple) or len(out) != 2:
        raise TypeError("out must be a tuple of two arrays: ids (int64) and distances (float32)")
    if on_device(out[0]) != on_device(out[1]):
        raise ValueError("out: one array lies in a GPU's memory and one on the host; give both in one place")
    if on_device(out[0]):
        given: Given = (
            writable_on_device(out[0], "ids", "int64", axes, stream),
            writable_on_device(out[1], "distances", "float32", axes, stream),
        )
    else:
        given = (
            _writable_matrix(out[0], "ids", np.dtype(np.int64), axes),
            _writable_matrix(out[1], "distances", np.dtype(np.float32), axes),
        )
    if share_memory(given[0], given[1]):
        raise ValueError("out: ids and distances share memory; give two separate arrays")
    return given


def _writable_matrix(given: Any, name: str, dtype: np.dtype[Any], axes: int) -> Matrix:
    array: Matrix | None = library_of(given).lent(given, f"out: {name}")
    if array is None or array.dtype != dtype:
        kind = type(given).__name__ if array is None else str(array.dtype)
        raise TypeError(f"out: {name} must be an array of {dtype}, not {kind}")
    if array.ndim != axes:
        raise ValueError(f"out: {name} has shape {array.shape}; it must be {'(k,)' if axes == 1 else '(queries, k)'}")
    if not array.flags.carray:  # C-contiguous, aligned and writable
        raise ValueError(f"out: {name} must be C-contiguous and writable")
    return array.reshape(1, -1) if axes == 1 else array
