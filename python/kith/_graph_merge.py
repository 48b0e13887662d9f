"""Graphs made of graphs: of two sets or of many, with new rows, or better than before."""

from __future__ import annotations

from typing import Any, SupportsFloat, SupportsIndex

from kith import _kith
from kith._arrays import Vectors, VectorsLike, as_base, as_queries
from kith._graph_report import GraphReport
from kith._knn_graph import KnnGraph, given_wish
from kith._options import calling, flag
from kith._progress import Progress


def merge_graphs(
    graph1: KnnGraph,
    x1: VectorsLike,
    graph2: KnnGraph,
    x2: VectorsLike,
    *more: Any,
    recall: SupportsFloat = 0.99,
    seed: SupportsIndex = 0,
    samples: SupportsIndex | None = None,
    list_length: SupportsIndex | None = None,
    iterations: SupportsIndex | None = None,
    delta: SupportsFloat | None = None,
    device: str = "auto",
    threads: SupportsIndex = 0,
    memory_limit: SupportsIndex | None = None,
    device_memory_limit: SupportsIndex | None = None,
    check_finite: bool = True,
    progress: Progress = False,
) -> KnnGraph:
    """The graph of two sets of vectors, from the graph of each (GGM).

    Rows get random neighbours of the other set in place of the far half of their lists, and rounds of NN-Descent compare
    pairs across the sets alone, which takes somewhat less time than building the graph anew. Each graph must hold neighbours
    of its own set alone, as `knn_graph` builds it. The result is the same on every device, and lies on the host.

    Parameters
    ----------
    graph1, x1, graph2, x2
        Two graphs of the same k and metric, and the vectors that they were built of.
    *more
        Further pairs of a graph and its vectors. They are merged pair by pair; ``report.recall`` is then the least of a
        pair.
    recall, seed, samples, list_length, iterations, delta
        As in `knn_graph` for ``nn_descent``.
    device, threads, memory_limit, device_memory_limit, check_finite, progress
        As in `knn`.

    Returns
    -------
    KnnGraph
        Rows count through: those of x1, then those of x2, ...

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
    graphs = [_graph(graph, "graph") for graph in (graph1, graph2, *more[0::2])]
    arrays = [x1, x2, *more[1::2]]
    wish = given_wish(
        recall=recall, seed=seed, samples=samples, list_length=list_length, iterations=iterations, delta=delta
    )
    finite = flag(check_finite, "check_finite")
    with calling(device, threads, memory_limit, device_memory_limit, progress, arrays=tuple(arrays)) as options:
        # One narrowing for all: vectors of float64 may be moved, and all must be moved alike.
        first, _, narrowing = as_base(arrays[0], "x1", graphs[0].metric, options.stream)
        rows: list[Vectors] = [first, *(as_queries(x, options.stream, narrowing)[0] for x in arrays[1:])]
        try:
            found = _kith.merge_graphs([graph._given() for graph in graphs], rows, wish, finite, options)
        except ValueError as error:
            if narrowing.offset is None or "apart" not in str(error):
                raise
            raise ValueError(
                f"{error}. Vectors of float64 are read as float32, here with x1's offset subtracted from all, and a graph "
                "whose vectors lie elsewhere was built with another one: subtract one offset from all sets yourself, round "
                "them to float32, and build the graphs of these"
            ) from None
    return _of(found, graphs[0].metric)


def extend_graph(
    graph: KnnGraph,
    x: VectorsLike,
    new: VectorsLike,
    *,
    recall: SupportsFloat = 0.99,
    seed: SupportsIndex = 0,
    samples: SupportsIndex | None = None,
    list_length: SupportsIndex | None = None,
    iterations: SupportsIndex | None = None,
    delta: SupportsFloat | None = None,
    device: str = "auto",
    threads: SupportsIndex = 0,
    memory_limit: SupportsIndex | None = None,
    device_memory_limit: SupportsIndex | None = None,
    check_finite: bool = True,
    progress: Progress = False,
) -> KnnGraph:
    """The graph of `x` and of new vectors after it, from the graph of `x`.

    Up to 4,096 new vectors are compared with all; of more the graph is built and merged (`merge_graphs`).

    Parameters
    ----------
    graph, x
        A graph and the vectors that it was built of.
    new : array_like, (rows, dimension)
        The vectors to add.
    recall, seed, samples, list_length, iterations, delta
        As in `merge_graphs`.
    device, threads, memory_limit, device_memory_limit, check_finite, progress
        As in `knn`.

    Returns
    -------
    KnnGraph
        Rows of `x`, then those of `new`.

    Examples
    --------
    >>> import numpy as np, kith
    >>> x = np.random.default_rng(0).standard_normal((500, 4), dtype=np.float32)
    >>> graph = kith.extend_graph(kith.knn_graph(x[:400]), x[:400], x[400:])
    >>> bool((graph.ids == kith.knn_graph(x).ids).all())
    True
    """
    wish = given_wish(
        recall=recall, seed=seed, samples=samples, list_length=list_length, iterations=iterations, delta=delta
    )
    finite, metric = flag(check_finite, "check_finite"), _graph(graph, "graph").metric
    with calling(device, threads, memory_limit, device_memory_limit, progress, arrays=(x, new)) as options:
        rows, _, narrowing = as_base(x, "x", metric, options.stream)
        fresh, _ = as_queries(new, options.stream, narrowing)
        return _of(_kith.extend_graph(graph._given(), rows, fresh, wish, finite, options), metric)


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
    device: str = "auto",
    threads: SupportsIndex = 0,
    memory_limit: SupportsIndex | None = None,
    device_memory_limit: SupportsIndex | None = None,
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

    Examples
    --------
    >>> import numpy as np, kith
    >>> x = np.random.default_rng(0).standard_normal((3000, 8), dtype=np.float32)
    >>> rough = kith.knn_graph(x, k=10, method="cells", cells=60, recall=0.5)
    >>> rough.report.recall < 0.99 <= kith.refine_graph(rough, x).report.recall
    True
    """
    wish = given_wish(
        recall=recall, seed=seed, samples=samples, list_length=list_length, iterations=iterations, delta=delta
    )
    finite, metric = flag(check_finite, "check_finite"), _graph(graph, "graph").metric
    with calling(device, threads, memory_limit, device_memory_limit, progress, arrays=(x,)) as options:
        rows, _, _ = as_base(x, "x", metric, options.stream)
        return _of(_kith.refine_graph(graph._given(), rows, wish, finite, options), metric)


def _graph(graph: KnnGraph, name: str) -> KnnGraph:
    if not isinstance(graph, KnnGraph):
        raise TypeError(f"{name} is a {type(graph).__name__}; it must be a kith.KnnGraph")
    return graph


def _of(found: tuple[Any, Any, dict[str, Any]], metric: str) -> KnnGraph:
    ids, distances, report = found
    return KnnGraph._found(ids, distances, metric, GraphReport._of(report))
