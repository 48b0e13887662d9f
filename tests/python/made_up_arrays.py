"""Arrays that only claim to lie in a GPU's memory, and libraries that only claim to own them."""

from __future__ import annotations

import ctypes

import numpy as np

from kith import _libraries

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
