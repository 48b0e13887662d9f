"""Indexes in files: Kith's own, FAISS's and hnswlib's."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal, SupportsIndex

from kith import _kith
from kith._errors import kind_of
from kith._files import PathLike, index_file, path_bytes
from kith._index import Index, read_index
from kith._metrics import Metric, metric_name
from kith._options import calling, check_device, flag
from kith._other_names import answers_other_names
from kith._progress import Progress
from kith._typing import ByteSize, ByteSizes, DeviceNames


@answers_other_names("kith.load()")
def load(
    path: PathLike | Sequence[PathLike],
    device: DeviceNames = "auto",
    *,
    mmap: bool = False,
    lists: Literal["host", "disk"] = "host",
    verify: bool = False,
    threads: SupportsIndex = 0,
    memory_limit: ByteSize | None = None,
    device_memory_limit: ByteSizes | None = None,
    progress: Progress = False,
) -> Index:
    """Read an index that `Index.save` has written.

    It finds what the saved one found, with the same bytes. The whole file is checked while it is read, unless it stays on
    disk.

    Parameters
    ----------
    path : str or path-like, or a list of them
        A ``.kith`` file. A file of FAISS's is read by `read_faiss`. Several files, a list or a pattern (``"shards/*.kith"``,
        in the order of names), are one index: they must have one training, as copies of one trained index have, and the
        vectors of each come behind those of the one before. Where no file has ids of its own vectors are numbered through.
    device : str, default "auto"
        Where searches run, as in `Index`.
    mmap : bool, default False
        Leave all that is kept of vectors in the file, which is mapped: searches read what they look at, through the
        system's page cache, which no memory limit counts. Graph indexes, and ids of your own, come into memory. The index is not
        changed then: `train`, `add`, `remove` and `merge` are a RuntimeError; `save_added` writes a larger file. The files
        must stay as they are.
    lists : {"host", "disk"}, default "host"
        ``"disk"``: the same of the codes in lists alone; vectors to refine with come into memory.
    verify : bool, default False
        Of a mapped file header, sizes, offsets and centres are hashed at once, and damage in the rest is found late: row
        numbers that cannot be are a CorruptFileError of the search that meets them, and damaged codes are searched as they
        are. With True the whole file is hashed first.
    threads, memory_limit, device_memory_limit, progress
        As in `knn`.

    Raises
    ------
    CorruptFileError
        The file is cut or damaged; the text says which section.
    ValueError
        The file is no index of Kith's.

    Examples
    --------
    >>> index = kith.load("vectors.kith")  # doctest: +SKIP
    """
    if lists not in ("host", "disk"):
        raise ValueError(f"lists is {lists!r}; it must be 'host' or 'disk'")
    return read_index(
        path,
        device,
        mmap=flag(mmap, "mmap"),
        lists=lists,
        verify=flag(verify, "verify"),
        threads=threads,
        memory_limit=memory_limit,
        device_memory_limit=device_memory_limit,
        progress=progress,
    )


@answers_other_names("kith.merge_files()")
def merge_files(
    paths: Sequence[PathLike],
    out: PathLike,
    *,
    shift_ids: bool = False,
    threads: SupportsIndex = 0,
    memory_limit: ByteSize | None = None,
    progress: Progress = False,
) -> None:
    """Write the indexes of several ``.kith`` files, trained alike, as one file.

    It has the bytes that `Index.merge` of one after the other, then `Index.save`, would write. Vectors go from file to file,
    so that the limit may be far smaller than they are.

    Parameters
    ----------
    paths : list of str or path-like
        The files, in the order of their vectors.
    out : str or path-like
        The file to write.
    shift_ids : bool, default False
        As in `Index.merge`.
    threads, memory_limit, progress
        As in `knn`.

    Raises
    ------
    NotImplementedError
        For graph indexes, which are merged in memory.

    Examples
    --------
    >>> kith.merge_files(["a.kith", "b.kith"], "both.kith", shift_ids=True, memory_limit=2**26)  # doctest: +SKIP
    """
    if isinstance(paths, (str, bytes, os.PathLike)):
        raise TypeError("paths is one path; it must be a list of them")
    if not isinstance(paths, (list, tuple)):
        raise TypeError(f"paths is {kind_of(paths)}; it must be a list of paths")
    shift = flag(shift_ids, "shift_ids")
    file, of_faiss = index_file(out, "out")
    if of_faiss:
        raise ValueError(f"out is {out!r}, a name of FAISS's format, and merge_files() writes Kith's: name the file .kith")
    with calling("cpu", threads, memory_limit, progress=progress) as options:
        _kith.merge_index_files([path_bytes(path, f"paths[{number}]") for number, path in enumerate(paths)], file, shift, options)


@answers_other_names("kith.read_faiss()")
def read_faiss(
    path: PathLike,
    device: DeviceNames = "auto",
    *,
    threads: SupportsIndex = 0,
    memory_limit: ByteSize | None = None,
    progress: Progress = False,
) -> Index:
    """Read an index that ``faiss.write_index`` has written.

    With FAISS's centres and codes Kith finds FAISS's ids, save among distances that are equal within float32's rounding.
    Its ``METRIC_L2`` is ``"sqeuclidean"`` here, and its ``nprobe`` becomes the default of `probes`. Vectors of an IVF index
    come in the order of their ids.

    Parameters
    ----------
    path : str or path-like
        The file.
    device : str, default "auto"
        Where searches run, as in `Index`.
    threads, memory_limit, progress
        As in `knn`.

    Raises
    ------
    NotImplementedError
        Kith has no such kind of index; the text names it.
    CorruptFileError
        The file is cut or damaged.

    Examples
    --------
    >>> index = kith.read_faiss("trained.index")  # doctest: +SKIP
    """
    where = check_device(device)
    with calling(where, threads, memory_limit, progress=progress) as options:
        index = _kith.read_faiss(path_bytes(path), options)
    return Index._of(index, where)


@answers_other_names("kith.write_faiss()")
def write_faiss(
    index: Index,
    path: PathLike,
    *,
    threads: SupportsIndex = 0,
    memory_limit: ByteSize | None = None,
    progress: Progress = False,
) -> None:
    """Write an index to a file that ``faiss.read_index`` reads.

    FAISS has one metric for ``"l2"`` and ``"sqeuclidean"``: its distances are squares.

    Parameters
    ----------
    index : Index
        The index.
    path : str or path-like
        The file.
    threads, memory_limit, progress
        As in `knn`.

    Raises
    ------
    NotImplementedError
        FAISS has no such index: another metric, such as ``"cosine"``, or lists of bytes.

    Examples
    --------
    >>> kith.write_faiss(index, "for_faiss.index")  # doctest: +SKIP
    """
    if not isinstance(index, Index):
        raise TypeError(f"index is {kind_of(index)}; it must be a kith.Index, and the path comes second")
    with calling("cpu", threads, memory_limit, progress=progress) as options:
        index._index.write_faiss(path_bytes(path), options)


@answers_other_names("kith.read_hnswlib()")
def read_hnswlib(
    path: PathLike,
    metric: Metric,
    device: DeviceNames = "auto",
    *,
    threads: SupportsIndex = 0,
    memory_limit: ByteSize | None = None,
    progress: Progress = False,
) -> Index:
    """Read an index that ``hnswlib`` has saved, as a graph index.

    The lists of its lowest layer are taken as they are, its labels become ids, and what it has marked as deleted is
    removed. Below 4,096 vectors the index searches exactly.

    Parameters
    ----------
    path : str or path-like
        The file.
    metric : {"l2", "sqeuclidean", "inner_product", "cosine"}
        That of the index; the file does not name it. hnswlib's ``"l2"`` returns squares, as ``"sqeuclidean"``
        does here, and its ``"ip"`` is 1 - inner_product.
    device : str, default "auto"
        Where searches run, as in `Index`.
    threads, memory_limit, progress
        As in `knn`.

    Raises
    ------
    NotImplementedError
        Its lists are longer than 128.
    CorruptFileError
        The file is cut or damaged, or no such file. It has no checksum: only what would be read is checked.

    Examples
    --------
    >>> index = kith.read_hnswlib("words.bin", "cosine")  # doctest: +SKIP
    """
    where = check_device(device)
    with calling(where, threads, memory_limit, progress=progress) as options:
        index = _kith.read_hnswlib(path_bytes(path), metric_name(metric), options)
    return Index._of(index, where)


@answers_other_names("kith.write_hnswlib()")
def write_hnswlib(
    index: Index,
    path: PathLike,
    *,
    threads: SupportsIndex = 0,
    memory_limit: ByteSize | None = None,
    progress: Progress = False,
) -> None:
    """Write a graph index of float32 vectors to a file that hnswlib loads, searches and adds to.

    Its ``M`` is half of the graph's degree: 16 for ``Graph32``. Ids are its labels. For ``"cosine"`` the vectors are
    written at length 1, as hnswlib has them. Vectors of the upper layers are drawn by the index's seed.

    Parameters
    ----------
    index : Index
        The index.
    path : str or path-like
        The file.
    threads, memory_limit, progress
        As in `knn`.

    Raises
    ------
    NotImplementedError
        hnswlib has no such index: no graph, another metric, codes or bytes.

    Examples
    --------
    >>> kith.write_hnswlib(index, "for_hnswlib.bin")  # doctest: +SKIP
    """
    if not isinstance(index, Index):
        raise TypeError(f"index is {kind_of(index)}; it must be a kith.Index, and the path comes second")
    with calling("cpu", threads, memory_limit, progress=progress) as options:
        index._index.write_hnswlib(path_bytes(path), options)
