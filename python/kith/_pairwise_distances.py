"""All distances between two sets of vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsIndex, TYPE_CHECKING, cast, overload

import numpy as np
import numpy.typing as npt

from kith import _kith
from kith._arrays import Array, Matrix, Vectors, VectorsLike, as_vectors, share_memory
from kith._device_arrays import fill_on_device, on_device, writable_on_device
from kith._kith import DeviceArray
from kith._libraries import TORCH, library_of
from kith._metrics import Metric, metric_name
from kith._options import calling, flag
from kith._other_names import answers_other_names
from kith._progress import Progress
from kith._search import tensor_place
from kith._typing import ByteSize, ByteSizes, CallSettings, DeviceNames, Floats, NumpyLike, Tensor

if TYPE_CHECKING:
    from typing_extensions import Unpack


@overload
def pairwise_distances(
    x: NumpyLike,
    y: VectorsLike | None = None,
    metric: Metric = "l2",
    *,
    out: Array | None = None,
    **settings: Unpack[CallSettings],
) -> Floats: ...
@overload
def pairwise_distances(
    x: Tensor,
    y: VectorsLike | None = None,
    metric: Metric = "l2",
    *,
    out: Array | None = None,
    **settings: Unpack[CallSettings],
) -> Tensor: ...
@overload
def pairwise_distances(  # type: ignore[overload-cannot-match,unused-ignore]
    x: VectorsLike,
    y: VectorsLike | None = None,
    metric: Metric = "l2",
    *,
    out: Array | None = None,
    **settings: Unpack[CallSettings],
) -> Array: ...

@answers_other_names("kith.pairwise_distances()")
def pairwise_distances(
    x: VectorsLike,
    y: VectorsLike | None = None,
    metric: Metric = "l2",
    *,
    device: DeviceNames = "auto",
    threads: SupportsIndex = 0,
    memory_limit: ByteSize | None = None,
    device_memory_limit: ByteSizes | None = None,
    check_finite: bool = True,
    progress: Progress = False,
    out: Array | None = None,
) -> Array:
    """Compute the distance of every vector of `x` and every vector of `y`.

    The distances are those that `knn` reports, bit by bit: computed in float64 and rounded once. Where only the
    nearest are wanted, `knn` is much faster.

    Parameters
    ----------
    x : array_like, (rows, dimension)
        Vectors, as in `knn`.
    y : array_like, (columns, dimension), optional
        Other vectors; by default `x` itself.
    metric : str, default "l2"
        As in `knn`. ``"inner_product"`` gives the products.
    device, threads, memory_limit, device_memory_limit, check_finite, progress
        As in `knn`.
    out : array, (rows, columns), optional
        A C-contiguous float32 array, as in `knn`, which is filled and returned.

    Returns
    -------
    array of float32
        (rows, columns): the distance of row i of `x` and row j of `y`, in the metric's unit; in the kind of array that `x`
        is, in the memory of `x`.

    Raises
    ------
    ValueError, TypeError, MemoryError
        As `knn`.

    Examples
    --------
    >>> import numpy as np, kith
    >>> kith.pairwise_distances([[0, 0], [3, 4]], [[0, 0], [0, 4]], metric="l1")
    array([[0., 4.],
           [7., 3.]], dtype=float32)
    """
    limited = memory_limit is not None or device_memory_limit is not None
    if out is None and progress is False and check_finite is True and not limited:
        plain = _kith.pairwise_distances_plain(x, x if y is None else y, metric, device, threads)
        if plain is None and type(threads) is int and device == "auto":
            plain = _distances_of_tensors(x, x if y is None else y, metric, threads)
        if plain is not None:
            return plain
    name = metric_name(metric)
    finite = flag(check_finite, "check_finite")
    with calling(device, threads, memory_limit, device_memory_limit, progress, arrays=(x, y, out)) as options:
        rows, _ = as_vectors(x, "x", options.stream)
        columns = rows if y is None else as_vectors(y, "y", options.stream)[0]

        def step(given: Matrix | DeviceArray | None) -> npt.NDArray[np.float32] | None:
            return _kith.pairwise_distances(rows, columns, name, finite, options, given)

        if out is not None:
            given = _checked_output(out, options.stream)
            if share_memory(given, rows) or share_memory(given, columns):
                raise ValueError("out shares memory with x or y; give another array")
            step(given)
            return out
        if isinstance(rows, DeviceArray):
            wanted = (rows.shape[0], columns.shape[0])
            return fill_on_device(x, wanted, rows.device, options.stream, step)
        matrix = _fresh(step, rows.shape[0], columns.shape[0], limited=memory_limit is not None)
        return library_of(x).from_host(matrix, x)


def _fresh(step: Callable[[Matrix | None], Matrix | None], rows: int, cols: int, *, limited: bool) -> Matrix | None:
    if limited or 4 * rows * cols > _kith.MOST_NUMPY_BYTES:
        return step(None)
    matrix = np.empty((rows, cols), np.float32)
    step(matrix)
    return matrix


def _checked_output(out: Any, stream: int) -> Vectors:
    if on_device(out):
        return writable_on_device(out, "distances", "float32", 2, stream)
    array = library_of(out).lent(out, "out")
    if array is None or array.dtype != np.float32:
        kind = type(out).__name__ if array is None else str(array.dtype)
        raise TypeError(f"out must be an array of float32, not {kind}")
    if array.ndim != 2 or not (array.flags.c_contiguous and array.flags.aligned and array.flags.writeable):
        raise ValueError("out must be 2-D, C-contiguous and writable")
    return cast(Matrix, array)


def _distances_of_tensors(x: Any, y: Any, metric: str, threads: int) -> Any:
    """The same of plain tensors in one GPU's memory, in less time; None for all else."""
    rows, columns = tensor_place(x, threads), tensor_place(y, threads)
    if rows is None or columns is None or type(metric) is not str:
        return None
    if x.get_device() != y.get_device() or rows[2] != columns[2]:
        return None
    found = TORCH.fresh_distances(x, y.shape[0])
    stream = TORCH.stream(x)
    _kith.pairwise_distances_of_tensors(rows, columns, metric, x.get_device(), threads, stream, found.data_ptr())
    return found
