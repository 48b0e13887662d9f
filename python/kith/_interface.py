"""What an array says by `__cuda_array_interface__`, checked: it may have been written by hand.

What is asked for is of the right type and can be: an address, lengths and strides that 64 bits hold, and bytes that all
lie within them. Whether they are there nobody can tell but the driver.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from kith._errors import kind_of
from kith._kith import DeviceArray, import_interface

_LARGEST = 2**63 - 1
_ADDRESSES = 2**64


def from_interface(x: Any, name: str) -> DeviceArray:
    """`x`, which has that attribute. TypeError or ValueError, with the argument's name, if it is invalid."""
    told = x.__cuda_array_interface__
    where = f"{name}: __cuda_array_interface__"
    if not isinstance(told, dict):
        raise TypeError(f"{where} is {kind_of(told)}; it must be a dict")
    missing = [key for key in ("data", "shape", "typestr") if key not in told]
    if missing:
        raise TypeError(f"{where} has no {missing[0]!r}")
    if told.get("mask") is not None:
        raise TypeError(f"{name} has a mask; Kith knows no missing values: fill them first")
    typestr = told["typestr"]
    if not isinstance(typestr, str):
        raise TypeError(f"{where}: typestr is {kind_of(typestr)}; it must be a str")
    data, read_only = _pointer(told["data"], where)
    shape = _numbers(told["shape"], "shape", where)
    strides = None if told.get("strides") is None else _numbers(told["strides"], "strides", where)
    _check_layout(data, shape, strides, _size_of(typestr), where)
    return import_interface(data, read_only, shape, strides, typestr, x, name)


def _pointer(data: Any, where: str) -> tuple[int, bool]:
    if not isinstance(data, (tuple, list)) or len(data) != 2 or not isinstance(data[1], (bool, np.bool_, int)):
        raise TypeError(f"{where}: data must be an address and whether it may only be read")
    (address,) = _numbers(data[:1], "data", where)
    if not 0 <= address < _ADDRESSES:
        raise ValueError(f"{where}: data is {hex(address)[:24]}, which is no address")
    return address, bool(data[1])


def _numbers(given: Any, key: str, where: str) -> list[int]:
    if isinstance(given, (tuple, list)):
        try:
            return [operator.index(number) for number in given]
        except TypeError:
            pass
    raise TypeError(f"{where}: {key} must be whole numbers, not {type(given).__name__} {given!r:.40}")


def _size_of(typestr: str) -> int:
    """Bytes of an element, as far as they matter here; an unknown typestr is refused elsewhere."""
    digits = typestr[2:]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 4 else 1


def _check_layout(data: int, shape: list[int], strides: list[int] | None, size: int, where: str) -> None:
    if any(not 0 <= length <= _LARGEST for length in shape):
        raise ValueError(f"{where}: shape has a length below 0 or beyond 64 bits")
    if strides is None:
        strides = [size] * len(shape)
        for axis in range(len(shape) - 1, 0, -1):
            strides[axis - 1] = strides[axis] * max(shape[axis], 1)
    if len(strides) != len(shape):
        raise ValueError(f"{where} has {len(strides)} strides for {len(shape)} axes; give one for each, or None")
    if any(abs(step) > _LARGEST for step in strides):
        raise ValueError(f"{where}: a stride is beyond 64 bits")
    if 0 in shape:
        return
    if data == 0:
        raise ValueError(f"{where}: data is 0, but the array is not empty")
    steps = [(length - 1) * step for length, step in zip(shape, strides)]
    first = data + sum(step for step in steps if step < 0)
    last = data + sum(step for step in steps if step > 0) + size
    if first < 0 or last > _ADDRESSES or last - first > _LARGEST:
        raise ValueError(f"{where}: an array of that shape, with those strides, fits into no memory")
