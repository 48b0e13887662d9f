"""scikit-learn-compatible estimators that compute with Kith.

`NearestNeighbors`, `KNeighborsTransformer`, `KNeighborsClassifier`, `KNeighborsRegressor`, `RadiusNeighborsClassifier`,
`RadiusNeighborsRegressor`, `RadiusNeighborsTransformer`, `LocalOutlierFactor`, `DBSCAN`, `HDBSCAN` and `KMeans` derive from those of
the same name in scikit-learn and have their methods, parameters and results; distances are float32, searches exact and in
threads of their own. What Kith does not have (sparse matrices, precomputed distances, other metrics) scikit-learn computes;
`backend_` says which did::

    from kith.sklearn import KMeans, KNeighborsClassifier, NearestNeighbors

    distances, ids = NearestNeighbors(n_neighbors=10, metric="cosine").fit(base).kneighbors(queries)
    labels = KNeighborsClassifier(n_neighbors=5).fit(base, known).predict(queries)
    clusters = KMeans(n_clusters=100, random_state=0).fit_predict(base)

`KNNGraphTransformer` is a `KNeighborsTransformer` by an approximate graph.

Needs scikit-learn: ``pip install scikit-learn``. ``import kith`` alone does not load it.
"""

from typing import NoReturn as _NoReturn

try:
    import sklearn as _sklearn  # type: ignore[import-untyped]  # noqa: F401
except ImportError:
    raise ImportError("kith.sklearn needs scikit-learn, which is missing: pip install scikit-learn") from None

from kith.sklearn._classifier import KNeighborsClassifier
from kith.sklearn._density import DBSCAN, HDBSCAN
from kith.sklearn._kmeans import KMeans
from kith.sklearn._neighbors import NearestNeighbors
from kith.sklearn._outliers import LocalOutlierFactor
from kith.sklearn._radius import RadiusNeighborsClassifier, RadiusNeighborsRegressor
from kith.sklearn._regressor import KNeighborsRegressor
from kith.sklearn._transformer import KNeighborsTransformer, KNNGraphTransformer, RadiusNeighborsTransformer

__all__ = [
    "DBSCAN",
    "HDBSCAN",
    "KMeans",
    "KNNGraphTransformer",
    "KNeighborsClassifier",
    "KNeighborsRegressor",
    "KNeighborsTransformer",
    "LocalOutlierFactor",
    "NearestNeighbors",
    "RadiusNeighborsClassifier",
    "RadiusNeighborsRegressor",
    "RadiusNeighborsTransformer",
]


def __getattr__(name: str) -> _NoReturn:
    if name.startswith("_"):
        raise AttributeError(f"module 'kith.sklearn' has no attribute {name!r}")
    from kith._other_names import refuse_estimator

    refuse_estimator(name, __all__)
