"""The settings that every call takes, checked and handed to the compiled half."""

from __future__ import annotations

import operator
import re
from typing import SupportsFloat, SupportsIndex

import numpy as np

from kith._device_arrays import on_device, stream_of, wait_if_mixed
from kith._errors import kind_of
from kith._kith import CallOptions
from kith._progress import Progress, ProgressBar, reporter
from kith._typing import ByteSize, ByteSizes, DeviceNames

_LARGEST = 2**63 - 1
_DEVICES = ', such as "cpu" or "cuda:0"'
_BYTES = ' of bytes, such as 2**30, or text, such as "1G"'


def whole_number(value: SupportsIndex, name: str, unit: str = "") -> int:
    """`value` as an int that the library can hold; a bool or a float is a TypeError."""
    if type(value) is int and -_LARGEST <= value <= _LARGEST:  # what nearly all give
        return value
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} is {value}; it must be a whole number")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {kind_of(value)}; it must be a whole number{unit}") from None
    if abs(number) > _LARGEST:
        shown = f"= {number}" if number.bit_length() < 256 else f"has {number.bit_length()} bits and"
        raise ValueError(f"{name} {shown} is too large")
    return number


def byte_size(value: ByteSize, name: str) -> int:
    """`value` as a number of bytes: an int, or text as the program takes it, "512M", "1.5G", "2GiB", "100000"."""
    if not isinstance(value, str):
        return whole_number(value, name, _BYTES)
    match = re.fullmatch(r"([0-9]+\.?[0-9]*|\.[0-9]+)(?:([kmgt]?)(?:(?<=[kmgt])ib)?|b)", value, re.IGNORECASE | re.ASCII)
    if match is None:
        raise ValueError(
            f"{name} {value!r} is not a byte size; write a number, with one of the units K, M, G, T (powers of 1024) or none: "
            '"512M", "1.5G", "2GiB", "100000"'
        )
    size = float(match[1]) * 1024.0 ** (" kmgt".index((match[2] or " ").lower()))
    if not 1 <= size <= 2**60:
        raise ValueError(f"{name} {value!r} is out of range; allowed are 1 byte to {2**20}T")
    return int(size)


def seed_number(seed: SupportsIndex) -> int:
    """The seed of random numbers, which is not negative."""
    number = whole_number(seed, "seed")
    if number < 0:
        raise ValueError(f"seed = {number}; it must not be negative")
    return number


def real_number(value: SupportsFloat, name: str) -> float:
    """`value` as a float; a bool, a string or an array of several is a TypeError."""
    if isinstance(value, (bool, np.bool_, str, bytes)):
        raise TypeError(f"{name} is {value!r}; it must be a number")
    try:
        return float(value)
    except TypeError:
        raise TypeError(f"{name} is {kind_of(value)}; it must be a number") from None
    except OverflowError:
        raise ValueError(f"{name} is too large for a float") from None


def flag(value: bool, name: str) -> bool:
    """`value`, which must be True or False: a truthy array or string is a mistake."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise TypeError(f"{name} is {value!r}; it must be True or False")


def text(value: str, name: str, hint: str = "") -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} is {kind_of(value)}; it must be a str{hint}")
    return value


def device_names(device: DeviceNames) -> str:
    """Devices as the library names them, of a list too; which there are is not asked."""
    if isinstance(device, (list, tuple)):
        if not device:
            raise ValueError('device is an empty list; name at least one device, or give "auto"')
        return ",".join(text(one, "device", _DEVICES) for one in device)
    return text(device, "device", _DEVICES)  # type: ignore[arg-type]


def byte_sizes(value: ByteSizes | None, name: str) -> list[int]:
    """A limit for all devices, or one for each."""
    if value is None:
        return []
    if isinstance(value, (list, tuple)):
        return [byte_size(one, f"{name}[{i}]") for i, one in enumerate(value)]
    return [byte_size(value, name)]  # type: ignore[arg-type]


def check_device(device: DeviceNames) -> str:
    """Checks the name now rather than in the first call that uses it."""
    name = device_names(device)
    CallOptions(name)
    return name


class calling:  # noqa: N801
    """The settings of one call, which is made in the block, on the stream of the first array in a GPU's memory.

    A class, since a generator of contextlib takes several times as long.
    """

    __slots__ = ("_arrays", "_options", "_report")

    def __init__(
        self,
        device: DeviceNames,
        threads: SupportsIndex = 0,
        memory_limit: ByteSize | None = None,
        device_memory_limit: ByteSizes | None = None,
        progress: Progress = False,
        *,
        arrays: tuple[object, ...] = (),
    ) -> None:
        self._arrays = [x for x in arrays if on_device(x)]
        self._report = reporter(progress)
        settings = (
            device_names(device),
            whole_number(threads, "threads"),
            None if memory_limit is None else byte_size(memory_limit, "memory_limit"),
            byte_sizes(device_memory_limit, "device_memory_limit"),
        )
        self._options = CallOptions(*settings, self._report, stream_of(self._arrays))

    def __enter__(self) -> CallOptions:
        return self._options

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                wait_if_mixed(self._arrays)
        finally:
            if isinstance(self._report, ProgressBar):
                self._report.close()
