"""Values from those of neighbours, with the interface of sklearn.neighbors.KNeighborsRegressor."""

from __future__ import annotations

from typing import Any

from sklearn import neighbors as theirs  # type: ignore[import-untyped]

from kith.sklearn._search import KithSearch, constraints


class KNeighborsRegressor(KithSearch, theirs.KNeighborsRegressor):  # type: ignore[misc]
    """Predict the mean of the values of a vector's nearest neighbours.

    A ``sklearn.neighbors.KNeighborsRegressor`` that searches with Kith.

    Parameters
    ----------
    n_neighbors : int, default 5
        How many neighbours count.
    weights : {"uniform", "distance"}, callable or None, default "uniform"
        As in `KNeighborsClassifier`.
    metric, p, algorithm, leaf_size, metric_params, device, n_jobs
        As in `NearestNeighbors`.

    Attributes
    ----------
    backend_, effective_metric_, n_features_in_, feature_names_in_, n_samples_fit_
        As in `NearestNeighbors`.

    Examples
    --------
    >>> from kith.sklearn import KNeighborsRegressor
    >>> KNeighborsRegressor(n_neighbors=2).fit([[0.0], [1.0], [5.0]], [0.0, 10.0, 50.0]).predict([[0.4]])
    array([5.])
    """

    _parameter_constraints = constraints(theirs.KNeighborsRegressor)

    def __init__(
        self,
        n_neighbors: int = 5,
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
            n_neighbors=n_neighbors,
            weights=weights,
            algorithm=algorithm,
            leaf_size=leaf_size,
            p=p,
            metric=metric,
            metric_params=metric_params,
            n_jobs=n_jobs,
        )
        self.device = device
