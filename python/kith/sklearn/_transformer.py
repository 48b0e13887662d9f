"""Vectors into a sparse graph of their neighbours, as a step of a scikit-learn pipeline."""

from __future__ import annotations

from typing import Any

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]

from kith.sklearn._neighbors import NearestNeighbors, _check_mode


class KNeighborsTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, NearestNeighbors):  # type: ignore[misc]
    """Transform vectors into the sparse graph of their nearest fitted vectors.

    As ``sklearn.neighbors.KNeighborsTransformer``: a step before estimators that take such a graph with
    ``metric="precomputed"`` (TSNE, Isomap, DBSCAN, SpectralClustering, ...).

    Parameters
    ----------
    n_neighbors : int, default 5
        How many neighbours a vector has. With ``mode="distance"`` one more is found, since a fitted vector is its own
        nearest neighbour, at distance 0.
    mode : str, default "distance"
        ``"distance"``: the values are distances; ``"connectivity"``: ones.
    metric, device, n_jobs
        As in `NearestNeighbors`.

    Examples
    --------
    >>> from kith.sklearn import KNeighborsTransformer
    >>> KNeighborsTransformer(n_neighbors=1).fit_transform([[0.0], [3.0], [4.0]]).toarray()
    array([[0., 3., 0.],
           [0., 0., 1.],
           [0., 1., 0.]], dtype=float32)
    """

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        mode: str = "distance",
        metric: str = "euclidean",
        device: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(n_neighbors=n_neighbors, metric=metric, device=device, n_jobs=n_jobs)
        self.mode = mode

    def fit(self, X: Any, y: Any = None) -> Any:
        """Take the vectors that are to be searched, as `NearestNeighbors.fit`."""
        _check_mode(self.mode)
        return super().fit(X)

    def transform(self, X: Any) -> Any:
        """The graph from the vectors of `X` to the fitted ones.

        Returns
        -------
        scipy.sparse.csr_matrix, (rows of X, n_samples_fit)
        """
        check_is_fitted(self)
        one_more = 1 if self.mode == "distance" else 0
        return self.kneighbors_graph(X, self.n_neighbors + one_more, self.mode)

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """The graph of `X` in itself."""
        return self.fit(X).transform(X)

    @property
    def _n_features_out(self) -> int:
        samples: int = self.n_samples_fit_
        return samples

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags
