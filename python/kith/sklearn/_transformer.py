"""Vectors into a sparse graph of their neighbours, as a step of a scikit-learn pipeline."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix  # type: ignore[import-untyped]
from sklearn import neighbors as theirs  # type: ignore[import-untyped]

from kith._graph_build import knn_graph
from kith.sklearn._parameters import threads_of
from kith.sklearn._radius import RadiusSearch
from kith.sklearn._search import KithSearch, constraints


class _TransformerToGraph:
    """What scikit-learn is told of a step whose output is a graph."""

    mode: str

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.transformer_tags.preserves_dtype = ["float32"] if self.mode == "distance" else ["float64"]
        return tags


class KNeighborsTransformer(_TransformerToGraph, KithSearch, theirs.KNeighborsTransformer):  # type: ignore[misc]
    """Transform vectors into the sparse graph of their nearest fitted vectors.

    A ``sklearn.neighbors.KNeighborsTransformer`` that searches with Kith: a step before estimators that take such a graph
    with ``metric="precomputed"`` (TSNE, Isomap, DBSCAN, SpectralClustering, ...).

    Parameters
    ----------
    n_neighbors : int, default 5
        How many neighbours a vector has. With ``mode="distance"`` one more is found, since a fitted vector is its own
        nearest neighbour, at distance 0.
    mode : str, default "distance"
        ``"distance"``: the values are distances; ``"connectivity"``: ones.
    metric, p, algorithm, leaf_size, metric_params, device, n_jobs
        As in `NearestNeighbors`.

    Examples
    --------
    >>> from kith.sklearn import KNeighborsTransformer
    >>> KNeighborsTransformer(n_neighbors=1).fit_transform([[0.0], [3.0], [4.0]]).toarray()
    array([[0., 3., 0.],
           [0., 0., 1.],
           [0., 1., 0.]], dtype=float32)
    """

    _parameter_constraints = constraints(theirs.KNeighborsTransformer)

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        mode: str = "distance",
        algorithm: str = "auto",
        leaf_size: int = 30,
        metric: Any = "minkowski",
        p: float = 2,
        metric_params: dict[str, Any] | None = None,
        device: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            mode=mode,
            n_neighbors=n_neighbors,
            algorithm=algorithm,
            leaf_size=leaf_size,
            metric=metric,
            p=p,
            metric_params=metric_params,
            n_jobs=n_jobs,
        )
        self.device = device


class RadiusNeighborsTransformer(_TransformerToGraph, RadiusSearch, theirs.RadiusNeighborsTransformer):  # type: ignore[misc]
    """Transform vectors into the sparse graph of all fitted vectors within a radius.

    A ``sklearn.neighbors.RadiusNeighborsTransformer`` that searches with Kith.

    Parameters
    ----------
    mode : str, default "distance"
        As in `KNeighborsTransformer`.
    radius : float, default 1.0
        How far neighbours may be, in the metric's unit and included.
    metric, p, algorithm, leaf_size, metric_params, device, n_jobs
        As in `NearestNeighbors`.

    Examples
    --------
    >>> from kith.sklearn import RadiusNeighborsTransformer
    >>> RadiusNeighborsTransformer(radius=1.0).fit_transform([[0.0], [3.0], [4.0]]).toarray()
    array([[0., 0., 0.],
           [0., 0., 1.],
           [0., 1., 0.]], dtype=float32)
    """

    _parameter_constraints = constraints(theirs.RadiusNeighborsTransformer)

    def __init__(
        self,
        *,
        mode: str = "distance",
        radius: float = 1.0,
        algorithm: str = "auto",
        leaf_size: int = 30,
        metric: Any = "minkowski",
        p: float = 2,
        metric_params: dict[str, Any] | None = None,
        device: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            mode=mode,
            radius=radius,
            algorithm=algorithm,
            leaf_size=leaf_size,
            metric=metric,
            p=p,
            metric_params=metric_params,
            n_jobs=n_jobs,
        )
        self.device = device


class KNNGraphTransformer(KNeighborsTransformer):
    """Transform vectors into the sparse graph of their nearest fitted vectors, approximately and fast.

    `fit_transform` builds the graph by `knn_graph`, to a recall of your choice; `transform` of other vectors is exact, as in
    `KNeighborsTransformer`. For ``scanpy.pp.neighbors(adata, transformer=KNNGraphTransformer(15))``.

    Parameters
    ----------
    n_neighbors : int, default 5
        As in `KNeighborsTransformer`: with ``mode="distance"`` each vector has itself beside them.
    recall : float, default 0.99
        The share of the true neighbours to find; 1 is exact.
    mode, metric, p, algorithm, leaf_size, metric_params, device, n_jobs
        As in `KNeighborsTransformer`.

    Examples
    --------
    >>> from kith.sklearn import KNNGraphTransformer
    >>> KNNGraphTransformer(n_neighbors=1).fit_transform([[0.0], [3.0], [4.0]]).toarray()
    array([[0., 3., 0.],
           [0., 0., 1.],
           [0., 1., 0.]], dtype=float32)
    """

    _parameter_constraints = {**KNeighborsTransformer._parameter_constraints, "recall": [float, int]}

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        recall: float = 0.99,
        mode: str = "distance",
        algorithm: str = "auto",
        leaf_size: int = 30,
        metric: Any = "minkowski",
        p: float = 2,
        metric_params: dict[str, Any] | None = None,
        device: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            n_neighbors=n_neighbors,
            mode=mode,
            algorithm=algorithm,
            leaf_size=leaf_size,
            metric=metric,
            p=p,
            metric_params=metric_params,
            device=device,
            n_jobs=n_jobs,
        )
        self.recall = recall

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """The graph of `X` itself: ``scipy.sparse.csr_matrix``, (rows, rows), each row its own first neighbour."""
        self.fit(X, y)
        k = self.n_neighbors - (self.mode == "connectivity")
        if self.backend_ != "kith" or not 1 <= k < self.n_samples_fit_:
            return self.transform(X)
        metric: Any = self._index.metric
        graph = knn_graph(
            self._rows, k, metric, recall=self.recall, device=self.device, threads=threads_of(self.n_jobs), check_finite=False
        ).to_host()
        rows = self.n_samples_fit_
        ids = np.column_stack([np.arange(rows), graph.ids])
        if self.mode == "connectivity":
            values = np.ones(ids.size)
        else:
            values = np.column_stack([np.zeros(rows, np.float32), graph.distances]).ravel()
        return csr_matrix((values, ids.ravel(), np.arange(0, ids.size + 1, k + 1)), shape=(rows, rows))
