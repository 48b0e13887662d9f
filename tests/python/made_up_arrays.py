"""Arrays that only claim to lie in a GPU's memory, and libraries that only claim to own them."""

from __future__ import annotations

import ctypes
import weakref

import numpy as np
import pytest

from kith import _kith, _libraries

# Without CUDA, or with it but without a GPU.
NO_DEVICE = (RuntimeError, ValueError)


class OnGpu:
    """Host memory that says it is a GPU's, and notes the streams that it is asked for."""

    def __init__(self, array, device=0):
        self.array, self.device, self.streams = array, device, []
        self.shape, self.dtype = array.shape, array.dtype

    def __dlpack_device__(self):
        return (2, self.device)

    def __dlpack__(self, *, stream=None):
        self.streams.append(stream)
        capsule = self.array.__dlpack__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        tensor = pointer(capsule, b"dltensor")
        # DLTensor: data (8 bytes), then the device's type and number.
        ctypes.c_int32.from_address(tensor + 8).value = 2
        ctypes.c_int32.from_address(tensor + 12).value = self.device
        return capsule


class WithInterface:
    """An array without DLPack."""

    def __init__(self, array, **changes):
        self.array = array
        self.__cuda_array_interface__ = {**array.__array_interface__, "version": 3, **changes}


class MadeUp(_libraries.Other):
    """A library with a stream, whose arrays are OnGpu."""

    computes = True

    def stream(self, x):
        return 7

    def empty(self, shape, dtype, device):
        return OnGpu(np.zeros(shape, dtype), device)


@pytest.fixture
def made_up(monkeypatch):
    """Has OnGpu belong to that library, and the search itself done by a stand-in that notes what it was given."""
    monkeypatch.setitem(_libraries._KNOWN, OnGpu.__module__, MadeUp())
    monkeypatch.setattr(_libraries, "_SEEN", weakref.WeakKeyDictionary())  # where it has another
    calls = []

    def filled(out, dtype, value):
        assert isinstance(out, _kith.DeviceArray) and out.dtype == np.dtype(dtype).name
        count = int(np.prod(out.shape))
        pointer = out.__cuda_array_interface__["data"][0]
        np.frombuffer((ctypes.c_char * (count * np.dtype(dtype).itemsize)).from_address(pointer), dtype)[:] = value

    def knn(queries, base, k, metric, finite, rows, options, out):
        calls.append((queries, base, options, out))
        if out is not None:
            filled(out[0], np.int64, 5)
            filled(out[1], np.float32, 0.5)
            return None
        return np.full((len(queries), k), 5), np.full((len(queries), k), 0.5, np.float32)

    def knn_graph(x, k, metric, method, finite, wish, options, out):
        return knn(x, x, k, metric, finite, None, options, out), {"method": "made up"}

    def pairwise_distances(x, y, metric, finite, options, out):
        calls.append((x, y, options, out))
        filled(out, np.float32, 0.25)

    monkeypatch.setattr(_kith, "knn", knn)
    monkeypatch.setattr(_kith, "knn_graph", knn_graph)
    monkeypatch.setattr(_kith, "pairwise_distances", pairwise_distances)
    return calls
