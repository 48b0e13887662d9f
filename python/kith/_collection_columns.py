"""Ids, columns and payloads of a collection: what people pass as what the library takes, and back."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from kith._errors import kind_of

# One id is an int or a str; several are a list of them or an array.
ItemId = Union[int, str]
ItemIdsLike = Union[ItemId, Sequence[int], Sequence[str], npt.NDArray[Any]]
# As the library takes them.
GivenIds = Union[npt.NDArray[np.int64], list[str]]
# "int", "real", "text", "bool", "json", or Python's types for them.
ColumnTypeLike = Union[str, type]
ColumnsLike = Mapping[str, ColumnTypeLike]

COLUMN_TYPES: dict[Any, str] = {int: "int", float: "real", str: "text", bool: "bool", dict: "json", list: "json"}


def column_type(given: ColumnTypeLike, name: str) -> str:
    if isinstance(given, str):
        return given
    if isinstance(given, type) and given in COLUMN_TYPES:
        return COLUMN_TYPES[given]
    raise TypeError(
        f"column {name!r} is of type {given!r}; it must be int, float, str, bool or dict (any JSON), or their names "
        '"int", "real", "text", "bool", "json"'
    )


def as_item_ids(ids: Any, text_ids: bool, name: str = "ids") -> tuple[GivenIds, bool]:
    """The ids as the library takes them, and whether it was one alone."""
    single = isinstance(ids, (str, int, np.integer)) and not isinstance(ids, bool)
    given = [ids] if single else ids
    if hasattr(given, "tolist"):  # numpy, pandas
        kind = getattr(getattr(given, "dtype", None), "kind", "O")
        if kind in "iu" and not text_ids:
            return _as_int64(np.asarray(given), name), single
        given = given.tolist()
    if isinstance(given, (bytes, Mapping)) or not isinstance(given, Iterable):
        raise TypeError(f"{name} is {kind_of(ids)}; it must be an id or a list of ids")
    values = list(given)
    if text_ids:
        for i, value in enumerate(values):
            if not isinstance(value, str):
                raise TypeError(f"{name}[{i}] is {value!r}; the ids of this collection are str")
        return [str(value) for value in values], single
    numbers = []
    for i, value in enumerate(values):
        if isinstance(value, (str, bool, np.bool_)):
            raise TypeError(f'{name}[{i}] is {value!r}; the ids of this collection are int (kith.open(..., ids="text") for str)')
        try:
            numbers.append(operator.index(value))
        except TypeError:
            raise TypeError(f"{name}[{i}] is {kind_of(value)}; the ids of this collection are int") from None
        if not -(2**63) <= numbers[-1] < 2**63:
            raise ValueError(f"{name}[{i}] is {value}; ids are int64")
    return np.array(numbers, dtype=np.int64), single


def _as_int64(array: npt.NDArray[Any], name: str) -> npt.NDArray[np.int64]:
    if array.ndim != 1:
        raise ValueError(f"{name} has {array.ndim} axes (shape {array.shape}); it must be 1-D, or one id")
    if array.dtype == np.uint64 and array.size > 0 and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} holds {array.max()}; ids are int64")
    return np.ascontiguousarray(array, dtype=np.int64)


def column_values(values: Any, kind: str, name: str, rows: int) -> list[Any]:
    """The values of a column; one str or number stands for every row."""
    if isinstance(values, (str, int, float, bool, np.generic)) or values is None or (kind == "json" and isinstance(values, dict)):
        given = [values] * rows
    elif hasattr(values, "tolist"):
        given = values.tolist()
    elif isinstance(values, Iterable):
        given = list(values)
    else:
        raise TypeError(f"column {name!r} is {kind_of(values)}; give a list of values, one for each vector")
    if len(given) != rows:
        raise ValueError(f"column {name!r} has {len(given)} values, and there are {rows} vectors; give one for each")
    convert = _CONVERTED[kind]
    converted = []
    for row, value in enumerate(given):
        try:
            converted.append(None if is_missing(value) else convert(value))
        except (TypeError, ValueError) as error:
            raise type(error)(f"column {name!r}, row {row}: {error}") from None
    return converted


def is_missing(value: Any) -> bool:
    """None, and what pandas has in its place: NaN, NaT, NA."""
    if value is None:
        return True
    if isinstance(value, (float, np.floating)):
        return math.isnan(value)
    return type(value).__name__ in ("NAType", "NaTType")


def _integer(value: Any) -> int:
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{value!r} is no int")
    if isinstance(value, float) and value.is_integer():  # what pandas makes of ints where one is missing
        return int(value)
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{value!r} is no int") from None
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{value!r} has more than 64 bits")
    return number


def _real(value: Any) -> float:
    if isinstance(value, (bool, np.bool_, str, bytes)):
        raise TypeError(f"{value!r} is no number")
    try:
        return float(value)
    except TypeError:
        raise TypeError(f"{value!r} is no number") from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no str")
    return str(value)


def _boolean(value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{value!r} is no bool")
    return bool(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


_CONVERTED = {"int": _integer, "real": _real, "text": _text, "bool": _boolean, "json": _json}


def values_in_python(values: list[Any], kind: str) -> list[Any]:
    """What the library returns of a column."""
    return values if kind != "json" else [None if value is None else json.loads(value) for value in values]


def as_payloads(payloads: Any, rows: int) -> list[bytes] | None:
    if payloads is None:
        return None
    if isinstance(payloads, (bytes, bytearray, memoryview, str)):
        raise TypeError("payloads is one value; give a list of bytes, one for each vector")
    given = list(payloads)
    if len(given) != rows:
        raise ValueError(f"{len(given)} payloads and {rows} vectors; give one for each, b'' for none")
    for i, payload in enumerate(given):
        if payload is None:
            given[i] = b""
        elif isinstance(payload, (bytes, bytearray, memoryview)):
            given[i] = bytes(payload)
        else:
            hint = "; encode it: text.encode()" if isinstance(payload, str) else ""
            hint = "; encode it: json.dumps(...).encode(), or give columns=" if isinstance(payload, dict) else hint
            raise TypeError(f"payloads[{i}] is {kind_of(payload)}; payloads are bytes{hint}")
    return given


def as_parameter(value: Any, place: str) -> Any:
    """A parameter of a `where`."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{place} is {kind_of(value)}; it must be an int, float, str, bool or None")
