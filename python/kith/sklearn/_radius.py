"""Searches within a radius under the estimators of sklearn.neighbors, and predictions by what they find."""

from __future__ import annotations

from typing import Any

from sklearn import neighbors as theirs  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]

from kith.sklearn._search import KithSearch, constraints, split


class RadiusSearch(KithSearch):
    """Overrides how neighbours within a radius are found, too."""

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
        check_is_fitted(self)
        if self.backend_ != "kith":
            return super().radius_neighbors(X, radius, return_distance, sort_results)  # type: ignore[misc]
        found = self._within(X, radius)
        ids = split(found.ids, found.offsets)
        return (split(found.distances, found.offsets), ids) if return_distance else ids


class RadiusNeighborsClassifier(RadiusSearch, theirs.RadiusNeighborsClassifier):  # type: ignore[misc]
    """Classify vectors by a vote of all fitted vectors within a radius.

    A ``sklearn.neighbors.RadiusNeighborsClassifier`` that searches with Kith.

    Parameters
    ----------
    radius : float, default 1.0
        How far voters may be, in the metric's unit and included.
    weights : {"uniform", "distance"}, callable or None, default "uniform"
        As in `KNeighborsClassifier`.
    outlier_label : label, list of them, "most_frequent" or None, default None
        Of queries without a vector within the radius; None: a ValueError.
    metric, p, algorithm, leaf_size, metric_params, device, n_jobs
        As in `NearestNeighbors`.

    Examples
    --------
    >>> from kith.sklearn import RadiusNeighborsClassifier
    >>> RadiusNeighborsClassifier(1.5).fit([[0.0], [1.0], [9.0]], ["a", "a", "b"]).predict([[0.4], [8.0]])
    array(['a', 'b'], dtype='<U1')
    """

    _parameter_constraints = constraints(theirs.RadiusNeighborsClassifier)

    def __init__(
        self,
        radius: float = 1.0,
        *,
        weights: Any = "uniform",
        algorithm: str = "auto",
        leaf_size: int = 30,
        p: float = 2,
        metric: Any = "minkowski",
        outlier_label: Any = None,
        metric_params: dict[str, Any] | None = None,
        device: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            radius=radius,
            weights=weights,
            algorithm=algorithm,
            leaf_size=leaf_size,
            p=p,
            metric=metric,
            outlier_label=outlier_label,
            metric_params=metric_params,
            n_jobs=n_jobs,
        )
        self.device = device


class RadiusNeighborsRegressor(RadiusSearch, theirs.RadiusNeighborsRegressor):  # type: ignore[misc]
    """Predict the mean of the values of all fitted vectors within a radius.

    A ``sklearn.neighbors.RadiusNeighborsRegressor`` that searches with Kith.

    Parameters
    ----------
    radius : float, default 1.0
        How far they may be, in the metric's unit and included.
    weights : {"uniform", "distance"}, callable or None, default "uniform"
        As in `KNeighborsClassifier`.
    metric, p, algorithm, leaf_size, metric_params, device, n_jobs
        As in `NearestNeighbors`.

    Examples
    --------
    >>> from kith.sklearn import RadiusNeighborsRegressor
    >>> RadiusNeighborsRegressor(1.5).fit([[0.0], [1.0], [9.0]], [2.0, 4.0, 50.0]).predict([[0.4], [8.0]])
    array([ 3., 50.])
    """

    _parameter_constraints = constraints(theirs.RadiusNeighborsRegressor)

    def __init__(
        self,
        radius: float = 1.0,
        *,
        weights: Any = "uniform",
        algorithm: str = "auto",
        leaf_size: int = 30,
        p: float = 2,
        metric: Any = "minkowski",
        metric_params: dict[str, Any] | None = None,
        device: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            radius=radius,
            weights=weights,
            algorithm=algorithm,
            leaf_size=leaf_size,
            p=p,
            metric=metric,
            metric_params=metric_params,
            n_jobs=n_jobs,
        )
        self.device = device
