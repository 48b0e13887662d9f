"""Tables of pandas and pyarrow to and from collections. Neither is imported but where a table of it is asked for."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

VECTOR = "vector"
ID = "id"
PAYLOAD = "payload"


class GivenTable(NamedTuple):
    """The parts of a table, as `Collection.add` takes them."""

    vectors: npt.NDArray[Any]
    ids: Any
    columns: dict[str, Any]
    payloads: Any


def as_table(x: Any, json_columns: Collection[str] = ()) -> GivenTable | None:
    """A data frame of pandas', or a table or record batch of pyarrow's, taken apart; None for what is neither.

    In pyarrow's, text in one of `json_columns` is JSON, as `arrow_table` writes it.
    """
    if _is_of(x, "pandas", ("DataFrame",)):
        vectors = _vectors_of_objects(_column(x, VECTOR, list(x.columns)).tolist())
        others = {str(name): x[name] for name in x.columns if name not in (VECTOR, ID, PAYLOAD)}
        return GivenTable(
            vectors,
            x[ID] if ID in x.columns else None,
            others,
            x[PAYLOAD].tolist() if PAYLOAD in x.columns else None,
        )
    if _is_of(x, "pyarrow", ("Table", "RecordBatch")):
        names = x.schema.names
        vectors = _vectors_of_arrow(_column(x, VECTOR, names))
        others = {name: x.column(name).to_pylist() for name in names if name not in (VECTOR, ID, PAYLOAD)}
        for name in others:
            if name in json_columns and str(x.schema.field(name).type) in ("string", "large_string", "string_view"):
                others[name] = _loaded(others[name], name)
        return GivenTable(
            vectors,
            x.column(ID).to_pylist() if ID in names else None,
            others,
            x.column(PAYLOAD).to_pylist() if PAYLOAD in names else None,
        )
    return None


def _loaded(texts: list[str | None], name: str) -> list[Any]:
    """The values of a column of JSON texts."""
    values: list[Any] = []
    for row, text in enumerate(texts):
        if text is None:
            values.append(None)
            continue
        try:
            values.append(json.loads(text))
        except ValueError as error:
            raise ValueError(f"column {name!r}, row {row}: {text[:60]!r} is no JSON ({error})") from None
    return values


def _is_of(x: Any, library: str, names: tuple[str, ...]) -> bool:
    """Whether it is one of these classes; who passes a table has loaded its library."""
    module = sys.modules.get(library)
    return module is not None and any(isinstance(x, getattr(module, name)) for name in names if hasattr(module, name))


def _column(x: Any, name: str, names: list[Any]) -> Any:
    if name not in names:
        shown = ", ".join(map(str, names[:10]))
        raise ValueError(f"the table has no column {name!r} of vectors; it has {shown}: rename the one with the vectors")
    return x[name] if not hasattr(x, "schema") else x.column(name)


def _vectors_of_objects(values: list[Any]) -> npt.NDArray[Any]:
    if not values:
        return np.empty((0, 0), np.float32)
    try:
        return np.stack([np.asarray(value) for value in values])
    except ValueError as error:
        raise ValueError(f"column {VECTOR!r}: the vectors differ in length, or one is missing ({error})") from None


def _vectors_of_arrow(column: Any) -> npt.NDArray[Any]:
    lists = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    if hasattr(lists, "num_chunks"):
        lists = lists.chunk(0) if lists.num_chunks == 1 else _pyarrow().concat_arrays(lists.chunks)
    if lists.null_count:
        raise ValueError(f"column {VECTOR!r} has missing vectors; fill or drop them")
    if len(lists) == 0:
        return np.empty((0, 0), np.float32)
    values = lists.flatten()
    if values.null_count:
        raise ValueError(f"column {VECTOR!r} has missing values; fill or drop them")
    flat: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
    if len(flat) % len(lists) != 0 or any(len(one) * len(lists) != len(flat) for one in (lists[0], lists[-1])):
        raise ValueError(f"column {VECTOR!r}: the vectors differ in length")
    if not hasattr(lists.type, "list_size"):
        lengths = np.diff(lists.offsets.to_numpy())
        if (lengths != lengths[0]).any():
            raise ValueError(f"column {VECTOR!r}: the vectors differ in length")
    return flat.reshape(len(lists), -1)


_ARROW_TYPES = {"int": "int64", "real": "float64", "text": "string", "bool": "bool_", "json": "string"}


def arrow_table(parts: Iterator[Any], columns: dict[str, str], dimension: int, text_ids: bool) -> Any:
    """A pyarrow.Table of `Items`, which come in parts: id, vector, the columns, payload. JSON columns are text."""
    pa = _pyarrow()
    types = {name: getattr(pa, _ARROW_TYPES[kind])() for name, kind in columns.items()}
    batches = []
    schema = None
    for items in parts:
        flat = np.ascontiguousarray(items.vectors).reshape(-1)
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(flat), dimension)
        arrays = [pa.array(items.ids, pa.string() if text_ids else pa.int64()), vectors]
        arrays += [pa.array(items.columns[name], types[name]) for name in columns]
        arrays.append(pa.array(items.payloads, pa.binary()))
        schema = pa.schema(list(zip([ID, VECTOR, *columns, PAYLOAD], [array.type for array in arrays])))
        batches.append(pa.record_batch(arrays, schema=schema))
    return pa.Table.from_batches(batches, schema)


def pandas_frame(parts: Iterator[Any], columns: dict[str, str]) -> Any:
    """A pandas.DataFrame of `Items`, which come in parts; the column of vectors holds an array for each row."""
    try:
        import pandas as pd  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        raise ImportError("to_pandas() makes a table of pandas, which is missing: pip install pandas") from None
    frames = []
    for items in parts:
        data: dict[str, Any] = {ID: items.ids, VECTOR: list(items.vectors)}
        for name, kind in columns.items():
            data[name] = pd.array(items.columns[name], dtype="Int64") if kind == "int" else items.columns[name]
        data[PAYLOAD] = items.payloads
        frames.append(pd.DataFrame(data))
    return frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)


def _pyarrow() -> Any:
    try:
        import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        raise ImportError("to_arrow() makes a table of pyarrow, which is missing: pip install pyarrow") from None
    return pyarrow
