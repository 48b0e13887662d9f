"""Kith behind scikit-learn's estimators.

`NearestNeighbors` and `KNeighborsTransformer` have the methods, parameters and results of those of the same name in
``sklearn.neighbors``; distances are float32, and the search is exact and in threads of its own::

    from kith.sklearn import KNeighborsTransformer, NearestNeighbors

    distances, ids = NearestNeighbors(n_neighbors=10, metric="cosine").fit(base).kneighbors(queries)
    pipeline = make_pipeline(KNeighborsTransformer(n_neighbors=30), TSNE(metric="precomputed", init="random"))

Needs scikit-learn: ``pip install 'kith[sklearn]'``. ``import kith`` alone does not load it.
"""

try:
    import sklearn as _sklearn  # type: ignore[import-untyped]  # noqa: F401
except ImportError:
    raise ImportError("kith.sklearn needs scikit-learn, which is missing: pip install 'kith[sklearn]'") from None

from kith.sklearn._neighbors import NearestNeighbors
from kith.sklearn._transformer import KNeighborsTransformer

__all__ = ["KNeighborsTransformer", "NearestNeighbors"]
