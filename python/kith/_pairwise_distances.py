"""All distances between two sets of vectors."""

from __future__ import annotations

from typing import SupportsIndex

import numpy as np
import numpy.typing as npt

from kith import _kith
from kith._arrays import VectorsLike, as_vectors, share_memory
from kith._libraries import library_of
from kith._options import calling, flag, text
from kith._progress import Progress


def pairwise_distances(
    x: VectorsLike,
    y: VectorsLike | None = None,
    metric: str = "l2",
    *,
    threads: SupportsIndex = 0,
    memory_limit: SupportsIndex | None = None,
    check_finite: bool = True,
    progress: Progress = False,
    out: npt.NDArray[np.float32] | None = None,
) -> npt.NDArray[np.float32]:
    """Compute the distance of every vector of `x` and every vector of `y`.

    The distances are those that `knn` reports, bit by bit: computed in float64 and rounded once. Where only the
    nearest are wanted, `knn` is much faster.

    Parameters
    ----------
    x : array_like, (rows, dimension)
        Vectors, as in `knn`, on the host: distances are computed on the CPU.
    y : array_like, (columns, dimension), optional
        Other vectors; by default `x` itself.
    metric : str, default "l2"
        As in `knn`. ``"inner_product"`` gives the products.
    threads, memory_limit, check_finite, progress
        As in `knn`.
    out : numpy.ndarray, (rows, columns), optional
        A C-contiguous float32 array, which is filled and returned.

    Returns
    -------
    numpy.ndarray of float32
        (rows, columns): the distance of row i of `x` and row j of `y`, in the metric's unit; torch's or jax's where `x`
        is.

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
    name = text(metric, "metric")
    finite = flag(check_finite, "check_finite")
    with calling("cpu", threads, memory_limit, progress=progress, arrays=(x, y)) as options:
        rows, _ = as_vectors(x, "x", options.stream)
        columns = rows if y is None else as_vectors(y, "y", options.stream)[0]
        if out is not None:
            _check_output(out)
            if share_memory(out, rows) or share_memory(out, columns):
                raise ValueError("out shares memory with x or y; give another array")
        fresh = _kith.pairwise_distances(rows, columns, name, finite, options, out)
    if fresh is None:
        assert out is not None
        return out
    distances: npt.NDArray[np.float32] = library_of(x).from_host(fresh, x)
    return distances


def _check_output(out: npt.NDArray[np.float32]) -> None:
    if not isinstance(out, np.ndarray) or out.dtype != np.float32:
        kind = str(out.dtype) if isinstance(out, np.ndarray) else type(out).__name__
        raise TypeError(f"out must be a numpy array of float32, not {kind}")
    if out.ndim != 2 or not (out.flags.c_contiguous and out.flags.aligned and out.flags.writeable):
        raise ValueError("out must be 2-D, C-contiguous and writable")
