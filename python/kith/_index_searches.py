"""The searches of an index: the k nearest, all within a radius, and the graph of its own vectors.

Functions of `self`, which `kith.Index` has as its methods.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, SupportsFloat, SupportsIndex, overload

from kith._arrays import Vectors, VectorsLike, as_queries, as_vectors
from kith._files import PathLike, path_bytes
from kith._filter import FilterLike, FiltersLike, as_filter, as_filters
from kith._options import calling, flag, real_number, seed_number, whole_number
from kith._other_names import answers_other_names, unknown_argument
from kith._progress import Progress
from kith._range_search import RangeNeighbors, range_found
from kith._search import (
    Found,
    Given,
    Neighbors,
    Output,
    fresh_neighbors,
    neighbors_of_tensors,
    plain_neighbors,
    search_with,
    tensor_place,
)
from kith._typing import ByteSize, ByteSizes, Floats, Ids, NumpyLike, Settings, Tensor

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from kith._index import Index
    from kith._knn_graph import KnnGraph


@overload
def search(
    self: Index,
    queries: NumpyLike,
    k: SupportsIndex = 10,
    *,
    probes: SupportsIndex | None = None,
    refine: SupportsIndex | None = None,
    refine_from: PathLike | None = None,
    beam: SupportsIndex | None = None,
    width: SupportsIndex | None = None,
    recall: SupportsFloat | None = None,
    filter: FiltersLike | None = None,
    filter_strict: bool = False,
    out: Output | None = None,
    comm: Any = None,
    **settings: Unpack[Settings],
) -> Neighbors[Ids, Floats]: ...
@overload
def search(
    self: Index,
    queries: Tensor,
    k: SupportsIndex = 10,
    *,
    probes: SupportsIndex | None = None,
    refine: SupportsIndex | None = None,
    refine_from: PathLike | None = None,
    beam: SupportsIndex | None = None,
    width: SupportsIndex | None = None,
    recall: SupportsFloat | None = None,
    filter: FiltersLike | None = None,
    filter_strict: bool = False,
    out: Output | None = None,
    comm: Any = None,
    **settings: Unpack[Settings],
) -> Neighbors[Tensor, Tensor]: ...
@overload
def search(  # type: ignore[overload-cannot-match,unused-ignore]
    self: Index,
    queries: VectorsLike,
    k: SupportsIndex = 10,
    *,
    probes: SupportsIndex | None = None,
    refine: SupportsIndex | None = None,
    refine_from: PathLike | None = None,
    beam: SupportsIndex | None = None,
    width: SupportsIndex | None = None,
    recall: SupportsFloat | None = None,
    filter: FiltersLike | None = None,
    filter_strict: bool = False,
    out: Output | None = None,
    comm: Any = None,
    **settings: Unpack[Settings],
) -> Neighbors: ...
def search(
    self: Index,
    queries: VectorsLike,
    k: SupportsIndex = 10,
    *,
    probes: SupportsIndex | None = None,
    refine: SupportsIndex | None = None,
    refine_from: PathLike | None = None,
    beam: SupportsIndex | None = None,
    width: SupportsIndex | None = None,
    recall: SupportsFloat | None = None,
    filter: FiltersLike | None = None,
    filter_strict: bool = False,
    threads: SupportsIndex = 0,
    memory_limit: ByteSize | None = None,
    device_memory_limit: ByteSizes | None = None,
    progress: Progress = False,
    out: Output | None = None,
    comm: Any = None,
    **unknown: NoReturn,  # not by @answers_other_names, whose call within the call takes a third of a microsecond
) -> Neighbors:
    """Find the k nearest vectors of the index for every query.

    The GIL is released, and Ctrl-C stops the search.

    Parameters
    ----------
    queries, k, threads, memory_limit, device_memory_limit, progress, out
        As in `knn`.
    probes : int, optional
        How many lists of an inverted file are looked at, those nearest to the query. More find more and take longer.
        By default the square root of their number, at most 64; beyond their number it is all. Where they hold fewer
        than k vectors, more are looked at.
    refine : int, optional
        With ``Graph``, ``RFlat``, ``Refine(...)`` or `refine_from`: the index finds ``refine * k`` candidates, compares them again
        with the vectors that are kept there, and returns the first k by those. By default 4.
    refine_from : path, optional
        A file with the original vectors, for an index that keeps none: row i is the vector with id i, so the file
        that the index was built from goes with it, also after `remove`. Only the candidates are read.
    beam : int, optional
        With ``Graph``: how many of the best vectors seen a walk over the graph keeps, at least k. More find more and take
        longer. By default the least up to 48 that had a recall of 0.98 on 1,000 of the index's own vectors when the graph was
        built, or where there is none the least that had 0.95 (``info().recalls``).
    width : int, optional
        With ``Graph``: how many vectors a step of the walk opens, by default 2.
    recall : float, optional
        Instead of `beam` or `probes`: the parameters with the fewest comparisons that had this recall in `tune`; with
        ``Graph`` and without `tune` the least beam that had it when the graph was built. Exact search where none had.
    filter : array_like, optional
        Which vectors may be found: a list of ids, or a mask or packed bits of the ``len(index)`` vectors in the
        order of add. Or a list with one of these for each query, None for no filter; a 2-D array has a row for each.
        Queries with equal filters are searched together, and results are those of a loop.
    filter_strict : bool, default False
        Raise a ValueError for a listed id that the index does not have. By default such ids are ignored, as in FAISS.
    comm : optional
        A communicator, as in `knn`. Every rank has the same index (one file, loaded with ``mmap=True``, for instance), searches a
        share of the queries, which are in host memory, and gets the whole result.

    Returns
    -------
    Neighbors
        ``(ids, distances)``, nearest first, as of `knn` over the vectors in those lists as the index keeps them.
    """
    if unknown:
        raise unknown_argument("search()", next(iter(unknown)), search)
    if (  # nothing that nearly all calls leave out: one condition, since calls of microseconds notice each step
        progress is False
        and comm is None
        and refine_from is None
        and filter is None
        and filter_strict is False
        and width is None
        and recall is None
        and memory_limit is None
        and device_memory_limit is None
    ):
        plain = self._index.search_plain(queries, k, self._device, threads, probes, refine, beam, out)
        if plain is not None:
            return plain_neighbors(Neighbors, plain)
        if out is None and beam is None and type(k) is int and type(threads) is int:
            plain = _search_tensors(self, queries, k, threads, probes, refine)
            if plain is not None:
                return plain_neighbors(Neighbors, plain)
    return _search_in_full(
        self, queries, k, probes, refine, refine_from, beam, width, recall, filter, filter_strict,
        threads, memory_limit, device_memory_limit, progress, out, comm,
    )  # fmt: skip


# A function of its own: what `step` holds on to is made when a function is entered, a microsecond of every call.
def _search_in_full(
    self: Index,
    queries: VectorsLike,
    k: SupportsIndex,
    probes: SupportsIndex | None,
    refine: SupportsIndex | None,
    refine_from: PathLike | None,
    beam: SupportsIndex | None,
    width: SupportsIndex | None,
    recall: SupportsFloat | None,
    filter: FiltersLike | None,
    filter_strict: bool,
    threads: SupportsIndex,
    memory_limit: ByteSize | None,
    device_memory_limit: ByteSizes | None,
    progress: Progress,
    out: Output | None,
    comm: Any,
) -> Neighbors:
    number = whole_number(k, "k")
    lists, times = count_or_default(probes, "probes"), count_or_default(refine, "refine")
    wide, step_width = count_or_default(beam, "beam"), count_or_default(width, "width")
    share = share_or_default(recall, "recall")
    rows, strict = as_filters(filter), flag(filter_strict, "filter_strict")
    originals = None if refine_from is None else path_bytes(refine_from, "refine_from")
    arrays = (queries, *(out if isinstance(out, tuple) else ()))
    with calling(self._device, threads, memory_limit, device_memory_limit, progress, arrays=arrays) as options:

        def step(matrix: Vectors, given: Given | None) -> Found | None:
            numbers = (number, lists, times, originals, wide, step_width, share)
            return self._index.search(matrix, *numbers, rows, strict, options, given, comm)

        searched = () if out is None else self._index.borrowed
        return search_with(step, queries, number, out, options, searched)


def _plain_count(asked: SupportsIndex | None) -> int | None:
    """0 where nothing is asked; None for what is no plain number in range: the other way refuses it, in its words."""
    if asked is None:
        return 0
    return asked if type(asked) is int and 1 <= asked < 2**62 else None


def _search_tensors(
    self: Index, queries: Any, k: int, threads: int, probes: SupportsIndex | None, refine: SupportsIndex | None
) -> tuple[Any, Any] | None:
    """For plain tensors in the memory of the GPU that searches, in less time; None for all else."""
    given = tensor_place(queries, threads, k)
    if given is None:
        return None
    number = queries.get_device()
    if self._device not in ("auto", f"cuda:{number}") and (self._device != "cuda" or number != 0):
        return None
    lists, times = _plain_count(probes), _plain_count(refine)
    if lists is None or times is None:
        return None

    def search(device: int, stream: int, ids: int, distances: int) -> None:
        self._index.search_tensors(given, k, device, threads, stream, ids, distances, lists, times)

    return neighbors_of_tensors(queries, k, search)


@answers_other_names("knn_graph()")
def knn_graph(
    self: Index,
    x: VectorsLike,
    k: SupportsIndex = 15,
    *,
    probes: SupportsIndex | None = None,
    refine: SupportsIndex | None = None,
    refine_from: PathLike | None = None,
    seed: SupportsIndex = 0,
    threads: SupportsIndex = 0,
    memory_limit: ByteSize | None = None,
    device_memory_limit: ByteSizes | None = None,
    progress: Progress = False,
) -> KnnGraph:
    """The k-NN graph of the index's own vectors: each of them is searched for, without itself.

    As fast and as good as the index's searches are; `kith.knn_graph` needs no index and reaches a recall that is asked
    for. Distances are those that the index reports, to the vectors as it keeps them.

    Parameters
    ----------
    x : array_like, (len(index), dimension)
        The vectors that the index holds, in the order of `add`: row i is the vector with the id i.
    k : int, default 15
        How many neighbours.
    seed : int, default 0
        Of the 1,000 rows on which ``report.recall`` is measured.
    probes, refine, refine_from, threads, memory_limit, device_memory_limit, progress
        As in `search`.

    Returns
    -------
    KnnGraph
        In `x`'s kind of array and memory, with a ``report`` whose method is ``"index"``.

    Raises
    ------
    ValueError
        Another number of vectors than the index holds, or ids that are not row numbers.

    Examples
    --------
    >>> import numpy as np, kith
    >>> x = np.random.default_rng(0).standard_normal((300, 8), dtype=np.float32)
    >>> index = kith.Index("Flat")
    >>> index.add(x)
    >>> graph = index.knn_graph(x, k=5)
    >>> graph.report.recall, bool((graph.ids == kith.knn_graph(x, k=5, method="exact").ids).all())
    (1.0, True)
    """
    from kith._graph_report import GraphReport
    from kith._knn_graph import KnnGraph

    number, draw = whole_number(k, "k"), seed_number(seed)
    lists, times = count_or_default(probes, "probes"), count_or_default(refine, "refine")
    originals = None if refine_from is None else path_bytes(refine_from, "refine_from")
    told: dict[str, Any] = {}

    def step(matrix: Vectors, out: Given | None) -> Found | None:
        arrays, report = self._index.knn_graph(matrix, number, lists, times, originals, draw, options, out)
        told.update(report)
        return arrays

    with calling(self._device, threads, memory_limit, device_memory_limit, progress, arrays=(x,)) as options:
        rows = as_vectors(x, "x", options.stream)[0]
        found = fresh_neighbors(step, x, rows, number, options)
        return KnnGraph._found(found.ids, found.distances, self.metric, GraphReport._of(told))


@overload
def range_search(
    self: Index,
    queries: NumpyLike,
    radius: SupportsFloat,
    *,
    probes: SupportsIndex | None = None,
    filter: FilterLike | None = None,
    filter_strict: bool = False,
    **settings: Unpack[Settings],
) -> RangeNeighbors[Ids, Floats]: ...
@overload
def range_search(
    self: Index,
    queries: Tensor,
    radius: SupportsFloat,
    *,
    probes: SupportsIndex | None = None,
    filter: FilterLike | None = None,
    filter_strict: bool = False,
    **settings: Unpack[Settings],
) -> RangeNeighbors[Tensor, Tensor]: ...
@overload
def range_search(  # type: ignore[overload-cannot-match,unused-ignore]
    self: Index,
    queries: VectorsLike,
    radius: SupportsFloat,
    *,
    probes: SupportsIndex | None = None,
    filter: FilterLike | None = None,
    filter_strict: bool = False,
    **settings: Unpack[Settings],
) -> RangeNeighbors: ...
@answers_other_names("range_search()")
def range_search(
    self: Index,
    queries: VectorsLike,
    radius: SupportsFloat,
    *,
    probes: SupportsIndex | None = None,
    filter: FilterLike | None = None,
    filter_strict: bool = False,
    threads: SupportsIndex = 0,
    memory_limit: ByteSize | None = None,
    device_memory_limit: ByteSizes | None = None,
    progress: Progress = False,
) -> RangeNeighbors:
    """Find all vectors of the index within a radius of every query, nearest first.

    The GIL is released, and Ctrl-C stops the search.

    Parameters
    ----------
    queries, radius, threads, memory_limit, device_memory_limit, progress
        As in `kith.range_search`, whose result this is.
    probes : int, optional
        How many lists are looked at, as in `search`, and no more.
    filter, filter_strict
        As in `search`.
    """
    reach = real_number(radius, "radius")
    lists = count_or_default(probes, "probes")
    rows, strict = as_filter(filter), flag(filter_strict, "filter_strict")
    with calling(self._device, threads, memory_limit, device_memory_limit, progress, arrays=(queries,)) as options:
        matrix, _ = as_queries(queries, options.stream)
        step = partial(self._index.range_search, matrix, reach, lists, rows, strict, options)
        return range_found(step, queries, matrix, options.stream)


def count_or_default(value: SupportsIndex | None, name: str) -> int:
    """A number of at least 1; 0, which the library takes for its default, where none was given."""
    if value is None:
        return 0
    number = whole_number(value, name)
    if number < 1:
        raise ValueError(f"{name} is {number}; it must be at least 1, or None for the default")
    return number


def share_or_default(value: SupportsFloat | None, name: str) -> float:
    """A number above 0 and up to 1; 0, which the library takes for none, where none was given."""
    if value is None:
        return 0.0
    number = real_number(value, name)
    if not 0 < number <= 1:
        raise ValueError(f"{name} is {number}; it must be above 0 and at most 1")
    return number
