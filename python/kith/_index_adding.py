"""How the vectors of an index become float32: as the first that came, whoever brings them."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import numpy as np

from kith._arrays import Vectors, VectorsLike, as_base, as_vectors
from kith._narrowing import PLAIN, Narrowing

if TYPE_CHECKING:
    from kith._index import Index

# Held for a few instructions, never while something is added; no child of a fork finds it taken.
_narrowing_lock = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_narrowing_lock.acquire,
        after_in_child=_narrowing_lock.release,
        after_in_parent=_narrowing_lock.release,
    )


class Adding:
    """One add or training, and how its vectors become float32: as those of the first that succeeds, or is on its way."""

    __slots__ = ("_index",)

    def __init__(self, index: Index) -> None:
        self._index = index

    def __enter__(self) -> Adding:
        with _narrowing_lock:
            self._index._adding += 1
        return self

    def taken(self, x: VectorsLike, name: str, stream: int) -> tuple[Vectors, bool]:
        index = self._index
        if index._narrowing is None:
            rows, copied, narrowing = as_base(x, name, index.metric, stream)
            with _narrowing_lock:
                if index._narrowing is None:
                    index._narrowing = narrowing
                if index._narrowing is narrowing:
                    return rows, copied
        return as_vectors(x, name, stream, index._narrowing)

    def plain(self) -> None:
        """The vectors come from a file, which holds none that must be rounded."""
        with _narrowing_lock:
            if self._index._narrowing is None:
                self._index._narrowing = PLAIN

    def like(self, other: Narrowing) -> None:
        """The vectors come from another index, where they have lost that."""
        with _narrowing_lock:
            if self._index._narrowing is None:
                self._index._narrowing = other
            own = self._index._narrowing.offset
        same = own is other.offset if own is None or other.offset is None else np.array_equal(own, other.offset)
        if not same:
            raise ValueError(
                "the indexes subtract different offsets from float64 vectors, and cannot be merged; fill both from "
                "copies of one index that has seen such vectors, or with float32 vectors"
            )

    def __exit__(self, *_: object) -> None:
        with _narrowing_lock:
            if self._index._adding == 1 and self._index.dimension == 0:  # nothing came of it
                self._index._narrowing = None
            self._index._adding -= 1
