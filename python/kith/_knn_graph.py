"""The k-NN graph of a collection: for every row its nearest other rows."""

from __future__ import annotations

from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from kith import _kith
from kith._arrays import VectorsLike, as_vectors
from kith._options import calling, flag, text, whole_number
from kith._progress import Progress


class KnnGraph:
    """For every row of a collection its k nearest other rows, nearest first.

    `knn_graph` makes one. One may also be made of neighbours that were found elsewhere.

    Parameters
    ----------
    ids : numpy.ndarray of int64, (rows, k)
        Row numbers, nearest first and never the row itself; -1 at the end where there are fewer than k.
    distances : numpy.ndarray of float32, (rows, k)
        In the metric's unit.
    metric : str, default "l2"
        What was measured.
    """

    def __init__(self, ids: npt.NDArray[np.int64], distances: npt.NDArray[np.float32], metric: str = "l2") -> None:
        self._ids = np.asarray(ids, dtype=np.int64)
        self._distances = np.asarray(distances, dtype=np.float32)
        self._metric = text(metric, "metric")
        if self._ids.ndim != 2 or self._ids.shape != self._distances.shape:
            raise ValueError(
                f"ids are {self._ids.shape} and distances {self._distances.shape}; both must be (rows, k)"
            )

    @property
    def ids(self) -> npt.NDArray[np.int64]:
        """(rows, k): the numbers of the neighbouring rows, nearest first; -1 where there are fewer than k."""
        return self._ids

    @property
    def distances(self) -> npt.NDArray[np.float32]:
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

    def to_csr(self) -> Any:
        """The graph as a sparse matrix of distances.

        Returns
        -------
        scipy.sparse.csr_array of float32, (rows, rows)
            Row i holds the distances of its neighbours, in the columns of their numbers, ascending. A neighbour at
            distance 0 is an entry too. No entry stands on the diagonal.

        Raises
        ------
        ImportError
            scipy is not installed.
        """
        try:
            from scipy.sparse import csr_array  # type: ignore[import-untyped]
        except ImportError:
            raise ImportError("to_csr makes a sparse matrix of scipy, which is missing: pip install scipy") from None
        order = np.argsort(self._ids, axis=1)
        ids = np.take_along_axis(self._ids, order, axis=1)
        there = ids >= 0
        offsets = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
        distances = np.take_along_axis(self._distances, order, axis=1)
        return csr_array((distances[there], ids[there], offsets), shape=(len(self), len(self)))

    def to_umap(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """The graph as umap-learn and cuML take it: ``UMAP(n_neighbors=k + 1, precomputed_knn=graph.to_umap())``.

        Returns
        -------
        (indices, distances)
            Fresh int64 and float32 arrays, (rows, k + 1): the row itself first at distance 0, as UMAP counts it among
            its neighbours, then the k others.

        Raises
        ------
        ValueError
            The metric is ``inner_product``, which is no distance, or a row has fewer than k neighbours.
        """
        if self._metric == "inner_product":
            raise ValueError("inner_product is no distance, and UMAP wants one; build the graph with cosine or l2")
        if (self._ids < 0).any():
            row = int((self._ids < 0).any(axis=1).argmax())
            raise ValueError(f"row {row} has fewer than k = {self.k} neighbours; UMAP wants a full graph: lower k")
        itself = np.arange(len(self), dtype=np.int64)[:, np.newaxis]
        nothing = np.zeros((len(self), 1), np.float32)
        return np.hstack([itself, self._ids]), np.hstack([nothing, self._distances])

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
        Vectors, as in `knn`, on the host or in a GPU's memory. The graph is on the host.
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
        With ``ids`` and ``distances``, (rows, k), and `KnnGraph.to_csr` and `KnnGraph.to_umap`.

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
        rows, _ = as_vectors(x, "x", options.stream)
        found = _kith.knn_graph(rows, number, name, way, finite, options)
    assert found is not None
    ids, distances = found
    return KnnGraph(ids.view(np.int64), distances, name)
