"""Groups of rows that are nearly the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import SupportsFloat, SupportsIndex

import numpy as np
import numpy.typing as npt

from kith import _kith
from kith._arrays import VectorsLike, as_vectors
from kith._metrics import Metric, metric_name
from kith._options import calling, flag, real_number, seed_number, whole_number
from kith._other_names import answers_other_names
from kith._progress import Progress
from kith._sources import array_of
from kith._typing import ByteSize, ByteSizes, DeviceNames

Ids = npt.NDArray[np.int64]


class NearDuplicates:
    """Groups of rows that are joined by steps of at most a radius.

    Attributes
    ----------
    labels : numpy.ndarray of int64
        The group of each row; groups are numbered in the order of their first rows. A row without near duplicates is one
        by itself.
    keep : numpy.ndarray of int64
        The first row of each group, ascending: ``x[found.keep]`` has no near duplicates of this kind.
    """

    def __init__(self, labels: Ids) -> None:
        self.labels = labels
        self.keep: Ids = np.unique(labels, return_index=True)[1].astype(np.int64)

    @property
    def dropped(self) -> Ids:
        """The rows that are near duplicates of an earlier one, ascending."""
        mask = np.ones(self.labels.size, bool)
        mask[self.keep] = False
        return np.flatnonzero(mask)

    def groups(self) -> Iterator[Ids]:
        """The rows of each group of two or more, largest groups first; `kith.show` draws them."""
        order = np.argsort(self.labels, kind="stable")
        sizes = np.bincount(self.labels, minlength=self.keep.size)
        ends = np.cumsum(sizes)
        for group in np.argsort(-sizes, kind="stable"):
            if sizes[group] < 2:
                return
            yield order[ends[group] - sizes[group] : ends[group]]

    def __len__(self) -> int:
        """How many groups have two rows or more."""
        return int(np.count_nonzero(np.bincount(self.labels, minlength=self.keep.size) > 1))

    def __repr__(self) -> str:
        return f"kith.NearDuplicates(rows={self.labels.size}, groups={len(self)}, keep={self.keep.size})"


@answers_other_names("kith.near_duplicates()")
def near_duplicates(
    x: VectorsLike,
    radius: SupportsFloat,
    metric: Metric = "l2",
    *,
    exact: bool = False,
    k: SupportsIndex = 10,
    recall: SupportsFloat = 0.99,
    seed: SupportsIndex = 0,
    device: DeviceNames = "auto",
    threads: SupportsIndex = 0,
    memory_limit: ByteSize | None = None,
    device_memory_limit: ByteSizes | None = None,
    check_finite: bool = True,
    progress: Progress = False,
) -> NearDuplicates:
    """Find near duplicates: rows that are joined by steps of at most `radius`.

    By default the k-NN graph of the rows is built and cut at the radius, which finds nearly all of them in a small part of
    the time of a search of all ranges.

    Parameters
    ----------
    x : array_like, (rows, dimension)
        The vectors, as in `knn`.
    radius : float
        Rows up to this distance are near duplicates, in the metric's unit.
    metric : str, default "l2"
        As in `knn`, without ``"inner_product"``.
    exact : bool, default False
        Find every pair: on CPUs by k-means cells, whose borders rule out most pairs; where that rules out too little, by
        comparing all.
    k : int, default 10
        Neighbours of each row in the graph.
    recall : float, default 0.99
        Of the graph, where not `exact`, as in `knn_graph`.
    seed : int, default 0
        Of the graph's random numbers.
    device, threads, memory_limit, device_memory_limit, check_finite, progress
        As in `knn`.

    Returns
    -------
    NearDuplicates
        With `labels`, `keep` and `groups()`.

    Raises
    ------
    ValueError
        As `knn`; a radius that is negative or NaN.

    Examples
    --------
    >>> import numpy as np, kith
    >>> x = np.array([[0, 0], [5, 5], [0, 0.1], [9, 9], [5, 5]], dtype=np.float32)
    >>> found = kith.near_duplicates(x, radius=0.5)
    >>> found.labels
    array([0, 1, 0, 2, 1])
    >>> [group.tolist() for group in found.groups()]
    [[0, 2], [1, 4]]
    >>> x[found.keep].shape
    (3, 2)
    """
    numbers = real_number(radius, "radius"), metric_name(metric), flag(exact, "exact"), whole_number(k, "k")
    found, start, finite = real_number(recall, "recall"), seed_number(seed), flag(check_finite, "check_finite")
    with calling(device, threads, memory_limit, device_memory_limit, progress, arrays=(x,)) as options:
        matrix = as_vectors(array_of(x), "x", options.stream)[0]
        labels = _kith.near_duplicates(matrix, *numbers, found, start, finite, options)
    return NearDuplicates(labels.view(np.int64))
