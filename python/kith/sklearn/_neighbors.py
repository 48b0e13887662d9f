"""Nearest neighbours with the interface of sklearn.neighbors.NearestNeighbors."""

from __future__ import annotations

from typing import Any

from sklearn import neighbors as theirs  # type: ignore[import-untyped]

from kith.sklearn._radius import RadiusSearch
from kith.sklearn._search import constraints


class NearestNeighbors(RadiusSearch, theirs.NearestNeighbors):  # type: ignore[misc]
    """Find the nearest neighbours of points, exactly.

    A ``sklearn.neighbors.NearestNeighbors`` that searches with Kith. Distances are float32; equal ones are ordered by
    row number, and neighbours within a radius by distance.

    Parameters
    ----------
    n_neighbors : int, default 5
        How many neighbours `kneighbors` finds.
    radius : float, default 1.0
        The reach of `radius_neighbors`, in the metric's unit and included.
    metric : str or callable, default "minkowski"
        ``"minkowski"`` (by `p`), ``"euclidean"``, ``"manhattan"``, ``"cityblock"``, ``"chebyshev"``, or a metric of
        Kith: ``"l2"``, ``"sqeuclidean"``, ``"inner_product"``, ``"cosine"``, ``"l1"``, ``"linf"``, ``"chi_square"``,
        ``"hamming"``. The last counts the differing bits of uint8 rows; what scikit-learn calls so is the share of
        differing entries. With any other metric of scikit-learn, ``"precomputed"`` and sparse `X`, scikit-learn searches.
    p : float, default 2
        Of ``"minkowski"``: 1, 2 and inf are Kith's ``"l1"``, ``"l2"`` and ``"linf"``; scikit-learn searches by others.
    algorithm, leaf_size, metric_params
        As in scikit-learn. Kith's search has one algorithm, which these do not change.
    device : str, default "auto"
        ``"cpu"``, ``"cuda"``, ``"cuda:N"``, or ``"auto"``: a GPU if there is one and it is predicted to be faster.
    n_jobs : int, optional
        Threads of the CPU; None and -1 are all.

    Attributes
    ----------
    backend_ : str
        ``"kith"``, or ``"scikit-learn"`` where Kith cannot search.
    effective_metric_ : str
        The metric, with ``"minkowski"`` by its plain name.
    n_features_in_ : int
        The length of a vector.
    feature_names_in_ : numpy.ndarray of str
        The names of the columns, where `fit` was given a data frame.
    n_samples_fit_ : int
        How many vectors are searched.

    Notes
    -----
    float32, float16, uint8 and int8 arrays in C order are kept without copying and must not change; everything else
    becomes float32 by one copy, as `kith.knn` makes it of float64.

    Examples
    --------
    >>> from kith.sklearn import NearestNeighbors
    >>> neighbors = NearestNeighbors(n_neighbors=1).fit([[0.0, 0.0], [3.0, 4.0]])
    >>> neighbors.kneighbors([[3.0, 3.0]])
    (array([[1.]], dtype=float32), array([[1]]))
    """

    _parameter_constraints = constraints(theirs.NearestNeighbors)

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
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
            n_neighbors=n_neighbors,
            radius=radius,
            algorithm=algorithm,
            leaf_size=leaf_size,
            metric=metric,
            p=p,
            metric_params=metric_params,
            n_jobs=n_jobs,
        )
        self.device = device
