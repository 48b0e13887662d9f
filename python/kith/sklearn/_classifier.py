"""Classes by the votes of neighbours, with the interface of sklearn.neighbors.KNeighborsClassifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import neighbors as theirs  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]

from kith.sklearn._search import KithSearch, constraints


class KNeighborsClassifier(KithSearch, theirs.KNeighborsClassifier):  # type: ignore[misc]
    """Classify vectors by a vote of their nearest neighbours.

    A ``sklearn.neighbors.KNeighborsClassifier`` that searches with Kith. Of classes with equally many votes the first in
    `classes_` wins.

    Parameters
    ----------
    n_neighbors : int, default 5
        How many neighbours vote.
    weights : {"uniform", "distance"}, callable or None, default "uniform"
        ``"uniform"`` and None: one vote each. ``"distance"``: the inverse of the distance; neighbours at distance 0, where
        there are any, vote alone. A callable gets the distances, (queries, n_neighbors), and returns as many weights.
    metric, p, algorithm, leaf_size, metric_params, device, n_jobs
        As in `NearestNeighbors`.

    Attributes
    ----------
    classes_ : numpy.ndarray, or a list of them for labels of several columns
        The labels, sorted.
    backend_, effective_metric_, n_features_in_, feature_names_in_, n_samples_fit_
        As in `NearestNeighbors`.

    Examples
    --------
    >>> from kith.sklearn import KNeighborsClassifier
    >>> model = KNeighborsClassifier(n_neighbors=3).fit([[0.0], [1.0], [2.0], [9.0], [10.0]], ["a", "a", "a", "b", "b"])
    >>> model.predict([[1.5], [9.2]])
    array(['a', 'b'], dtype='<U1')
    """

    _parameter_constraints = constraints(theirs.KNeighborsClassifier)

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

    def predict(self, X: Any) -> Any:
        """The class of each query; without queries (None), of each fitted vector by the votes of the others."""
        check_is_fitted(self)
        if self.backend_ != "kith":
            return super().predict(X)
        # The same as the most frequent label of each row, without a look at every row by itself.
        shares = self.predict_proba(X)
        if not self.outputs_2d_:
            return self.classes_[np.argmax(shares, axis=1)]
        columns = [classes[np.argmax(share, axis=1)] for classes, share in zip(self.classes_, shares)]
        return np.stack(columns, axis=1)
