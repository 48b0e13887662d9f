"""Clusters by density: DBSCAN and HDBSCAN, with the interfaces of sklearn.cluster.

DBSCAN asks for the neighbours of every vector within `eps`, and joins those that have enough. HDBSCAN's hierarchy is single
linkage by mutual reachability: the spanning tree of a k-NN graph gives it, with edges between the graph's parts found
exactly. From that tree on scikit-learn's own code chooses the clusters.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, issparse  # type: ignore[import-untyped]
from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped]
from sklearn import cluster as theirs  # type: ignore[import-untyped]
from sklearn.base import _fit_context  # type: ignore[import-untyped]
from sklearn.utils._param_validation import StrOptions  # type: ignore[import-untyped]
from sklearn.utils.validation import _check_sample_weight, validate_data  # type: ignore[import-untyped]

from kith._graph_build import knn_graph
from kith.sklearn._neighbors import NearestNeighbors
from kith.sklearn._parameters import OWN_METRICS, effective_metric, metric_of, refuse_device, threads_of
from kith.sklearn._tree_labels import labels_of

_LEAST_NEIGHBOURS = 15  # of HDBSCAN's graph: with few its parts are many


class DBSCAN(theirs.DBSCAN):  # type: ignore[misc]
    """Cluster vectors that have many others within `eps`, and those within reach of them.

    A ``sklearn.cluster.DBSCAN`` that searches with Kith, with the same labels: those of vectors between clusters too.

    Parameters
    ----------
    eps : float, default 0.5
        How far neighbours may be, in the metric's unit and included.
    min_samples : int, default 5
        How many, itself included, a vector must have within `eps` to be in a cluster's core.
    metric, metric_params, algorithm, leaf_size, p
        As in `NearestNeighbors`; ``"euclidean"`` is the default.
    device : str, default "auto"
        As in `NearestNeighbors`.
    n_jobs : int, optional
        Threads of the CPU; None and -1 are all.

    Attributes
    ----------
    labels_ : numpy.ndarray of int64
        The cluster of each vector; -1 for none.
    core_sample_indices_ : numpy.ndarray of int64
        The rows in the clusters' cores.
    components_ : numpy.ndarray
        These vectors.
    backend_ : str
        ``"kith"``, or ``"scikit-learn"`` where Kith cannot search.

    Examples
    --------
    >>> from kith.sklearn import DBSCAN
    >>> DBSCAN(eps=1.5, min_samples=2).fit_predict([[0.0], [1.0], [2.0], [8.0], [9.0], [30.0]])
    array([ 0,  0,  0,  1,  1, -1])
    """

    _parameter_constraints = {
        **theirs.DBSCAN._parameter_constraints,
        "metric": [*theirs.DBSCAN._parameter_constraints["metric"], StrOptions(set(OWN_METRICS))],
        "device": [str],
    }

    def __init__(
        self,
        eps: float = 0.5,
        *,
        min_samples: int = 5,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        algorithm: str = "auto",
        leaf_size: int = 30,
        p: float | None = None,
        device: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            eps=eps,
            min_samples=min_samples,
            metric=metric,
            metric_params=metric_params,
            algorithm=algorithm,
            leaf_size=leaf_size,
            p=p,
            n_jobs=n_jobs,
        )
        self.device = device

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator,unused-ignore]
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> DBSCAN:
        """Cluster `X`.

        Parameters
        ----------
        X : array_like, (rows, features)
            The vectors.
        y : ignored
            There for pipelines.
        sample_weight : array_like, (rows,), optional
            How much each vector counts towards `min_samples`; one of that weight is a core by itself.

        Returns
        -------
        DBSCAN
            This object.
        """
        search = NearestNeighbors(
            radius=self.eps,
            algorithm=self.algorithm,
            leaf_size=self.leaf_size,
            metric=self.metric,
            metric_params=self.metric_params,
            p=2 if self.p is None else self.p,
            device=self.device,
            n_jobs=self.n_jobs,
        )
        why = None if self.metric != "precomputed" else "the metric is 'precomputed'"
        why = search._why_not(X) if why is None else why
        if why is not None:
            refuse_device(self.device, why)
            self.backend_ = "scikit-learn"
            return super().fit(X, y, sample_weight)  # type: ignore[no-any-return]
        X = validate_data(self, X)
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X)
        if search.fit(X).backend_ != "kith":  # what it can tell of arrays alone
            self.backend_ = "scikit-learn"
            return super().fit(X, y, sample_weight)  # type: ignore[no-any-return]
        self.backend_ = "kith"
        found = search._within(X, self.eps)
        counts: npt.NDArray[Any] = np.diff(found.offsets)
        if weights is not None:
            counts = np.add.reduceat(np.append(weights[found.ids], 0.0), found.offsets[:-1])
        core = counts >= self.min_samples
        self.labels_ = _joined(found.offsets, found.ids, core)
        self.core_sample_indices_ = np.flatnonzero(core)
        self.components_ = X[self.core_sample_indices_].copy() if core.any() else np.empty((0, X.shape[1]))
        return self


def _joined(offsets: npt.NDArray[np.int64], ids: npt.NDArray[np.int64], core: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """Clusters of core rows that are joined, in the order of their first rows, and the first of them that others reach."""
    rows = core.size
    labels = np.full(rows, -1, np.intp)
    if not core.any():
        return labels
    owners = np.repeat(np.arange(rows), np.diff(offsets))
    between = core[owners] & core[ids]
    edges = csr_array((np.ones(np.count_nonzero(between), np.int8), (owners[between], ids[between])), shape=(rows, rows))
    parts = connected_components(edges, directed=False)[1][core]
    firsts, places = np.unique(parts, return_index=True)
    numbers = np.empty(firsts.max() + 1, np.intp)
    numbers[firsts[np.argsort(places)]] = np.arange(firsts.size)
    labels[core] = numbers[parts]
    reached = ~core[owners] & core[ids]
    border = np.full(rows, np.iinfo(np.intp).max, np.intp)
    np.minimum.at(border, owners[reached], labels[ids[reached]])
    has = border < np.iinfo(np.intp).max
    labels[has] = border[has]
    return labels


class HDBSCAN(theirs.HDBSCAN):  # type: ignore[misc]
    """Cluster vectors by density, at whatever density each cluster has.

    A ``sklearn.cluster.HDBSCAN`` whose hierarchy comes from Kith's k-NN graph. The graph has the nearest neighbours of each
    vector and not all pairs, so that a hierarchy may differ from scikit-learn's in edges within clusters.

    Parameters
    ----------
    min_cluster_size, min_samples, cluster_selection_epsilon, max_cluster_size, cluster_selection_method, allow_single_cluster, store_centers
        As in scikit-learn. `min_samples` counts the vector itself.
    metric : str, default "euclidean"
        ``"euclidean"``, ``"manhattan"``, ``"chebyshev"`` or a metric of Kith's; others scikit-learn computes.
    metric_params, alpha, algorithm, leaf_size, copy
        As in scikit-learn. With an `alpha` other than 1 scikit-learn computes.
    recall : float, default 0.99
        Of the graph, as in `knn_graph`; 1 is exact.
    device : str, default "auto"
        As in `NearestNeighbors`.
    n_jobs : int, optional
        Threads of the CPU; None and -1 are all.

    Attributes
    ----------
    labels_ : numpy.ndarray of int64
        The cluster of each vector; -1 for none, -2 for one with an infinite value, -3 for one with NaN.
    probabilities_ : numpy.ndarray of float64
        How much each vector belongs to its cluster.
    backend_ : str
        ``"kith"``, or ``"scikit-learn"``.

    Examples
    --------
    >>> import numpy as np
    >>> from kith.sklearn import HDBSCAN
    >>> x = np.concatenate([np.random.default_rng(0).normal(centre, 0.1, (50, 2)) for centre in (0, 5)])
    >>> np.unique(HDBSCAN(copy=True).fit_predict(x)).tolist()
    [0, 1]
    """

    _parameter_constraints = {
        **theirs.HDBSCAN._parameter_constraints,
        "metric": [*theirs.HDBSCAN._parameter_constraints["metric"], StrOptions(set(OWN_METRICS))],
        "recall": [float, int],
        "device": [str],
    }

    def __init__(
        self,
        min_cluster_size: int = 5,
        min_samples: int | None = None,
        cluster_selection_epsilon: float = 0.0,
        max_cluster_size: int | None = None,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        alpha: float = 1.0,
        algorithm: str = "auto",
        leaf_size: int = 40,
        n_jobs: int | None = None,
        cluster_selection_method: str = "eom",
        allow_single_cluster: bool = False,
        store_centers: str | None = None,
        copy: Any = True,
        *,
        recall: float = 0.99,
        device: str = "auto",
    ) -> None:
        super().__init__(
            min_cluster_size=min_cluster_size,
            min_samples=min_samples,
            cluster_selection_epsilon=cluster_selection_epsilon,
            max_cluster_size=max_cluster_size,
            metric=metric,
            metric_params=metric_params,
            alpha=alpha,
            algorithm=algorithm,
            leaf_size=leaf_size,
            n_jobs=n_jobs,
            cluster_selection_method=cluster_selection_method,
            allow_single_cluster=allow_single_cluster,
            store_centers=store_centers,
            copy=copy,
        )
        self.recall = recall
        self.device = device

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator,unused-ignore]
    def fit(self, X: Any, y: Any = None) -> HDBSCAN:
        """Cluster `X`, (rows, features); `y` is ignored.

        Returns
        -------
        HDBSCAN
            This object.
        """
        metric: Any = metric_of(effective_metric(self.metric, 2))
        rows = None if issparse(X) or metric is None or metric == "inner_product" else self._finite(X)
        samples = self.min_cluster_size if self.min_samples is None else self.min_samples
        # A row is its own first neighbour for scikit-learn, and none for Kith.
        if rows is None or self.alpha != 1 or self.metric_params or not 2 <= samples < len(rows):
            refuse_device(self.device, "the graph of such vectors cannot be made by Kith")
            self.backend_ = "scikit-learn"
            return super().fit(X, y)  # type: ignore[no-any-return]
        self.backend_ = "kith"
        self._raw_data = rows
        self._min_samples = samples
        self._metric_params: dict[str, Any] = {}
        threads = threads_of(self.n_jobs)
        k = min(max(samples - 1, _LEAST_NEIGHBOURS), len(rows) - 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of a graph that is the least that there can be
            graph = knn_graph(rows, k, metric, recall=self.recall, device=self.device, threads=threads)
        tree = graph.to_host().spanning_tree(
            "mutual_reachability", min_samples=samples - 1, unconnected="nearest", x=rows, threads=threads
        )
        self.labels_, self.probabilities_, self._single_linkage_tree_ = labels_of(
            tree.single_linkage(),
            self.min_cluster_size,
            self.cluster_selection_method,
            self.allow_single_cluster,
            self.cluster_selection_epsilon,
            self.max_cluster_size,
        )
        if self.store_centers:
            self._weighted_cluster_center(rows)
        return self

    def _finite(self, X: Any) -> Any:
        """The rows as floats; None where some are missing or infinite, which scikit-learn gives labels of their own."""
        rows = validate_data(self, X, ensure_all_finite=False, dtype=np.float64, order="C")
        return rows if np.isfinite(rows).all() else None
