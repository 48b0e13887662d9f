"""Arrays in a GPU's memory, as the library reads them where they lie.

A call with such arrays works on one stream: the current one of the first library among theirs that has one. Every
array is taken through DLPack with that stream in hand, so that its own library puts its values in place for it. Nothing
is copied to the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from kith._kith import DeviceArray, c_contiguous, readable_in_place, wait_for_device
from kith._libraries import Library, dlpack_device, library_of
from kith._narrowing import (
    PLAIN,
    SHIFTABLE,
    Narrowing,
    Survey,
    check_integers,
    sample_step,
    warn_of_rounding,
)

# What the library reads in place, what float32 holds, and what it may not hold.
_STORED = frozenset({"float32", "float16", "bfloat16", "uint8", "int8"})
_CONVERTED = frozenset({"int16", "uint16"})
_WIDE = frozenset({"float64", "int32", "int64"})


def on_device(x: Any) -> bool:
    """Whether `x` lies in a CUDA device's memory."""
    return type(x) is not np.ndarray and library_of(x).on_device(x)


def device_number(x: Any) -> int | None:
    """The number of the CUDA device in whose memory `x`, which speaks DLPack there, lies; None on the host."""
    return int(x.__dlpack_device__()[1]) if on_device(x) else None


def stream_of(arrays: Iterable[Any]) -> int:
    """The stream for a call with these arrays: that of the first in a GPU's memory whose library has one.

    Else 0, a stream of Kith's own that is waited for.
    """
    for x in arrays:
        if on_device(x) and (stream := library_of(x).stream(x)) != 0:
            return stream
    return 0


def settle(arrays: Sequence[Any]) -> None:
    """At the end of a call: arrays of several libraries may be freed on several streams, so all work is waited for."""
    if len(arrays) < 2:
        return
    given = [x for x in arrays if on_device(x)]
    if len({id(library_of(x)) for x in given}) > 1:
        wait_for_device(next(int(x.__dlpack_device__()[1]) for x in given if dlpack_device(x) is not None))


def as_device_vectors(
    x: Any, name: str, stream: int, narrowing: Narrowing = PLAIN, *, warns: bool = True
) -> tuple[DeviceArray, bool]:
    """`x`, of one axis or more, where the library can read it, and whether that took a copy on the device.

    With `warns`, what is rounded is looked at by a sample of its rows, which is copied to the host.
    """
    library = library_of(x)
    x = library.plain(x, name)
    return _taken(library, x, _known(library.export(x, stream, name), name), name, stream, narrowing, warns=warns)


def as_device_base(x: Any, name: str, metric: str, stream: int) -> tuple[DeviceArray, bool, Narrowing]:
    """The same of the vectors that are searched, and how those that are compared with them are to be narrowed."""
    library = library_of(x)
    x = library.plain(x, name)
    array = _known(library.export(x, stream, name), name)
    narrowing = PLAIN
    known = library.computes and library.has_float64()
    if array.dtype in _WIDE and len(array.shape) == 2 and metric in SHIFTABLE and known:
        narrowing = _survey(library, x, name).narrowing(metric)
        if narrowing.offset is not None and not _is_exact(library, x, name, narrowing):
            narrowing = PLAIN if _is_exact(library, x, name, PLAIN) else narrowing
    return *_taken(library, x, array, name, stream, narrowing, warns=True), narrowing


def _known(array: DeviceArray, name: str) -> DeviceArray:
    if array.dtype in _STORED | _CONVERTED | _WIDE:
        return array
    raise TypeError(
        f"{name} is {array.dtype}; Kith takes float32, float16, bfloat16, uint8 and int8, and converts float64, int16, "
        "uint16, int32 and int64 to float32: convert it to one of these"
    )


def _taken(
    library: Library, x: Any, array: DeviceArray, name: str, stream: int, narrowing: Narrowing, *, warns: bool
) -> tuple[DeviceArray, bool]:
    offset = narrowing.offset
    if offset is not None and (not array.shape or array.shape[-1] != len(offset)):  # the library will say so
        narrowing, offset = PLAIN, None
    if library.computes and 0 not in array.shape and (array.dtype in _WIDE or offset is not None):
        if array.dtype in _WIDE and array.dtype != "float64":
            check_integers(int(x.min()), int(x.max()), name, float32=not library.has_float64())
        if warns and len(array.shape) == 2 and library.has_float64():
            _warn_if_rounded(library, x, name, narrowing, wide=array.dtype in _WIDE)
    if offset is not None:
        shifted = library.to_float64(x, name) - library.from_host(offset, x)
        return library.export(library.to_float32(shifted, name), stream, name), True
    if array.dtype not in _STORED:
        return library.export(library.to_float32(x, name), stream, name), True
    if len(array.shape) in (1, 2) and not readable_in_place(array):
        return library.export(library.packed(x, name), stream, name), True
    return array, False


def _survey(library: Library, x: Any, name: str) -> Survey:
    return Survey(library.to_host(library.to_float64(x[:: sample_step(*x.shape)], name)), x.shape[0])


def _is_exact(library: Library, x: Any, name: str, narrowing: Narrowing) -> bool:
    wide = library.to_float64(x, name)
    if narrowing.offset is not None:
        wide = wide - library.from_host(narrowing.offset, x)
    return bool((library.to_float64(library.to_float32(wide, name), name) == wide).all())


def _warn_if_rounded(library: Library, x: Any, name: str, narrowing: Narrowing, *, wide: bool) -> None:
    if _survey(library, x, name).rounds_too_much(narrowing) and not _is_exact(library, x, name, narrowing):
        warn_of_rounding(name, wide=wide)


def writable_on_device(x: Any, name: str, dtype: str, axes: int, stream: int) -> DeviceArray:
    """An array of the caller's that results can be written to. Its lengths are checked where they are known."""
    library = library_of(x)
    if not library.writable:
        raise TypeError(f"out: {name} is a {type(x).__name__}, which nobody may write to; leave out away")
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
    """A fresh matrix of the library of `like`, filled by `fill` where that lies."""
    library = library_of(like)
    matrix = library.empty(shape, dtype, device)
    fill(library.export(matrix, stream, "the result"))
    return library.finished(matrix)
