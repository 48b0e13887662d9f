"""How a call tells how far it is: not at all, to a callable, or as a bar of tqdm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Union

ProgressCallback = Callable[[str, int, int], object]
Progress = Union[bool, ProgressCallback]


def reporter(progress: Progress) -> ProgressCallback | None:
    """What to call with (stage, done, total), or None; a `ProgressBar` is to be closed after the call."""
    if progress is False:
        return None
    if progress is True:
        return ProgressBar()
    if callable(progress):
        return progress
    raise TypeError(f"progress is {progress!r}; it must be True, False or a callable of (stage, done, total)")


class ProgressBar:
    """A bar per stage, drawn by tqdm: in a notebook as a widget, elsewhere on stderr."""

    def __init__(self) -> None:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            raise ImportError(
                "progress=True draws with tqdm, which is missing: pip install tqdm, or pass a callable"
            ) from None
        self._make: Any = tqdm
        self._bar: Any = None
        self._stage = ""

    def __call__(self, stage: str, done: int, total: int) -> None:
        if self._bar is None or stage != self._stage or total != self._bar.total:
            self.close()
            self._bar = self._make(total=total, desc=stage, unit_scale=True)
            self._stage = stage
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
