"""Exact search in one call."""

from __future__ import annotations

import os
from typing import SupportsIndex, Union

from kith import _kith
from kith._arrays import Matrix, VectorsLike, as_vectors
from kith._files import path_bytes
from kith._options import call_options, flag, text, whole_number
from kith._progress import Progress, reporting
from kith._search import Fresh, Neighbors, Output, as_neighbors, search_with, writable_output

PathLike = Union[str, "os.PathLike[str]"]


def knn(
    queries: VectorsLike | PathLike,
    base: VectorsLike | PathLike,
    k: SupportsIndex = 10,
    metric: str = "l2",
    *,
    device: str = "auto",
    threads: SupportsIndex = 0,
    memory_limit: SupportsIndex | None = None,
    device_memory_limit: SupportsIndex | None = None,
    check_finite: bool = True,
    progress: Progress = False,
    out: Output | None = None,
) -> Neighbors:
    """Find, for every query, the k vectors of the base that are nearest: exactly.

    The result is the first k of all rows ordered by (distance, row number). It is the same, to the bit, for any number
    of threads, any memory limit and every device.

    Parameters
    ----------
    queries : array_like, (queries, dimension) or (dimension,)
        What neighbours are sought for. float32 and uint8 arrays whose columns are contiguous are used where they lie,
        those of other libraries through DLPack too; other floating-point types, int8, int16, uint16, lists and other
        layouts are converted to float32 by one copy. float32 and uint8 may meet.
    base : array_like, (rows, dimension)
        What is searched; the same kinds of array. Or the path of a file (see `read_vectors`): then `queries` is a path
        too, and both are read in pieces that fit `memory_limit`.
    k : int, default 10
        How many neighbours. Where the base has fewer rows, the rest is id -1 at distance inf (-inf for
        ``inner_product``).
    metric : str, default "l2"
        ``"l2"``, ``"sqeuclidean"``, ``"inner_product"`` or ``"cosine"``.
    device : str, default "auto"
        ``"cpu"``, ``"cuda"``, ``"cuda:N"``, or ``"auto"``: a GPU where it is there and predicted to be faster.
    threads : int, default 0
        Threads of the CPU; 0 is one per hardware thread.
    memory_limit : int, optional
        Bytes that Kith may allocate on the host, results included; your arrays do not count. A smaller limit makes
        smaller pieces, not other results.
    device_memory_limit : int, optional
        The same on the GPU.
    check_finite : bool, default True
        Refuse NaN and infinities. Without it a NaN distance comes last.
    progress : bool or callable, default False
        True draws a bar with tqdm. A callable is called with (stage, done, total) a few times a second; an exception in
        it stops the search.
    out : (ids, distances), optional
        A tuple of C-contiguous int64 and float32 arrays of the result's shape, which are filled and returned.

    Returns
    -------
    Neighbors
        A named tuple ``(ids, distances)`` of int64 and float32 arrays, (queries, k), or (k,) for one query given as a
        1-D array.

    Raises
    ------
    ValueError
        Shapes that do not fit, an unknown metric or device, k below 1, a NaN or infinity.
    TypeError
        A dtype that float32 might not hold, a sparse matrix, an array in a GPU's memory.
    MemoryError
        A limit that is too small; the message says what is needed.

    Notes
    -----
    The GIL is released. Ctrl-C stops the search.

    Examples
    --------
    >>> import numpy as np, kith
    >>> base = np.array([[0, 0], [3, 4], [6, 8]], dtype=np.float32)
    >>> kith.knn(np.zeros(2, np.float32), base, k=2)
    Neighbors(ids=array([0, 1]), distances=array([0., 5.], dtype=float32))
    """
    number = whole_number(k, "k")
    name = text(metric, "metric")
    finite = flag(check_finite, "check_finite")
    with reporting(progress) as report:
        options = call_options(
            device=device,
            threads=threads,
            memory_limit=memory_limit,
            device_memory_limit=device_memory_limit,
            progress=report,
        )
        if isinstance(base, (str, os.PathLike)) or isinstance(queries, (str, os.PathLike)):
            if not (isinstance(base, (str, os.PathLike)) and isinstance(queries, (str, os.PathLike))):
                raise TypeError("an array and a path; pass two paths, or read the file with kith.read_vectors(path)")
            given = None if out is None else writable_output(out, axes=2)
            files = path_bytes(queries), path_bytes(base)
            return as_neighbors(_kith.knn_files(*files, number, name, finite, options, given), out)

        base_matrix, _ = as_vectors(base, "base")

        def step(matrix: Matrix, given: Output | None) -> Fresh:
            return _kith.knn(matrix, base_matrix, number, name, finite, options, given)

        return search_with(step, queries, out, base_matrix)
