"""Nearest neighbours with the interface of sklearn.neighbors.NearestNeighbors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix  # type: ignore[import-untyped]
from sklearn.base import BaseEstimator  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted, validate_data  # type: ignore[import-untyped]

from kith._arrays import as_base, as_queries
from kith._index import Index
from kith._knn_graph import knn_graph
from kith._narrowing import Narrowing
from kith._range_search import RangeNeighbors
from kith.sklearn._parameters import WIDE_DTYPES, count_of, metric_of, threads_of


class NearestNeighbors(BaseEstimator):  # type: ignore[misc]
    """Find the nearest neighbours of points, exactly.

    The methods are those of ``sklearn.neighbors.NearestNeighbors``. Distances are float32; equal ones are ordered by
    row number, and neighbours within a radius by distance.

    Parameters
    ----------
    n_neighbors : int, default 5
        How many neighbours `kneighbors` finds.
    radius : float, default 1.0
        The reach of `radius_neighbors`, in the metric's unit and included.
    metric : str, default "euclidean"
        ``"euclidean"`` (also ``"minkowski"``, whose p is 2), ``"manhattan"`` or ``"cityblock"``, ``"chebyshev"``, or a
        metric of Kith: ``"l2"``, ``"sqeuclidean"``, ``"inner_product"``, ``"cosine"``, ``"l1"``, ``"linf"``,
        ``"chi_square"``, ``"hamming"``. The last counts the differing bits of uint8 rows; what scikit-learn calls so is
        the share of differing entries.
    device : str, default "auto"
        ``"cpu"``, ``"cuda"``, ``"cuda:N"``, or ``"auto"``: a GPU where it is there and predicted to be faster.
    n_jobs : int, optional
        Threads of the CPU; None and -1 are all.

    Attributes
    ----------
    effective_metric_ : str
        Kith's name of the metric.
    n_features_in_ : int
        The length of a vector.
    feature_names_in_ : numpy.ndarray of str
        The names of the columns, where `fit` was given a data frame.
    n_samples_fit_ : int
        How many vectors are searched.

    Examples
    --------
    >>> from kith.sklearn import NearestNeighbors
    >>> neighbors = NearestNeighbors(n_neighbors=1).fit([[0.0, 0.0], [3.0, 4.0]])
    >>> neighbors.kneighbors([[3.0, 3.0]])
    (array([[1.]], dtype=float32), array([[1]]))
    """

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        radius: float = 1.0,
        metric: str = "euclidean",
        device: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.metric = metric
        self.device = device
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Any:
        """Take the vectors that are to be searched.

        float32, float16, uint8 and int8 arrays in C order are kept where they lie and must not change; everything else
        becomes float32 by one copy, as `kith.knn` makes it of float64.
        """
        count_of(self.n_neighbors, "n_neighbors")
        metric = metric_of(self.metric)
        given = validate_data(self, X, dtype=WIDE_DTYPES, order="C")
        rows, _, narrowing = as_base(given, "X", metric)
        self._offset = narrowing.offset
        self._take(rows)
        return self

    def _take(self, rows: Any) -> None:
        self.effective_metric_ = metric_of(self.metric)
        self._fit_X = rows
        self.n_samples_fit_ = rows.shape[0]
        # Finite values are checked by validate_data, in scikit-learn's words.
        self._index = Index("Flat", metric=self.effective_metric_, device=self.device, check_finite=False)
        self._index.add(rows, copy=False, threads=threads_of(self.n_jobs))

    def kneighbors(self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True) -> Any:
        """The nearest neighbours of each query.

        Parameters
        ----------
        X : array_like, (queries, features), optional
            The queries. Without them, the neighbours of every fitted vector among the others.
        n_neighbors : int, optional
            How many; by default as the estimator says.
        return_distance : bool, default True
            Whether distances come too.

        Returns
        -------
        distances : numpy.ndarray of float32, (queries, n_neighbors)
            Only where `return_distance`.
        ids : numpy.ndarray of int64, (queries, n_neighbors)
            Row numbers of the fitted vectors, nearest first.
        """
        check_is_fitted(self)
        k = count_of(self.n_neighbors if n_neighbors is None else n_neighbors, "n_neighbors")
        threads = threads_of(self.n_jobs)
        queries = self._fit_X if X is None else self._validated(X)
        if k > self.n_samples_fit_ - (X is None):
            sign = "<" if X is None else "<="
            raise ValueError(
                f"Expected n_neighbors {sign} n_samples_fit, but n_neighbors = {k}, "
                f"n_samples_fit = {self.n_samples_fit_}, n_samples = {queries.shape[0]}"
            )
        if X is None:
            graph = knn_graph(
                queries, k, self.effective_metric_, "exact", device=self.device, threads=threads, check_finite=False
            )
            ids, distances = graph.ids, graph.distances
        else:
            ids, distances = self._index.search(queries, k, threads=threads)
        return (distances, ids) if return_distance else ids

    def radius_neighbors(
        self, X: Any = None, radius: float | None = None, return_distance: bool = True, sort_results: bool = False
    ) -> Any:
        """All fitted vectors within the radius of each query.

        Parameters
        ----------
        X : array_like, (queries, features), optional
            The queries. Without them, the neighbours of every fitted vector among the others.
        radius : float, optional
            By default as the estimator says. Vectors at exactly this distance are found.
        return_distance : bool, default True
            Whether distances come too.
        sort_results : bool, default False
            Of no effect: results are always sorted by distance.

        Returns
        -------
        distances : numpy.ndarray of object, (queries,)
            An array of float32 for each query; only where `return_distance`.
        ids : numpy.ndarray of object, (queries,)
            An array of row numbers for each query.
        """
        found = self._within(X, radius)
        ids = _split(found.ids, found.offsets)
        return (_split(found.distances, found.offsets), ids) if return_distance else ids

    def kneighbors_graph(self, X: Any = None, n_neighbors: int | None = None, mode: str = "connectivity") -> Any:
        """The nearest neighbours of each query as a sparse matrix, (queries, n_samples_fit).

        Parameters
        ----------
        X, n_neighbors
            As in `kneighbors`.
        mode : str, default "connectivity"
            ``"connectivity"``: 1 for each neighbour; ``"distance"``: its distance.

        Returns
        -------
        scipy.sparse.csr_matrix
        """
        _check_mode(mode)
        distances, ids = self.kneighbors(X, n_neighbors)
        offsets = np.arange(0, ids.size + 1, ids.shape[1])
        return self._graph(offsets, ids.ravel(), distances.ravel(), mode)

    def radius_neighbors_graph(
        self, X: Any = None, radius: float | None = None, mode: str = "connectivity", sort_results: bool = False
    ) -> Any:
        """The vectors within the radius of each query as a sparse matrix, (queries, n_samples_fit).

        Parameters
        ----------
        X, radius, sort_results
            As in `radius_neighbors`.
        mode : str, default "connectivity"
            ``"connectivity"``: 1 for each neighbour; ``"distance"``: its distance.

        Returns
        -------
        scipy.sparse.csr_matrix
        """
        _check_mode(mode)
        return self._graph(*self._within(X, radius), mode)

    def _validated(self, X: Any) -> Any:
        given = validate_data(self, X, dtype=WIDE_DTYPES, order="C", reset=False)
        rows: Any = as_queries(given, 0, Narrowing(self._offset))[0]
        return rows

    def _within(self, X: Any, radius: float | None) -> RangeNeighbors:
        check_is_fitted(self)
        reach = self.radius if radius is None else radius
        queries = self._fit_X if X is None else self._validated(X)
        found = self._index.range_search(queries, reach, threads=threads_of(self.n_jobs))
        return found if X is not None else _without_itself(found)

    def _graph(
        self, offsets: npt.NDArray[np.int64], ids: npt.NDArray[np.int64], distances: npt.NDArray[np.float32], mode: str
    ) -> Any:
        values = np.ones(ids.size, np.float32) if mode == "connectivity" else distances
        return csr_matrix((values, ids, offsets), shape=(offsets.size - 1, self.n_samples_fit_))

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_index"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_fit_X" in state:
            self._take(self._fit_X)


def _check_mode(mode: str) -> None:
    if mode not in ("connectivity", "distance"):
        raise ValueError(f'Unsupported mode, must be one of "connectivity", or "distance" but got "{mode}" instead')


def _split(values: npt.NDArray[Any], offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.object_]:
    parts = np.empty(offsets.size - 1, dtype=object)
    for query in range(parts.size):
        parts[query] = values[offsets[query] : offsets[query + 1]]
    return parts


def _without_itself(found: RangeNeighbors) -> RangeNeighbors:
    counts = np.diff(found.offsets)
    others = found.ids != np.repeat(np.arange(counts.size), counts)
    before = np.concatenate([[0], np.cumsum(others)])
    return RangeNeighbors(before[found.offsets], found.ids[others], found.distances[others])
