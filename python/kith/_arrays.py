"""What people pass, as the arrays that the library reads: two axes, one of six dtypes, columns contiguous.

An array that is so already is passed on as it is; the library narrows float64, and may subtract an offset first. The rest is
converted by one copy: wide integers to float64, all else to float32. On the host all become numpy's; bfloat16, which numpy
lacks, goes to the library as its bits in uint16. Arrays in a GPU's memory stay there (`_device_arrays`).
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any, Protocol, TypeAlias, Union

import numpy as np
import numpy.typing as npt

from kith import _kith
from kith._device_arrays import as_device_vectors, check_integers, on_device
from kith._errors import kind_of
from kith._libraries import NO_MEMORY, dlpack_device, library_of


class SupportsDLPack(Protocol):
    """An array of any library that speaks DLPack."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

    def __dlpack_device__(self) -> tuple[Any, Any]: ...


VectorsLike = Union[npt.ArrayLike, SupportsDLPack]
# What comes back: an array of the caller's library (numpy, torch, cupy, jax) or a DeviceArray. They have no type in
# common, and Kith knows none but numpy's, so that a checker takes it for what the caller says.
Array: TypeAlias = Any
Matrix = npt.NDArray[Any]
Vectors = Union[Matrix, _kith.DeviceArray]

# DLPack's numbers for memory that the host can read: CPU, pinned (CUDA, ROCm) and managed.
_HOST_DEVICES = frozenset({1, 3, 11, 13})

# Kith's names of the dtypes that numpy has; bf16 is the one it lacks.
DTYPE_NAMES: dict[np.dtype[Any], str] = {
    np.dtype(np.float32): "f32",
    np.dtype(np.float16): "f16",
    np.dtype(np.uint8): "u8",
    np.dtype(np.int8): "i8",
}

# What the library reads in place, besides bfloat16.
_STORED = frozenset(np.dtype(dtype) for dtype in (np.float32, np.float16, np.uint8, np.int8, np.float64))

# Marks the bits of a bfloat16 array that came through DLPack, to distinguish them from uint16 numbers.
BFLOAT16 = np.dtype([("bfloat16", np.uint16)])


@lru_cache(maxsize=128)  # numpy takes microseconds to name a dtype
def is_bfloat16(dtype: np.dtype[Any]) -> bool:
    """Whether the dtype is ml_dtypes' bfloat16 (that package need not be installed) or `BFLOAT16`."""
    return dtype == BFLOAT16 or (dtype.name == "bfloat16" and dtype.itemsize == 2)


def refuse_kith_file(x: str | bytes | os.PathLike[Any], name: str) -> None:
    """If the path of an index was given in place of vectors, say how to load it."""
    if os.fsencode(x).endswith(b".kith"):
        raise TypeError(f"{name} is the path of a .kith file, not vectors; load an index with kith.load(path)")


def to_numpy(x: VectorsLike, name: str, reader: str = "kith.read_vectors(path)") -> Matrix:
    """`x` as a numpy array of any shape and dtype, without a copy if it is an array.

    For a path, the error says to read it by `reader`.
    """
    if type(x) is np.ndarray:
        return x
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array; Kith knows no missing values: fill them first, with x.filled(...)")
    if isinstance(x, np.ndarray):
        return x
    if isinstance(x, (str, bytes, os.PathLike)):
        refuse_kith_file(x, name)
        raise TypeError(f"{name} is {kind_of(x)}, not an array; read a file with {reader}")
    array = library_of(x).on_host(x, name)
    if array is not None:
        return array
    if hasattr(x, "tocsr"):
        raise TypeError(f"{name} is a sparse matrix; Kith searches dense vectors: convert it with x.toarray()")
    memory = dlpack_device(x)
    if memory is not None:
        return _from_dlpack(x, memory, name)
    if hasattr(x, "__cuda_array_interface__"):
        raise TypeError(_not_on_host(name))
    if x is None:
        raise TypeError(f"{name} is None; it must be an array")
    if type(x).__module__.startswith("kith"):
        hint = "; it is searched with index.search(queries, k)" if hasattr(x, "search") else ""
        raise TypeError(f"{name} is a kith.{type(x).__name__}, not an array of vectors{hint}")
    try:
        return np.asarray(x)
    except ValueError as error:
        if isinstance(x, (list, tuple)):
            raise ValueError(f"{name} is no matrix, its rows have different lengths{_unlike_rows(x)}") from None
        raise ValueError(f"{name} is {kind_of(x)} that is no array of numbers: {error}") from None


def _unlike_rows(x: list[Any] | tuple[Any, ...]) -> str:
    """Which row is the first that differs."""
    lengths = [len(row) if hasattr(row, "__len__") else None for row in x]
    other = next((place for place, length in enumerate(lengths) if length != lengths[0]), None)
    if other is None:
        return " further down"
    told = ["no values" if length is None else f"{length} values" for length in (lengths[0], lengths[other])]
    return f": row 0 has {told[0]} and row {other} {told[1]}"


def _from_dlpack(x: Any, memory: int, name: str) -> Matrix:
    if memory == NO_MEMORY:
        raise TypeError(
            f"{name}: __dlpack_device__ of this {type(x).__name__} does not give the numbers of a kind of memory and "
            "of a device"
        )
    if memory not in _HOST_DEVICES:
        raise TypeError(_not_on_host(name))
    x = library_of(x).plain(x, name)
    try:
        array: Matrix = np.from_dlpack(x)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        try:
            return _kith.bfloat16_bits(x).view(BFLOAT16)
        except TypeError:
            raise TypeError(f"{name}: numpy cannot take this {type(x).__name__} through DLPack ({error})") from error
    return array


def _not_on_host(name: str) -> str:
    return f"{name} lies in a GPU's memory and is wanted on the host: copy it (torch: x.cpu(), cupy: x.get())"


def as_vectors(x: VectorsLike, name: str, stream: int = 0) -> tuple[Vectors, bool]:
    """`x` as a matrix that the library can read in place, and whether that took a copy.

    Arrays in a GPU's memory are put in place for work on that stream.
    """
    if on_device(x):
        device_array = as_device_vectors(x, name, stream)
        _check_axes(device_array[0].shape, name)
        return device_array
    array = to_numpy(x, name)
    _check_axes(array.shape, name)
    return _as_readable(array, name)


def as_rows(x: VectorsLike, name: str, stream: int = 0) -> tuple[Vectors, bool]:
    """The same, where one vector may be given as a 1-D array."""
    if on_device(x):
        device_array = as_device_vectors(x, name, stream)
        _check_rows(device_array[0].shape, name)
        return device_array
    array = to_numpy(x, name)
    _check_rows(array.shape, name)
    return _as_readable(array[np.newaxis, :] if array.ndim == 1 else array, name)


def as_queries(x: VectorsLike, stream: int = 0, name: str = "queries") -> tuple[Vectors, bool]:
    """The queries as such a matrix, and whether they were one alone, given as a 1-D array."""
    device_array = as_device_vectors(x, name, stream)[0] if on_device(x) else None
    array = to_numpy(x, name) if device_array is None else device_array
    _check_rows(array.shape, name)
    axes = len(array.shape)
    if isinstance(array, _kith.DeviceArray):
        return array, axes == 1
    matrix = array[np.newaxis, :] if axes == 1 else array
    return _as_readable(matrix, name)[0], axes == 1


def _check_axes(shape: tuple[int, ...], name: str) -> None:
    if len(shape) != 2:
        raise ValueError(f"{name} has {len(shape)} axes (shape {tuple(shape)}); it must be 2-D, one vector per row")


def _check_rows(shape: tuple[int, ...], name: str) -> None:
    if len(shape) not in (1, 2):
        raise ValueError(
            f"{name} has {len(shape)} axes (shape {tuple(shape)}); it must be 2-D, one vector per row, or 1-D for one vector"
        )


def share_memory(a: Vectors, b: Vectors) -> bool:
    """Whether some byte may belong to both."""
    if isinstance(a, _kith.DeviceArray) or isinstance(b, _kith.DeviceArray):
        return isinstance(a, _kith.DeviceArray) and isinstance(b, _kith.DeviceArray) and _kith.overlap(a, b)
    return np.may_share_memory(a, b)


def _as_readable(array: Matrix, name: str) -> tuple[Matrix, bool]:
    if is_bfloat16(array.dtype):
        array = array.view(np.uint16)
    elif array.dtype not in _STORED:
        return _converted(as_numbers(array, name), name), True
    if not readable_in_place(array):
        return np.array(array, order="C"), True
    return array, False


def _converted(array: Matrix, name: str) -> Matrix:
    """In float64 where float32 may not hold the numbers."""
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8 and array.size > 0:
        check_integers(int(array.min()), int(array.max()), name)
    wide = array.dtype.itemsize > 4 or (array.dtype.kind in "iu" and array.dtype.itemsize == 4)
    return array.astype(np.float64 if wide else np.float32, order="C")


def as_numbers(array: Matrix, name: str) -> Matrix:
    """The array, if it is of real numbers; those of bfloat16, which numpy cannot compute with, as float32."""
    if is_bfloat16(array.dtype):
        return (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    if array.dtype.kind in "fiu":
        return array
    if array.dtype == object and any(isinstance(value, int) and abs(value) >= 2**63 for value in array.flat):
        raise ValueError(f"{name} holds an integer of more than 64 bits; drop digits or give it as float64")
    raise TypeError(
        f"{name} is {array.dtype}; Kith takes float32, float16, bfloat16, uint8 and int8, and converts float64, "
        "longdouble and other integers to float32: convert it to one of these"
    )


def readable_in_place(array: Matrix) -> bool:
    """Whether the columns of every row are contiguous and rows do not overlap; rows may be apart."""
    if not array.flags.aligned:
        return False
    if array.flags.c_contiguous:
        return True
    rows, cols = array.shape
    row_step, column_step = array.strides
    return (cols <= 1 or column_step == array.itemsize) and (
        rows <= 1 or (row_step >= cols * array.itemsize and row_step % array.itemsize == 0)
    )
