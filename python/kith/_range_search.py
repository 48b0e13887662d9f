"""All neighbours within a radius, in one call."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, SupportsFloat, SupportsIndex

import numpy as np
import numpy.typing as npt

from kith import _kith
from kith._arrays import Array, Vectors, VectorsLike, as_base, as_queries
from kith._files import PathLike
from kith._filter import FilterLike, as_filter
from kith._kith import DeviceArray
from kith._libraries import library_of
from kith._options import calling, flag, real_number, text
from kith._progress import Progress
from kith._search import file_pair

RangeArrays = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float32]]


class RangeNeighbors(NamedTuple):
    """The vectors within a radius of each query, nearest first.

    Those of query ``q`` are ``ids[offsets[q]:offsets[q + 1]]``, and their distances likewise.

    All are arrays of the queries' library where that is torch, cupy or jax, and lie where the queries do; else numpy's.

    Attributes
    ----------
    offsets : array of int64
        (queries + 1,), from 0 to the number of all rows found. One query given as a 1-D array has two offsets.
    ids : array of int64
        Row numbers of the base.
    distances : array of float32
        As many, in the metric's unit.
    """

    offsets: Array
    ids: Array
    distances: Array


# Makes room for so many values of so many bytes each, in a GPU's memory.
Room = Callable[[int, int], DeviceArray]


def range_found(
    search: Callable[[Room | None], RangeArrays | None], given: VectorsLike, matrix: Vectors, stream: int
) -> RangeNeighbors:
    """What `search` finds for `matrix`, which is `given` made readable: in arrays of its library, where it lies."""
    if not isinstance(matrix, DeviceArray):
        found = search(None)
        assert found is not None
        return as_range_neighbors(found, given)
    library = library_of(given)
    device = matrix.device
    made: list[Any] = []

    def room(count: int, bytes_each: int) -> DeviceArray:
        made.append(library.empty((count,), "int64" if bytes_each == 8 else "float32", device))
        return library.export(made[-1], stream, "the result")

    search(room)
    return RangeNeighbors(*(library.finished(array) for array in made[-3:]))


def as_range_neighbors(found: RangeArrays, queries: object = None) -> RangeNeighbors:
    """Host arrays in the queries' kind of array."""
    offsets, ids, distances = found
    library = library_of(queries)
    usual = (offsets.view(np.int64), ids.view(np.int64), distances)  # numpy's usual name for int64
    return RangeNeighbors(*(library.from_host(array, queries) for array in usual))


def range_search(
    queries: VectorsLike | PathLike,
    base: VectorsLike | PathLike,
    radius: SupportsFloat,
    metric: str = "l2",
    *,
    filter: FilterLike | None = None,
    device: str = "auto",
    threads: SupportsIndex = 0,
    memory_limit: SupportsIndex | None = None,
    device_memory_limit: SupportsIndex | None = None,
    check_finite: bool = True,
    progress: Progress = False,
) -> RangeNeighbors:
    """Find, for every query, all vectors of the base within a radius: exactly, nearest first.

    Distances are those that `knn` reports, in its order.

    Parameters
    ----------
    queries, base : array_like
        As in `knn`; or two paths.
    radius : float
        In the metric's unit, and included: all rows at a distance of at most `radius`, or with an inner product of at
        least `radius`. It is rounded to float32, as the distances are.
    metric : str, default "l2"
        As in `knn`.
    filter : array_like, optional
        The rows that may be found, as in `knn`.
    device, threads, memory_limit, device_memory_limit, check_finite, progress
        As in `knn`.

    Returns
    -------
    RangeNeighbors
        A named tuple ``(offsets, ids, distances)`` of int64, int64 and float32 arrays: what was found for query ``q``
        is entries ``offsets[q]`` to ``offsets[q + 1] - 1`` of the other two.

    Raises
    ------
    ValueError, TypeError
        As `knn`; a radius that is NaN.
    MemoryError
        The limit has no room for all rows within the radius.

    Examples
    --------
    >>> import numpy as np, kith
    >>> base = np.array([[0, 0], [3, 4], [6, 8]], dtype=np.float32)
    >>> found = kith.range_search([[0, 0], [6, 7]], base, radius=5)
    >>> found.offsets, found.ids
    (array([0, 2, 4]), array([0, 1, 2, 1]))
    """
    reach = real_number(radius, "radius")
    name = text(metric, "metric")
    finite = flag(check_finite, "check_finite")
    rows = as_filter(filter)
    with calling(device, threads, memory_limit, device_memory_limit, progress, arrays=(queries, base)) as options:
        if isinstance(queries, (str, os.PathLike)) or isinstance(base, (str, os.PathLike)):
            files = file_pair(queries, base)
            return as_range_neighbors(_kith.range_search_files(*files, reach, name, finite, rows, options))
        base_matrix, _, narrowing = as_base(base, "base", name, options.stream)
        matrix, _ = as_queries(queries, options.stream, narrowing)
        search = partial(_kith.range_search, matrix, base_matrix, reach, name, finite, rows, options)
        return range_found(search, queries, matrix, options.stream)
