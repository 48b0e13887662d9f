"""k-means: centres of vectors, and the centre of each vector."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NoReturn, SupportsIndex, TYPE_CHECKING, overload

import numpy as np
import numpy.typing as npt

from kith import _kith
from kith._arrays import Array, Matrix, Vectors, VectorsLike, as_numbers, as_vectors, to_numpy
from kith._device_arrays import fill_on_device, on_device
from kith._kith import CallOptions
from kith._libraries import TORCH, library_of
from kith._options import calling, check_device, flag, real_number, seed_number, text, whole_number
from kith._other_names import refuse_kmeans_name, answers_other_names
from kith._progress import Progress
from kith._search import tensor_place
from kith._sources import SourceLike, array_of, as_source
from kith._typing import ByteSize, ByteSizes, DeviceNames, HostLike, NumpyLike, Settings, Tensor

if TYPE_CHECKING:
    from typing_extensions import Unpack

Labels = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]

# What a pickle leaves out, since it is made anew from the parameters and the fit.
_MADE_ANEW = frozenset(
    {
        "_model",
        "_fitting",
        "cluster_centers_",
        "_labels",
        "inertia_",
        "n_iter_",
        "objective_history_",
        "counts_",
    }
)


class KMeans:
    """k-means clustering, exact and reproducible.

    The same input, parameters and seed give the same bytes for any number of threads, under any memory limit and on
    every processor, from a file as from an array.

    Parameters
    ----------
    clusters : int, default 8
        How many centres.
    iterations : int, default 25
        The maximum number of passes over the vectors; with `batch_size`, of passes' worth of mini-batches.
    tol : float, default 1e-4
        Stop when the centres' squared moves add up to at most `tol` times the mean variance of the columns, as
        scikit-learn does; 0 goes on until nothing moves.
    n_init : int, default 1
        Runs from different starts; the one with the lowest objective is kept.
    init : {"kmeans++", "random"} or array_like (clusters, dimension), default "kmeans++"
        The first centres: rows drawn by greedy k-means++, distinct rows at random, or your own centres.
    seed : int, default 0
        Of the random numbers; not negative.
    max_points_per_centre : int, default 0
        Train on a random sample of this many vectors per centre (FAISS's default is 256); 0 trains on all.
    init_points_per_centre : int, optional
        k-means++ considers a random sample of this many vectors per centre; 0 considers all. By default it considers all
        where that is cheap; for many centres it draws candidates from all vectors in rounds and chooses among these.
    spherical : bool, default False
        Centres of length 1; a vector belongs to the centre with the largest inner product.
    batch_size : int, default 0
        Use mini-batches of this many vectors, drawn at random; 0 for whole passes.
    compute_labels : bool, default True
        A final pass computes `labels_` and `inertia_` for the final centres. Without it there are no labels, and `inertia_`
        is that of the last iteration before its centres moved.
    history : bool, default True
        Keep the inertia of each iteration in `objective_history_`. Without it that is empty, all else is the same, and a
        CPU computes distances of one nearest centre for each vector in the final pass alone.
    device : str, default "auto"
        ``"cpu"``, ``"cuda"``, ``"cuda:N"``, or ``"auto"``: the device of the vectors, or, for host arrays, a GPU if
        there is one and it is predicted to be faster.
    check_finite : bool, default True
        Refuse NaN and infinities, naming the row.

    Attributes
    ----------
    cluster_centers_ : numpy.ndarray of float32, (clusters, dimension)
        float64 where an offset was subtracted from the vectors.
    labels_ : numpy.ndarray of int32
        The centre of each vector of the last fit.
    inertia_ : float
        The sum of (weight times) squared distances to the nearest centre; for spherical, minus the inner products.
    n_iter_ : int
        Iterations done.
    objective_history_ : numpy.ndarray of float64
        The inertia at each iteration, before the centres moved; empty without `history`. Without mini-batches it never
        rises but by rounding.
    counts_ : numpy.ndarray of float64
        The weight that each centre has been given.

    Notes
    -----
    Vectors are taken as `kith.knn` takes them: float32, float16, bfloat16, uint8 and int8 arrays with contiguous
    columns in place, others by one copy to float32, from float64 and wide integers less an offset where that
    keeps more of them (the fit, or the first `partial_fit`, fixes it). What `predict`, `assign` and `transform`
    return is in the vectors' kind of array (torch, cupy, jax, else numpy) and memory; the attributes are
    numpy's. `predict` may run in many threads at once, also while one fits. The GIL is released, and Ctrl-C stops a
    fit.

    A model can be pickled and copied, fitted or not; what is called on the copy gives the same bytes.

    Examples
    --------
    >>> import numpy as np, kith
    >>> x = np.array([[0], [1], [10], [11]], dtype=np.float32)
    >>> model = kith.KMeans(2, seed=1).fit(x)
    >>> np.sort(model.cluster_centers_[:, 0])
    array([ 0.5, 10.5], dtype=float32)
    >>> bool(model.predict([[2.0]])[0] == model.labels_[0])
    True
    """

    cluster_centers_: npt.NDArray[Any]
    inertia_: float
    n_iter_: int
    _labels: Labels | _kith.FittedLabels
    objective_history_: npt.NDArray[np.float64]
    counts_: npt.NDArray[np.float64]

    @answers_other_names("kith.KMeans()")
    def __init__(
        self,
        clusters: SupportsIndex = 8,
        *,
        iterations: SupportsIndex = 25,
        tol: float = 1e-4,
        n_init: SupportsIndex = 1,
        init: str | VectorsLike = "kmeans++",
        seed: SupportsIndex = 0,
        max_points_per_centre: SupportsIndex = 0,
        init_points_per_centre: SupportsIndex | None = None,
        spherical: bool = False,
        batch_size: SupportsIndex = 0,
        compute_labels: bool = True,
        history: bool = True,
        device: DeviceNames = "auto",
        check_finite: bool = True,
    ) -> None:
        self._device = check_device(device)
        self._given = _kept(init)
        self._clusters = whole_number(clusters, "clusters")
        if isinstance(init, str) and text(init, "init") == "given":
            raise ValueError("init: pass the array of centres itself, or 'kmeans++' or 'random'")
        self._parameters = (
            self._clusters,
            whole_number(iterations, "iterations"),
            real_number(tol, "tol"),
            whole_number(n_init, "n_init"),
            init if isinstance(init, str) else "given",
            seed_number(seed),
            whole_number(max_points_per_centre, "max_points_per_centre"),
            _init_points(init_points_per_centre),
            flag(spherical, "spherical"),
            whole_number(batch_size, "batch_size"),
            flag(compute_labels, "compute_labels"),
            flag(history, "history"),
            flag(check_finite, "check_finite"),
        )
        self._model = _kith.KMeans(*self._parameters)
        self._fitting = threading.RLock()  # one fit at a time; predictions need not wait

    def __getattr__(self, name: str) -> NoReturn:
        refuse_kmeans_name(name)

    @property
    def labels_(self) -> Labels:
        """The centre of each vector of the last fit, copied when first asked for."""
        if not hasattr(self, "_labels"):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute 'labels_'; call fit first")
        labels = self._labels
        if not isinstance(labels, _kith.FittedLabels):
            return labels
        copied = labels.view().copy()
        if self._labels is labels:  # no other thread has fitted meanwhile
            self._labels = copied
        return copied

    @labels_.setter
    def labels_(self, labels: Labels) -> None:
        self._labels = labels

    @classmethod
    def of_centres(cls, centres: npt.ArrayLike, **parameters: Any) -> KMeans:
        """A model with these centres, as if fitted: `predict`, `assign` and `transform` use them as they are.

        `parameters` are those of `KMeans`, without `clusters` and `init`.
        """
        given = as_numbers(to_numpy(centres, "centres"), "centres")
        if given.ndim != 2 or not given.size:
            raise ValueError(f"centres have the shape {given.shape}; they must be a matrix, one centre in each row")
        model = cls(given.shape[0], **parameters)
        vectors: Any = as_vectors(given, "centres")[0]
        rows, offset = _kith.narrowed(vectors, "centres", model._metric, None)
        array = np.ascontiguousarray(rows, dtype=np.float32)
        model._model.restore(array, np.zeros(array.shape[0]), np.zeros(0, np.int32), 0.0, [], 0, offset)
        model._take_results()
        return model

    @answers_other_names("fit()")
    def fit(
        self,
        x: VectorsLike | SourceLike,
        sample_weight: npt.ArrayLike | None = None,
        *,
        threads: SupportsIndex = 0,
        memory_limit: ByteSize | None = None,
        device_memory_limit: ByteSizes | None = None,
        progress: Progress = False,
        comm: Any = None,
    ) -> KMeans:
        """Find the centres of `x`.

        Parameters
        ----------
        x : array_like (rows, dimension), or path
            The vectors, or files of them as in `Index.train`, which may be larger than `memory_limit`: they are read in
            pieces, once for each iteration, with the same result.
        sample_weight : array_like (rows,), optional
            How much each vector counts; not negative.
        threads, memory_limit, device_memory_limit, progress, comm
            As in `knn`.

        Returns
        -------
        KMeans
            This object.
        """
        weights = _weights(sample_weight)
        with self._fitting, self._calling(x, threads, memory_limit, device_memory_limit, progress) as options:
            source = as_source(x)
            if source is not None:
                self._model.fit_file(source, weights, self._given, options, comm)
            else:
                self._model.fit(as_vectors(array_of(x), "x", options.stream)[0], weights, self._given, options, comm)
            self._take_results()
        return self

    @answers_other_names("partial_fit()")
    def partial_fit(
        self,
        x: VectorsLike,
        sample_weight: npt.ArrayLike | None = None,
        *,
        threads: SupportsIndex = 0,
        memory_limit: ByteSize | None = None,
        device_memory_limit: ByteSizes | None = None,
        progress: Progress = False,
    ) -> KMeans:
        """Move the centres by one mini-batch: each becomes the mean of all vectors that it has ever been given.

        The first call chooses the centres from its vectors, or takes those of `init`. Parameters are those of `fit`,
        without files.
        """
        weights = _weights(sample_weight)
        with self._fitting, self._calling(x, threads, memory_limit, device_memory_limit, progress) as options:
            self._model.partial_fit(as_vectors(x, "x", options.stream)[0], weights, self._given, options)
            self._take_results()
        return self

    @overload
    def predict(self, x: HostLike, **settings: Unpack[Settings]) -> Labels: ...
    @overload
    def predict(self, x: Tensor, **settings: Unpack[Settings]) -> Tensor: ...
    @overload
    def predict(  # type: ignore[overload-cannot-match,unused-ignore]
        self, x: VectorsLike, **settings: Unpack[Settings]
    ) -> Array: ...
    @answers_other_names("predict()")
    def predict(
        self,
        x: VectorsLike | SourceLike,
        *,
        threads: SupportsIndex = 0,
        memory_limit: ByteSize | None = None,
        device_memory_limit: ByteSizes | None = None,
        progress: Progress = False,
    ) -> Array:
        """The nearest centre of each vector of an array or a file; of equally near ones the first.

        Faster than `assign`: if the nearest centre is certain, no distance is computed.
        """
        limited = memory_limit is not None or device_memory_limit is not None
        if progress is False and not limited and type(threads) is int and self._device == "auto":
            labels = self._labels_of_tensor(x, threads)
            if labels is not None:
                return labels
        with self._calling(x, threads, memory_limit, device_memory_limit, progress) as options:
            return self._assigned(x, options, wants_distances=False)[0]

    def _labels_of_tensor(self, x: Any, threads: int) -> Array | None:
        """The same of a plain tensor in a GPU's memory, in less time; None for all else."""
        place = tensor_place(x, threads)
        if place is None:
            return None
        labels: Array = TORCH.fresh_labels(x)
        self._model.predict_tensor(place, x.get_device(), threads, TORCH.stream(x), labels.data_ptr())
        return labels

    @overload
    def assign(self, x: HostLike, **settings: Unpack[Settings]) -> tuple[Labels, Floats]: ...
    @overload
    def assign(self, x: Tensor, **settings: Unpack[Settings]) -> tuple[Tensor, Tensor]: ...
    @overload
    def assign(  # type: ignore[overload-cannot-match,unused-ignore]
        self, x: VectorsLike, **settings: Unpack[Settings]
    ) -> tuple[Array, Array]: ...
    @answers_other_names("assign()")
    def assign(
        self,
        x: VectorsLike | SourceLike,
        *,
        threads: SupportsIndex = 0,
        memory_limit: ByteSize | None = None,
        device_memory_limit: ByteSizes | None = None,
        progress: Progress = False,
    ) -> tuple[Array, Array]:
        """The nearest centre of each vector and its distance (the inner product for spherical)."""
        with self._calling(x, threads, memory_limit, device_memory_limit, progress) as options:
            labels, distances = self._assigned(x, options, wants_distances=True)
            assert distances is not None
            return labels, distances

    def _assigned(
        self, x: VectorsLike | SourceLike, options: CallOptions, *, wants_distances: bool
    ) -> tuple[Array, Array | None]:
        """Labels and distances, in a GPU's memory if the vectors are there."""
        model = self._model
        source = as_source(x)
        if source is not None:
            return model.predict_file(source, options)
        rows = as_vectors(array_of(x), "x", options.stream)[0]
        library = library_of(x)
        if isinstance(rows, _kith.DeviceArray):
            count = 1 if len(rows.shape) == 1 else rows.shape[0]
            labels = library.empty((count,), "int32", rows.device)
            distances = library.empty((count,), "float32", rows.device) if wants_distances else None
            out = (
                library.export(labels, options.stream, "labels"),
                None if distances is None else library.export(distances, options.stream, "distances"),
            )
            model.predict(rows, wants_distances, options, out)
            return library.finished(labels), None if distances is None else library.finished(distances)
        found = model.predict(rows, wants_distances, options, None)
        assert found is not None
        return library.from_host(found[0], x), None if found[1] is None else library.from_host(found[1], x)

    @overload
    def transform(self, x: NumpyLike, **settings: Unpack[Settings]) -> Floats: ...
    @overload
    def transform(self, x: Tensor, **settings: Unpack[Settings]) -> Tensor: ...
    @overload
    def transform(  # type: ignore[overload-cannot-match,unused-ignore]
        self, x: VectorsLike, **settings: Unpack[Settings]
    ) -> Array: ...
    @answers_other_names("transform()")
    def transform(
        self,
        x: VectorsLike,
        *,
        threads: SupportsIndex = 0,
        memory_limit: ByteSize | None = None,
        device_memory_limit: ByteSizes | None = None,
        progress: Progress = False,
    ) -> Array:
        """The distance of each vector to every centre: (rows, clusters); inner products for spherical."""
        with self._calling(x, threads, memory_limit, device_memory_limit, progress) as options:
            model = self._model
            rows = as_vectors(x, "x", options.stream)[0]
            if isinstance(rows, _kith.DeviceArray):
                wanted = (rows.shape[0], self._clusters)
                fill = partial(model.transform, rows, options)
                return fill_on_device(x, wanted, rows.device, options.stream, fill)
            return library_of(x).from_host(model.transform(rows, options, None), x)

    def fit_predict(
        self, x: VectorsLike | SourceLike, sample_weight: npt.ArrayLike | None = None, **options: Any
    ) -> Array:
        """`fit`, and the labels of `x`."""
        self.fit(x, sample_weight, **options)
        if on_device(x) or not self.labels_.size:  # a pass on the device takes less time than a copy
            return self.predict(x, **options)
        return library_of(x).from_host(self.labels_.copy(), x)

    def fit_transform(self, x: VectorsLike, sample_weight: npt.ArrayLike | None = None, **options: Any) -> Array:
        """`fit`, and the distances of `x` to every centre."""
        return self.fit(x, sample_weight, **options).transform(x, **options)

    def _calling(
        self,
        x: object,
        threads: SupportsIndex,
        memory_limit: ByteSize | None,
        device_memory_limit: ByteSizes | None,
        progress: Progress,
    ) -> AbstractContextManager[CallOptions]:
        return calling(self._device, threads, memory_limit, device_memory_limit, progress, arrays=(x,))

    @property
    def _metric(self) -> str:
        return "inner_product" if self._parameters[8] else "sqeuclidean"

    def _take_results(self) -> None:
        self.cluster_centers_, self.counts_, self._labels, self.inertia_, history, self.n_iter_ = self._model.results()
        self.objective_history_ = np.array(history, dtype=np.float64)

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy: the parameters, and what fitting has left."""
        if isinstance(self._given, _kith.DeviceArray):
            raise TypeError("init lies in a GPU's memory; to pickle or copy a KMeans, give init on the host")
        with self._fitting:
            state = {name: value for name, value in self.__dict__.items() if name not in _MADE_ANEW}
            if self._model.fitted:
                state["_fit"] = self._model.snapshot()
            return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        fit = state.pop("_fit", None)
        self.__dict__.update(state)
        self._model = _kith.KMeans(*self._parameters)
        self._fitting = threading.RLock()
        if fit is not None:
            self._model.restore(*fit)
            self._take_results()

    def __repr__(self) -> str:
        return f"kith.KMeans({self._clusters})"


def fixed_centres(centres: Matrix, *, check_finite: bool) -> _kith.KMeans:
    """The compiled half of `KMeans.of_centres`, of float32 centres, for predictions alone."""
    array = np.ascontiguousarray(centres, dtype=np.float32)
    model = _kith.KMeans(len(array), 1, 0.0, 1, "random", 0, 0, -1, False, 0, False, False, check_finite)
    model.restore(array, np.zeros(len(array)), np.zeros(0, np.int32), 0.0, [], 0)
    return model


def _kept(init: str | VectorsLike) -> Vectors | None:
    """Centres to begin with: a copy, or the array itself in a GPU's memory."""
    if isinstance(init, str):
        return None
    return as_vectors(init if on_device(init) else np.array(to_numpy(init, "init")), "init")[0]


def _init_points(count: SupportsIndex | None) -> int:
    if count is None:
        return -1  # the library chooses
    number = whole_number(count, "init_points_per_centre")
    if number < 0:
        raise ValueError(f"init_points_per_centre = {number}; it must be at least 1, 0 for all vectors, or None")
    return number


def _weights(weights: npt.ArrayLike | None) -> Floats | None:
    if weights is None:
        return None
    array = to_numpy(weights, "sample_weight", "numpy.load(path)")
    if array.ndim != 1:
        raise ValueError(f"sample_weight has {array.ndim} axes (shape {array.shape}); it must be 1-D, one for each row")
    if array.dtype.kind not in "fiu":
        raise TypeError(f"sample_weight is {array.dtype}; it must be real numbers")
    return np.ascontiguousarray(array, dtype=np.float32)
