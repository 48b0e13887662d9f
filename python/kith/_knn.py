"""Exact search in one call."""

from __future__ import annotations

from typing import Any, SupportsIndex, TYPE_CHECKING, overload

from kith import _kith
from kith._arrays import Vectors, VectorsLike, as_vectors
from kith._filter import FiltersLike, as_filters
from kith._metrics import Metric, metric_name
from kith._options import calling, flag, whole_number
from kith._other_names import answers_other_names
from kith._progress import Progress
from kith._search import (
    Found,
    Given,
    Neighbors,
    Output,
    as_neighbors,
    source_pair,
    neighbors_of_tensors,
    plain_neighbors,
    search_with,
    tensor_place,
    writable_output,
)
from kith._sources import SourceLike, array_of
from kith._typing import ByteSize, ByteSizes, CallSettings, DeviceNames, Floats, HostLike, Ids, Tensor

if TYPE_CHECKING:
    from typing_extensions import Unpack


@overload
def knn(
    queries: HostLike,
    base: VectorsLike | SourceLike,
    k: SupportsIndex = 10,
    metric: Metric = "l2",
    *,
    filter: FiltersLike | None = None,
    out: Output | None = None,
    comm: Any = None,
    **settings: Unpack[CallSettings],
) -> Neighbors[Ids, Floats]: ...
@overload
def knn(
    queries: Tensor,
    base: VectorsLike,
    k: SupportsIndex = 10,
    metric: Metric = "l2",
    *,
    filter: FiltersLike | None = None,
    out: Output | None = None,
    comm: Any = None,
    **settings: Unpack[CallSettings],
) -> Neighbors[Tensor, Tensor]: ...
@overload
def knn(  # type: ignore[overload-cannot-match,unused-ignore]
    queries: VectorsLike,
    base: VectorsLike,
    k: SupportsIndex = 10,
    metric: Metric = "l2",
    *,
    filter: FiltersLike | None = None,
    out: Output | None = None,
    comm: Any = None,
    **settings: Unpack[CallSettings],
) -> Neighbors: ...

@answers_other_names("kith.knn()", missing="; among themselves the neighbours of x are kith.knn_graph(x, k=k)")
def knn(
    queries: VectorsLike | SourceLike,
    base: VectorsLike | SourceLike,
    k: SupportsIndex = 10,
    metric: Metric = "l2",
    *,
    filter: FiltersLike | None = None,
    device: DeviceNames = "auto",
    threads: SupportsIndex = 0,
    memory_limit: ByteSize | None = None,
    device_memory_limit: ByteSizes | None = None,
    check_finite: bool = True,
    progress: Progress = False,
    out: Output | None = None,
    comm: Any = None,
) -> Neighbors:
    """Find the k nearest vectors of the base for every query, exactly.

    The result is the first k of all rows ordered by (distance, row number). It is the same, to the bit, for any number
    of threads, any memory limit and every device.

    Parameters
    ----------
    queries : array_like, (queries, dimension) or (dimension,)
        The vectors to search for. float32, float16, bfloat16 (of ml_dtypes, torch or jax), uint8 and int8 arrays with
        contiguous columns are zero-copy, in host or GPU memory; float64, longdouble, other integers, lists and other layouts
        are converted to float32 by one copy. Queries and base may differ in dtype, and one may be in host memory and the
        other on the GPU that searches. From a float64 or integer base, and from its queries, an offset is subtracted before
        they are rounded, if that keeps more precision and the metric allows it.
    base : array_like, (rows, dimension)
        The vectors to search in; the same kinds of array. Or files of vectors
        (see `read_vectors`): a path, a pattern (``"part-*.npy"``, in the order of names), a list of these, ``.parquet``
        files with a column of fixed-size lists (``"x.parquet::vectors"``, through pyarrow), or an object with shape, dtype
        and slices (h5py, zarr). Then `queries` are such too, or an array beside sliced rows, and both are read in pieces
        that fit `memory_limit`.
    k : int, default 10
        How many neighbours. If the base has fewer rows, results are padded with id -1 at distance inf (-inf for
        ``inner_product``).
    metric : str, default "l2"
        ``"l2"`` (root of the sum of squared differences), ``"sqeuclidean"`` (that sum), ``"inner_product"`` (largest
        first), ``"cosine"`` (1 - cos of the angle), ``"l1"``, ``"linf"``, ``"chi_square"`` (sum of (x - y)^2 / (x + y);
        no negative values) or ``"hamming"`` (differing bits of uint8 rows). Other libraries' names are understood:
        ``"euclidean"``, ``"manhattan"``, ``"cityblock"``, ``"chebyshev"``, ``"ip"``, ``"dot"``, ``"l2sq"``.
    filter : array_like, optional
        The rows that may be found; by default all. A bool for each row (True keeps it), packed bits as uint8, eight
        rows a byte (``numpy.packbits(keep, bitorder="little")``), or a list of row numbers of any other integer type.
        Few rows make a short search. Or a list with one of these for each query, None for no filter: queries with equal
        filters are searched together. (One for each query is for arrays, not for files or `comm`.)
    device : str or list of str, default "auto"
        ``"cpu"``, ``"cuda"``, ``"cuda:N"``, or ``"auto"``: the device of the arrays, or, for host arrays, a GPU if there is
        one and it is predicted to be faster. Several share the work, with the same result: ``"cuda:0,cuda:1"`` or a list,
        ``"cuda:all"``, parts of one as ``"cpu/4"``.
    threads : int, default 0
        Threads of the CPU; 0 is one per hardware thread.
    memory_limit : int or str, optional
        Bytes, or text such as ``"16G"`` (powers of 1024), that Kith may allocate on the host, results included; your
        arrays do not count. A smaller limit makes smaller pieces, not other results.
    device_memory_limit : int, str or list of these, optional
        The same on each GPU; a list has one for each device.
    check_finite : bool, default True
        Refuse NaN and infinities. Without it a NaN distance comes last.
    progress : bool or callable, default False
        True draws a bar with tqdm. A callable is called with (stage, done, total) a few times a second; an exception in
        it stops the search.
    out : (ids, distances), optional
        A tuple of C-contiguous int64 and float32 arrays of the result's shape, numpy's, torch's or cupy's, which are
        filled and returned.
    comm : optional
        A communicator of mpi4py's, or any object with its buffer methods (``Get_rank``, ``Get_size``, ``Send``, ``Recv``,
        ``Bcast``, ``Barrier``). Every rank calls with the same vectors, in host memory or files, and parameters, does a part
        of the search and gets the whole result. See docs/clusters.md.

    Returns
    -------
    Neighbors
        A named tuple ``(ids, distances)`` of int64 and float32 arrays, (queries, k), or (k,) for one query given as a
        1-D array. They have the queries' array type (torch, cupy, jax, else numpy) and are on the queries' device.

    Raises
    ------
    ValueError
        Shapes that do not fit, an unknown metric or device, k below 1, a NaN or infinity, a filter of another length
        than the base or with a row that it lacks.
    TypeError
        Values that are no real numbers, a sparse matrix, a tensor that requires grad.
    MemoryError
        A limit that is too small; the message says what is needed.

    Warns
    -----
    PrecisionWarning
        Rounding the base to float32 may change which rows are nearest.
    RuntimeWarning
        The base has fewer than `k` rows: perhaps queries and base were swapped.

    Notes
    -----
    The GIL is released. Ctrl-C stops the search. Arrays in a GPU's memory are read, and results written, on the current
    stream of their library; results are complete in its order. docs/python-arrays.md says more.

    Examples
    --------
    >>> import numpy as np, kith
    >>> base = np.array([[0, 0], [3, 4], [6, 8]], dtype=np.float32)
    >>> kith.knn(np.zeros(2, np.float32), base, k=2)
    Neighbors(ids=array([0, 1]), distances=array([0., 5.], dtype=float32))
    """
    limited = memory_limit is not None or device_memory_limit is not None
    if comm is None and out is None and filter is None and progress is False and check_finite is True and not limited:
        plain = _kith.knn_plain(queries, base, k, metric, device, threads)
        if plain is None and type(k) is int and type(threads) is int and device == "auto":
            plain = _knn_of_tensors(queries, base, k, metric, threads)
        if plain is not None:
            return plain_neighbors(Neighbors, plain)
    number = whole_number(k, "k")
    name = metric_name(metric)
    finite = flag(check_finite, "check_finite")
    rows = as_filters(filter)
    arrays = (queries, base, *(out if isinstance(out, tuple) else ()))
    with calling(device, threads, memory_limit, device_memory_limit, progress, arrays=arrays) as options:
        files = source_pair(queries, base)
        if files is not None:
            given = None if out is None else writable_output(out, axes=2)
            return as_neighbors(_kith.knn_files(*files, number, name, finite, rows, options, given, comm), out)

        queries, base = array_of(queries), array_of(base)
        base_matrix, _ = as_vectors(base, "base", options.stream)

        def step(matrix: Vectors, given: Given | None) -> Found | None:
            return _kith.knn(matrix, base_matrix, number, name, finite, rows, options, given, comm)

        return search_with(step, queries, number, out, options, (base_matrix,))


def _knn_of_tensors(queries: Any, base: Any, k: int, metric: str, threads: int) -> tuple[Any, Any] | None:
    """The same of plain tensors in one GPU's memory, in less time; None for all else."""
    given, searched = tensor_place(queries, threads, k), tensor_place(base, threads, k)
    if given is None or searched is None or type(metric) is not str:
        return None
    if base.get_device() != queries.get_device() or given[2] != searched[2]:
        return None

    def search(device: int, stream: int, ids: int, distances: int) -> None:
        _kith.knn_tensors(given, searched, k, metric, device, threads, stream, ids, distances)

    return neighbors_of_tensors(queries, k, search)
