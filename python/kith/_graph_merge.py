"""Graphs made of graphs: of two sets or of many, with new rows, or better than before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Optional, SupportsFloat, SupportsIndex

import numpy as np

from kith import _kith
from kith._arrays import Vectors, VectorsLike, as_queries, as_vectors
from kith._errors import kind_of
from kith._files import PathLike, path_bytes
from kith._graph_build import given_params
from kith._graph_report import GraphReport
from kith._kith import CallOptions, DeviceArray
from kith._knn_graph import KnnGraph
from kith._options import calling, flag
from kith._other_names import answers_other_names
from kith._progress import Progress
from kith._search import Found, Given, as_neighbors, fresh_neighbors
from kith._sources import SourceLike, is_path, wrapped
from kith._typing import ByteSize, ByteSizes, DeviceNames

# Fresh arrays, or None after filling those that were given, and the report.
Made = tuple[Optional[Found], dict[str, Any]]


@answers_other_names("kith.merge_graphs()")
def merge_graphs(
    graph1: KnnGraph,
    x1: VectorsLike | SourceLike,
    graph2: KnnGraph,
    x2: VectorsLike | SourceLike,
    *more: Any,
    recall: SupportsFloat = 0.99,
    seed: SupportsIndex = 0,
    samples: SupportsIndex | None = None,
    list_length: SupportsIndex | None = None,
    iterations: SupportsIndex | None = None,
    delta: SupportsFloat | None = None,
    out: PathLike | None = None,
    work: PathLike | None = None,
    keep_work: bool = False,
    device: DeviceNames = "auto",
    threads: SupportsIndex = 0,
    memory_limit: ByteSize | None = None,
    device_memory_limit: ByteSizes | None = None,
    check_finite: bool = True,
    progress: Progress = False,
) -> KnnGraph:
    """The graph of two sets of vectors, from the graph of each (GGM).

    Rows get random neighbours of the other set in place of the far half of their lists, and rounds of NN-Descent compare
    pairs across the sets alone. Each graph must hold neighbours of its own set alone, as `knn_graph` builds it. The result is
    the same on every device.

    Parameters
    ----------
    graph1, x1, graph2, x2
        Two graphs of the same k and metric, and the vectors that they were built of. Each is on the host or in a GPU's
        memory.
    *more
        Further pairs of a graph and its vectors. They are merged pair by pair; ``report.recall`` is then the least of a
        pair.
    recall, seed, samples, list_length, iterations, delta
        As in `knn_graph` for ``nn_descent``.
    out : str or path-like, optional
        A folder for the graph, as in `knn_graph`; vectors are files then, or numpy arrays of float32, float16, uint8 or int8.
        Where `memory_limit` is too little for all parts, they are merged two at a time, and two that do not fit from disk,
        to the same bytes; the same call goes on after a kill.
    work, keep_work
        As in `knn_graph`, with `out`.
    device, threads, memory_limit, device_memory_limit, check_finite, progress
        As in `knn`.

    Returns
    -------
    KnnGraph
        Rows count through: those of x1, then those of x2, ... Its arrays are of the kind that x1 is, in the GPU's memory
        if all vectors are there; otherwise they are numpy arrays.

    Raises
    ------
    ValueError
        Graphs of different k or metric, vectors of different dimension, or vectors that a graph was not built of.

    Examples
    --------
    >>> import numpy as np, kith
    >>> x = np.random.default_rng(0).standard_normal((2000, 8), dtype=np.float32)
    >>> a, b = x[:1000], x[1000:]
    >>> graph = kith.merge_graphs(kith.knn_graph(a), a, kith.knn_graph(b), b)
    >>> len(graph), graph.report.recall >= 0.99
    (2000, True)
    """
    if len(more) % 2 != 0:
        raise TypeError("graphs and vectors come in pairs: merge_graphs(graph1, x1, graph2, x2, graph3, x3, ...)")
    graphs = [_graph(graph, f"graph{number}") for number, graph in enumerate((graph1, graph2, *more[0::2]), 1)]
    arrays = [x1, x2, *more[1::2]]
    params = given_params(
        recall=recall, seed=seed, samples=samples, list_length=list_length, iterations=iterations, delta=delta
    )
    finite = flag(check_finite, "check_finite")
    keeps = flag(keep_work, "keep_work")
    if out is None and (work is not None or keeps):
        raise ValueError("work and keep_work go with out, the folder of the graph")
    if out is None:
        _refuse_files({f"x{number}": x for number, x in enumerate(arrays, 1)})
    if out is not None:
        with calling(device, threads, memory_limit, device_memory_limit, progress) as options:
            sources = [wrapped(x) for x in arrays]
            if any(source is None for source in sources):
                raise ValueError("out needs files, or numpy arrays of float32, float16, uint8 or int8")
            kept = b"" if work is None else path_bytes(work, "work")
            given = [graph._given() for graph in graphs]
            told = _kith.merge_graphs_folder(given, sources, path_bytes(out, "out"), kept, keeps, params, finite, options)
            (ids, distances), _ = _kith.load_graph_folder(path_bytes(out, "out"), options)
            return KnnGraph._found(ids.view(np.int64), distances, graphs[0].metric, GraphReport._of(told))
    with calling(device, threads, memory_limit, device_memory_limit, progress, arrays=_arrays_of(arrays, graphs)) as options:
        rows = [as_vectors(arrays[0], "x1", options.stream)[0]]
        rows += [as_queries(x, options.stream, f"x{number}")[0] for number, x in enumerate(arrays[1:], 2)]
        given = [graph._given_there(options) for graph in graphs]

        def step(out: Given | None) -> Made:
            return _kith.merge_graphs(given, rows, params, finite, options, out)

        return _made(step, arrays[0], rows, graphs[0], options)


@answers_other_names("kith.extend_graph()")
def extend_graph(
    graph: KnnGraph,
    x: VectorsLike | SourceLike,
    new: VectorsLike | SourceLike,
    *,
    recall: SupportsFloat = 0.99,
    seed: SupportsIndex = 0,
    samples: SupportsIndex | None = None,
    list_length: SupportsIndex | None = None,
    iterations: SupportsIndex | None = None,
    delta: SupportsFloat | None = None,
    out: PathLike | None = None,
    work: PathLike | None = None,
    keep_work: bool = False,
    device: DeviceNames = "auto",
    threads: SupportsIndex = 0,
    memory_limit: ByteSize | None = None,
    device_memory_limit: ByteSizes | None = None,
    check_finite: bool = True,
    progress: Progress = False,
) -> KnnGraph:
    """The graph of `x` and of new vectors after it, from the graph of `x`.

    Up to 4,096 new vectors are compared with all, or any number at a recall of 1; of more the graph is built and merged
    (`merge_graphs`).

    Parameters
    ----------
    graph, x
        A graph and the vectors that it was built of.
    new : array_like, (rows, dimension)
        The vectors to add.
    recall, seed, samples, list_length, iterations, delta
        As in `merge_graphs`; with ``recall=1`` new vectors are compared with all, and the other neighbours are those of
        `graph`.
    out : str or path-like, optional
        A folder for the graph, as in `merge_graphs`. New vectors that are compared with all are so from disk, under any
        `memory_limit`, and the same call goes on after a kill; the report has no recall then. More are merged in memory,
        or from disk where that has no room.
    work, keep_work
        As in `knn_graph`, with `out`.
    device, threads, memory_limit, device_memory_limit, check_finite, progress
        As in `knn`.

    Returns
    -------
    KnnGraph
        Rows of `x`, then those of `new`; in the memory that `merge_graphs` would use.

    Examples
    --------
    >>> import numpy as np, kith
    >>> x = np.random.default_rng(0).standard_normal((500, 4), dtype=np.float32)
    >>> graph = kith.extend_graph(kith.knn_graph(x[:400]), x[:400], x[400:])
    >>> bool((graph.ids == kith.knn_graph(x).ids).all())
    True
    """
    params = given_params(
        recall=recall, seed=seed, samples=samples, list_length=list_length, iterations=iterations, delta=delta
    )
    finite, metric = flag(check_finite, "check_finite"), _graph(graph, "graph").metric
    vectors: list[Any] = [x, new]
    keeps = flag(keep_work, "keep_work")
    if out is None and (work is not None or keeps):
        raise ValueError("work and keep_work go with out, the folder of the graph")
    if out is None:
        _refuse_files({"x": x, "new": new})
    if out is not None:
        with calling(device, threads, memory_limit, device_memory_limit, progress) as options:
            sources = [wrapped(given) for given in vectors]
            if any(source is None for source in sources):
                raise ValueError("out needs files, or numpy arrays of float32, float16, uint8 or int8")
            kept = b"" if work is None else path_bytes(work, "work")
            told = _kith.extend_graph_folder(
                graph._given(), sources[0], sources[1], path_bytes(out, "out"), kept, keeps, params, finite, options
            )
            (ids, distances), _ = _kith.load_graph_folder(path_bytes(out, "out"), options)
            return KnnGraph._found(ids.view(np.int64), distances, metric, GraphReport._of(told))
    arrays = _arrays_of(vectors, [graph])
    with calling(device, threads, memory_limit, device_memory_limit, progress, arrays=arrays) as options:
        rows, _ = as_vectors(vectors[0], "x", options.stream)
        fresh, _ = as_queries(vectors[1], options.stream, "new")
        given = graph._given_there(options)

        def step(out: Given | None) -> Made:
            return _kith.extend_graph(given, rows, fresh, params, finite, options, out)

        return _made(step, vectors[0], [rows, fresh], graph, options)


@answers_other_names("kith.refine_graph()")
def refine_graph(
    graph: KnnGraph,
    x: VectorsLike,
    recall: SupportsFloat = 0.99,
    *,
    seed: SupportsIndex = 0,
    samples: SupportsIndex | None = None,
    list_length: SupportsIndex | None = None,
    iterations: SupportsIndex | None = None,
    delta: SupportsFloat | None = None,
    device: DeviceNames = "auto",
    threads: SupportsIndex = 0,
    memory_limit: ByteSize | None = None,
    device_memory_limit: ByteSizes | None = None,
    check_finite: bool = True,
    progress: Progress = False,
) -> KnnGraph:
    """The graph of the same vectors with more of their true neighbours, by rounds of NN-Descent.

    Parameters
    ----------
    graph, x
        A graph, from anywhere, and the vectors that it was built of.
    recall : float, default 0.99
        The share of the true neighbours to reach.
    seed, samples, list_length, iterations, delta
        As in `merge_graphs`.
    device, threads, memory_limit, device_memory_limit, check_finite, progress
        As in `knn`.

    Returns
    -------
    KnnGraph
        In `x`'s kind of array and memory.

    Examples
    --------
    >>> import numpy as np, kith
    >>> x = np.random.default_rng(0).standard_normal((3000, 8), dtype=np.float32)
    >>> rough = kith.knn_graph(x, k=10, method="cells", cells=60, recall=0.5)
    >>> rough.report.recall < 0.99 <= kith.refine_graph(rough, x).report.recall
    True
    """
    params = given_params(
        recall=recall, seed=seed, samples=samples, list_length=list_length, iterations=iterations, delta=delta
    )
    finite, metric = flag(check_finite, "check_finite"), _graph(graph, "graph").metric
    arrays = _arrays_of([x], [graph])
    with calling(device, threads, memory_limit, device_memory_limit, progress, arrays=arrays) as options:
        rows, _ = as_vectors(x, "x", options.stream)
        given = graph._given_there(options)

        def step(out: Given | None) -> Made:
            return _kith.refine_graph(given, rows, params, finite, options, out)

        return _made(step, x, [rows], graph, options)


def _graph(graph: KnnGraph, name: str) -> KnnGraph:
    if not isinstance(graph, KnnGraph):
        raise TypeError(f"{name} is {kind_of(graph)}; it must be a kith.KnnGraph")
    return graph


def _refuse_files(vectors: dict[str, object]) -> None:
    for name, given in vectors.items():
        paths = isinstance(given, (list, tuple)) and len(given) > 0 and all(is_path(path) for path in given)
        if is_path(given) or paths:
            raise ValueError(f"{name} names a file: give out, the folder for the graph, or read it with kith.read_vectors(path)")


def _arrays_of(vectors: Sequence[object], graphs: Sequence[KnnGraph]) -> tuple[object, ...]:
    """All that a call reads."""
    return (*vectors, *(array for graph in graphs for array in (graph.ids, graph.distances)))


def _made(
    step: Callable[[Given | None], Made], like: VectorsLike, rows: Sequence[Vectors], graph: KnnGraph, options: CallOptions
) -> KnnGraph:
    """The result of `step` for all `rows`: arrays of the library of `like`, the first of them, in their common memory."""
    told: dict[str, Any] = {}

    def search(_: Vectors, out: Given | None) -> Found | None:
        arrays, report = step(out)
        told.update(report)
        return arrays

    if len({isinstance(matrix, DeviceArray) for matrix in rows}) == 1:
        count = sum(matrix.shape[0] for matrix in rows)
        found = fresh_neighbors(search, like, rows[0], graph.k, options, rows=count)
    else:
        found = as_neighbors(search(rows[0], None), None)
    return KnnGraph._found(found.ids, found.distances, graph.metric, GraphReport._of(told))
