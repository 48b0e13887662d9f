"""Vectors kept ready for many searches."""

from __future__ import annotations

import inspect
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn, SupportsIndex, cast

import numpy as np
import numpy.typing as npt

from kith import _index_searches, _index_tune, _kith
from kith._arrays import Array, VectorsLike, as_rows, as_vectors
from kith._errors import kind_of
from kith._files import PathLike, index_file, path_bytes
from kith._ids import IdsLike, as_ids
from kith._index_info import IndexInfo
from kith._knn_graph import KnnGraph
from kith._metrics import OWN, Metric, metric_text
from kith._options import calling, check_device, flag, seed_number, text, whole_number
from kith._other_names import answers_other_names, is_another_name, refuse_attribute
from kith._progress import Progress
from kith._sources import SourceLike, array_of, as_source
from kith._training_time import warn_of_long_training
from kith._typing import ByteSize, ByteSizes, DeviceNames


class Index:
    """Vectors kept ready for many searches, as they are or compressed.

    Any number of threads may search at once, also while one trains, adds or removes: a search sees the vectors that were
    there when it began. Changes at the same time take turns. A `progress` callback of an add may search the index; an
    add to it from there is a RuntimeError.

    An index can be saved (`save`, `kith.load`), pickled and copied. The page "Indexes" says which kind to take when.

    Parameters
    ----------
    factory : str, default "Flat"
        What is kept of a vector, in FAISS's grammar: parts, divided by commas. ``"Flat"`` keeps every vector as it is
        and searches exactly. ``"IVF1024,PQ16"`` sorts vectors into 1024 lists, of which a search looks at some, and
        keeps 16 bytes of each. First, if given: ``OPQ16``, ``OPQ16_64``, ``PCA64``, ``RR64``, ``L2norm``, ``Pad128``,
        ``Centre``; then ``IVF1024``, or ``IVF`` for as many lists as the square root of the number of vectors; then
        ``Flat``, ``SQ8``, ``SQ6``, ``SQ4``, ``SQfp16``, ``SQbf16``, ``PQ16``, ``PQ16x4``, ``RaBitQ``, ``LSQ8x8`` or
        ``RQ8x8``, also with a norm, as ``LSQ7x8_Ncqint8`` (the page "Additive codes"); last, if given, ``RFlat`` or
        ``Refine(SQ8)``.
    metric : str, default "l2"
        ``"l2"``, ``"sqeuclidean"``, ``"inner_product"``, ``"cosine"``, and for ``"Flat"`` also ``"l1"``, ``"linf"``,
        ``"chi_square"`` or ``"hamming"``, as in `knn`.
    device : str, default "auto"
        ``"cpu"``, ``"cuda"``, ``"cuda:N"``, or ``"auto"``: the device of the vectors, or, for host arrays, a GPU if
        there is one and it is predicted to be faster.
    check_finite : bool, default True
        Refuse NaN and infinities, in what is trained on, added and searched for.
    prepare : bool, default True
        Store a second, search-optimised copy: makes searches of ``"Flat"`` faster. On CPUs it takes dimension + 29 bytes per row,
        4 * dimension + 13 with AMX or fewer than 32 columns (the page "What is fast when"); ``info()`` counts it. Skipped if
        it would use more than half of the memory limit. Inverted lists store 4 bytes per vector for small batches on CPUs,
        and 1 byte per value of floats.
    expected_rows : int, optional
        How many vectors the index will hold: ``"IVF"`` without a number makes the root of it lists. By default that of
        the vectors it is trained on.
    seed : int, default 0
        Of the training: the same seed and vectors give the same index.

    Examples
    --------
    >>> import numpy as np, kith
    >>> index = kith.Index("Flat", metric="sqeuclidean")
    >>> index.add(np.array([[0, 0], [3, 4]], dtype=np.float32))
    >>> index
    kith.Index('Flat', metric='sqeuclidean', dimension=2, size=2)
    >>> index.search(np.zeros((1, 2), np.float32), k=1)
    Neighbors(ids=array([[0]]), distances=array([[0.]], dtype=float32))

    Compressed, and with ids of your own:

    >>> x = np.random.default_rng(0).standard_normal((2000, 16), dtype=np.float32)
    >>> index = kith.Index("IVF16,SQ8")
    >>> index.train(x)
    >>> index.add(x, ids=np.arange(2000) * 10)
    >>> index.search(x[7], k=1, probes=4).ids
    array([70])
    >>> index.remove([70, 80])
    2
    >>> len(index)
    1998
    """

    @answers_other_names("kith.Index()")
    def __init__(
        self,
        factory: str = "Flat",
        metric: Metric = "l2",
        device: DeviceNames = "auto",
        check_finite: bool = True,
        prepare: bool = True,
        *,
        expected_rows: SupportsIndex | None = None,
        seed: SupportsIndex = 0,
    ) -> None:
        rows = 0 if expected_rows is None else whole_number(expected_rows, "expected_rows")
        if rows < 0:
            raise ValueError(f"expected_rows is {rows}; it must not be negative")
        kind = text(factory, "factory", " such as 'Flat' or 'Graph32'; the dimension is that of the first vectors")
        if kind in OWN:
            raise ValueError(f"factory is {kind!r}, which is a metric: kith.Index('Flat', metric={kind!r})")
        made = _kith.Index(
            kind,
            metric_text(metric),
            flag(check_finite, "check_finite"),
            flag(prepare, "prepare"),
            rows,
            seed_number(seed),
        )
        self._hold(made, check_device(device))

    @classmethod
    def _of(cls, index: _kith.Index, device: str) -> Index:
        """An index that was made elsewhere."""
        made = cls.__new__(cls)
        made._hold(index, device)
        return made

    def _hold(self, index: _kith.Index, device: str) -> None:
        self._index = index
        self._device = device

    @answers_other_names("train()")
    def train(
        self,
        x: VectorsLike | SourceLike,
        *,
        threads: SupportsIndex = 0,
        memory_limit: ByteSize | None = None,
        device_memory_limit: ByteSizes | None = None,
        progress: Progress = False,
    ) -> None:
        """Learn centres, codes and transforms from vectors like those to come.

        ``"Flat"`` needs no training. A second training replaces the first; once vectors were added it is a
        RuntimeError.

        Parameters
        ----------
        x : array_like, (rows, dimension), or path
            The vectors, as in `knn`, or files of vectors, which may be larger than memory: a path, a pattern or a list. Some 40 for
            each list, and for each of a code's 256 words, are enough; 256 are all that is used.
        threads, memory_limit, device_memory_limit, progress
            As in `knn`.
        """
        with calling(self._device, threads, memory_limit, device_memory_limit, progress, arrays=(x,)) as options:
            warn_of_long_training(self.factory, x, self._device, threads, progress)
            source = as_source(x)
            if source is not None:
                self._index.train_file(source, options)
            else:
                self._index.train(as_vectors(array_of(x), "x", options.stream)[0], options)

    @answers_other_names("add()")
    def add(
        self,
        x: VectorsLike | SourceLike,
        ids: IdsLike | None = None,
        *,
        replace: bool = False,
        copy: bool = True,
        start: KnnGraph | None = None,
        threads: SupportsIndex = 0,
        memory_limit: ByteSize | None = None,
        device_memory_limit: ByteSizes | None = None,
        progress: Progress = False,
        comm: Any = None,
    ) -> None:
        """Add vectors: all of them, or, after an error, none.

        Parameters
        ----------
        x : array_like, (rows, dimension), or path
            The vectors, as in `knn`, one as (dimension,), or files of vectors, which may be larger than memory: a path, a pattern
            or a list. The first
            training or add fixes the dimension, the dtype of ``"Flat"`` and the memory of its vectors (on the host, or
            of one GPU; others are copied there; other kinds keep codes where the vectors were), and, if they
            are float64 or wide integers, what is subtracted from all vectors and queries before they are rounded to
            float32.
        ids : array_like of int, (rows,), optional
            What searches call the vectors, from 0 on, each once. By default 0, 1, 2, ..., going on after the largest id
            that there ever was.
        replace : bool, default False
            What an id does that the index has already. False: it is a ValueError. True: its vector is replaced (an upsert),
            and a concurrent search finds the old one or the new one, never both or neither.
        copy : bool, default True
            Copy the vectors. With False ``"Flat"`` refers to `x`, which it keeps alive and you must not change; `x` must
            then be an array that `knn` would use in place, else ValueError. Other kinds store codes rather than vectors.
        start : KnnGraph, optional
            For the first vectors of a graph index (``"Graph32"``): the graph that `knn_graph` has made of `x` by the index's
            metric. The build takes its neighbours and searches for none. With fewer of them than it would look for (96, or twice
            the degree) it warns. A graph of other vectors is a ValueError.
        threads, memory_limit, device_memory_limit, progress
            As in `knn`. What an add allocates counts against the limit of that add.
        comm : optional
            A communicator, as in `knn`. Every rank has the same index and passes the same `x`, a numpy array or files, and
            the same `ids`; each codes its share of the vectors, and all end with the index that one process would have
            (docs/clusters.md). Not with `replace`, `start` or ``copy=False``.
        """
        borrow = not flag(copy, "copy")
        if isinstance(x, (int, np.integer)):
            raise TypeError(f"x is {kind_of(x)}; vectors come first: index.add(x, ids=ids)")
        names = None if ids is None else as_ids(ids)[0]
        if flag(replace, "replace"):
            if names is None:
                raise ValueError("replace=True goes by ids: give one for each vector")
            if start is not None or borrow:
                raise ValueError("replace=True goes neither with start nor with copy=False")
        if comm is not None and (replace or start is not None or borrow):
            raise ValueError("comm goes neither with replace=True nor with start or copy=False")
        with calling(self._device, threads, memory_limit, device_memory_limit, progress, arrays=(x,)) as options:
            source = as_source(x)
            if replace and names is not None:
                if source is not None:
                    self._index.replace_file(source, names, options)
                else:
                    self._index.replace(as_rows(array_of(x), "x", options.stream)[0], names, options)
                return
            if start is not None:
                if source is not None:
                    raise ValueError("start is the graph of an array, and x is a path: read the vectors first")
                if not isinstance(start, KnnGraph):
                    raise TypeError(f"start is {kind_of(start)}; it takes a kith.KnnGraph")
                if borrow:
                    raise ValueError("copy=False goes without start: an index that is built from a graph copies its vectors")
                rows = as_vectors(array_of(x), "x", options.stream)[0]
                self._index.add_from(rows, names, start._given_there(options), options)
                return
            if source is not None:
                if borrow:
                    raise ValueError("copy=False refers to an array, and x is a path: add a copy")
                self._index.add_file(source, names, options, comm)
                return
            rows, copied = as_rows(array_of(x), "x", options.stream)
            narrowed = rows.dtype == "float64" or self._index.subtracts
            if borrow and (copied or narrowed):
                raise ValueError(
                    "copy=False needs a float32, float16, bfloat16, uint8 or int8 array with contiguous columns, to "
                    "an index whose first vectors were such; x is none: add a copy"
                )
            # The conversion has made a copy already; a second one would be a waste.
            self._index.add(rows, names, comm is None and (borrow or (copied and not narrowed)), options, comm)

    search = _index_searches.search
    range_search = _index_searches.range_search
    knn_graph = _index_searches.knn_graph
    tune = _index_tune.tune

    @answers_other_names("remove()")
    def remove(
        self,
        ids: IdsLike,
        *,
        threads: SupportsIndex = 0,
        memory_limit: ByteSize | None = None,
        device_memory_limit: ByteSizes | None = None,
        progress: Progress = False,
    ) -> int:
        """Remove vectors by their ids.

        The others close up: masks are of the ``len(index)`` that are left, in the order of add. Ids that were given
        by the index itself are not given again. Vectors are marked, which takes one bit for each; once a fifth of all
        are marked, it compacts itself, if the memory limit has room for that.

        Parameters
        ----------
        ids : array_like of int, or int
            Ids that the index does not have are no error.
        threads, memory_limit, device_memory_limit, progress
            As in `knn`.

        Returns
        -------
        int
            How many there were.
        """
        names, _ = as_ids(ids)
        with calling(self._device, threads, memory_limit, device_memory_limit, progress) as options:
            return self._index.remove(names, options)

    @answers_other_names("compact()")
    def compact(
        self,
        *,
        threads: SupportsIndex = 0,
        memory_limit: ByteSize | None = None,
        device_memory_limit: ByteSizes | None = None,
        progress: Progress = False,
    ) -> None:
        """Give back the memory of removed vectors.

        What is left is copied, and searches no longer pass over the others. No result changes. A saved file never holds
        removed vectors.

        Parameters
        ----------
        threads, memory_limit, device_memory_limit, progress
            As in `knn`.
        """
        with calling(self._device, threads, memory_limit, device_memory_limit, progress) as options:
            self._index.compact(options)

    @answers_other_names("ids()")
    def ids(
        self, *, threads: SupportsIndex = 0, memory_limit: ByteSize | None = None
    ) -> npt.NDArray[np.int64]:
        """The ids of all vectors, in the order of add: a mask in a search is of these, and `reconstruct` without ids too.

        `threads` and `memory_limit` are as in `knn`. Whether one id is there is asked by ``id in index``.

        Examples
        --------
        >>> import numpy as np, kith
        >>> index = kith.Index("Flat")
        >>> index.add(np.eye(3, dtype=np.float32), ids=[10, 20, 30])
        >>> index.add(np.ones(3, np.float32), ids=20, replace=True)
        >>> index.ids()
        array([10, 30, 20])
        >>> 20 in index, 40 in index
        (True, False)
        """
        with calling("cpu", threads, memory_limit) as options:
            return self._index.ids(options).view(np.int64)

    @answers_other_names("reconstruct()")
    def reconstruct(
        self,
        ids: IdsLike | None = None,
        *,
        threads: SupportsIndex = 0,
        memory_limit: ByteSize | None = None,
        device_memory_limit: ByteSizes | None = None,
        progress: Progress = False,
    ) -> Array:
        """The vectors as the index keeps them, decoded.

        Transforms are undone as far as that is possible: what PCA has cut off, and the length that ``L2norm`` has taken,
        do not come back.

        Parameters
        ----------
        ids : array_like of int, or int, optional
            Ids of the index; any other is a ValueError. By default all, in the order of `ids`.
        threads, memory_limit, device_memory_limit, progress
            As in `knn`.

        Returns
        -------
        numpy.ndarray of float32
            (ids, dimension), or (dimension,) for one id. float64 if the index subtracts an offset from such vectors.
        """
        names, single = as_ids(self.ids() if ids is None else ids)
        with calling(self._device, threads, memory_limit, device_memory_limit, progress) as options:
            rows = self._index.reconstruct(names, options)
        return rows[0] if single else rows

    @answers_other_names("save()")
    def save(
        self,
        path: PathLike,
        *,
        threads: SupportsIndex = 0,
        memory_limit: ByteSize | None = None,
        device_memory_limit: ByteSizes | None = None,
        progress: Progress = False,
    ) -> None:
        """Write the index to a ``.kith`` file, which `kith.load` reads on any machine.

        Like the program, it writes FAISS's format if the name ends in ``.faiss`` or ``.index``.

        A temporary file is filled beside the target and put in its place at the end: what was there before stays whole
        until then.

        Parameters
        ----------
        path : str or path-like
            The file: ``.kith``, or ``.faiss`` or ``.index`` for FAISS's format, as `write_faiss` writes it. Another name is
            a ValueError.
        threads, memory_limit, device_memory_limit, progress
            As in `knn`.
        """
        file, of_faiss = index_file(path)
        with calling(self._device, threads, memory_limit, device_memory_limit, progress) as options:
            if of_faiss:
                self._index.write_faiss(file, options)
            else:
                self._index.save(file, options)

    @answers_other_names("save_added()")
    def save_added(
        self,
        path: PathLike,
        x: SourceLike,
        ids: IdsLike | None = None,
        *,
        work: PathLike | None = None,
        keep_work: bool = False,
        train: SourceLike | None = None,
        threads: SupportsIndex = 0,
        memory_limit: ByteSize | None = None,
        device_memory_limit: ByteSizes | None = None,
        progress: Progress = False,
    ) -> None:
        """Write the file that ``add(x, ids)`` and ``save(path)`` would write, however small the memory limit is.

        Vectors are coded piece by piece. What has become a quarter of the limit goes to the disk beside the file, and all of
        it becomes one file at the end: the same bytes. The index itself does not change; it may be on disk (`kith.load` with
        ``mmap=True``). A graph index (``"Graph32"``) must fit into memory.

        Parameters
        ----------
        path : str or path-like
            The ``.kith`` file.
        x : path, pattern, list of paths, or rows with slices
            The vectors, as in `add`; an array is added by `add`.
        ids : array_like of int, (rows,), optional
            As in `add`. Ids of your own are kept in memory, up to 20 bytes each.
        work : str or path-like, optional
            A folder in which what is done is kept, on another disk perhaps: the same call after a kill goes on there, also with
            another `memory_limit` or device, and ends with the same bytes. Other vectors or another index are refused with
            what differs. The vectors are read once more at each start. Not for graph indexes.
        keep_work : bool, default False
            Keep the files in it once the index is there.
        train : path, pattern, list of paths, or rows with slices, optional
            What an index that needs training and has none is trained with first; with `work` the training is kept too. The
            index itself stays as it is.
        threads, memory_limit, device_memory_limit, progress
            As in `knn`.

        Examples
        --------
        >>> index.save_added("large.kith", "parts/*.npy", memory_limit=2**30)  # doctest: +SKIP
        """
        file, of_faiss = index_file(path)
        if of_faiss:
            raise ValueError(f"{path!r} is a name of FAISS's format, and save_added() writes Kith's: name the file .kith")
        names = None if ids is None else as_ids(ids)[0]
        source = as_source(x)
        if source is None:
            raise TypeError("x is an array, which is in memory: add() it and save(); save_added() takes files")
        learned = None if train is None else as_source(train)
        if train is not None and learned is None:
            raise TypeError("train is an array, which is in memory: train() with it; save_added() takes files")
        keeps = flag(keep_work, "keep_work")
        if keeps and work is None:
            raise ValueError("keep_work goes with work")
        kept = b"" if work is None else path_bytes(work, "work")
        with calling(self._device, threads, memory_limit, device_memory_limit, progress) as options:
            self._index.save_added(source, names, file, kept, keeps, learned, options)

    def edges(
        self, *, threads: SupportsIndex = 0, memory_limit: ByteSize | None = None
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The edges of a graph index (``"Graph32"``), as a sparse matrix without values.

        `threads` and `memory_limit` are as in `knn`.

        Returns
        -------
        (offsets, columns)
            The vector at row i, in the order in which vectors were added, is joined to
            ``columns[offsets[i] : offsets[i + 1]]``: ``scipy.sparse.csr_array((values, columns, offsets))`` takes them. Vectors
            that came after the graph was built have none, nor has an index of fewer than 4,096.

        Raises
        ------
        NotImplementedError
            The index has no graph.
        """
        with calling("cpu", threads, memory_limit) as options:
            return self._index.edges(options)

    @answers_other_names("to()")
    def to(
        self,
        device: DeviceNames,
        *,
        copies: SupportsIndex | Literal["auto"] = "auto",
        threads: SupportsIndex = 0,
        memory_limit: ByteSize | None = None,
        device_memory_limit: ByteSizes | None = None,
        progress: Progress = False,
    ) -> Index:
        """A new index with the same vectors, whose calls run on another device, or on several.

        Both share what they hold: this one stays as it is, and what is added to one or removed is not seen by the other.
        Vectors in a GPU's memory that are to be searched elsewhere are copied to the host.

        Parameters
        ----------
        device : str or list of str
            As in `Index`. Several devices, or parts of one, divide searches among them: ``"cuda:0,cuda:1"``, ``"cuda:all"``,
            ``["cuda:0", "cuda:1"]``, ``"cpu/4"``.
        copies : int or "auto"
            How many of the parts hold each vector. As many as there are parts: each has all vectors, and searches some of the
            queries. 1: each has a shard of the vectors, and what all find is joined. Between: copies of shards; the number of
            parts must be a multiple. "auto": as many as the memory of the GPUs has room for. What is found, and what is
            saved, does not depend on it.
        threads, memory_limit, device_memory_limit, progress
            As in `knn`.

        Examples
        --------
        >>> import kith
        >>> index = kith.Index("Flat")
        >>> index.to("cpu").device
        'cpu'
        """
        wanted = check_device(device)
        number = 0 if copies == "auto" else whole_number(copies, "copies")
        if copies != "auto" and number < 1:
            raise ValueError(f'copies = {number}; give 1 (shards), as many as there are devices, or "auto"')
        with calling(wanted, threads, memory_limit, device_memory_limit, progress) as options:
            moved = self._index.to(wanted, number, options)
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._hold(moved, wanted)
        return made

    def clone(self) -> Index:
        """A new index with the same vectors, on the same device.

        Both share what they hold, so that it takes no time: this one stays as it is, and what is added to one or removed is not
        seen by the other.

        Examples
        --------
        >>> import numpy as np, kith
        >>> index = kith.Index("Flat")
        >>> index.add(np.eye(3, dtype=np.float32))
        >>> other = index.clone()
        >>> other.remove([0])
        1
        >>> len(index), len(other)
        (3, 2)
        """
        with calling(self._device) as options:
            made = self._index.clone(options)
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._hold(made, self._device)
        return other

    @answers_other_names("merge()")
    def merge(
        self,
        other: Index,
        *,
        shift_ids: bool = False,
        threads: SupportsIndex = 0,
        memory_limit: ByteSize | None = None,
        device_memory_limit: ByteSizes | None = None,
        progress: Progress = False,
    ) -> None:
        """Add all vectors of another index that was trained alike: all of them, or, after an error, none.

        Copies of one trained index (`to`, `copy.copy`, a saved file) that were filled from parts of the data become one so.
        The other's vectors come behind those that are there, in their order; the other stays as it is.

        Parameters
        ----------
        other : Index
            Of the same metric, with the same centres, codes and transforms; else ValueError that says what differs.
        shift_ids : bool, default False
            Give the other's vectors ids behind all that this index ever had: their own plus that. Without it they keep
            their ids, and one that both have is a ValueError that names it.
        threads, memory_limit, device_memory_limit, progress
            As in `knn`.

        Examples
        --------
        >>> import numpy as np, kith
        >>> x = np.random.default_rng(0).standard_normal((2000, 16), dtype=np.float32)
        >>> index = kith.Index("IVF16,SQ8")
        >>> index.train(x)
        >>> other = index.to("auto")
        >>> index.add(x[:1500])
        >>> other.add(x[1500:])
        >>> index.merge(other, shift_ids=True)
        >>> len(index)
        2000
        """
        if not isinstance(other, Index):
            raise TypeError(f"other is {kind_of(other)}; it must be a kith.Index")
        shift = flag(shift_ids, "shift_ids")
        with calling(self._device, threads, memory_limit, device_memory_limit, progress) as options:
            self._index.merge(other._index, shift, options)

    def info(self) -> IndexInfo:
        """What the index holds: rows, lists and how even they are, bytes by part."""
        told = self._index.info()
        return IndexInfo(**{**told, "tuned": _index_tune.searches_of(told["tuned"])})

    @property
    def factory(self) -> str:
        """What kind of index it is, as it was given."""
        return self._index.factory

    @property
    def trained(self) -> bool:
        """Whether vectors can be added; always for ``"Flat"``."""
        return self._index.trained

    @property
    def dimension(self) -> int:
        """The length of a vector; 0 before the first training or add."""
        return self._index.dimension

    @property
    def dtype(self) -> str | None:
        """Of the vectors that were given: ``"f32"``, ``"f16"``, ``"bf16"``, ``"u8"``, ``"i8"``; None before the first."""
        return str(self._index.info()["dtype"]) if self.dimension > 0 else None

    @property
    def metric(self) -> Metric:
        """The metric's name."""
        return cast(Metric, self._index.metric)

    @property
    def device(self) -> str:
        """Where searches run, as it was given."""
        return self._device

    def __len__(self) -> int:
        """How many vectors there are."""
        return len(self._index)

    def __contains__(self, id: object) -> bool:
        """Whether there is a vector with that id."""
        if isinstance(id, (bool, np.bool_)) or not isinstance(id, (int, np.integer)):
            return False
        number = int(id)
        return -(2**63) <= number < 2**63 and self._index.contains(number)

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        """For pickle and copy: the bytes of its file, or, of an index that must be trained, how it was made."""
        made = self._index
        if not made.trained:
            settings = (made.metric, self._device, made.check_finite, made.prepare, made.expected_rows, made.seed)
            return _untrained, (type(self), made.factory, *settings)
        with tempfile.TemporaryDirectory(prefix="kith-") as folder:
            path = Path(folder, "index.kith")
            self.save(path)
            return _restored, (type(self), path.read_bytes(), self._device)

    def __getattr__(self, name: str) -> NoReturn:
        refuse_attribute(name)

    def __setattr__(self, name: str, value: object) -> None:
        # faiss: index.nprobe = 16. A slip would be kept and change nothing.
        if is_another_name(name) or (type(self) is Index and name[0] != "_" and not hasattr(Index, name)):
            refuse_attribute(name)
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        kind, waits = self.factory, "" if self.trained else ", not trained"
        return f"kith.Index({kind!r}, metric={self.metric!r}, dimension={self.dimension}, size={len(self)}{waits})"


# Methods that are written elsewhere are the class's too: in help, in errors of Python's own, to pickle.
for _method in (Index.search, Index.range_search, Index.knn_graph, Index.tune):
    for _function in (_method, inspect.unwrap(_method)):
        _function.__module__, _function.__qualname__ = __name__, f"Index.{_method.__name__}"


def _untrained(
    kind: type[Index], factory: str, metric: Metric, device: str, check_finite: bool, prepare: bool, rows: int, seed: int
) -> Index:
    return kind(factory, metric, device, check_finite, prepare, expected_rows=rows, seed=seed)


def _restored(kind: type[Index], content: bytes, device: str) -> Index:
    with tempfile.TemporaryDirectory(prefix="kith-") as folder:
        path = Path(folder, "index.kith")
        path.write_bytes(content)
        return read_index(path, device, kind)


def read_index(
    path: PathLike | Sequence[PathLike],
    device: DeviceNames,
    kind: type[Index] = Index,
    mmap: bool = False,
    lists: str = "host",
    verify: bool = False,
    **settings: Any,
) -> Index:
    """The index of a .kith file, or of several."""
    if isinstance(path, (list, tuple)):
        paths: bytes | list[bytes] = [path_bytes(one, f"path[{number}]") for number, one in enumerate(path)]
    else:
        paths = path_bytes(path)  # type: ignore[arg-type]
        _refuse_folder(paths)
    where = check_device(device)
    with calling(where, **settings) as options:
        index = _kith.load_index(paths, mmap, lists == "disk", verify, options)
    return kind._of(index, where)


def _refuse_folder(path: bytes) -> None:
    """If it is something else that Kith keeps in a folder, say how to open it."""
    if not os.path.isdir(path):
        return
    if _kith.has_collections and _kith.collection_exists(path):
        raise ValueError(f"{os.fsdecode(path)!r} is a collection: open it with kith.open(path)")
    if os.path.exists(os.path.join(path, b"report.json")):
        raise ValueError(f"{os.fsdecode(path)!r} is a k-NN graph: read it with kith.KnnGraph.load(path)")
