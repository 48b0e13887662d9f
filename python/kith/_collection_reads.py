"""What a collection, and a version of it, can be asked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, NoReturn, SupportsFloat, SupportsIndex, Union

import numpy as np
import numpy.typing as npt

from kith import _kith
from kith._arrays import BFLOAT16, VectorsLike, as_numbers, as_queries, to_numpy
from kith._collection_columns import (
    GivenIds,
    ItemId,
    ItemIdsLike,
    as_item_ids,
    as_parameter,
    values_in_python,
)
from kith._collection_tables import arrow_table, pandas_frame
from kith._index_searches import share_or_default, count_or_default
from kith._kith import CallOptions, DeviceArray
from kith._libraries import library_of
from kith._options import calling, real_number, text, whole_number
from kith._other_names import answers_collection_names
from kith._progress import Progress
from kith._range_search import RangeNeighbors
from kith._search import Neighbors
from kith._typing import ByteSize, ByteSizes, DeviceNames

Value = Union[None, bool, int, float, str]
# The values of a where's question marks; in searches also a list of these for each query.
ParamsLike = Union[Sequence[Value], Sequence[Sequence[Value]]]

# About how many bytes of vectors an export fetches at a time.
_EXPORT_BYTES = 64 << 20


class Items(NamedTuple):
    """What a collection keeps of some items, as `Collection.get` returns it.

    Attributes
    ----------
    ids : numpy.ndarray of int64, or list of str
        As they were asked for; for one id it alone.
    vectors : numpy.ndarray
        (items, dimension), or (dimension,) for one id.
    columns : dict
        A list of values for each column, or for one id the value; None for no value.
    payloads : list of bytes
        Or, for one id, its bytes.
    """

    ids: Any
    vectors: npt.NDArray[Any]
    columns: dict[str, Any]
    payloads: Any


class CallDefaults(NamedTuple):
    """The default settings of a collection's calls."""

    device: DeviceNames
    threads: SupportsIndex
    memory_limit: ByteSize | None
    device_memory_limit: ByteSizes | None


class CollectionReads(ABC):
    """The calls that a collection and its views have in common."""

    _defaults: CallDefaults

    @abstractmethod
    def _reader(self) -> _kith.CollectionView:
        """The version that is read."""

    def _calling(
        self,
        device: DeviceNames | None = None,
        threads: SupportsIndex | None = None,
        memory_limit: ByteSize | None = None,
        device_memory_limit: ByteSizes | None = None,
        progress: Progress = False,
        arrays: tuple[object, ...] = (),
    ) -> calling:
        return calling(
            self._defaults.device if device is None else device,
            self._defaults.threads if threads is None else threads,
            self._defaults.memory_limit if memory_limit is None else memory_limit,
            self._defaults.device_memory_limit if device_memory_limit is None else device_memory_limit,
            progress,
            arrays=arrays,
        )

    @property
    def version(self) -> int:
        """The number of the version that is read; it grows with every write."""
        return self._reader().version

    @property
    def dimension(self) -> int:
        """The columns of the vectors."""
        return self._reader().dimension

    @property
    def metric(self) -> str:
        """By which vectors are compared."""
        return self._reader().metric

    @property
    def dtype(self) -> str:
        """How vectors are stored: ``"f32"``, ``"f16"``, ``"bf16"``, ``"u8"`` or ``"i8"``."""
        return self._reader().dtype

    @property
    def columns(self) -> dict[str, str]:
        """The type of each column: ``"int"``, ``"real"``, ``"text"``, ``"bool"`` or ``"json"``."""
        return {name: kind for name, kind, _ in self._reader().columns}

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} reads an open directory, and cannot be copied or pickled: pass on its path, and open that "
            "with kith.open(path, mode='r'); snapshot(path) copies the files, view() is a version that stays as it is"
        )

    def __len__(self) -> int:
        return self._reader().size

    def __contains__(self, id: object) -> bool:
        reader = self._reader()
        wanted = str if reader.text_ids else (int, np.integer)
        if not isinstance(id, wanted) or isinstance(id, bool):
            return False
        if not reader.text_ids and not -(2**63) <= int(id) < 2**63:
            return False
        return all(reader.contains_each(as_item_ids(id, reader.text_ids)[0]))

    def __iter__(self) -> Iterator[ItemId]:
        """The ids of one version, in the order in which the items were added."""
        reader = self._reader()
        with self._calling() as options:
            ids = reader.ids(item_filter(reader, None, None, None, None), options)
        yield from (ids if isinstance(ids, list) else ids.tolist())

    @answers_collection_names("ids()")
    def ids(
        self,
        where: str | None = None,
        params: ParamsLike | None = None,
        *,
        ids: ItemIdsLike | None = None,
        filter: Any = None,
    ) -> GivenIds:
        """The ids of the items that a filter keeps, in the order in which they were added.

        Parameters
        ----------
        where, params, ids, filter
            As in `search`.

        Returns
        -------
        numpy.ndarray of int64, or list of str
        """
        reader = self._reader()
        with self._calling() as options:
            kept: GivenIds = plain_ids(reader.ids(item_filter(reader, where, params, ids, filter), options))
        return kept

    @answers_collection_names("count()")
    def count(
        self,
        where: str | None = None,
        params: ParamsLike | None = None,
        *,
        ids: ItemIdsLike | None = None,
        filter: Any = None,
    ) -> int:
        """How many items a filter keeps; all without one.

        Parameters
        ----------
        where, params, ids, filter
            As in `search`.
        """
        reader = self._reader()
        with self._calling() as options:
            return reader.count(item_filter(reader, where, params, ids, filter), options)

    @answers_collection_names("get()")
    def get(self, ids: ItemIdsLike) -> Items:
        """The vectors, columns and payloads of items.

        Parameters
        ----------
        ids : id or list of ids
            One that is not there is a ValueError.

        Returns
        -------
        Items
            A named tuple ``(ids, vectors, columns, payloads)`` in the order of `ids`; of one id the id, its vector, a
            dict of its values, and its payload.
        """
        reader = self._reader()
        given, single = as_item_ids(ids, reader.text_ids)
        with self._calling() as options:
            items = items_of(reader, given, options)
        if not single:
            return items
        return Items(
            items.ids[0] if isinstance(items.ids, list) else int(items.ids[0]),
            items.vectors[0],
            {name: values[0] for name, values in items.columns.items()},
            items.payloads[0],
        )

    @answers_collection_names("search()")
    def search(
        self,
        queries: VectorsLike,
        k: SupportsIndex = 10,
        *,
        where: str | None = None,
        params: ParamsLike | None = None,
        ids: ItemIdsLike | None = None,
        filter: Any = None,
        timeout: SupportsFloat = 60,
        probes: SupportsIndex | None = None,
        refine: SupportsIndex | None = None,
        beam: SupportsIndex | None = None,
        width: SupportsIndex | None = None,
        recall: SupportsFloat | None = None,
        device: DeviceNames | None = None,
        threads: SupportsIndex | None = None,
        memory_limit: ByteSize | None = None,
        device_memory_limit: ByteSizes | None = None,
        progress: Progress = False,
    ) -> Neighbors:
        """Find the k nearest items for every query.

        Segments with an index are searched by it, the others and the newest vectors exactly; what they find is merged by
        (distance, order of add). Always finds k items if there are that many, or if the filter keeps that many. A
        collection that was opened again answers with the same bytes.

        Parameters
        ----------
        queries : array_like, (queries, dimension) or (dimension,)
            As in `knn`.
        k : int, default 10
            How many items.
        where : str, optional
            Which items may be found: an expression of SQLite over the columns and ``id``, such as
            ``"year > ? and genre = ?"``. It cannot write, and sees nothing but this collection's items. A column with an
            index (`Collection.create_index`) makes it fast. A wrong one is a ValueError with SQLite's words.
        params : sequence, optional
            The values of the expression's question marks: int, float, str, bool or None. Or a list with such a sequence for
            each query: queries with equal values are searched together.
        ids : list of ids, optional
            Only these items; ids that are not there are ignored.
        filter : array_like of bool, (len(collection),), optional
            A mask in the order of `ids()`; or ids, as above. With several conditions items must meet all.
        timeout : float, default 60
            The seconds that the expression may take; then a RuntimeError.
        probes, refine, beam, width, recall
            Parameters of the collection's index, as in `Index.search`, for segments that have one.
        device, threads, memory_limit, device_memory_limit
            As in `knn`; by default those that the collection was opened with.
        progress
            As in `knn`.

        Returns
        -------
        Neighbors
            ``(ids, distances)``, nearest first: int64 ids, or for text ids an array of str. If the filter keeps fewer than k
            items, results are padded with id -1, or None, at distance inf (-inf for ``inner_product``).
        """
        if isinstance(queries, str):
            raise TypeError("queries is a str; your model makes vectors of texts, and kith.read_vectors(path) reads those of a file")
        reader = self._reader()
        numbers = (
            whole_number(k, "k"),
            count_or_default(probes, "probes"),
            count_or_default(refine, "refine"),
            count_or_default(beam, "beam"),
            count_or_default(width, "width"),
            share_or_default(recall, "recall"),
        )
        kept = item_filter(reader, where, params, ids, filter, timeout)
        with self._calling(device, threads, memory_limit, device_memory_limit, progress, (queries,)) as options:
            matrix, single = as_queries(queries, options.stream)
            found, distances, texts = reader.search(narrow(matrix), *numbers, kept, options)
        if reader.text_ids:
            names = _text_array(texts, found)
            return Neighbors(names[0], distances[0]) if single else Neighbors(names, distances)
        library = library_of(queries)
        from_host = partial(library.from_host, like=queries)
        return Neighbors(*(from_host(one[0] if single else one) for one in (plain_ids(found), distances)))

    @answers_collection_names("range_search()")
    def range_search(
        self,
        queries: VectorsLike,
        radius: SupportsFloat,
        *,
        where: str | None = None,
        params: ParamsLike | None = None,
        ids: ItemIdsLike | None = None,
        filter: Any = None,
        timeout: SupportsFloat = 60,
        probes: SupportsIndex | None = None,
        device: DeviceNames | None = None,
        threads: SupportsIndex | None = None,
        memory_limit: ByteSize | None = None,
        device_memory_limit: ByteSizes | None = None,
        progress: Progress = False,
    ) -> RangeNeighbors:
        """Find all items within a radius of every query, nearest first.

        Parameters
        ----------
        queries : array_like, (queries, dimension) or (dimension,)
            As in `knn`.
        radius : float
            In the metric's unit, and included.
        where, params, ids, filter, timeout
            As in `search`.
        probes, device, threads, memory_limit, device_memory_limit, progress
            As in `search`.

        Returns
        -------
        RangeNeighbors
            ``(offsets, ids, distances)``, as of `kith.range_search`; ids are an array of str if the collection's are.
        """
        reader = self._reader()
        reach, lists = real_number(radius, "radius"), count_or_default(probes, "probes")
        kept = item_filter(reader, where, params, ids, filter, timeout)
        with self._calling(device, threads, memory_limit, device_memory_limit, progress, (queries,)) as options:
            matrix, _ = as_queries(queries, options.stream)
            (offsets, found, distances), texts = reader.range_search(narrow(matrix), reach, lists, kept, options)
        if reader.text_ids:
            return RangeNeighbors(plain_ids(offsets), _text_array(texts, found), distances)
        return RangeNeighbors(plain_ids(offsets), plain_ids(found), distances)

    @answers_collection_names("to_arrow()")
    def to_arrow(self, where: str | None = None, params: ParamsLike | None = None) -> Any:
        """The items as a pyarrow.Table: ``id``, ``vector``, the columns, ``payload``.

        Parameters
        ----------
        where, params
            As in `search`; by default all items.
        """
        reader = self._reader()
        return arrow_table(self._parts(reader, where, params, False), self.columns, reader.dimension, reader.text_ids)

    @answers_collection_names("to_pandas()")
    def to_pandas(self, where: str | None = None, params: ParamsLike | None = None) -> Any:
        """The items as a pandas.DataFrame: ``id``, ``vector`` (an array in each row), the columns, ``payload``.

        Parameters
        ----------
        where, params
            As in `search`; by default all items.
        """
        return pandas_frame(self._parts(self._reader(), where, params, True), self.columns)

    def _parts(
        self, reader: _kith.CollectionView, where: str | None, params: ParamsLike | None, loads_json: bool
    ) -> Iterator[Items]:
        """The items of one version in parts; one empty part if there are none."""
        with self._calling() as options:
            ids = reader.ids(item_filter(reader, where, params, None, None), options)
            step = max(1, _EXPORT_BYTES // (4 * max(1, reader.dimension)))
            for first in range(0, max(1, len(ids)), step):
                yield items_of(reader, ids[first : first + step], options, loads_json=loads_json)


def items_of(reader: _kith.CollectionView, ids: GivenIds, options: CallOptions, *, loads_json: bool = True) -> Items:
    found, vectors, columns, payloads = reader.get(ids, options)
    if reader.dtype == "bf16":
        vectors = as_numbers(vectors.view(BFLOAT16), "vectors")
    kinds = {name: kind for name, kind, _ in reader.columns}
    values = {name: values_in_python(column, kinds[name]) if loads_json else column for name, column in columns.items()}
    return Items(plain_ids(found), vectors, values, payloads)


def plain_ids(ids: Any) -> Any:
    """Numbers, the same eight bytes, under numpy's usual name for them."""
    return ids if isinstance(ids, list) else ids.view(np.int64)


def item_filter(
    reader: _kith.CollectionView,
    where: str | None,
    params: ParamsLike | None,
    ids: ItemIdsLike | None,
    filter: Any,
    timeout: SupportsFloat = 60,
) -> _kith.ItemFilter:
    """What a call says of the items that it is about."""
    mask = None
    if filter is not None:
        if isinstance(filter, str):
            raise TypeError("filter is a str; an expression is where=..., and filter a mask or a list of ids")
        array = filter if isinstance(filter, list) else to_numpy(filter, "filter", "numpy.load(path)")
        if _is_mask(array):
            mask = np.ascontiguousarray(array, dtype=bool).view(np.uint8)
            if mask.shape != (reader.size,):
                raise ValueError(f"filter is a mask of shape {mask.shape} and the collection has {reader.size} items")
        elif ids is not None:
            raise ValueError("filter and ids are both ids; give one of them")
        else:
            ids = filter
    given = None if ids is None else as_item_ids(ids, reader.text_ids)[0]
    expression = "" if where is None else text(where, "where", ': "year > ?", with params=(2020,)')
    values, of_queries = _parameters(params)
    if values and not expression:
        raise ValueError("params are the values of a where, and there is none")
    seconds = real_number(timeout, "timeout")
    if not 0 <= seconds < 2**40:
        raise ValueError(f"timeout is {seconds}; it must be a number of seconds")
    return _kith.ItemFilter(expression, values, of_queries, given, mask, seconds)


def _is_mask(array: Any) -> bool:
    if isinstance(array, list):
        return bool(array) and all(isinstance(one, (bool, np.bool_)) for one in array)
    return bool(array.dtype.kind == "b")


def _parameters(params: ParamsLike | None) -> tuple[list[Any], bool]:
    if params is None:
        return [], False
    if isinstance(params, (str, bytes)) or not hasattr(params, "__len__"):
        raise TypeError(f"params is {params!r}; give a sequence with a value for each question mark, such as (2020,)")
    if hasattr(params, "keys"):
        raise TypeError("params is a dict; give a sequence with a value for each question mark of where, in their order")
    if any(isinstance(one, (list, tuple, np.ndarray)) for one in params):
        lists: list[Any] = []
        for query, one in enumerate(params):
            if not isinstance(one, (list, tuple, np.ndarray)):
                raise TypeError(f"params[{query}] is {one!r}; where one query has values of its own, all must have")
            lists.append([as_parameter(value, f"params[{query}][{i}]") for i, value in enumerate(one)])
        return lists, True
    return [as_parameter(value, f"params[{i}]") for i, value in enumerate(params)], False


def narrow(matrix: Any) -> Any:
    """A collection's vectors are f32 at most."""
    if isinstance(matrix, DeviceArray) or matrix.dtype != np.float64:
        return matrix
    with np.errstate(over="ignore"):  # an infinity is refused with its row
        return matrix.astype(np.float32)


def _text_array(texts: list[str], found: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Text ids in the shape of the results; None where nothing was found."""
    names = np.empty(found.size, dtype=object)
    for i, (name, number) in enumerate(zip(texts, found.reshape(-1).tolist())):
        names[i] = name if number >= 0 else None
    return names.reshape(found.shape)
