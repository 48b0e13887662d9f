"""A collection as what the page shows: its vectors, ids and labels, and items from its payloads or from a column of texts.

One version is read: vectors and columns at the start, payloads when they are looked at, since they may be large.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kith import _kith
from kith._collection import Collection, CollectionView
from kith._collection import open as open_collection
from kith._files import path_bytes
from kith._items import Items, media_type

_AT_ONCE = 2048  # items that are read at a time


class Collected(NamedTuple):
    """What a collection gives to a page."""

    items: Items
    x: npt.NDArray[Any]
    ids: Any
    """An array of int64, or a list of str."""
    labels: list[Any] | None
    metric: str
    close: Callable[[], None]


def is_collection(given: Any) -> bool:
    """Whether this is a collection, one of its views, or the path of one."""
    if isinstance(given, (Collection, CollectionView)):
        return True
    return isinstance(given, (str, os.PathLike)) and os.path.isdir(given) and _kith.has_collections and _kith.collection_exists(path_bytes(given))


def collected(given: Any, text: str | None = None, label: str | None = None) -> Collected:
    """The items of a collection in the order in which they were added. `text` and `label` are columns.

    Without `text` items are the payloads, where they are images or texts, else the first column of texts, else ids.
    """
    opened = None
    if not isinstance(given, (Collection, CollectionView)):
        given = opened = open_collection(given, mode="r")
    try:
        view = given.view() if isinstance(given, Collection) else given
        return _read(view, text, label, (lambda: None) if opened is None else opened.close)
    except BaseException:
        if opened is not None:
            opened.close()
        raise


def _read(view: CollectionView, text: str | None, label: str | None, close: Callable[[], None]) -> Collected:
    for name, what in ((text, "text"), (label, "labels")):
        if name is not None and name not in view.columns:
            known = ", ".join(view.columns) or "none"
            raise ValueError(f"{what} is {name!r}, which is no column of the collection; its columns are: {known}")
    if len(view) == 0:
        raise ValueError("the collection is empty; add items first")
    ids = view.ids()
    parts = [view.get(ids[first : first + _AT_ONCE]) for first in range(0, min(len(ids), _AT_ONCE), _AT_ONCE)]
    payload = next((payload for payload in parts[0].payloads if payload), b"")
    kind = "" if text is not None else _kind(payload)
    column = text if text is not None or kind else next((name for name, type_ in view.columns.items() if type_ == "text" and name != label), None)
    x = np.empty((len(ids), view.dimension), parts[0].vectors.dtype)
    texts: list[Any] = []
    labels: list[Any] = []
    for first in range(0, len(ids), _AT_ONCE):
        part = parts[0] if first == 0 else view.get(ids[first : first + _AT_ONCE])
        x[first : first + len(part.vectors)] = part.vectors
        texts += [] if column is None else part.columns[column]
        labels += [] if label is None else part.columns[label]
    if kind == "images":
        items: Items = _PayloadImages(_Payloads(view, ids), "payloads")
    elif kind == "texts":
        items = Items(_PayloadTexts(view, ids), "payloads")
    else:
        items = Items(texts if column is not None else [str(one) for one in ids], "items")
    return Collected(items, x, ids, None if label is None else labels, view.metric, close)


def _kind(payload: bytes) -> str:
    """What payloads are, by one of them: images, texts, or neither."""
    if not payload:
        return ""
    if media_type(payload) is not None or payload[:4] in (b"II*\0", b"MM\0*"):
        return "images"
    try:
        return "" if "\0" in payload.decode("utf-8") else "texts"
    except UnicodeDecodeError:
        return ""


class _Payloads(Sequence[Any]):
    """The payload of each row, read when it is asked for; None where it is empty."""

    def __init__(self, view: CollectionView, ids: Any) -> None:
        self._view, self._ids = view, ids

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, row: Any) -> Any:
        return self._view.get(self._ids[row : row + 1]).payloads[0] or None

    def __iter__(self) -> Iterator[Any]:
        for first in range(0, len(self), _AT_ONCE):
            yield from self._view.get(self._ids[first : first + _AT_ONCE]).payloads


class _PayloadTexts(_Payloads):
    def __getitem__(self, row: Any) -> Any:
        return (super().__getitem__(row) or b"").decode("utf-8", "replace")

    def __iter__(self) -> Iterator[Any]:
        return (payload.decode("utf-8", "replace") for payload in super().__iter__())


class _PayloadImages(Items):
    """Images without names: to look for one would read every payload."""

    def caption(self, row: int) -> str:
        return ""
