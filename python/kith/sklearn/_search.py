"""Searches by Kith under the estimators of sklearn.neighbors, and by scikit-learn itself where Kith has none.

`KithSearch` stands before one of scikit-learn's classes. That validates parameters and vectors, keeps labels and makes
predictions and graphs of neighbours; here vectors go into an index, and neighbours come out of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse  # type: ignore[import-untyped]
from sklearn.neighbors import BallTree, KDTree  # type: ignore[import-untyped]
from sklearn.utils._param_validation import StrOptions  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted, validate_data  # type: ignore[import-untyped]

from kith import _kith
from kith._arrays import Vectors, as_numbers, as_queries, as_vectors, is_bfloat16
from kith._graph_build import knn_graph
from kith._index import Index
from kith._range_search import RangeNeighbors
from kith.sklearn._parameters import (
    OWN_METRICS,
    WIDE_DTYPES,
    count_of,
    effective_metric,
    metric_of,
    refuse_device,
    threads_of,
)


# Below this number of columns, and from this number of rows on, a k-d tree visits few rows per query.
_TREE_COLUMNS = 4
_TREE_ROWS = 10_000


def constraints(theirs: type) -> dict[str, Any]:
    """What scikit-learn's class allows for its parameters, and what is allowed besides."""
    known: dict[str, Any] = theirs._parameter_constraints  # type: ignore[attr-defined]
    return {**known, "metric": [*known["metric"], StrOptions(set(OWN_METRICS))], "device": [str]}


class KithSearch:
    """Overrides how vectors are fitted and neighbours found."""

    # Set by the estimators' constructors.
    metric: Any
    p: Any
    metric_params: dict[str, Any] | None
    algorithm: str
    n_neighbors: int
    radius: float
    device: str
    n_jobs: int | None
    # Set by scikit-learn's fit.
    _fit_X: Any
    n_samples_fit_: int

    def _fit(self, X: Any, y: Any = None) -> Any:
        """Called by scikit-learn's `fit`, once it has checked the parameters."""
        threads_of(self.n_jobs)
        if isinstance(X, KithSearch) and getattr(X, "backend_", None) == "kith":
            X = X._fit_X  # what another estimator was fitted on
        why = self._why_not(X)
        if why is not None:
            refuse_device(self.device, why)
            self._forget()
            self.backend_ = "scikit-learn"
            return super()._fit(X, y)  # type: ignore[misc]
        if not issparse(X) and is_bfloat16(np.asarray(X).dtype):
            X = as_numbers(np.asarray(X), "X")
        kept = self.algorithm, self.metric, self.p, self.metric_params
        # By these scikit-learn keeps the vectors and builds no tree, whatever the metric.
        self.algorithm, self.metric, self.p, self.metric_params = "brute", "euclidean", 2, None
        try:
            super()._fit(X, y)  # type: ignore[misc]
        finally:
            self.algorithm, self.metric, self.p, self.metric_params = kept
        self.backend_ = "kith"
        self._take()
        return self

    def _why_not(self, X: Any) -> str | None:
        """Why Kith cannot search, in words that go after "but"; None where it can."""
        if isinstance(X, (BallTree, KDTree)):
            return "X is a tree"
        if hasattr(X, "_fit_method"):
            return "X is an estimator that scikit-learn has fitted"
        if issparse(X):
            return "X is sparse"
        if self.metric_params:
            return f"metric_params are {self.metric_params}"
        if metric_of(effective_metric(self.metric, self.p)) is None:
            power = f" with p={self.p}" if self.metric in ("minkowski", "p") else ""
            return f"the metric is {self.metric!r}{power}"
        dtype, shape = getattr(X, "dtype", None), getattr(X, "shape", (0, 0))
        if self.metric == "hamming" and dtype != np.uint8:
            return "the metric is 'hamming', which Kith counts in bits of uint8 rows,"
        if self._suits_a_tree(shape):
            return f"the vectors have {shape[1]} columns, which a tree searches faster,"
        return None

    def _suits_a_tree(self, shape: tuple[int, ...]) -> bool:
        """Whether scikit-learn's k-d tree is faster: many rows of few columns, and no GPU asked for."""
        metric = effective_metric(self.metric, self.p)
        return (
            self.device in ("auto", "cpu")
            and self.algorithm in ("auto", "kd_tree")
            and metric in ("euclidean", "manhattan", "chebyshev")
            and len(shape) == 2
            and 1 <= shape[1] <= _TREE_COLUMNS
            and shape[0] >= _TREE_ROWS
        )

    def _take(self) -> None:
        """The fitted vectors into an index."""
        self.effective_metric_ = effective_metric(self.metric, self.p)
        metric: Any = metric_of(self.effective_metric_)
        self.effective_metric_params_: dict[str, Any] = {}
        # scikit-learn's predictions ask `kneighbors` for neighbours, unless this is "brute".
        self._fit_method = "kith"
        given = self._fit_X.astype(np.uint8) if self._fit_X.dtype == bool else self._fit_X
        vectors: Any = as_vectors(given, "X")[0]
        narrow: tuple[Vectors, Any] = _kith.narrowed(vectors, "X", metric, None)
        self._rows, self._offset = narrow
        # Finite values are checked by scikit-learn, in its words.
        self._index = Index("Flat", metric=metric, device=self.device, check_finite=False)
        self._index.add(self._rows, copy=False, threads=threads_of(self.n_jobs))

    def _forget(self) -> None:
        for name in ("_index", "_rows", "_offset"):
            self.__dict__.pop(name, None)

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
        if self.backend_ != "kith":
            return super().kneighbors(X, n_neighbors, return_distance)  # type: ignore[misc]
        k = count_of(self.n_neighbors if n_neighbors is None else n_neighbors, "n_neighbors")
        threads = threads_of(self.n_jobs)
        queries = self._rows if X is None else self._queries(X)
        if k > self.n_samples_fit_ - (X is None):
            sign = "<" if X is None else "<="
            raise ValueError(
                f"Expected n_neighbors {sign} n_samples_fit, but n_neighbors = {k}, "
                f"n_samples_fit = {self.n_samples_fit_}, n_samples = {queries.shape[0]}"
            )
        if X is None:
            metric: Any = self._index.metric
            graph = knn_graph(queries, k, metric, "exact", device=self.device, threads=threads, check_finite=False)
            ids, distances = graph.ids, graph.distances
        else:
            ids, distances = self._index.search(queries, k, threads=threads)
        return (distances, ids) if return_distance else ids

    def _queries(self, X: Any) -> Any:
        given = validate_data(self, X, dtype=WIDE_DTYPES, order="C", accept_sparse="csr", reset=False)
        if issparse(given):
            if self.algorithm in ("ball_tree", "kd_tree"):
                raise ValueError(f"queries are sparse; algorithm={self.algorithm!r} takes dense ones: pass X.toarray()")
            given = given.toarray()
        queries: Any = as_queries(given)[0]
        return _kith.narrowed(queries, "queries", None, self._offset)[0]

    def _within(self, X: Any, radius: float | None) -> RangeNeighbors:
        reach = self.radius if radius is None else radius
        queries = self._rows if X is None else self._queries(X)
        found = self._index.range_search(queries, reach, threads=threads_of(self.n_jobs))
        return found if X is not None else _without_itself(found)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {name: value for name, value in state.items() if name not in ("_index", "_rows", "_offset")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[misc]
        if state.get("backend_") == "kith":
            self._take()


def split(values: npt.NDArray[Any], offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.object_]:
    """An array of arrays, one for each query."""
    parts = np.empty(offsets.size - 1, dtype=object)
    for query in range(parts.size):
        parts[query] = values[offsets[query] : offsets[query + 1]]
    return parts


def _without_itself(found: RangeNeighbors) -> RangeNeighbors:
    counts = np.diff(found.offsets)
    others = found.ids != np.repeat(np.arange(counts.size), counts)
    before = np.concatenate([[0], np.cumsum(others)])
    return RangeNeighbors(before[found.offsets], found.ids[others], found.distances[others])


