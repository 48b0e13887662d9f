"""How long a call keeps the GPU and this process, in milliseconds of wall time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch


def milliseconds(call: Callable[[], object]) -> float:
    """One call, until the device has finished all of it."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return 1000 * (time.perf_counter() - began)


def medians(runs: int) -> Callable[[dict[str, Callable[[], object]]], dict[str, float]]:
    """What cases.py times its calls with: the median of each in seconds."""
    return lambda calls: {name: median_milliseconds(call, runs) / 1000 for name, call in calls.items()}


def median_milliseconds(call: Callable[[], object], runs: int) -> float:
    """The median of `runs` calls, after two that fill caches and workspaces."""
    for _ in range(2):
        call()
    return statistics.median(milliseconds(call) for _ in range(runs))
