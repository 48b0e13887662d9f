"""scikit-learn's names and habits, in Kith's words."""

from __future__ import annotations

import numbers
import os
from typing import Any

import numpy as np

# What the library reads without a copy; the first is what everything else becomes.
DTYPES = (np.float32, np.float16, np.uint8, np.int8)

# The same if Kith does the narrowing: anything that it cannot read in place becomes float64 first.
WIDE_DTYPES = (np.float64, *DTYPES)

# scikit-learn's names of metrics that Kith has.
_METRICS = {
    "euclidean": "l2",
    "manhattan": "l1",
    "cityblock": "l1",
    "chebyshev": "linf",
    "infinity": "linf",
}
OWN_METRICS = frozenset({"l2", "sqeuclidean", "inner_product", "cosine", "l1", "linf", "chi_square", "hamming"})

# Minkowski's metric for these p, as scikit-learn names it.
_BY_POWER = {1: "manhattan", 2: "euclidean", np.inf: "chebyshev"}


def effective_metric(name: Any, power: Any) -> Any:
    """Minkowski's metric by the name that it has for some powers; every other metric as it is."""
    return _BY_POWER.get(power, name) if isinstance(name, str) and name in ("minkowski", "p") else name


def metric_of(name: Any) -> str | None:
    """Kith's name of a metric of scikit-learn, or one of Kith's own; None for one that Kith lacks."""
    if not isinstance(name, str):
        return None
    return name if name in OWN_METRICS else _METRICS.get(name)


def threads_of(n_jobs: Any) -> int:
    """Kith's number of threads, 0 for all: as None and -1 are; -2 is all but one."""
    if n_jobs is None:
        return 0
    if not isinstance(n_jobs, numbers.Integral) or n_jobs == 0:
        raise ValueError(f"n_jobs is {n_jobs!r}; it must be None, a number of threads, or -1 for all")
    jobs = int(n_jobs)
    return jobs if jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + jobs)


def count_of(value: Any, name: str) -> int:
    """`value`, a whole number above 0."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} is {value!r}; it must be a whole number")
    count = int(value)
    if count <= 0:
        raise ValueError(f"Expected {name} > 0. Got {count}")
    return count


def refuse_device(device: str, why: str) -> None:
    """ValueError where a GPU is asked for and scikit-learn, which has none, is to do the work."""
    if device not in ("auto", "cpu"):
        raise ValueError(f"device is {device!r}, but {why}, which scikit-learn does, on the CPU: use device='auto'")
