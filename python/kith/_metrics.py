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


def metric_text(metric: Metric) -> str:
    """The metric as it was given, which must be a name."""
    if callable(metric):
        raise TypeError("metric is a function; it must be a str: metrics of one's own are written in C++ (examples/custom_metric)")
    return text(metric, "metric", ", such as 'l2' or 'cosine'")


def metric_name(metric: Metric) -> str:
    """Kith's own name of the metric. ValueError for one that is not known, with what may have been meant."""
    name = metric_text(metric)
    return name if name in OWN else _kith.metric_name(name)
