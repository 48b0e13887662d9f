"""Vectors kept ready for many searches."""

from __future__ import annotations

import os
import threading
from functools import partial
from typing import NoReturn, SupportsFloat, SupportsIndex

from kith import _kith
from kith._arrays import Vectors, VectorsLike, as_base, as_queries, as_vectors
from kith._filter import FilterLike, as_filter
from kith._narrowing import PLAIN, Narrowing
from kith._options import calling, check_device, flag, real_number, text, whole_number
from kith._progress import Progress
from kith._range_search import RangeNeighbors, range_found
from kith._search import Found, Given, Neighbors, Output, search_with

# Held for a few instructions, never while something is added; no child of a fork finds it taken.
_narrowing_lock = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_narrowing_lock.acquire,
        after_in_child=_narrowing_lock.release,
        after_in_parent=_narrowing_lock.release,
    )


class Index:
    """Vectors kept ready for many searches.

    Any number of threads may search at once, also while one adds: a search sees the vectors that were there when it
    began. Adds at the same time take turns. A `progress` callback of an add may search the index; an add to it from
    there is a RuntimeError.

    Parameters
    ----------
    factory : str, default "Flat"
        What kind of index. ``"Flat"`` keeps every vector as it is and searches exactly.
    metric : str, default "l2"
        ``"l2"``, ``"sqeuclidean"``, ``"inner_product"``, ``"cosine"``, ``"l1"``, ``"linf"``, ``"chi_square"`` or
        ``"hamming"``, as in `knn`.
    device : str, default "auto"
        ``"cpu"``, ``"cuda"``, ``"cuda:N"``, or ``"auto"``: where the vectors lie, or, for host arrays, a GPU where it is
        there and predicted to be faster.
    check_finite : bool, default True
        Refuse NaN and infinities, in what is added and in queries.
    prepare : bool, default True
        Keep a copy laid out for the device, on a CPU of dimension + 8 to 5 * dimension + 20 bytes a row (the page
        "What is fast when"), where the memory limit has room for twice that. Faster searches.

    Examples
    --------
    >>> import numpy as np, kith
    >>> index = kith.Index("Flat", metric="sqeuclidean")
    >>> index.add(np.array([[0, 0], [3, 4]], dtype=np.float32))
    >>> index
    kith.Index('Flat', metric='sqeuclidean', dimension=2, size=2)
    >>> index.search(np.zeros((1, 2), np.float32), k=1)
    Neighbors(ids=array([[0]]), distances=array([[0.]], dtype=float32))
    """

    def __init__(
        self,
        factory: str = "Flat",
        metric: str = "l2",
        device: str = "auto",
        check_finite: bool = True,
        prepare: bool = True,
    ) -> None:
        self._device = check_device(device)
        self._index = _kith.Index(
            text(factory, "factory"),
            text(metric, "metric"),
            flag(check_finite, "check_finite"),
            flag(prepare, "prepare"),
        )
        # How vectors become float32: told by the first that are added, before a search can see them.
        self._narrowing: Narrowing | None = None
        self._adding = 0

    def add(
        self,
        x: VectorsLike,
        *,
        copy: bool = True,
        threads: SupportsIndex = 0,
        memory_limit: SupportsIndex | None = None,
        device_memory_limit: SupportsIndex | None = None,
        progress: Progress = False,
    ) -> None:
        """Add vectors; their ids go on from ``len(index)``.

        Parameters
        ----------
        x : array_like, (rows, dimension)
            The vectors, as in `knn`. The first add fixes the dimension, the dtype, where vectors lie (all on the host,
            or all in the memory of one GPU), and, if they are float64 or wide integers, what is subtracted from all
            vectors and queries before they are rounded to float32.
        copy : bool, default True
            Copy the vectors. With False the index refers to `x`, which it keeps alive and you must not change; `x` must
            then be an array that `knn` would use where it lies, else ValueError.
        threads, memory_limit, device_memory_limit, progress
            As in `knn`. What an add allocates counts against the limit of that add.
        """
        borrow = not flag(copy, "copy")
        with calling(self._device, threads, memory_limit, device_memory_limit, progress, arrays=(x,)) as options:
            with _Adding(self) as adding:
                rows, copied = adding.taken(x, options.stream)
                if borrow and copied:
                    raise ValueError(
                        "copy=False needs a float32, float16, bfloat16, uint8 or int8 array with contiguous columns, to "
                        "an index whose first vectors were such; x is none: add a copy"
                    )
                # A conversion made an array that nobody else has: a second copy would be waste.
                self._index.add(rows, borrow or copied, options)

    def search(
        self,
        queries: VectorsLike,
        k: SupportsIndex = 10,
        *,
        filter: FilterLike | None = None,
        threads: SupportsIndex = 0,
        memory_limit: SupportsIndex | None = None,
        device_memory_limit: SupportsIndex | None = None,
        progress: Progress = False,
        out: Output | None = None,
    ) -> Neighbors:
        """Find the k nearest vectors of the index for every query.

        Parameters and result are those of `knn`. The GIL is released, and Ctrl-C stops the search.
        """
        number = whole_number(k, "k")
        rows = as_filter(filter)
        arrays = (queries, *(out if isinstance(out, tuple) else ()))
        with calling(self._device, threads, memory_limit, device_memory_limit, progress, arrays=arrays) as options:

            def step(matrix: Vectors, given: Given | None) -> Found | None:
                return self._index.search(matrix, number, rows, options, given)

            while True:
                narrowing = self._narrowing or PLAIN
                searched = () if out is None else self._index.borrowed
                found = search_with(step, queries, number, out, options, searched, narrowing)
                if self._still(narrowing):
                    return found

    def range_search(
        self,
        queries: VectorsLike,
        radius: SupportsFloat,
        *,
        filter: FilterLike | None = None,
        threads: SupportsIndex = 0,
        memory_limit: SupportsIndex | None = None,
        device_memory_limit: SupportsIndex | None = None,
        progress: Progress = False,
    ) -> RangeNeighbors:
        """Find all vectors of the index within a radius of every query, nearest first.

        Parameters and result are those of `kith.range_search`. The GIL is released, and Ctrl-C stops the search.
        """
        reach = real_number(radius, "radius")
        rows = as_filter(filter)
        with calling(self._device, threads, memory_limit, device_memory_limit, progress, arrays=(queries,)) as options:
            while True:
                narrowing = self._narrowing or PLAIN
                matrix, _ = as_queries(queries, options.stream, narrowing)
                search = partial(self._index.range_search, matrix, reach, rows, options)
                found = range_found(search, queries, matrix, options.stream)
                if self._still(narrowing):
                    return found

    def _still(self, narrowing: Narrowing) -> bool:
        """Whether vectors lose the same offset as when a search began.

        If not, the first vectors came since, and it may have compared queries with them that lost another: it is done
        again.
        """
        return (self._narrowing or PLAIN) is narrowing

    def __len__(self) -> int:
        """How many vectors there are."""
        return len(self._index)

    @property
    def dimension(self) -> int:
        """The length of a vector; 0 before the first add."""
        return self._index.dimension

    @property
    def metric(self) -> str:
        """The metric's name."""
        return self._index.metric

    @property
    def device(self) -> str:
        """Where searches run, as it was given."""
        return self._device

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """For pickle and copy, which are refused: a copy would share the vectors, and no file format holds them yet."""
        raise TypeError(
            "a kith.Index cannot be pickled or copied yet; keep its vectors (kith.write_vectors) and add them to a new "
            "one"
        )

    def __repr__(self) -> str:
        kind = self._index.factory
        return f"kith.Index({kind!r}, metric={self.metric!r}, dimension={self.dimension}, size={len(self)})"


class _Adding:
    """One add, and how its vectors become float32: as those of the first add that succeeds, or is still on its way."""

    __slots__ = ("_index",)

    def __init__(self, index: Index) -> None:
        self._index = index

    def __enter__(self) -> _Adding:
        with _narrowing_lock:
            self._index._adding += 1
        return self

    def taken(self, x: VectorsLike, stream: int) -> tuple[Vectors, bool]:
        index = self._index
        if index._narrowing is None:
            rows, copied, narrowing = as_base(x, "x", index.metric, stream)
            with _narrowing_lock:
                if index._narrowing is None:
                    index._narrowing = narrowing
                if index._narrowing is narrowing:
                    return rows, copied
        return as_vectors(x, "x", stream, index._narrowing)

    def __exit__(self, *_: object) -> None:
        with _narrowing_lock:
            self._index._adding -= 1
            if self._index._adding == 0 and len(self._index) == 0:  # nothing came of it
                self._index._narrowing = None
