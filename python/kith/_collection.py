"""Vectors with their ids, columns and payloads, in a directory that survives a crash."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, SupportsFloat, SupportsIndex

import numpy as np
import numpy.typing as npt

from kith import _kith
from kith._arrays import DTYPE_NAMES, VectorsLike, as_vectors, is_bfloat16, to_numpy
from kith._collection_columns import (
    ColumnsLike,
    ColumnTypeLike,
    GivenIds,
    ItemIdsLike,
    as_item_ids,
    as_payloads,
    column_type,
    column_values,
)
from kith._collection_info import CollectionInfo, CollectionSegment, VerifyReport
from kith._collection_reads import CallDefaults, CollectionReads, ParamsLike, item_filter, narrow, plain_ids
from kith._collection_tables import as_table
from kith._errors import kind_of
from kith._files import PathLike, path_bytes
from kith._kith import DeviceArray
from kith._metrics import Metric, metric_name
from kith._options import calling, check_device, real_number, text, whole_number
from kith._other_names import answers_collection_names, refuse_collection_attribute, refuse_subscript
from kith._progress import Progress
from kith._typing import ByteSize, ByteSizes, DeviceNames

_TEXT_IDS = {"int": False, "integer": False, "text": True, "str": True}


class CollectionView(CollectionReads):
    """One version of a collection, which stays as it is whatever is written: `Collection.view` makes it."""

    def __init__(self, view: _kith.CollectionView, defaults: CallDefaults) -> None:
        self._view = view
        self._defaults = defaults

    def _reader(self) -> _kith.CollectionView:
        return self._view

    def __repr__(self) -> str:
        return f"<kith.CollectionView: version {self.version}, {len(self)} items of dimension {self.dimension}>"


class _Batch:
    """Calls that are one transaction, as `Collection.batch` makes them."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._batch: _kith.CollectionBatch | None = None

    def __enter__(self) -> Collection:
        self._batch = self._collection._handle.batch()
        return self._collection

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        batch, self._batch = self._batch, None
        assert batch is not None
        if kind is not None:
            batch.undo()
            return
        with self._collection._calling() as options:
            batch.commit(options)


class Collection(CollectionReads):
    """Vectors with their ids, columns and payloads, in a directory that survives a crash: `kith.open` makes it.

    Every call that writes is one transaction: when it returns its items are on the disk, and after a crash they are there in
    full or not at all. One program writes at a time, any number read. All calls are safe from many threads; writes take turns.

    Examples
    --------
    >>> import numpy as np, kith, tempfile
    >>> path = tempfile.mkdtemp() + "/films"
    >>> with kith.open(path, dimension=2, columns={"year": int, "title": str}) as films:
    ...     films.add([[0, 0], [3, 4], [6, 8]], columns={"year": [1927, 1931, 1982], "title": ["Metropolis", "M", "Tron"]})
    array([0, 1, 2])
    >>> films = kith.open(path)
    >>> films.search([0, 0], k=2, where="year > ?", params=(1930,))
    Neighbors(ids=array([1, 2]), distances=array([ 5., 10.], dtype=float32))
    >>> films.get(1).columns
    {'year': 1931, 'title': 'M'}
    >>> films.close()
    """

    def __new__(cls, handle: object = None, *_: object, **__: object) -> Collection:
        if not isinstance(handle, _kith.Collection):
            raise TypeError("kith.Collection is not called: kith.open(path, dimension=...) opens a collection, or makes one")
        return super().__new__(cls)

    def __init__(self, handle: _kith.Collection, defaults: CallDefaults) -> None:
        self._handle = handle
        self._defaults = defaults

    def _reader(self) -> _kith.CollectionView:
        return self._handle.view()

    @property
    def path(self) -> str:
        """The directory."""
        return self._handle.path

    @property
    def mode(self) -> Literal["a", "r"]:
        """``"a"`` for reading and writing, ``"r"`` for reading."""
        return "a" if self._handle.writes else "r"

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._handle.closed

    def __repr__(self) -> str:
        if self.closed:
            return f"kith.open({self.path!r})  # closed"
        mode = "" if self.mode == "a" else ", mode='r'"
        return f"kith.open({self.path!r}{mode})  # {len(self)} items of dimension {self.dimension}"

    def __enter__(self) -> Collection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __bool__(self) -> bool:
        """A collection without items is still there."""
        return True

    def view(self) -> CollectionView:
        """The version that is seen now, to compute with: it stays as it is whatever is written."""
        return CollectionView(self._reader(), self._defaults)

    def refresh(self) -> bool:
        """Go to the newest version, which another program may have written.

        Returns
        -------
        bool
            Whether there was a newer one.
        """
        with self._calling() as options:
            return self._handle.refresh(options)

    def info(self) -> CollectionInfo:
        """Its files, and how much of it no index covers."""
        with self._calling() as options:
            told = self._handle.info(options)
        told["segments"] = [CollectionSegment(**segment) for segment in told["segments"]]
        return CollectionInfo(**told)

    @answers_collection_names("add()")
    def add(
        self,
        vectors: Any,
        ids: ItemIdsLike | None = None,
        columns: dict[str, Any] | None = None,
        payloads: Any = None,
    ) -> GivenIds:
        """Add items: all of them, or, after an error, none.

        Parameters
        ----------
        vectors : array_like, (items, dimension), or table
            The vectors, on the host. Or a data frame of pandas' or a table of pyarrow's with a column ``vector`` and, if there are
            such, ``id`` and ``payload``; the others are columns of the same names.
        ids : list of int or str, optional
            What the items are called, each once; one that is there already is a ValueError. Without them integers follow on the
            largest that there ever was; ids given so never come back.
        columns : dict, optional
            For each column by its name a list with a value for each item, None for none; or one value for all.
        payloads : list of bytes, optional
            Bytes for each item, which Kith returns and does not look into.

        Returns
        -------
        numpy.ndarray of int64, or list of str
            The ids.
        """
        return self._write(self._handle.add, vectors, ids, columns, payloads)

    @answers_collection_names("upsert()")
    def upsert(
        self,
        vectors: Any,
        ids: ItemIdsLike | None = None,
        columns: dict[str, Any] | None = None,
        payloads: Any = None,
    ) -> GivenIds:
        """Add items in the place of those with the same ids, of which nothing stays.

        Parameters
        ----------
        vectors, ids, columns, payloads
            As in `add`. Of an id that comes twice the last counts.

        Returns
        -------
        numpy.ndarray of int64, or list of str
            The ids.
        """
        return self._write(self._handle.upsert, vectors, ids, columns, payloads)

    def _write(self, write: Any, vectors: Any, ids: Any, columns: dict[str, Any] | None, payloads: Any) -> GivenIds:
        reader = self._reader()
        kinds = {name: kind for name, kind, _ in reader.columns}
        table = as_table(vectors, [name for name, kind in kinds.items() if kind == "json"])
        if table is not None:
            if ids is not None or columns is not None or payloads is not None:
                raise ValueError("a table has ids, columns and payloads of its own; give it alone")
            vectors, ids, columns, payloads = table
        matrix = _host_vectors(vectors, reader.dimension)
        given: dict[str, list[Any]] = {}
        if columns is not None and not isinstance(columns, Mapping):
            raise TypeError(f'columns is {kind_of(columns)}; give a dict with the values of each column: {{"year": [1927, 1931]}}')
        for name, values in (columns or {}).items():
            if name not in kinds:
                has = ", ".join(kinds) or "none"
                raise ValueError(f"the collection has no column {name!r}, it has {has}: add it with add_column({name!r}, type)")
            given[name] = column_values(values, kinds[name], name, len(matrix))
        names = None if ids is None else as_item_ids(ids, reader.text_ids)[0]
        if names is not None and len(names) != len(matrix):
            raise ValueError(f"{len(names)} ids and {len(matrix)} vectors; give one for each")
        if names is None and reader.text_ids:
            raise ValueError("the ids of this collection are str, which it does not give itself: pass ids=[...]")
        with self._calling() as options:
            written = write(matrix, names, given, as_payloads(payloads, len(matrix)), options)
        found: GivenIds = plain_ids(written)
        return found

    @answers_collection_names("remove()")
    def remove(
        self,
        ids: ItemIdsLike | None = None,
        *,
        where: str | None = None,
        params: ParamsLike | None = None,
    ) -> int:
        """Remove items by their ids, or those that an expression keeps.

        Parameters
        ----------
        ids : id or list of ids, optional
            Ids that are not there are no error.
        where, params : optional
            As in `search`. With `ids` too, items must meet both.

        Returns
        -------
        int
            How many there were.
        """
        if ids is None and where is None:
            raise ValueError('give ids or where; where="true" removes everything')
        reader = self._reader()
        with self._calling() as options:
            if where is None:
                return self._handle.remove_ids(as_item_ids(ids, reader.text_ids)[0], options)
            return self._handle.remove(item_filter(reader, where, params, ids, None), options)

    def batch(self) -> _Batch:
        """Make several calls one transaction: ``with c.batch(): ...``.

        Others see all that the block has written, or, after an exception in it, nothing. Reads of this collection in the block
        see what was there before it.
        """
        return _Batch(self)

    def add_column(self, name: str, type: ColumnTypeLike) -> None:  # noqa: A002
        """Add a column; items that are there have None in it.

        Parameters
        ----------
        name : str
            Letters, digits and underscores, beginning with a letter.
        type : type or str
            As in `kith.open`.
        """
        with self._calling() as options:
            self._handle.add_column(text(name, "name"), column_type(type, name), options)

    def create_index(self, column: str) -> None:
        """Make an index of SQLite, so that a `where` by this column need not look at every item.

        Parameters
        ----------
        column : str
            A column.
        """
        with self._calling() as options:
            self._handle.create_index(text(column, "column"), options)

    def fold(self) -> None:
        """Make the newest vectors a segment now; it happens by itself at 64 MiB, and at `close` from 4 MiB on."""
        with self._calling() as options:
            self._handle.fold(options)

    def compact(
        self,
        *,
        device: DeviceNames | None = None,
        threads: SupportsIndex | None = None,
        memory_limit: ByteSize | None = None,
        device_memory_limit: ByteSizes | None = None,
        progress: Progress = False,
    ) -> None:
        """Make one segment of all, drop removed items from the disk, and build the collection's index.

        Fewer than 65,536 items get no index: they are searched exactly.

        Parameters
        ----------
        device, threads, memory_limit, device_memory_limit, progress
            As in `search`.
        """
        with self._calling(device, threads, memory_limit, device_memory_limit, progress) as options:
            self._handle.compact(options)

    def reindex(
        self,
        factory: str,
        *,
        device: DeviceNames | None = None,
        threads: SupportsIndex | None = None,
        memory_limit: ByteSize | None = None,
        device_memory_limit: ByteSizes | None = None,
        progress: Progress = False,
    ) -> None:
        """Take another index from now on, and build it for the segments that are there.

        Parameters
        ----------
        factory : str
            As in `Index`, such as ``"IVF1024,SQ8"`` or ``"Graph32"``; ``"Flat"`` for none.
        device, threads, memory_limit, device_memory_limit, progress
            As in `search`.
        """
        with self._calling(device, threads, memory_limit, device_memory_limit, progress) as options:
            self._handle.reindex(text(factory, "factory"), options)

    def verify(self, *, progress: Progress = False) -> VerifyReport:
        """Read everything, compare it with its hashes, and let SQLite check itself.

        Damage is no exception here: ``report.problems`` names the files.
        """
        with self._calling(progress=progress) as options:
            return VerifyReport(**self._handle.verify(options))

    def snapshot(self, path: PathLike, *, progress: Progress = False) -> None:
        """Make a consistent copy in a new directory, also while others write.

        Segments are hard links if the file system has them, so that a copy is cheap.

        Parameters
        ----------
        path : path
            The new directory.
        """
        with self._calling(progress=progress) as options:
            self._handle.snapshot(path_bytes(path), options)

    def close(self) -> None:
        """Let others write. Calls afterwards are a RuntimeError, but for views, and `close`."""
        if self.closed:
            return
        with self._calling() as options:
            self._handle.close(options)

    def __getattr__(self, name: str) -> NoReturn:
        """Told only what the class does not have: another library's name is answered with Kith's."""
        refuse_collection_attribute(name)

    if not TYPE_CHECKING:

        def __getitem__(self, id):
            refuse_subscript("Collection", "collection.get(id), and collection.get(ids).columns for the values of columns")


@answers_collection_names("kith.open()")
def open(  # noqa: A001
    path: PathLike,
    dimension: SupportsIndex | None = None,
    *,
    metric: Metric | None = None,
    dtype: npt.DTypeLike | None = None,
    ids: Literal["int", "text"] | None = None,
    columns: ColumnsLike | None = None,
    index: str | None = None,
    mode: Literal["a", "r"] = "a",
    timeout: SupportsFloat = 0,
    sync: Literal["now", "later"] = "now",
    device: DeviceNames = "auto",
    threads: SupportsIndex = 0,
    memory_limit: ByteSize | None = None,
    device_memory_limit: ByteSizes | None = None,
) -> Collection:
    """Open a collection: vectors with ids, columns and payloads, in a directory that survives a crash.

    Where there is none, and `dimension` is given, it is made.

    Parameters
    ----------
    path : path
        The directory.
    dimension : int, optional
        The columns of the vectors of a new collection. Of one that is there it must be the same, as must `metric`, `dtype`,
        `ids` and the types of `columns`, if they are given; missing columns are added.
    metric : str, default "l2"
        As in `Index`.
    dtype : dtype or str, default "f32"
        How vectors are stored: ``"f32"``, ``"f16"``, ``"bf16"``, ``"u8"`` or ``"i8"``, or numpy's.
    ids : {"int", "text"}, default "int"
        Of which type ids are.
    columns : dict, optional
        Names and types of what belongs to each item: int, float, str, bool, or dict for any JSON (or ``"int"``, ``"real"``,
        ``"text"``, ``"bool"``, ``"json"``).
    index : str, default "Flat"
        What `Collection.compact` builds, as in `Index`: ``"IVF1024,SQ8"``, ``"Graph32"``; ``"Flat"`` is exact search.
    mode : {"a", "r"}, default "a"
        ``"a"`` writes too, which one program may at a time; ``"r"`` reads, which any number may meanwhile, and never waits.
    timeout : float, default 0
        How many seconds to wait for another writer to close.
    sync : {"now", "later"}, default "now"
        With "later" writes return before they are on the disk: a crash of the machine may lose the newest, but neither their order
        nor their wholeness. Much faster if items are added one at a time.
    device, threads, memory_limit, device_memory_limit
        As in `knn`: the default of all calls.

    Returns
    -------
    Collection
        Close it when you are done, or use it in a ``with`` block.

    Raises
    ------
    FileNotFoundError
        There is no collection, and no dimension to make one.
    RuntimeError
        Another program writes to it; the message says which.
    ValueError
        A setting that is not that of the collection.
    CorruptFileError, OSError
        A file that is damaged or missing, a disk that refuses.

    Examples
    --------
    See `Collection`, and the page "Collections".
    """
    if not _kith.has_collections:
        raise NotImplementedError(
            "this build of Kith has no collections, since it was built without SQLite: install SQLite's headers "
            "(Debian: apt-get install libsqlite3-dev) and build it again"
        )
    if mode not in ("a", "r"):
        raise ValueError(f'mode is {mode!r}; it must be "a", which writes too and empties nothing, or "r"')
    if sync not in ("now", "later"):
        raise ValueError(f'sync is {sync!r}; it must be "now" or "later"')
    if ids is not None and ids not in _TEXT_IDS:
        raise ValueError(f'ids is {ids!r}; it must be "int" or "text"')
    wait = real_number(timeout, "timeout")
    if not 0 <= wait < 2**40:
        raise ValueError(f"timeout is {wait}; it must be a number of seconds")
    wanted: dict[str, Any] = {}
    if dimension is not None:
        wanted["dimension"] = whole_number(dimension, "dimension")
    if metric is not None:
        wanted["metric"] = metric_name(metric)
    if dtype is not None:
        wanted["dtype"] = _dtype_name(dtype)
    kinds = [(text(name, "columns"), column_type(kind, name)) for name, kind in (columns or {}).items()]
    defaults = CallDefaults(check_device(device), whole_number(threads, "threads"), memory_limit, device_memory_limit)
    place = path_bytes(path)
    with calling(defaults.device, defaults.threads, memory_limit, device_memory_limit) as options:
        if not _kith.collection_exists(place):
            if mode == "r" or dimension is None:
                hint = "" if mode == "r" else "; give dimension=... to make one"
                raise FileNotFoundError(2, f"there is no collection{hint}", str(path))
            handle = _kith.create_collection(
                place,
                wanted["dimension"],
                wanted.get("metric", "l2"),
                wanted.get("dtype", "f32"),
                _TEXT_IDS[ids or "int"],
                kinds,
                "Flat" if index is None else text(index, "index"),
                wait,
                sync == "later",
                options,
            )
            return Collection(handle, defaults)
        handle = _kith.open_collection(place, mode == "a", wait, sync == "later", options)
    made = Collection(handle, defaults)
    try:
        _check_settings(made, wanted, ids, kinds, index)
    except BaseException:
        made.close()
        raise
    return made


def _check_settings(
    made: Collection, wanted: dict[str, Any], ids: str | None, kinds: list[tuple[str, str]], index: str | None
) -> None:
    """That a collection which is there is what was asked for; columns that it lacks are added."""
    reader = made._reader()
    for name, value in wanted.items():
        has = getattr(reader, name)
        if has != value:
            raise ValueError(f"the collection {made.path!r} has {name}={has!r}, not {value!r}")
    if ids is not None and _TEXT_IDS[ids] != reader.text_ids:
        raise ValueError(f"the collection {made.path!r} has ids={'text' if reader.text_ids else 'int'!r}, not {ids!r}")
    if index is not None and index != reader.index:
        raise ValueError(f"the collection {made.path!r} has index={reader.index!r}: change it with reindex({index!r})")
    there = made.columns
    for name, kind in kinds:
        if name not in there and made.mode == "a":
            made.add_column(name, kind)
        elif there.get(name) != _kith.column_type_name(kind):
            raise ValueError(f"the collection {made.path!r} has a column {name!r} of type {there.get(name)!r}, not {kind!r}")


def _dtype_name(dtype: npt.DTypeLike) -> str:
    if isinstance(dtype, str) and dtype in ("f32", "f16", "bf16", "u8", "i8"):
        return dtype
    try:
        given = np.dtype(dtype)
    except TypeError:
        raise TypeError(f"dtype is {dtype!r}; vectors are stored as f32, f16, bf16, u8 or i8") from None
    if is_bfloat16(given):
        return "bf16"
    if given not in DTYPE_NAMES:
        raise TypeError(f"dtype is {given}; vectors are stored as f32, f16, bf16, u8 or i8")
    return DTYPE_NAMES[given]


def _host_vectors(x: VectorsLike, dimension: int) -> npt.NDArray[Any]:
    """The vectors as the library reads them, float64 rounded to float32; one vector alone is a matrix of one row."""
    if not hasattr(x, "__dlpack_device__") or isinstance(x, np.ndarray):
        array = to_numpy(x, "vectors")
        if array.ndim == 1 and array.size == dimension:
            x = array[np.newaxis, :]
        elif array.size == 0:
            return np.empty((0, dimension), np.float32)
        else:
            x = array
    matrix, _ = as_vectors(x, "vectors")
    if isinstance(matrix, DeviceArray):
        raise TypeError("vectors lie in a GPU's memory; a collection takes them from the host (torch: x.cpu(), cupy: x.get())")
    rows: npt.NDArray[Any] = narrow(matrix)
    return rows
