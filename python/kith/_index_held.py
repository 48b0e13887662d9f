"""What an index is to those who train, fill, search and save it: the library's handle, a device, and an offset."""

from __future__ import annotations

import os
from typing import cast

from kith import _kith
from kith._files import PathLike
from kith._index_info import IndexInfo
from kith._metrics import Metric
from kith._narrowing import PLAIN, Narrowing


class HeldIndex:
    """The parts of `kith.Index` that its other parts use."""

    def _hold(self, index: _kith.Index, device: str, narrowing: Narrowing | None) -> None:
        self._index = index
        self._device = device
        # How vectors become float32: told by the first that are trained on or added, before a search can see them.
        self._narrowing = narrowing
        self._adding = 0

    def info(self) -> IndexInfo:
        """What the index holds: rows, lists and how even they are, bytes by part."""
        return IndexInfo(**self._index.info())

    def _offset(self) -> Narrowing:
        """What the vectors that are there have lost."""
        narrowing = self._narrowing or PLAIN
        fits = narrowing.offset is not None and len(narrowing.offset) == self.dimension
        return narrowing if fits else PLAIN

    def _check_plain(self, path: PathLike) -> None:
        if self._offset().offset is not None:
            raise ValueError(
                f"the index subtracts an offset from float64 vectors, and {os.fspath(path)} holds others; give them as "
                "an array, or begin with the file"
            )

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
    def factory(self) -> str:
        """What kind of index it is, as it was given."""
        return self._index.factory

    @property
    def trained(self) -> bool:
        """Whether vectors can be added; always for ``"Flat"``."""
        return self._index.trained

    @property
    def dimension(self) -> int:
        """The length of a vector; 0 before the first training or add."""
        return self._index.dimension

    @property
    def dtype(self) -> str | None:
        """Of the vectors that were given: ``"f32"``, ``"f16"``, ``"bf16"``, ``"u8"``, ``"i8"``; None before the first."""
        return str(self._index.info()["dtype"]) if self.dimension > 0 else None

    @property
    def metric(self) -> Metric:
        """The metric's name."""
        return cast(Metric, self._index.metric)

    @property
    def device(self) -> str:
        """Where searches run, as it was given."""
        return self._device
