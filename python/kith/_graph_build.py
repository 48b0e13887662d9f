"""Building the k-NN graph of a collection, from arrays or from files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np

from kith import _kith
from kith._arrays import Vectors, VectorsLike, as_vectors
from kith._files import PathLike, path_bytes
from kith._graph_report import GraphReport
from kith._knn_graph import KnnGraph
from kith._metrics import Metric, metric_name
from kith._options import calling, flag, real_number, seed_number, text, whole_number
from kith._other_names import answers_other_names
from kith._progress import Progress
from kith._search import Found, Given, fresh_neighbors
from kith._sources import SourceLike, array_of, as_source, wrapped
from kith._typing import ByteSize, ByteSizes, DeviceNames


@answers_other_names("kith.knn_graph()")
def knn_graph(
    x: VectorsLike | SourceLike,
    k: SupportsIndex = 15,
    metric: Metric = "l2",
    method: str = "auto",
    *,
    recall: SupportsFloat = 0.99,
    seed: SupportsIndex = 0,
    cells: SupportsIndex | None = None,
    probes: SupportsIndex | None = None,
    start: str | None = None,
    samples: SupportsIndex | None = None,
    list_length: SupportsIndex | None = None,
    iterations: SupportsIndex | None = None,
    delta: SupportsFloat | None = None,
    update: str | None = None,
    shards: SupportsIndex | None = None,
    out: PathLike | None = None,
    work: PathLike | None = None,
    keep_work: bool = False,
    int32_ids: bool = False,
    part: str | None = None,
    wait: bool = True,
    device: DeviceNames = "auto",
    threads: SupportsIndex = 0,
    memory_limit: ByteSize | None = None,
    device_memory_limit: ByteSizes | None = None,
    check_finite: bool = True,
    progress: Progress = False,
    comm: Any = None,
) -> KnnGraph:
    """Find, for every row of `x`, its k nearest other rows.

    A row is never its own neighbour, but its duplicates are. Neighbours are in the order of `knn`, by (distance, row
    number). The same input, parameters and seed give the same bytes for any number of threads and memory limit; where
    there is a GPU, ``method="auto"`` may choose another method.

    Parameters
    ----------
    x : array_like, (rows, dimension)
        Vectors, as in `knn`, on the host or in a GPU's memory; or files of vectors, as there, which are read into memory.
    k : int, default 15
        How many neighbours. Where there are fewer other rows, the rest is id -1 at distance inf (-inf for
        ``inner_product``).
    metric : str, default "l2"
        As in `knn`.
    method : str, default "auto"
        ``"exact"`` compares all pairs. ``"cells"`` compares a row with the rows of the k-means cells nearest to it (l2,
        sqeuclidean, cosine, inner_product). ``"nn_descent"`` compares neighbours' neighbours, in rounds (every metric).
        ``"ggm"`` builds the graph of each shard of the rows by nn_descent, and merges them pair by pair (every metric).
        ``"auto"`` takes the one that is soonest on these rows, on the CPU or a GPU: exact for few rows and for those
        that cells do not separate.
    recall : float, default 0.99
        The share of the true neighbours to find, above 0 and up to 1; 1 is exact. It is estimated on 1,000 rows that are
        searched exactly. ``"auto"`` reaches it unless too many pairs would have to be compared (docs/knn-graph.md); a
        method that is named ends at its limit. Then ``report.reached`` is False.
    seed : int, default 0
        Seed of the random numbers.
    cells, probes : int, optional
        Of ``"cells"``: how many cells there are, and with how many of them a row is compared at most (as many as the recall
        needs).
    start : str, optional
        Of ``"nn_descent"``: what it begins with, ``"random"`` lists or ``"cells"``.
    samples, list_length, iterations : int, optional
        Of ``"nn_descent"`` and ``"ggm"``: new and old neighbours of a list that meet in a round, each (32); the length of the working
        lists, at least k (64); the most rounds (20).
    delta : float, optional
        Of both: ends when at most ``delta * rows * k`` neighbours have entered in a round (0.001).
    update : str, optional
        Of ``"nn_descent"``: ``"selective"`` offers each sample its nearest alone, ``"all"`` every compared pair.
    shards : int, optional
        Of ``"ggm"``: how many there are, of consecutive rows; memory is that of two. By default one for every 2,500,000 rows (fewer
        rows where k is above 51).
    out : str or path-like, optional
        A folder for ``ids.npy``, ``distances.npy`` and ``report.json``, which are mapped then (`KnnGraph.load`); `x` are files,
        or a numpy array of float32, float16, uint8 or int8. Where `memory_limit` or `device_memory_limit` is too little
        for all rows, ``"exact"`` goes over the files, ``"cells"`` works from disk, on the CPU or a GPU, ``"ggm"`` from
        disk, two shards at a time, and ``"auto"`` chooses among exact and cells as in memory: the same call goes on after
        a kill (docs/knn-graph.md).
    work : str or path-like, optional
        With `out`: the folder for the files of ``"cells"`` and ``"ggm"`` if they do not fit in memory, perhaps on another disk;
        by default ``work`` in `out`.
    keep_work : bool, default False
        Keep the files of that folder once the graph is there.
    int32_ids : bool, default False
        With `out`: ``ids.npy`` holds int32, half as many bytes; they are read into memory then, not mapped. For ids
        without distances see `knn_graph_ids`.
    part : str, optional
        With `out` and ``method="cells"``: ``"2/3"`` is the second of three processes that share the work, on one machine or on
        several that see the same folders. Each makes this call with another part, all return the same graph, and it is the
        one that a single process would make (docs/clusters.md).
    wait : bool, default True
        With `part`: wait for the other parts between phases. False raises `kith.UnfinishedError` there; make the call again
        later.
    device, threads, memory_limit, device_memory_limit, check_finite, progress
        As in `knn`. With `out` and ``method="cells"`` several devices share the work, from disk.
    comm : optional
        A communicator, as in `knn`. Every rank makes this call with the same numpy array or files, does a part of the work on
        its CPU (``"exact"`` and ``"cells"``; what ``"nn_descent"`` and ``"ggm"`` do, each does by itself) and gets the whole
        graph. With `out`, on a file system that all ranks see, and ``method="cells"`` it is built from disk, on CPUs or GPUs
        (docs/clusters.md).

    Returns
    -------
    KnnGraph
        With ``ids`` and ``distances``, (rows, k), in `x`'s kind of array and memory, a ``report``, and
        what others take: `KnnGraph.to_csr`, `KnnGraph.to_umap`, `KnnGraph.to_scanpy`.

    Raises
    ------
    ValueError, TypeError, MemoryError
        As `knn`; an unknown method, a parameter of another method, a recall that is none.
    UnfinishedError
        With ``wait=False``, if other parts must finish first; the text says what is missing.

    Examples
    --------
    >>> import numpy as np, kith
    >>> graph = kith.knn_graph(np.array([[0], [1], [3], [7]], dtype=np.float32), k=2)
    >>> graph
    kith.KnnGraph(rows=4, k=2, metric='l2')
    >>> graph.ids
    array([[1, 2],
           [0, 2],
           [1, 0],
           [2, 1]])
    """
    number = whole_number(k, "k")
    name, way = metric_name(metric), text(method, "method")
    finite = flag(check_finite, "check_finite")
    keeps = flag(keep_work, "keep_work")
    narrow = flag(int32_ids, "int32_ids")
    share = "" if part is None else text(part, "part")
    waits = flag(wait, "wait")
    if out is None and (work is not None or keeps or narrow or part is not None):
        raise ValueError("work, keep_work, int32_ids and part go with out, the folder of the graph")
    if part is None and not waits:
        raise ValueError("wait=False goes with part")
    params = given_params(
        recall=recall, seed=seed, cells=cells, probes=probes, start=start, samples=samples, list_length=list_length,
        iterations=iterations, delta=delta, update=update, shards=shards,
    )  # fmt: skip
    with calling(device, threads, memory_limit, device_memory_limit, progress, arrays=(x,)) as options:
        source = as_source(x) if out is None else wrapped(x)
        if out is not None:
            if source is None:
                raise ValueError("out needs files, or a numpy array of float32, float16, uint8 or int8")
            kept = b"" if work is None else path_bytes(work, "work")
            form = (False, narrow)
            told = _kith.knn_graph_folder(
                source, path_bytes(out, "out"), kept, keeps, form, share, waits, number, name, way, finite, params, options,
                comm,
            )  # fmt: skip
            (ids, distances), _ = _kith.load_graph_folder(path_bytes(out, "out"), options)
            return KnnGraph._found(ids.view(np.int64), distances, name, GraphReport._of(told))
        if source is not None:
            (ids, distances), told = _kith.knn_graph_file(source, number, name, way, finite, params, options, comm)
            return KnnGraph._found(ids.view(np.int64), distances, name, GraphReport._of(told))
        x = array_of(x)
        rows, _ = as_vectors(x, "x", options.stream)

        told = {}

        def step(matrix: Vectors, given: Given | None) -> Found | None:
            arrays, report = _kith.knn_graph(matrix, number, name, way, finite, params, options, given, comm)
            told.update(report)
            return arrays

        found = fresh_neighbors(step, x, rows, number, options)
    return KnnGraph._found(found.ids, found.distances, name, GraphReport._of(told))


@dataclass(frozen=True)
class GraphIds:
    """A graph's ids without its distances: what `knn_graph_ids` returns."""

    ids: np.ndarray[Any, Any]
    """(rows, k), mapped from ``ids.npy``."""
    report: GraphReport
    """As that of `KnnGraph`."""


@answers_other_names("kith.knn_graph_ids()")
def knn_graph_ids(
    x: SourceLike,
    out: PathLike,
    k: SupportsIndex = 15,
    metric: Metric = "l2",
    method: str = "auto",
    *,
    recall: SupportsFloat = 0.99,
    seed: SupportsIndex = 0,
    cells: SupportsIndex | None = None,
    probes: SupportsIndex | None = None,
    int32_ids: bool = False,
    work: PathLike | None = None,
    keep_work: bool = False,
    device: str = "auto",
    threads: SupportsIndex = 0,
    memory_limit: ByteSize | None = None,
    device_memory_limit: ByteSize | None = None,
    check_finite: bool = True,
    progress: Progress = False,
) -> GraphIds:
    """`knn_graph` to the folder `out` without ``distances.npy``: where disks are small, a third of the bytes with `int32_ids`.

    The report has the hashes of the whole graph. `KnnGraph.load` refuses such a folder.

    Parameters
    ----------
    x, out, k, metric, method, recall, seed, cells, probes, int32_ids, work, keep_work
        As in `knn_graph`.
    device, threads, memory_limit, device_memory_limit, check_finite, progress
        As in `knn`.

    Returns
    -------
    GraphIds
        With ``ids``, mapped, and the ``report``.

    Raises
    ------
    ValueError, TypeError, MemoryError
        As `knn_graph`.

    Examples
    --------
    >>> import numpy as np, kith
    >>> np.save("rows.npy", np.array([[0], [1], [3], [7]], dtype=np.float32))
    >>> kith.knn_graph_ids("rows.npy", "graph_ids", k=2, int32_ids=True).ids
    memmap([[1, 2],
            [0, 2],
            [1, 0],
            [2, 1]], dtype=int32)
    """
    number, name, way = whole_number(k, "k"), metric_name(metric), text(method, "method")
    finite, keeps, narrow = (
        flag(check_finite, "check_finite"), flag(keep_work, "keep_work"), flag(int32_ids, "int32_ids"),
    )  # fmt: skip
    params = given_params(recall=recall, seed=seed, cells=cells, probes=probes)
    with calling(device, threads, memory_limit, device_memory_limit, progress, arrays=(x,)) as options:
        source = wrapped(x)
        if source is None:
            raise ValueError("out needs files, or a numpy array of float32, float16, uint8 or int8")
        kept = b"" if work is None else path_bytes(work, "work")
        told = _kith.knn_graph_folder(
            source, path_bytes(out, "out"), kept, keeps, (True, narrow), "", True, number, name, way, finite, params, options
        )
    return GraphIds(np.load(os.path.join(os.fsdecode(out), "ids.npy"), mmap_mode="r"), GraphReport._of(told))


def given_params(**values: Any) -> dict[str, Any]:
    """What was given of a method's parameters, as plain numbers and names."""
    params: dict[str, Any] = {}
    for name, value in values.items():
        if value is None:
            continue
        if name in ("recall", "delta"):
            params[name] = real_number(value, name)
        elif name in ("start", "update"):
            params[name] = text(value, name)
        elif name == "seed":
            params[name] = seed_number(value)
        else:
            params[name] = whole_number(value, name)
    return params
