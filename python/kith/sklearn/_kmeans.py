"""k-means with the interface of sklearn.cluster.KMeans."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from warnings import warn

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse  # type: ignore[import-untyped]
from sklearn import cluster as theirs  # type: ignore[import-untyped]
from sklearn import get_config
from sklearn.exceptions import ConvergenceWarning  # type: ignore[import-untyped]
from sklearn.utils import assert_all_finite, check_random_state  # type: ignore[import-untyped]
from sklearn.utils.validation import (  # type: ignore[import-untyped]
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from kith import _kith, _kmeans
from kith._arrays import VectorsLike, as_numbers, as_vectors, to_numpy
from kith._caller import levels_to_the_caller
from kith._options import calling
from kith._pairwise_distances import pairwise_distances
from kith.sklearn._parameters import WIDE_DTYPES, refuse_device, threads_of

# How scikit-learn is to hand over what it was given.
_AS_READ: dict[str, Any] = {"dtype": WIDE_DTYPES, "order": "C", "ensure_all_finite": False}
# The same for vectors to predict, if the fit had dense ones.
_SPARSE: dict[str, Any] = {"accept_sparse": "csr"}


class KMeans(theirs.KMeans):  # type: ignore[misc]
    """Cluster vectors around centres, by Lloyd's algorithm with exact assignments.

    A ``sklearn.cluster.KMeans`` that computes with Kith. The same data and `random_state` give the same result for any
    number of threads. Arithmetic is that of `kith.KMeans`: vectors are float32, sums float64.

    Parameters
    ----------
    n_clusters : int, default 8
        How many centres.
    init : {"k-means++", "random"}, callable or array_like (n_clusters, features), default "k-means++"
        Where to begin. A callable gets the vectors, `n_clusters` and a random state, and returns the centres.
    n_init : int or "auto", default "auto"
        Keeps the best of `n_init` runs; time grows with it. ``"auto"`` is 10 for ``init="random"`` and a callable, else 1.
    max_iter : int, default 300
        The most iterations of a run.
    tol : float, default 1e-4
        Stop when the centres' squared moves add up to at most `tol` times the mean variance of the columns.
    verbose : int, default 0
        Print the inertia of each iteration when the fit is done.
    random_state : int, RandomState instance or None, default None
        The seed of the random numbers; None draws one.
    copy_x, algorithm
        As in scikit-learn. Kith never changes `X`, and ``"lloyd"`` and ``"elkan"`` give the same result.
    init_points_per_centre : int, optional
        The size of the random sample that ``"k-means++"`` considers, per centre; 0 is all. By default all, where that
        is cheap, and for many centres what was drawn of all.
    device : str, default "auto"
        As in `kith.KMeans`.
    n_jobs : int, optional
        Threads of the CPU; None and -1 are all.

    Attributes
    ----------
    backend_ : str
        ``"kith"``, or ``"scikit-learn"`` for sparse `X`.
    cluster_centers_ : numpy.ndarray, (n_clusters, features)
        float64 where `X` is float64 or of integers wider than a byte, else float32.
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

    _parameter_constraints = {
        **theirs.KMeans._parameter_constraints,
        "init_points_per_centre": "no_validation",  # which kith.KMeans checks
        "device": [str],
        "n_jobs": "no_validation",
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        verbose: int = 0,
        random_state: Any = None,
        copy_x: bool = True,
        algorithm: str = "lloyd",
        init_points_per_centre: int | None = None,
        device: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            n_clusters=n_clusters,
            init=init,
            n_init=n_init,
            max_iter=max_iter,
            tol=tol,
            verbose=verbose,
            random_state=random_state,
            copy_x=copy_x,
            algorithm=algorithm,
        )
        self.init_points_per_centre = init_points_per_centre
        self.device = device
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Find the centres of `X`.

        Parameters
        ----------
        X : array_like, (samples, features)
            float32, float16, uint8 and int8 arrays in C order are read without copying; everything else becomes float32
            by one copy, as `kith.knn` makes it of float64. scikit-learn fits a sparse matrix.
        y : ignored
        sample_weight : array_like, (samples,), optional
            How much each vector counts; not negative.
        """
        if issparse(X):
            refuse_device(self.device, "X is sparse")
            self._offset = None
            self.backend_ = "scikit-learn"
            return super().fit(X, sample_weight=sample_weight)
        self._validate_params()
        given = validate_data(self, X, **_AS_READ)
        if given.shape[0] < self.n_clusters:
            raise ValueError(f"n_samples={given.shape[0]} should be >= n_clusters={self.n_clusters}.")
        check = self._leaves_check(given)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, given, dtype=np.float32)
        with self._scikit_words(given):
            model = self._fitted(given, sample_weight, check)
        centres = model.cluster_centers_
        self.cluster_centers_ = centres.astype(np.float64) if given.dtype == np.float64 else centres
        self._n_features_out = centres.shape[0]
        self._offset = model._model.offset
        self.labels_ = model.labels_
        self.inertia_ = model.inertia_
        self.n_iter_ = model.n_iter_
        self.backend_ = "kith"
        self._warn_of_few_clusters()
        return self

    def _fitted(self, given: Any, weights: Any, check: bool) -> _kmeans.KMeans:
        """The best of all runs."""
        init, runs = self._start(given)
        random = check_random_state(self.random_state)
        best: _kmeans.KMeans | None = None
        for _ in range(runs if callable(init) else 1):
            centres = init(given, self.n_clusters, random_state=random) if callable(init) else init
            if not isinstance(centres, str):
                centres = as_numbers(to_numpy(centres, "init"), "init")
                self._validate_center_shape(given, centres)
            model = _kmeans.KMeans(
                self.n_clusters,
                iterations=self.max_iter,
                tol=self.tol,
                n_init=runs if isinstance(centres, str) else 1,
                init=centres,
                seed=int(random.randint(np.iinfo(np.int32).max)),
                init_points_per_centre=self.init_points_per_centre,
                history=bool(self.verbose),
                device=self.device,
                check_finite=check,
            )
            model.fit(given, weights, threads=threads_of(self.n_jobs))
            if self.verbose:
                self._print(model)
            if best is None or model.inertia_ < best.inertia_:
                best = model
        assert best is not None
        return best

    def _print(self, model: _kmeans.KMeans) -> None:
        print("Initialization complete")
        for iteration, inertia in enumerate(model.objective_history_):
            print(f"Iteration {iteration}, inertia {inertia}.")
        if model.n_iter_ < self.max_iter:
            why = "strict convergence" if self.tol == 0 else f"center shift is within tolerance {self.tol}"
            print(f"Converged at iteration {model.n_iter_ - 1}: {why}.")

    def _warn_of_few_clusters(self) -> None:
        distinct = np.unique(self.labels_).size
        if distinct < self.n_clusters:
            self._warn(
                f"Number of distinct clusters ({distinct}) found smaller than n_clusters ({self.n_clusters}). "
                "Possibly due to duplicate points in X.",
                ConvergenceWarning,
            )

    def _warn(self, text: str, category: type[Warning]) -> None:
        warn(text, category, stacklevel=levels_to_the_caller())

    def _start(self, given: npt.NDArray[Any]) -> tuple[Any, int]:
        """Where to begin, as `kith.KMeans` takes it or a callable, and how many runs there are."""
        if self.algorithm == "elkan" and self.n_clusters == 1:
            self._warn("algorithm='elkan' doesn't make sense for a single cluster. Using 'lloyd' instead.", RuntimeWarning)
        init = self.init
        many = callable(init) or (isinstance(init, str) and init == "random")
        self._n_init = (10 if many else 1) if self.n_init == "auto" else self.n_init
        if isinstance(init, str):
            return "kmeans++" if init == "k-means++" else str(init), self._n_init
        if not callable(init) and self._n_init != 1:
            self._warn(
                "Explicit initial center position passed: performing only one init in "
                f"{type(self).__name__} instead of n_init={self._n_init}.",
                RuntimeWarning,
            )
            self._n_init = 1
        return init, self._n_init

    def predict(self, X: Any) -> npt.NDArray[np.int32]:
        """The nearest centre of each vector; of equally near ones the first."""
        check_is_fitted(self)
        if self.backend_ != "kith":
            found_by_them: npt.NDArray[np.int32] = super().predict(X)
            return found_by_them
        given = X if self._is_plain(X) else self._dense(validate_data(self, X, **_AS_READ, **_SPARSE, reset=False))
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
        distances: npt.NDArray[np.float32]
        if self.backend_ != "kith":
            distances = super().transform(X)
            return distances
        rows, threads = self._validated(X), threads_of(self.n_jobs)
        distances = pairwise_distances(rows, self._narrowed(self.cluster_centers_), threads=threads, check_finite=False)
        return distances

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the sum of (weight times) squared distances to the nearest centre."""
        check_is_fitted(self)
        if self.backend_ != "kith":
            return float(super().score(X, y, sample_weight))
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
        """Whether these are vectors that the library can read, and that scikit-learn would accept without conversion."""
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
        given = validate_data(self, X, dtype=WIDE_DTYPES, order="C", reset=False, **_SPARSE)
        return self._narrowed(self._dense(given))

    def _dense(self, given: Any) -> npt.NDArray[Any]:
        dense: npt.NDArray[Any] = given.toarray() if issparse(given) else given
        return dense

    def _narrowed(self, rows: Any) -> npt.NDArray[Any]:
        """As the vectors of the fit were; centres too, which may have been set since."""
        numbers: Any = as_vectors(as_numbers(to_numpy(rows, "X"), "X"), "X")[0]
        return _kith.narrowed(numbers, "X", None, self._offset)[0]

    def _nearest(self, rows: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
        """Labels and distances, as k-means assigns."""
        model = _kmeans.KMeans.of_centres(self._narrowed(self.cluster_centers_), device="cpu", check_finite=False)
        return model.assign(rows, threads=threads_of(self.n_jobs))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags
