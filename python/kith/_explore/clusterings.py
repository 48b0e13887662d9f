"""Clusters of rows, by k-means or by single linkage cut at a height."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kith._explore.jobs import NotReady
from kith._spanning_tree import SpanningTree

_HEIGHTS = 48  # at which the curve of the linkage is measured; half as many of many rows


class Clusters(NamedTuple):
    """Rows by the cluster that they belong to."""

    labels: npt.NDArray[np.int32]
    order: npt.NDArray[np.int64]
    """Rows, cluster after cluster: in each from its middle outwards, or as they are numbered."""
    begins: npt.NDArray[np.int64]
    """Where in `order` each cluster begins, and the end."""
    spreads: npt.NDArray[np.float64] | None
    """How far the rows of a cluster are from its centre: the root of their mean square."""

    def rows(self, cluster: int) -> npt.NDArray[np.int64]:
        return self.order[self.begins[cluster] : self.begins[cluster + 1]]

    def __len__(self) -> int:
        return len(self.begins) - 1


class Linkage(NamedTuple):
    """The tree that single linkage is cut from, and what cuts at some heights give."""

    tree: SpanningTree
    heights: list[float]
    clusters: list[int]
    """Of at least `smallest` rows, at each height."""
    largest: list[int]
    smallest: int
    suggested: float


def in_order_of_size(labels: npt.NDArray[Any], clusters: int) -> npt.NDArray[np.int32]:
    """Labels of which 0 is the largest cluster's, 1 that of the next."""
    place = np.empty(clusters, np.int32)
    place[np.argsort(-np.bincount(labels, minlength=clusters), kind="stable")] = np.arange(clusters, dtype=np.int32)
    return np.asarray(place[labels], np.int32)


def by_size(labels: npt.NDArray[np.int64]) -> Clusters:
    """Clusters in the order of their sizes."""
    clusters = int(labels.max()) + 1
    renamed = in_order_of_size(labels, clusters)
    begins = np.concatenate([[0], np.cumsum(np.bincount(renamed, minlength=clusters))])
    return Clusters(renamed, np.argsort(renamed, kind="stable"), begins, None)


def measured(tree: SpanningTree, rows: int) -> Linkage:
    """What cuts give, by height. One is suggested that leaves many clusters and few rows outside of them."""
    weights = np.asarray(tree.weights, np.float64)
    finite = weights[np.isfinite(weights)]
    if finite.size == 0:
        raise NotReady("no two rows are joined", coming=False)
    smallest = 5 if rows < 2000 else 10 if rows < 100_000 else 50
    # Few rows change what is joined at most heights: places in the order of edges, closer together towards the long ones.
    count = _HEIGHTS if rows < 200_000 else _HEIGHTS // 2
    places = np.unique(((1 - np.linspace(1, 0, count) ** 2) * (finite.size - 1)).astype(np.int64))
    heights = np.unique(finite[places])
    clusters, largest, scores = [], [], []
    for height in heights:
        counts = np.bincount(tree.labels(float(height)))
        large = counts[counts >= smallest]
        clusters.append(len(large))
        largest.append(int(counts.max()))
        scores.append(len(large) * (large.sum() / rows) ** 2)
    best = len(scores) - 1 - int(np.argmax(scores[::-1]))
    return Linkage(tree, [float(height) for height in heights], clusters, largest, smallest, float(heights[best]))
