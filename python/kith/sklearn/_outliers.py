"""Outliers by the density about them, with the interface of sklearn.neighbors.LocalOutlierFactor."""

from __future__ import annotations

from typing import Any

from sklearn import neighbors as theirs  # type: ignore[import-untyped]

from kith.sklearn._search import KithSearch, constraints


class LocalOutlierFactor(KithSearch, theirs.LocalOutlierFactor):  # type: ignore[misc]
    """Find outliers: vectors whose neighbours are in denser regions than they are.

    A ``sklearn.neighbors.LocalOutlierFactor`` that searches with Kith.

    Parameters
    ----------
    n_neighbors : int, default 20
        How many neighbours to use for the density around a vector.
    contamination : "auto" or float, default "auto"
        The share of outliers, which sets the threshold; "auto": that of the original paper.
    novelty : bool, default False
        True: `predict`, `decision_function` and `score_samples` are for vectors that were not fitted.
    metric, p, algorithm, leaf_size, metric_params, device, n_jobs
        As in `NearestNeighbors`.

    Examples
    --------
    >>> from kith.sklearn import LocalOutlierFactor
    >>> LocalOutlierFactor(n_neighbors=2).fit_predict([[-1.1], [0.2], [101.1], [0.3]])
    array([ 1,  1, -1,  1])
    """

    _parameter_constraints = constraints(theirs.LocalOutlierFactor)

    def __init__(
        self,
        n_neighbors: int = 20,
        *,
        algorithm: str = "auto",
        leaf_size: int = 30,
        metric: Any = "minkowski",
        p: float = 2,
        metric_params: dict[str, Any] | None = None,
        contamination: Any = "auto",
        novelty: bool = False,
        device: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            n_neighbors=n_neighbors,
            algorithm=algorithm,
            leaf_size=leaf_size,
            metric=metric,
            p=p,
            metric_params=metric_params,
            contamination=contamination,
            novelty=novelty,
            n_jobs=n_jobs,
        )
        self.device = device
