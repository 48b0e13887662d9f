"""Types for checkers alone: which arrays come back for which, and the settings that every call takes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex, TypedDict, Union

import numpy as np
import numpy.typing as npt

from kith._progress import Progress

if TYPE_CHECKING:
    # Any where torch is not installed: then overloads that come after one for a Tensor are never reached.
    from torch import Tensor as Tensor  # type: ignore[import-not-found,unused-ignore]
else:
    Tensor = Any

# What is answered with numpy's arrays, without files and with them. Other libraries' arrays derive from none of these.
NumpyLike = Union[npt.NDArray[Any], Sequence[Any]]
HostLike = Union[npt.NDArray[Any], Sequence[Any], str, "os.PathLike[str]"]
Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
# A number of bytes, or text such as "16G".
ByteSize = Union[SupportsIndex, str]
ByteSizes = Union[SupportsIndex, str, Sequence[Union[SupportsIndex, str]]]
# "cuda:1", several as "cuda:0,cuda:1" or a list, parts of one as "cpu/4".
DeviceNames = Union[str, Sequence[str]]


class Settings(TypedDict, total=False):
    """How a call runs."""

    threads: SupportsIndex
    memory_limit: ByteSize | None
    device_memory_limit: ByteSizes | None
    progress: Progress


class CallSettings(Settings, total=False):
    """The same of a function, which no object tells where to run."""

    device: DeviceNames
    check_finite: bool
