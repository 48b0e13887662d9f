"""The k-NN graph of a collection: for every row its nearest other rows."""

from __future__ import annotations

from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from kith import _kith
from kith._arrays import Array, Vectors, VectorsLike, as_base, to_numpy
from kith._device_arrays import device_number, on_device
from kith._libraries import library_of
from kith._options import calling, flag, text, whole_number
from kith._progress import Progress
from kith._search import Found, Given, fresh_neighbors


_METRICS = ("l2", "sqeuclidean", "inner_product", "cosine", "l1", "linf", "chi_square", "hamming")


class KnnGraph:
    """For every row of a collection its k nearest other rows, nearest first.

    `knn_graph` makes one. One may also be made of neighbours that were found elsewhere.

    Parameters
    ----------
    ids : array of int64, (rows, k)
        Row numbers, nearest first and never the row itself; -1 at the end where there are fewer than k. Arrays of torch,
        cupy and jax (which may be int32) and those in a GPU's memory are kept as they are; of all else numpy's are made.
    distances : array of float32, (rows, k)
        In the metric's unit; of the same library and in the same place.
    metric : str, default "l2"
        What was measured.

    Raises
    ------
    ValueError
        Shapes that differ; ids that `validate` refuses.
    TypeError
        Ids that are no integers, distances that are no real numbers, arrays of two libraries.
    """

    def __init__(self, ids: Array, distances: Array, metric: str = "l2") -> None:
        self._take(ids, distances, metric)
        if not on_device(self._ids):
            self.validate()

    def _take(self, ids: Array, distances: Array, metric: str) -> None:
        self._ids = _kept(ids, "ids", "int64")
        self._distances = _kept(distances, "distances", "float32")
        self._metric = text(metric, "metric")
        if metric not in _METRICS:
            raise ValueError(f"metric is {metric!r}; it must be one of {', '.join(_METRICS)}")
        if len(self._ids.shape) != 2 or tuple(self._ids.shape) != tuple(self._distances.shape):
            shapes = tuple(self._ids.shape), tuple(self._distances.shape)
            raise ValueError(f"ids are {shapes[0]} and distances {shapes[1]}; both must be (rows, k)")
        same_library = library_of(self._ids) is library_of(self._distances)
        devices = device_number(self._ids), device_number(self._distances)
        if not same_library or (devices[0] is None) != (devices[1] is None):
            raise TypeError("ids and distances are of two libraries, or one lies in a GPU's memory and one on the host")
        if devices[0] != devices[1]:
            raise ValueError(
                f"ids lie in the memory of cuda:{devices[0]} and distances in that of cuda:{devices[1]}; copy one to the "
                f"other's"
            )

    @classmethod
    def _found(cls, ids: Array, distances: Array, metric: str) -> KnnGraph:
        """Of what a search found, which need not be looked at."""
        graph = cls.__new__(cls)
        graph._take(ids, distances, metric)
        return graph

    def validate(self) -> None:
        """Check that the ids can be neighbours: ValueError, which names the row, unless they can.

        An id is another row of the graph, from 0 to ``len(graph) - 1``, and stands in a row once; -1 stands at the end
        of a row alone. Distances are numbers, the nearest first. A graph that you make of arrays on the host is checked at once, and every graph before `to_csr` and
        `to_umap` read it. For the check ids in a GPU's memory are copied to the host.
        """
        self._check(*self._on_host())

    @property
    def ids(self) -> Array:
        """(rows, k): the numbers of the neighbouring rows, nearest first; -1 where there are fewer than k."""
        return self._ids

    @property
    def distances(self) -> Array:
        """(rows, k): how far they are, in the metric's unit."""
        return self._distances

    @property
    def k(self) -> int:
        """How many neighbours a row has."""
        return int(self._ids.shape[1])

    @property
    def metric(self) -> str:
        """The metric's name."""
        return self._metric

    def __len__(self) -> int:
        """How many rows there are."""
        return int(self._ids.shape[0])

    def to_host(self) -> KnnGraph:
        """The same graph with numpy's arrays: a copy where it lies in a GPU's memory."""
        ids, distances = self._on_host()
        return KnnGraph(ids, distances, self._metric)

    def to_csr(self) -> Any:
        """The graph as a sparse matrix of distances: scipy's, so that a graph in a GPU's memory is copied to the host.

        Returns
        -------
        scipy.sparse.csr_array of float32, (rows, rows)
            Row i holds the distances of its neighbours, in the columns of their numbers, ascending. A neighbour at
            distance 0 is an entry too. No entry stands on the diagonal.

        Raises
        ------
        ImportError
            scipy is not installed.
        ValueError
            Ids that `validate` refuses.
        """
        try:
            from scipy.sparse import csr_array  # type: ignore[import-untyped]
        except ImportError:
            raise ImportError("to_csr makes a sparse matrix of scipy, which is missing: pip install scipy") from None
        ids, distances = self._on_host()
        self._check(ids, distances)  # scipy would read and write wherever they point
        order = np.argsort(ids, axis=1)
        ids = np.take_along_axis(ids, order, axis=1)
        there = ids >= 0
        offsets = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
        distances = np.take_along_axis(distances, order, axis=1)
        return csr_array((distances[there], ids[there], offsets), shape=(len(self), len(self)))

    def to_umap(self) -> tuple[Array, Array]:
        """The graph as umap-learn and cuML take it: ``UMAP(n_neighbors=k + 1, precomputed_knn=graph.to_umap())``.

        Returns
        -------
        (indices, distances)
            Fresh int64 and float32 arrays, (rows, k + 1): the row itself first at distance 0, as UMAP counts it among
            its neighbours, then the k others. Numpy's, since umap-learn takes no others; but of a graph of torch, cupy
            or jax in a GPU's memory theirs, there, for cuML. ``graph.to_host().to_umap()`` is always numpy's.

        Raises
        ------
        ValueError
            The metric is ``inner_product``, which is no distance, a row has fewer than k neighbours, or `validate`
            refuses the ids.
        """
        if self._metric == "inner_product":
            raise ValueError("inner_product is no distance, and UMAP wants one; build the graph with cosine or l2")
        self.validate()
        ids, distances = (self._ids, self._distances) if self._stays_on_device() else self._on_host()
        missing = ids < 0
        if bool(missing.any()):
            row = int(np.argmax(library_of(missing).to_host(missing).any(axis=1)))
            raise ValueError(f"row {row} has fewer than k = {self.k} neighbours; UMAP wants a full graph: lower k")
        library = library_of(ids)
        itself = library.from_host(np.arange(len(self), dtype=np.int64)[:, np.newaxis], ids)
        nothing = library.from_host(np.zeros((len(self), 1), np.float32), distances)
        return library.beside(itself, ids), library.beside(nothing, distances)

    def _stays_on_device(self) -> bool:
        """Whether it lies in a GPU's memory, in arrays of a library that can compute there."""
        return on_device(self._ids) and library_of(self._ids).computes

    def _on_host(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        library = library_of(self._ids)
        return np.asarray(library.to_host(self._ids), np.int64), library.to_host(self._distances)

    def _check(self, ids: npt.NDArray[np.int64], distances: npt.NDArray[np.float32]) -> None:
        _kith.check_graph(np.ascontiguousarray(ids).view(np.int64), np.ascontiguousarray(distances), self._metric)

    def __repr__(self) -> str:
        return f"kith.KnnGraph(rows={len(self)}, k={self.k}, metric={self.metric!r})"


def knn_graph(
    x: VectorsLike,
    k: SupportsIndex = 15,
    metric: str = "l2",
    method: str = "auto",
    *,
    device: str = "auto",
    threads: SupportsIndex = 0,
    memory_limit: SupportsIndex | None = None,
    device_memory_limit: SupportsIndex | None = None,
    check_finite: bool = True,
    progress: Progress = False,
) -> KnnGraph:
    """Find, for every row of `x`, its k nearest other rows.

    A row is never its own neighbour, but its duplicates are. Neighbours are in the order of `knn`, by (distance, row
    number).

    Parameters
    ----------
    x : array_like, (rows, dimension)
        Vectors, as in `knn`, on the host or in a GPU's memory.
    k : int, default 15
        How many neighbours. Where there are fewer other rows, the rest is id -1 at distance inf (-inf for
        ``inner_product``).
    metric : str, default "l2"
        As in `knn`.
    method : str, default "auto"
        ``"exact"`` compares all pairs; ``"auto"`` takes the fastest method there is, which today is that one.
    device, threads, memory_limit, device_memory_limit, check_finite, progress
        As in `knn`.

    Returns
    -------
    KnnGraph
        With ``ids`` and ``distances``, (rows, k), of the kind of array that `x` is, where `x` lies, and `KnnGraph.to_csr`
        and `KnnGraph.to_umap`.

    Raises
    ------
    ValueError, TypeError, MemoryError
        As `knn`; an unknown method.

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
    name, way = text(metric, "metric"), text(method, "method")
    finite = flag(check_finite, "check_finite")
    with calling(device, threads, memory_limit, device_memory_limit, progress, arrays=(x,)) as options:
        rows, _, _ = as_base(x, "x", name, options.stream)

        def step(matrix: Vectors, given: Given | None) -> Found | None:
            return _kith.knn_graph(matrix, number, name, way, finite, options, given)

        found = fresh_neighbors(step, x, rows, number, options)
    return KnnGraph._found(found.ids, found.distances, name)


def _kept(x: Array, name: str, dtype: str) -> Array:
    library = library_of(x)
    if not library.computes:
        if not library.on_device(x):
            return _as_numbers(to_numpy(x, name), name, dtype)
        x = library.export(x, 0, name)
    given = str(x.dtype).rpartition(".")[2]  # torch's are called torch.int64
    if given != dtype and (given, dtype) != ("int32", "int64"):
        raise TypeError(f"{name} are {given}; they must be {dtype}")
    return library.plain(x, name)


def _as_numbers(array: npt.NDArray[Any], name: str, dtype: str) -> npt.NDArray[Any]:
    """Ids of any integer type as int64, distances of any real one as float32; an empty list has no type to tell."""
    wanted = "iu" if dtype == "int64" else "iuf"
    if array.dtype.kind not in wanted and array.size > 0:
        kind = "integers" if dtype == "int64" else "real numbers"
        raise TypeError(f"{name} are {array.dtype}; they must be {kind}")
    if array.dtype == np.uint64 and dtype == "int64" and array.size > 0 and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} hold {array.max()}; row numbers are int64")
    return array.astype(dtype, copy=False)
