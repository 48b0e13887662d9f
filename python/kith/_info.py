"""What this copy of Kith is, and what it can use."""

from __future__ import annotations

from typing import TypedDict, cast

from kith import _kith


class CudaDevice(TypedDict):
    """One CUDA device, as `info` lists it."""

    device: str
    name: str
    memory: int
    memory_free: int
    multiprocessors: int
    compute_capability: tuple[int, int]


class Info(TypedDict):
    """What `info` returns; memory is in bytes."""

    version: str
    cpu: str
    instruction_set: str
    threads: int
    memory: int
    memory_free: int
    built_with_cuda: bool
    cuda_devices: list[CudaDevice]


def info() -> Info:
    """Tell which version of Kith this is, and which processors it can use.

    Returns
    -------
    dict
        ``version``, ``cpu`` (its name), ``instruction_set`` (what the kernels run on), ``threads``, ``memory``,
        ``memory_free`` (bytes), ``built_with_cuda``, and ``cuda_devices``, a list with a dict for each.

    Examples
    --------
    >>> kith.info()["version"]  # doctest: +SKIP
    '0.1.0'
    """
    return cast(Info, _kith.info())
