"""Tests of scikit-learn that Kith's estimators are known to fail, by reason."""

from __future__ import annotations

import re

_EXPECTED: dict[str, tuple[str, ...]] = {
    "neighbours within a radius are always sorted by distance": (
        r"test_k_and_radius_neighbors_train_is_not_query",
        r"test_k_and_radius_neighbors_duplicates\[.*\]",
        r"test_radius_neighbors_sort_results\[.*-euclidean[01]?\]",
    ),
    "a radius for each query is what scikit-learn's trees take": (
        r"test_radius_neighbors_parallel_array_radius\[.*\]",
    ),
    "which algorithm scikit-learn would have chosen is a private attribute of its own": (
        r"test_auto_algorithm\[X[123]-euclidean-.*\]",
    ),
}


def reason_for(test: str) -> str | None:
    """Why the test of that name, parameters included, fails; None for one that must pass."""
    for reason, patterns in _EXPECTED.items():
        if any(re.fullmatch(pattern, test) for pattern in patterns):
            return reason
    return None
