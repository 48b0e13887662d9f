"""Arrays in a GPU's memory, which the library reads in place.

A call with such arrays works on one stream: the current one of the first library among theirs that has one. Every
array is taken through DLPack with that stream in hand, so that its own library puts its values in place for it. Nothing
is copied to the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from kith._errors import kind_of
from kith._kith import DeviceArray, c_contiguous, readable_in_place, wait_for_device
from kith._libraries import Library, dlpack_device, library_of

# What the library reads in place, what float32 holds, and what it may not hold.
_STORED = frozenset({"float32", "float16", "bfloat16", "uint8", "int8", "float64"})
_CONVERTED = frozenset({"int16", "uint16"})
_WIDE = frozenset({"int32", "int64"})


def on_device(x: Any) -> bool:
    """Whether `x` is in a CUDA device's memory."""
    return type(x) is not np.ndarray and library_of(x).on_device(x)


def device_number(x: Any) -> int | None:
    """The number of the CUDA device that holds `x`, which supports DLPack there; None for the host."""
    return int(x.__dlpack_device__()[1]) if on_device(x) else None


def stream_of(arrays: Iterable[Any]) -> int:
    """The stream for a call with these arrays: that of the first in a GPU's memory whose library has one.

    Else 0, a stream of Kith's own that is waited for.
    """
    for x in arrays:
        if on_device(x) and (stream := library_of(x).stream(x)) != 0:
            return stream
    return 0


def wait_if_mixed(arrays: Sequence[Any]) -> None:
    """At the end of a call: arrays of several libraries may be freed on several streams, so all work is waited for."""
    if len(arrays) < 2:
        return
    given = [x for x in arrays if on_device(x)]
    if len({id(library_of(x)) for x in given}) > 1:
        wait_for_device(next(int(x.__dlpack_device__()[1]) for x in given if dlpack_device(x) is not None))


def as_device_vectors(x: Any, name: str, stream: int) -> tuple[DeviceArray, bool]:
    """`x`, of one axis or more, in a form that the library can read, and whether that took a copy on the device."""
    library = library_of(x)
    x = library.plain(x, name)
    array = _known(library.export(x, stream, name), name)
    if array.dtype in _WIDE:
        wide = library.computes and library.has_float64()
        if library.computes and 0 not in array.shape:
            check_integers(int(x.min()), int(x.max()), name, float32=not wide)
        return library.export(library.to_float64(x, name) if wide else library.to_float32(x, name), stream, name), True
    if array.dtype in _CONVERTED:
        return library.export(library.to_float32(x, name), stream, name), True
    if len(array.shape) in (1, 2) and not readable_in_place(array):
        return library.export(library.packed(x, name), stream, name), True
    return array, False


def _known(array: DeviceArray, name: str) -> DeviceArray:
    if array.dtype in _STORED | _CONVERTED | _WIDE:
        return array
    raise TypeError(
        f"{name} is {array.dtype}; Kith takes float32, float16, bfloat16, uint8 and int8, and converts float64, int16, "
        "uint16, int32 and int64 to float32: convert it to one of these"
    )


def check_integers(smallest: int, largest: int, name: str, *, float32: bool = False) -> None:
    """ValueError for integers that float64, in which they are subtracted, may not hold; or float32 where that is all."""
    bits = 24 if float32 else 53
    if largest > 2**bits or smallest < -(2**bits):
        shown = largest if largest > 2**bits else smallest
        raise ValueError(
            f"{name} holds the integer {shown}; {'float32' if float32 else 'float64'} holds those up to 2**{bits} alone: "
            "subtract an offset that all values have in common, or drop digits, before you pass it"
        )


def writable_on_device(x: Any, name: str, dtype: str, axes: int, stream: int) -> DeviceArray:
    """A caller's array for results. Its lengths are checked once they are known."""
    library = library_of(x)
    if not library.writable:
        raise TypeError(f"out: {name} is {kind_of(x)}, which nobody may write to; leave out away")
    array = library.export(library.plain(x, f"out: {name}"), stream, f"out: {name}")
    if array.dtype != dtype:
        raise TypeError(f"out: {name} must be {dtype}, not {array.dtype}")
    if len(array.shape) != axes:
        raise ValueError(f"out: {name} has shape {array.shape}; it must be {'(k,)' if axes == 1 else '(queries, k)'}")
    if not c_contiguous(array):
        raise ValueError(f"out: {name} must be C-contiguous")
    return array


def fill_on_device(
    like: Any,
    shape: tuple[int, int],
    device: int,
    stream: int,
    fill: Callable[[DeviceArray], object],
    dtype: str = "float32",
) -> Any:
    """A new matrix of the library of `like`, in its memory, filled by `fill`."""
    library = library_of(like)
    matrix = library.empty(shape, dtype, device)
    fill(library.export(matrix, stream, "the result"))
    return library.finished(matrix)
