"""All neighbours within a radius, in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from types import GenericAlias
from typing import Any, Generic, NamedTuple, SupportsFloat, SupportsIndex, TYPE_CHECKING, overload

import numpy as np
import numpy.typing as npt

from kith import _kith
from kith._arrays import Vectors, VectorsLike, as_queries, as_vectors
from kith._filter import FilterLike, as_filter
from kith._kith import DeviceArray
from kith._libraries import library_of
from kith._metrics import Metric, metric_name
from kith._options import calling, flag, real_number, whole_number
from kith._other_names import answers_other_names, refuse_result_name
from kith._progress import Progress
from kith._search import Neighbors, source_pair
from kith._sources import SourceLike, array_of
from kith._typing import ByteSize, ByteSizes, CallSettings, DeviceNames, Floats, HostLike, Ids, Tensor

RangeArrays = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float32]]


if TYPE_CHECKING:
    from typing_extensions import TypeVar, Unpack

    IdsArray = TypeVar("IdsArray", default=Any)
    DistancesArray = TypeVar("DistancesArray", default=Any)

    class _RangeNeighbors(NamedTuple, Generic[IdsArray, DistancesArray]):
        offsets: IdsArray
        ids: IdsArray
        distances: DistancesArray

else:  # before Python 3.11 a named tuple cannot be generic

    class _RangeNeighbors(NamedTuple):
        offsets: Any
        ids: Any
        distances: Any

        __class_getitem__ = classmethod(GenericAlias)

    IdsArray = DistancesArray = Any


class RangeNeighbors(_RangeNeighbors[IdsArray, DistancesArray]):
    """The vectors within a radius of each query, nearest first: a named tuple ``(offsets, ids, distances)``.

    Those of query ``q`` are ``ids[offsets[q]:offsets[q + 1]]``, and their distances likewise; `by_query` goes over them.

    The arrays have the queries' type (torch, cupy, jax, else numpy) and are on the queries' device.

    Attributes
    ----------
    offsets : array of int64
        (queries + 1,), from 0 to the number of all rows found. One query given as a 1-D array has two offsets.
    ids : array of int64
        Row numbers of the base.
    distances : array of float32
        As many, in the metric's unit.
    """

    __slots__ = ()

    if not TYPE_CHECKING:  # type checkers know all names

        def __getattr__(self, name):
            refuse_result_name(type(self).__name__, self._fields, name)

    def by_query(self) -> Iterator[Neighbors[IdsArray, DistancesArray]]:
        """For each query the ids and distances of what was found: slices of the arrays, without copying.

        Examples
        --------
        >>> import kith
        >>> found = kith.range_search([[0.0], [5.0]], [[0.0], [1.0], [7.0]], radius=1.5)
        >>> [ids.tolist() for ids, distances in found.by_query()]
        [[0, 1], []]
        """
        ids: Any = self.ids
        distances: Any = self.distances
        offsets = library_of(self.offsets).to_host(self.offsets).tolist()
        for first, last in zip(offsets, offsets[1:]):
            yield Neighbors(ids[first:last], distances[first:last])

    def to_csr(self, columns: SupportsIndex | None = None) -> Any:
        """What was found as a sparse matrix of distances: scipy's, so that a result in a GPU's memory is copied.

        Parameters
        ----------
        columns : int, optional
            How many rows the base has. By default as many as there are queries, which is right for a search of vectors
            among themselves, or more where an id is larger.

        Returns
        -------
        scipy.sparse.csr_array of float32, (queries, columns)
            Row q holds the distances of what query q has found, in the columns of their ids, ascending. A neighbour at
            distance 0 is an entry too.

        Raises
        ------
        ImportError
            scipy is not installed.
        ValueError
            An id that is not below `columns`.

        Examples
        --------
        >>> import kith
        >>> kith.range_search([[0.0], [5.0]], [[0.0], [1.0], [7.0]], radius=2).to_csr(columns=3).toarray()
        array([[0., 1., 0.],
               [0., 0., 2.]], dtype=float32)
        """
        try:
            from scipy.sparse import csr_array  # type: ignore[import-untyped]
        except ImportError:
            raise ImportError("to_csr makes a sparse matrix of scipy, which is missing: pip install scipy") from None
        offsets, ids, distances = (library_of(part).to_host(part) for part in self)
        queries = offsets.size - 1
        needed = int(ids.max(initial=-1)) + 1
        width = max(queries, needed) if columns is None else whole_number(columns, "columns")
        if needed > width:
            raise ValueError(f"columns is {width}, but the id {needed - 1} was found; give the number of rows of the base")
        owners = np.repeat(np.arange(queries), np.diff(offsets))
        order = np.lexsort((ids, owners))
        return csr_array((distances[order], ids[order], offsets), shape=(queries, width))


# Allocates a number of values of some bytes each in a GPU's memory.
Room = Callable[[int, int], DeviceArray]


def range_found(
    search: Callable[[Room | None], RangeArrays | None], given: VectorsLike, matrix: Vectors, stream: int
) -> RangeNeighbors:
    """The results of `search` for `matrix`, the readable form of `given`: in arrays of its library, in its memory."""
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


@overload
def range_search(
    queries: HostLike,
    base: VectorsLike | SourceLike,
    radius: SupportsFloat,
    metric: Metric = "l2",
    *,
    filter: FilterLike | None = None,
    without_self: bool = False,
    **settings: Unpack[CallSettings],
) -> RangeNeighbors[Ids, Floats]: ...
@overload
def range_search(
    queries: Tensor,
    base: VectorsLike,
    radius: SupportsFloat,
    metric: Metric = "l2",
    *,
    filter: FilterLike | None = None,
    without_self: bool = False,
    **settings: Unpack[CallSettings],
) -> RangeNeighbors[Tensor, Tensor]: ...
@overload
def range_search(  # type: ignore[overload-cannot-match,unused-ignore]
    queries: VectorsLike,
    base: VectorsLike,
    radius: SupportsFloat,
    metric: Metric = "l2",
    *,
    filter: FilterLike | None = None,
    without_self: bool = False,
    **settings: Unpack[CallSettings],
) -> RangeNeighbors: ...
@answers_other_names("kith.range_search()")
def range_search(
    queries: VectorsLike | SourceLike,
    base: VectorsLike | SourceLike,
    radius: SupportsFloat,
    metric: Metric = "l2",
    *,
    filter: FilterLike | None = None,
    without_self: bool = False,
    device: DeviceNames = "auto",
    threads: SupportsIndex = 0,
    memory_limit: ByteSize | None = None,
    device_memory_limit: ByteSizes | None = None,
    check_finite: bool = True,
    progress: Progress = False,
) -> RangeNeighbors:
    """Find all vectors of the base within a radius of every query, exactly, nearest first.

    Distances are those that `knn` reports, in its order.

    Parameters
    ----------
    queries, base : array_like
        As in `knn`; or files, as there.
    radius : float
        In the metric's unit, and included: all rows at a distance of at most `radius`, or with an inner product of at
        least `radius`. It is rounded to float32, as the distances are.
    metric : str, default "l2"
        As in `knn`.
    filter : array_like, optional
        The rows that may be found, as in `knn`.
    without_self : bool, default False
        For a search of vectors among themselves, ``range_search(x, x, ...)``: query i does not find row i. Duplicates of
        it are found.
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

    Near duplicates, by query:

    >>> x = np.array([[0, 0], [0, 1], [9, 9]], dtype=np.float32)
    >>> [ids.tolist() for ids, _ in kith.range_search(x, x, radius=1, without_self=True).by_query()]
    [[1], [0], []]
    """
    reach = real_number(radius, "radius")
    name = metric_name(metric)
    others = flag(without_self, "without_self")
    finite = flag(check_finite, "check_finite")
    rows = as_filter(filter)
    with calling(device, threads, memory_limit, device_memory_limit, progress, arrays=(queries, base)) as options:
        files = source_pair(queries, base)
        if files is not None:
            return as_range_neighbors(_kith.range_search_files(*files, reach, name, finite, rows, others, options))
        queries, base = array_of(queries), array_of(base)
        base_matrix, _ = as_vectors(base, "base", options.stream)
        matrix, _ = as_queries(queries, options.stream)
        search = partial(_kith.range_search, matrix, base_matrix, reach, name, finite, rows, others, options)
        found = range_found(search, queries, matrix, options.stream)
        if others and isinstance(matrix, DeviceArray):
            return RangeNeighbors(*library_of(queries).without_self(*found))
        return found
