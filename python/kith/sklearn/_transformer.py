"""Vectors into a sparse graph of their neighbours, as a step of a scikit-learn pipeline."""

from __future__ import annotations

from typing import Any

from sklearn import neighbors as theirs  # type: ignore[import-untyped]

from kith.sklearn._search import KithSearch, constraints


class KNeighborsTransformer(KithSearch, theirs.KNeighborsTransformer):  # type: ignore[misc]
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"] if self.mode == "distance" else ["float64"]
        return tags
