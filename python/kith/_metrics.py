"""Names of metrics: Kith's, and unambiguous ones of other libraries."""

from __future__ import annotations

from typing import Literal

from kith import _kith
from kith._options import text

Metric = Literal[
    "l2",
    "sqeuclidean",
    "inner_product",
    "cosine",
    "l1",
    "linf",
    "chi_square",
    "hamming",
    "euclidean",
    "manhattan",
    "cityblock",
    "chebyshev",
    "ip",
    "dot",
    "l2sq",
]

OWN = frozenset({"l2", "sqeuclidean", "inner_product", "cosine", "l1", "linf", "chi_square", "hamming"})


def metric_name(metric: Metric) -> str:
    """Kith's own name of the metric. ValueError for one that is not known, with what may have been meant."""
    name = text(metric, "metric")
    return name if name in OWN else _kith.metric_name(name)
