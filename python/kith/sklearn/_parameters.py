"""scikit-learn's names and habits, in Kith's words."""

from __future__ import annotations

import numbers
import os
from typing import Any

import numpy as np

# What the library reads without a copy; the first is what everything else becomes.
DTYPES = (np.float32, np.float16, np.uint8, np.int8)

# The same where Kith does the narrowing: whatever it does not read as it lies becomes float64 first.
WIDE_DTYPES = (np.float64, *DTYPES)

_METRICS = {
    "euclidean": "l2",
    "minkowski": "l2",
    "manhattan": "l1",
    "cityblock": "l1",
    "chebyshev": "linf",
    "infinity": "linf",
}
_OWN_METRICS = ("l2", "sqeuclidean", "inner_product", "cosine", "l1", "linf", "chi_square", "hamming")


def metric_of(name: Any) -> str:
    """Kith's name of a metric, given by its own or by scikit-learn's."""
    if isinstance(name, str) and name in _OWN_METRICS:
        return name
    if isinstance(name, str) and name in _METRICS:
        return _METRICS[name]
    known = ", ".join([*sorted(_METRICS), *_OWN_METRICS])
    raise ValueError(f"metric is {name!r}; known are: {known}")


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
