"""The library of an array: its stream, its memory, and how to make results its arrays.

None is imported here: who passes an array has loaded its library.
"""

from __future__ import annotations

import operator
import sys
from abc import ABC, abstractmethod
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from kith._interface import from_interface
from kith._kith import DeviceArray, copy_to_host, empty_on_device, first_row, import_dlpack, wait_for_device

# CUDA's and DLPack's number of the legacy default stream, which a library calls 0.
LEGACY_STREAM = 1
# DLPack's word to a library that no stream need wait for another.
NO_WAIT = -1

# DLPack's number of a CUDA device's memory, and one that it has for none.
_CUDA = 2
NO_MEMORY = 0


def dlpack_device(x: Any) -> int | None:
    """DLPack's number for the kind of memory of `x`.

    None if it does not support DLPack; `NO_MEMORY` if its answer is not a pair of numbers.
    """
    if isinstance(x, np.ndarray) or not (hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__")):
        return None
    told: Any = x.__dlpack_device__() if callable(x.__dlpack_device__) else None
    try:
        kind, number = (operator.index(part) for part in told)
    except (TypeError, ValueError):
        return NO_MEMORY
    return kind if kind != _CUDA or 0 <= number < 2**31 else NO_MEMORY


class Library(ABC):
    """What Kith asks of one, and what most have in common. `x` is always an array of that library."""

    writable = True  # whether Kith may fill an array of it in a GPU's memory
    computes = True  # whether its arrays can be compared and joined, also there

    @abstractmethod
    def on_device(self, x: Any) -> bool:
        """Whether `x` is in a CUDA device's memory."""

    def plain(self, x: Any, name: str) -> Any:
        """`x`, or a readable array with the same values; TypeError for an array that cannot be read."""
        return x

    def stream(self, x: Any) -> int:
        """The library's stream on the device of `x`; 0 if it does not expose one."""
        return 0

    def on_host(self, x: Any, name: str) -> npt.NDArray[Any] | None:
        """`x` as a numpy array in the same memory, if that is faster than DLPack; else None."""
        return None

    @abstractmethod
    def export(self, x: Any, stream: int, name: str) -> DeviceArray:
        """`x`, in a GPU's memory, with its values ready for work on that stream.

        TypeError or ValueError, with the argument's name, if its memory is not what it claims.
        """

    @abstractmethod
    def to_float32(self, x: Any, name: str) -> Any:
        """A converted copy."""

    def has_float64(self) -> bool:
        return True

    def to_float64(self, x: Any, name: str) -> Any:
        """The same in float64, of a library that computes and has it."""
        raise NotImplementedError

    @abstractmethod
    def packed(self, x: Any, name: str) -> Any:
        """A C-contiguous copy."""

    def empty(self, shape: tuple[int, ...], dtype: str, device: int) -> Any:
        """An array for a result, of one row or of several, which `export` takes; here in Kith's own memory."""
        rows = empty_on_device(1 if len(shape) == 1 else shape[0], shape[-1], dtype, device)
        return first_row(rows) if len(shape) == 1 else rows

    def finished(self, result: Any) -> Any:
        """What `empty` made, filled, as the user gets it."""
        return result

    @abstractmethod
    def from_host(self, array: Any, like: Any) -> Any:
        """A new numpy array as an array of this library, in the memory of `like`."""

    @abstractmethod
    def to_host(self, x: Any) -> npt.NDArray[Any]:
        """`x` as a numpy array; a copy if it is in a GPU's memory."""

    @abstractmethod
    def beside(self, left: Any, right: Any) -> Any:
        """The columns of two matrices as one."""

    def lent(self, x: Any, name: str) -> Any:
        """`x`, on the host, as a numpy array to be filled; None if that is impossible."""
        return None

    @abstractmethod
    def without_self(self, offsets: Any, ids: Any, distances: Any) -> tuple[Any, Any, Any]:
        """What a range search has found, in a GPU's memory, less row q among that of query q."""


# Where a matrix in a GPU's memory begins, its rows and columns, and the library's name of its dtype.
TensorPlace = tuple[int, int, int, str]


class Torch(Library):
    def __init__(self) -> None:
        self._dtypes: dict[Any, str] = {}

    def on_device(self, x: Any) -> bool:
        return bool(x.is_cuda)

    def place(self, x: Any) -> TensorPlace | None:
        """Of a plain matrix in a GPU's memory whose rows follow each other; None where `x` is something else."""
        torch = sys.modules["torch"]
        if type(x) is not torch.Tensor or not x.is_cuda or x.layout is not torch.strided or x.requires_grad:
            return None
        if x.dim() != 2 or x.is_neg() or not x.is_contiguous():
            return None
        if not self._dtypes:
            names = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "uint8": "u8", "int8": "i8"}
            self._dtypes = {getattr(torch, name): ours for name, ours in names.items()}
        dtype = self._dtypes.get(x.dtype)
        return None if dtype is None else (x.data_ptr(), *x.shape, dtype)

    def fresh_neighbors(self, queries: Any, k: int) -> tuple[Any, Any]:
        """Empty arrays for (ids, distances), in the memory of the queries."""
        torch = sys.modules["torch"]
        shape = (queries.shape[0], k)
        return queries.new_empty(shape, dtype=torch.int64), queries.new_empty(shape, dtype=torch.float32)

    def fresh_distances(self, x: Any, columns: int) -> Any:
        """An empty float32 tensor on the device of `x`, with the given columns for each row of `x`."""
        return x.new_empty((x.shape[0], columns), dtype=sys.modules["torch"].float32)

    def fresh_labels(self, x: Any) -> Any:
        """An empty int32 tensor with a number for each row of `x`, on its device."""
        return x.new_empty((x.shape[0],), dtype=sys.modules["torch"].int32)

    def plain(self, x: Any, name: str) -> Any:
        if x.layout is not sys.modules["torch"].strided:
            raise TypeError(f"{name} is a sparse tensor; Kith searches dense vectors: convert it with x.to_dense()")
        if x.requires_grad:
            raise TypeError(f"{name} requires grad, and Kith's results carry no gradient: pass x.detach()")
        return x.resolve_neg()

    def stream(self, x: Any) -> int:
        torch = sys.modules["torch"]
        # Undocumented; torch's own compiled code calls it. It returns the handle without creating a Stream object.
        raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
        if raw_stream is None:
            return int(torch.cuda.current_stream(x.device).cuda_stream) or LEGACY_STREAM
        return int(raw_stream(x.get_device())) or LEGACY_STREAM

    def export(self, x: Any, stream: int, name: str) -> DeviceArray:
        torch = sys.modules["torch"]
        if stream != self.stream(x):
            return import_dlpack(x.__dlpack__(stream=stream or LEGACY_STREAM), name)
        # In the order of its own stream the values are in place. to_dlpack is __dlpack__ without the wait for another and
        # without the checks that plain() has made; a class derived from Tensor may do more there.
        to_dlpack = getattr(torch.utils.dlpack, "to_dlpack", None)
        if to_dlpack is not None and type(x) is torch.Tensor:
            return import_dlpack(to_dlpack(x), name)
        return import_dlpack(x.__dlpack__(stream=NO_WAIT), name)

    def on_host(self, x: Any, name: str) -> npt.NDArray[Any] | None:
        torch = sys.modules["torch"]
        if not x.is_cpu or x.dtype not in (torch.float32, torch.float16, torch.uint8, torch.int8):
            return None
        host: npt.NDArray[Any] = self.plain(x, name).numpy()
        return host

    def to_float32(self, x: Any, name: str) -> Any:
        return x.to(sys.modules["torch"].float32).contiguous()

    def to_float64(self, x: Any, name: str) -> Any:
        return x.to(sys.modules["torch"].float64)

    def packed(self, x: Any, name: str) -> Any:
        # A tensor whose strides look contiguous to torch may still begin amid an element: then a clone, too.
        return x.contiguous() if not x.is_contiguous() else x.clone()

    def empty(self, shape: tuple[int, ...], dtype: str, device: int) -> Any:
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, dtype), device=f"cuda:{device}")

    def from_host(self, array: Any, like: Any) -> Any:
        return sys.modules["torch"].from_numpy(array).to(like.device)

    def to_host(self, x: Any) -> npt.NDArray[Any]:
        host: npt.NDArray[Any] = x.cpu().numpy()
        return host

    def beside(self, left: Any, right: Any) -> Any:
        return sys.modules["torch"].hstack((left, right))

    def lent(self, x: Any, name: str) -> Any:
        return self.plain(x, name).numpy()

    def without_self(self, offsets: Any, ids: Any, distances: Any) -> tuple[Any, Any, Any]:
        torch = sys.modules["torch"]
        owners = torch.repeat_interleave(torch.arange(len(offsets) - 1, device=ids.device), offsets.diff())
        others = ids != owners
        before = torch.nn.functional.pad(others.cumsum(0), (1, 0))
        return before[offsets], ids[others], distances[others]


class Cupy(Library):
    def on_device(self, x: Any) -> bool:
        return True

    def stream(self, x: Any) -> int:
        with x.device:
            return int(sys.modules["cupy"].cuda.get_current_stream().ptr) or LEGACY_STREAM

    def export(self, x: Any, stream: int, name: str) -> DeviceArray:
        if stream == self.stream(x):  # in that order the values are in place: no event need be recorded
            return import_dlpack(x.__dlpack__(stream=NO_WAIT), name)
        with x.device:
            return import_dlpack(x.__dlpack__(stream=stream or LEGACY_STREAM), name)

    def to_float32(self, x: Any, name: str) -> Any:
        return x.astype("float32", order="C")

    def to_float64(self, x: Any, name: str) -> Any:
        return x.astype("float64", copy=False)

    def packed(self, x: Any, name: str) -> Any:
        return x.copy(order="C")

    def empty(self, shape: tuple[int, ...], dtype: str, device: int) -> Any:
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(device):
            return cupy.empty(shape, dtype)

    def from_host(self, array: Any, like: Any) -> Any:
        with like.device:
            return sys.modules["cupy"].asarray(array)

    def to_host(self, x: Any) -> npt.NDArray[Any]:
        host: npt.NDArray[Any] = x.get()
        return host

    def beside(self, left: Any, right: Any) -> Any:
        with right.device:
            return sys.modules["cupy"].hstack((left, right))

    def without_self(self, offsets: Any, ids: Any, distances: Any) -> tuple[Any, Any, Any]:
        with ids.device:
            return _without_self(sys.modules["cupy"], offsets, ids, distances)


class Jax(Library):
    """jax does not expose its streams: what is read is waited for, and Kith works on a stream of its own, to the end."""

    writable = False

    def on_device(self, x: Any) -> bool:
        return dlpack_device(x) == _CUDA

    def export(self, x: Any, stream: int, name: str) -> DeviceArray:
        if isinstance(x, DeviceArray):
            return x
        x.block_until_ready()
        return import_dlpack(x.__dlpack__(), name)

    def to_float32(self, x: Any, name: str) -> Any:
        return x.astype("float32")

    def has_float64(self) -> bool:
        return bool(sys.modules["jax"].config.jax_enable_x64)

    def to_float64(self, x: Any, name: str) -> Any:
        return x.astype("float64")

    def packed(self, x: Any, name: str) -> Any:
        return x.copy()

    def finished(self, result: Any) -> Any:
        return sys.modules["jax"].numpy.from_dlpack(result)

    def from_host(self, array: Any, like: Any) -> Any:
        return sys.modules["jax"].device_put(array, next(iter(like.devices())))

    def to_host(self, x: Any) -> npt.NDArray[Any]:
        return np.asarray(x)

    def beside(self, left: Any, right: Any) -> Any:
        return sys.modules["jax"].numpy.hstack((left, right))

    def without_self(self, offsets: Any, ids: Any, distances: Any) -> tuple[Any, Any, Any]:
        return _without_self(sys.modules["jax"].numpy, offsets, ids, distances)


class Other(Library):
    """numpy, and every library that Kith does not know: results on the host are numpy's, on a GPU `DeviceArray`.

    What it enqueued on streams of its own is waited for.
    """

    computes = False

    def on_device(self, x: Any) -> bool:
        told = dlpack_device(x)
        return told == _CUDA if told is not None else hasattr(x, "__cuda_array_interface__")

    def export(self, x: Any, stream: int, name: str) -> DeviceArray:
        if isinstance(x, DeviceArray):
            return x
        if dlpack_device(x) is not None:
            array = import_dlpack(x.__dlpack__(stream=stream or LEGACY_STREAM), name)
        else:
            array = from_interface(x, name)
        wait_for_device(int(array.__dlpack_device__()[1]))
        return array

    def to_float32(self, x: Any, name: str) -> Any:
        kind, dtype = type(x).__name__, getattr(x, "dtype", "of another dtype")
        raise TypeError(
            f"{name} is {dtype}; it must be float32, float16, bfloat16, uint8, int8 or float64: convert this {kind} first"
        )

    def packed(self, x: Any, name: str) -> Any:
        raise ValueError(f"{name}: the columns must be contiguous; copy this {type(x).__name__} first")

    def from_host(self, array: Any, like: Any) -> Any:
        return array

    def to_host(self, x: Any) -> npt.NDArray[Any]:
        return copy_to_host(x) if isinstance(x, DeviceArray) else np.asarray(x)

    def beside(self, left: Any, right: Any) -> Any:
        return np.hstack((left, right))

    def lent(self, x: Any, name: str) -> Any:
        return x if isinstance(x, np.ndarray) else None

    def without_self(self, offsets: Any, ids: Any, distances: Any) -> tuple[Any, Any, Any]:
        raise TypeError(
            "without_self of vectors in a GPU's memory wants arrays of torch, cupy or jax, in which Kith can compute; "
            "pass such, or drop row q from what query q has found"
        )


def _without_self(numpy: Any, offsets: Any, ids: Any, distances: Any) -> tuple[Any, Any, Any]:
    """By a library whose functions are called as numpy's are."""
    owners = numpy.searchsorted(offsets, numpy.arange(len(ids)), side="right") - 1
    others = ids != owners
    before = numpy.concatenate((numpy.zeros(1, dtype=offsets.dtype), numpy.cumsum(others, dtype=offsets.dtype)))
    return before[offsets], ids[others], distances[others]


_OTHER: Library = Other()
_JAX: Library = Jax()
TORCH = Torch()
_KNOWN: dict[str, Library] = {"torch": TORCH, "cupy": Cupy(), "jax": _JAX, "jaxlib": _JAX}
_LIBRARIES = frozenset(_KNOWN)
# Classes that were asked for before: the libraries' own, which stay, and others, which may go. A weak dictionary takes
# several times as long as a plain one, and every call asks more than once.
_OWN: dict[type, Library] = {np.ndarray: _OTHER, DeviceArray: _OTHER}
_SEEN: WeakKeyDictionary[type, Library] = WeakKeyDictionary()


def library_of(x: Any) -> Library:
    """By the module of its class, or of a class that it derives from."""
    cls = type(x)
    library = _OWN.get(cls) or _SEEN.get(cls)
    if library is None:
        library = _library_of_class(cls)
        own = cls.__module__.partition(".")[0] in _LIBRARIES
        (_OWN if own else _SEEN)[cls] = library
    return library


def _library_of_class(cls: type) -> Library:
    for base in cls.__mro__:
        known = _KNOWN.get(base.__module__.partition(".")[0])
        if known is not None:
            return known
    return _OTHER
