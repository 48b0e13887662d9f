"""k-means with the interface of sklearn.cluster.KMeans."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import get_config  # type: ignore[import-untyped]
from sklearn.base import (  # type: ignore[import-untyped]
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils import assert_all_finite, check_random_state  # type: ignore[import-untyped]
from sklearn.utils.validation import (  # type: ignore[import-untyped]
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from kith import _kmeans
from kith._arrays import VectorsLike, as_base, as_numbers, as_vectors, to_numpy
from kith._narrowing import Narrowing
from kith._options import calling
from kith._pairwise_distances import pairwise_distances
from kith.sklearn._parameters import WIDE_DTYPES, count_of, threads_of

# How scikit-learn is to hand over what it was given.
_AS_READ: dict[str, Any] = {"dtype": WIDE_DTYPES, "order": "C", "ensure_all_finite": False}


class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Cluster vectors around centres, by Lloyd's algorithm with exact assignments.

    The methods are those of ``sklearn.cluster.KMeans``. The same data and `random_state` give the same result for any
    number of threads. Centres and distances are float32.

    Parameters
    ----------
    n_clusters : int, default 8
        How many centres.
    init : {"k-means++", "random"} or array_like (n_clusters, features), default "k-means++"
        Where to begin.
    n_init : int or "auto", default "auto"
        Keeps the best of so many runs; time grows with it. ``"auto"`` is 10 for ``init="random"``, else 1.
    max_iter : int, default 300
        The most iterations of a run.
    tol : float, default 1e-4
        Stop when the centres' squared moves add up to at most `tol` times the mean variance of the columns.
    random_state : int, RandomState instance or None, default None
        The seed of the random numbers; None draws one.
    init_points_per_centre : int, optional
        How many vectors for each centre ``"k-means++"`` looks at, a random sample; 0 is all. By default all, where that
        is cheap, and for many centres what was drawn of all.
    device : str, default "auto"
        As in `kith.KMeans`.
    n_jobs : int, optional
        Threads of the CPU; None and -1 are all.

    Attributes
    ----------
    cluster_centers_ : numpy.ndarray of float32, (n_clusters, features)
        float64 where an offset was subtracted from the vectors.
    labels_ : numpy.ndarray of int32, (samples,)
        The centre of each fitted vector.
    inertia_ : float
        The sum of (weight times) squared distances to the nearest centre.
    n_iter_ : int
        Iterations done.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> from kith.sklearn import KMeans
    >>> model = KMeans(n_clusters=2, random_state=0).fit([[0.0], [1.0], [10.0], [11.0]])
    >>> sorted(model.cluster_centers_[:, 0].tolist())
    [0.5, 10.5]
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: str | VectorsLike = "k-means++",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        random_state: Any = None,
        init_points_per_centre: int | None = None,
        device: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.init_points_per_centre = init_points_per_centre
        self.device = device
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Find the centres of `X`.

        Parameters
        ----------
        X : array_like, (samples, features)
            float32, float16, uint8 and int8 arrays in C order are read where they lie; everything else becomes float32
            by one copy, as `kith.knn` makes it of float64.
        y : ignored
        sample_weight : array_like, (samples,), optional
            How much each vector counts; not negative.
        """
        clusters = count_of(self.n_clusters, "n_clusters")
        given = validate_data(self, X, **_AS_READ)
        if given.shape[0] < clusters:
            raise ValueError(f"n_samples={given.shape[0]} should be >= n_clusters={clusters}.")
        check = self._leaves_check(given)
        rows, _, narrowing = as_base(given, "X", "sqeuclidean")
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, given, dtype=np.float32)
        init, runs = self._start()
        if not isinstance(init, str) and narrowing.offset is not None:
            init = as_vectors(init, "init", 0, narrowing, warns=False)[0]
        model = _kmeans.KMeans(
            clusters,
            iterations=count_of(self.max_iter, "max_iter"),
            tol=self.tol,
            n_init=runs,
            init=init,
            seed=int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)),
            init_points_per_centre=self.init_points_per_centre,
            device=self.device,
            check_finite=check,
        )
        with self._scikit_words(given):
            model.fit(rows, sample_weight, threads=threads_of(self.n_jobs))
        self.cluster_centers_ = narrowing.restored(model.cluster_centers_)
        self._offset = narrowing.offset
        self.labels_ = model.labels_
        self.inertia_ = model.inertia_
        self.n_iter_ = model.n_iter_
        return self

    def _start(self) -> tuple[str | VectorsLike, int]:
        init = self.init
        if isinstance(init, str):
            if init not in ("k-means++", "random"):
                raise ValueError(f"init is {init!r}; it must be 'k-means++', 'random' or an array of centres")
            runs = 10 if init == "random" else 1
            init = "kmeans++" if init == "k-means++" else init
        else:
            runs = 1  # every run would be the same
        if isinstance(self.n_init, str):
            if self.n_init != "auto":
                raise ValueError(f"n_init is {self.n_init!r}; it must be 'auto' or a whole number")
            return init, runs
        return init, count_of(self.n_init, "n_init") if isinstance(init, str) else 1

    def predict(self, X: Any) -> npt.NDArray[np.int32]:
        """The nearest centre of each vector; of equally near ones the first."""
        check_is_fitted(self)
        given = X if self._is_plain(X) else validate_data(self, X, **_AS_READ, reset=False)
        check = self._leaves_check(given)
        model = _kmeans.fixed_centres(self._narrowed(self.cluster_centers_), check_finite=check)
        rows = self._narrowed(given)
        with self._scikit_words(given), calling("cpu", threads_of(self.n_jobs)) as options:
            found = model.predict(rows, False, options, None)
            assert found is not None
            labels: npt.NDArray[np.int32] = found[0]
            return labels

    def transform(self, X: Any) -> npt.NDArray[np.float32]:
        """The distance of each vector to every centre: (samples, n_clusters)."""
        check_is_fitted(self)
        rows, threads = self._validated(X), threads_of(self.n_jobs)
        distances: npt.NDArray[np.float32]
        distances = pairwise_distances(rows, self._narrowed(self.cluster_centers_), threads=threads, check_finite=False)
        return distances

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the sum of (weight times) squared distances to the nearest centre."""
        check_is_fitted(self)
        rows = self._validated(X)
        squares = self._nearest(rows)[1].astype(np.float64) ** 2
        if sample_weight is not None:
            squares *= _check_sample_weight(sample_weight, rows, dtype=np.float64)
        return -float(squares.sum())

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> npt.NDArray[np.int32]:
        """`fit`, and the labels of `X`."""
        labels: npt.NDArray[np.int32] = self.fit(X, sample_weight=sample_weight).labels_
        return labels

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> npt.NDArray[np.float32]:
        """`fit`, and the distances of `X` to every centre."""
        distances: npt.NDArray[np.float32] = self.fit(X, sample_weight=sample_weight).transform(X)
        return distances

    def _is_plain(self, X: Any) -> bool:
        """Whether these are vectors as the library reads them, in which scikit-learn would find nothing to say."""
        return (
            type(X) is np.ndarray
            and X.dtype == np.float32
            and X.shape[1:] == (self.n_features_in_,)
            and len(X) > 0
            and X.flags.c_contiguous
            and X.flags.aligned
            and not hasattr(self, "feature_names_in_")
        )

    def _leaves_check(self, given: npt.NDArray[Any]) -> bool:
        """Whether the library is to refuse NaN and infinities, which costs it less than scikit-learn.

        float64 is looked at here: narrowed, large numbers become infinite.
        """
        if given.dtype == np.float64:
            assert_all_finite(given, estimator_name=type(self).__name__, input_name="X")
            return False
        return not get_config()["assume_finite"]

    @contextmanager
    def _scikit_words(self, given: npt.NDArray[Any]) -> Iterator[None]:
        """What the library refuses for NaN or infinities, scikit-learn refuses in its own words."""
        try:
            yield
        except ValueError:
            assert_all_finite(given, estimator_name=type(self).__name__, input_name="X")
            raise

    def _validated(self, X: Any) -> npt.NDArray[Any]:
        return self._narrowed(validate_data(self, X, dtype=WIDE_DTYPES, order="C", reset=False))

    def _narrowed(self, rows: Any) -> npt.NDArray[Any]:
        """As the vectors of the fit were; centres too, which may have been set since."""
        numbers = as_numbers(to_numpy(rows, "X"), "X")
        narrow: Any = as_vectors(numbers, "X", 0, Narrowing(self._offset), warns=False)[0]
        array: npt.NDArray[Any] = narrow
        return array

    def _nearest(self, rows: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
        """Labels and distances, as k-means assigns."""
        model = _kmeans.KMeans.of_centres(self._narrowed(self.cluster_centers_), device="cpu", check_finite=False)
        return model.assign(rows, threads=threads_of(self.n_jobs))

    @property
    def _n_features_out(self) -> int:
        return int(self.cluster_centers_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags
