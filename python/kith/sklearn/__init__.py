"""Kith behind scikit-learn's estimators.

`NearestNeighbors`, `KNeighborsTransformer` and `KMeans` have the methods, parameters and results of those of the same
name in scikit-learn; distances are float32, searches exact and in threads of their own::

    from kith.sklearn import KMeans, KNeighborsTransformer, NearestNeighbors

    distances, ids = NearestNeighbors(n_neighbors=10, metric="cosine").fit(base).kneighbors(queries)
    pipeline = make_pipeline(KNeighborsTransformer(n_neighbors=30), TSNE(metric="precomputed", init="random"))
    labels = KMeans(n_clusters=100, random_state=0).fit_predict(base)

Needs scikit-learn: ``pip install 'kith[sklearn]'``. ``import kith`` alone does not load it.
"""

try:
    import sklearn as _sklearn  # type: ignore[import-untyped]  # noqa: F401
except ImportError:
    raise ImportError("kith.sklearn needs scikit-learn, which is missing: pip install 'kith[sklearn]'") from None

from kith.sklearn._kmeans import KMeans
from kith.sklearn._neighbors import NearestNeighbors
from kith.sklearn._transformer import KNeighborsTransformer

__all__ = ["KMeans", "KNeighborsTransformer", "NearestNeighbors"]
