"""What the caller gave to `kith.explore`, checked, so that whatever the page asks later can be answered."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from kith._arrays import is_bfloat16, to_numpy
from kith._errors import kind_of
from kith._explore.collected import collected, is_collection
from kith._explore.vector_files import vectors_in
from kith._items import Items, opened
from kith._knn_graph import KnnGraph
from kith._libraries import library_of
from kith._metrics import Metric, metric_name
from kith._options import check_device
from kith._typing import DeviceNames

_MOST_CLASSES = 64  # whole numbers of more distinct values are a scale, not names
_MOST_FRACTIONS = 12  # and others


class Given:
    """Items, vectors, and what goes with them; or a collection, which holds all of these."""

    def __init__(
        self,
        items: Any,
        x: Any = None,
        labels: Sequence[Any] | str | None = None,
        graph: KnnGraph | None = None,
        xy: Any = None,
        encode: Callable[[Any], Any] | None = None,
        *,
        metric: Metric | None = None,
        device: DeviceNames = "auto",
        shape: tuple[int, ...] | None = None,
        text: str | None = None,
    ) -> None:
        self.ids: Any = None
        self.close: Callable[[], None] = lambda: None
        """Ends the reading of a collection that was opened here."""
        if is_collection(items) or x is None:
            if x is not None:
                raise TypeError("x is given, and a collection has vectors of its own; leave x out, or give items that are no collection")
            if not is_collection(items):
                raise TypeError(f"x is missing: kith.explore(items, x) takes the vectors of the items{_no_collection(items)}")
            held = collected(items, text, labels if isinstance(labels, str) else None)
            items, x, self.ids, self.close = held.items, held.x, held.ids, held.close
            labels = held.labels if isinstance(labels, str) else labels
            metric = held.metric if metric is None and graph is None else metric  # type: ignore[assignment]
        elif text is not None:
            raise TypeError("text names a column of a collection, and items are none")
        elif isinstance(labels, str):
            raise TypeError(f"labels is {labels!r}; give a label for each row of x, or of a collection the name of a column")
        try:
            self._check(items, x, labels, graph, xy, encode, metric, device, shape)
        except BaseException:
            self.close()
            raise

    def _check(
        self,
        items: Any,
        x: Any,
        labels: Sequence[Any] | None,
        graph: KnnGraph | None,
        xy: Any,
        encode: Callable[[Any], Any] | None,
        metric: Metric | None,
        device: DeviceNames,
        shape: tuple[int, ...] | None,
    ) -> None:
        self.x = _vectors(x)
        self.device = check_device(device)
        self.graph = _graph(graph, len(self.x))
        self.metric = cast(Metric, _metric(metric, self.graph))
        self.items = _items(items, self.x, shape)
        self.noun = "row" if items is None and shape is None else self.items.kind.removesuffix("s")
        """What one of the items is, in a word."""
        if len(self.items) != len(self.x):
            raise ValueError(f"there are {len(self.items)} items and {len(self.x)} vectors; give an item for each row of x")
        self.labels = None if labels is None else Labels(labels, len(self.x))
        self.xy = None if xy is None else _places(xy, len(self.x))
        if encode is not None and not callable(encode):
            raise TypeError(f"encode is {kind_of(encode)}; it must be a function of a text or an image")
        self.encode = encode if encode is not None else self._encoder_of_pixels()
        self.encodes_texts = encode is not None

    def __len__(self) -> int:
        return len(self.x)

    def rows_of_id(self, wanted: str) -> list[int]:
        """The row of an id that was typed, if there is one."""
        if not isinstance(self.ids, np.ndarray):
            return [self.ids.index(wanted)] if wanted in self.ids else []
        if not re.fullmatch("-?[0-9]{1,18}", wanted, re.ASCII):
            return []
        return [int(row) for row in np.flatnonzero(self.ids == int(wanted))]

    def _encoder_of_pixels(self) -> Callable[[Any], Any] | None:
        """An uploaded image is a vector too where vectors are the pixels of the items."""
        shape, columns = self.items.image_shape, self.x.shape[1]
        if shape is None or len(shape) > 3 or int(np.prod(shape)) != columns or self.x.dtype.kind not in "fu":
            return None
        first, largest = np.asarray(self.x[0], np.float64), 255.0
        pixels = np.asarray(self.items.pixels(0), np.float64).ravel()
        if self.x.dtype.kind == "f" and float(np.max(self.x[:: max(1, len(self.x) // 256)], initial=0)) <= 1:
            largest = 1.0
        if not (np.array_equal(first, pixels) or np.allclose(first * 255, pixels)):
            return None

        def encode(image: Any) -> Any:
            images: Any = import_module("PIL.Image")
            mode = {1: "L", 3: "RGB", 4: "RGBA"}[1 if len(shape) == 2 else shape[2]]
            resized = image.convert(mode).resize((shape[1], shape[0]), images.Resampling.BILINEAR)
            return (np.asarray(resized, np.float32) * (largest / 255)).astype(self.x.dtype).ravel()

        return encode

    def vector_of_text(self, text: str) -> npt.NDArray[Any]:
        """What `encode` makes of a text; ValueError, in words, where it does not."""
        assert self.encode is not None
        return self._encoded(self.encode, text, "text")

    def vector_of_image(self, data: bytes) -> npt.NDArray[Any]:
        """What `encode` makes of an image file; ValueError, in words, where it does not, or where it is none."""
        assert self.encode is not None
        return self._encoded(self.encode, opened(data, "the upload"), "image")

    def _encoded(self, encode: Callable[[Any], Any], query: Any, kind: str) -> npt.NDArray[Any]:
        try:
            made = encode(query)
            vector = np.asarray(library_of(made).to_host(made) if hasattr(made, "shape") else made)
        except Exception as error:  # the caller's own code
            raise ValueError(f"encode= could not make a vector of this {kind}: {type(error).__name__}: {error}") from error
        if vector.dtype.kind not in "fiu" and not is_bfloat16(vector.dtype):
            raise ValueError(f"encode= made {vector.dtype} of this {kind}, and vectors are numbers")
        if vector.size != self.x.shape[1]:
            raise ValueError(f"encode= made {vector.size} values of this {kind}, and vectors have {self.x.shape[1]}")
        flat = vector.reshape(1, -1)
        if flat.dtype.kind == "f" and not np.isfinite(flat).all():
            raise ValueError(f"encode= made a vector with NaN or infinities of this {kind}")
        return flat.astype(self.x.dtype, copy=False) if self.metric == "hamming" else flat


class Labels:
    """A name for each row, of some classes, or a number for each, on a scale."""

    def __init__(self, given: Sequence[Any], rows: int) -> None:
        array = np.asarray(library_of(given).to_host(given) if hasattr(given, "shape") else _plain(given))
        if array.ndim != 1 or len(array) != rows:
            raise ValueError(f"labels have shape {array.shape}, and there are {rows} vectors; give a label for each row of x")
        self.values: npt.NDArray[np.float64] | None = None
        self.names: list[str] = []
        self.codes: npt.NDArray[np.int32] | None = None
        self._given = array
        if array.dtype.kind in "fiu":
            distinct, codes = np.unique(array, return_inverse=True)
            whole = bool((distinct == np.rint(distinct)).all())
            if len(distinct) > (_MOST_CLASSES if whole else _MOST_FRACTIONS):
                self.values = array.astype(np.float64)
                return
            self.names, self.codes = [f"{name:.9g}" for name in distinct.tolist()], codes.reshape(-1).astype(np.int32)
        else:
            self.names, self.codes = _classes(array)

    def __getitem__(self, row: int) -> str:
        if self.codes is not None:
            return self.names[int(self.codes[row])]
        value = self._given[row].item()
        return f"{value:.6g}" if isinstance(value, float) else str(value)


def _classes(array: npt.NDArray[Any]) -> tuple[list[str], npt.NDArray[np.int32]]:
    """The distinct names in their order, and which of them each row has. Each name is held once: an array of strings would give
    every row the room of the longest."""
    number: dict[str, int] = {}
    found = np.fromiter((number.setdefault(_name(label), len(number)) for label in array.flat), np.int32, len(array))
    names = sorted(number)
    place = np.empty(len(names), np.int32)
    place[[number[name] for name in names]] = np.arange(len(names), dtype=np.int32)
    return names, place[found]


def _name(label: Any) -> str:
    if label is None:
        return ""
    return label.decode("utf-8", "replace") if isinstance(label, bytes) else str(label)


def _plain(given: Sequence[Any]) -> Any:
    """Numbers as they are, others as objects, so that numpy makes no arrays of names of several lengths."""
    made = list(given)
    if all(isinstance(label, (bool, int, float)) for label in made):
        return made
    array = np.empty(len(made), object)
    array[:] = made
    return array


def _vectors(x: Any) -> npt.NDArray[Any]:
    if isinstance(x, (str, os.PathLike)):
        x = vectors_in(os.fspath(x))
    array = to_numpy(library_of(x).to_host(x) if hasattr(x, "shape") else x, "x")
    if array.ndim != 2 or array.size == 0:
        raise ValueError(f"x has shape {array.shape}; it must be vectors, (rows, dimension), one at least")
    return array


def _graph(graph: Any, rows: int) -> KnnGraph | None:
    if graph is None:
        return None
    if not isinstance(graph, KnnGraph):
        raise TypeError(f"graph is {kind_of(graph)}; it must be a kith.KnnGraph")
    if len(graph) != rows:
        raise ValueError(f"the graph has {len(graph)} rows, and x has {rows}; give the graph of x")
    return graph.to_host()


def _metric(metric: Metric | None, graph: KnnGraph | None) -> str:
    if metric is None:
        return "l2" if graph is None else graph.metric
    name = metric_name(metric)
    if graph is not None and graph.metric != name:
        raise ValueError(f"metric is {metric!r}, and the graph is of {graph.metric!r}; leave metric out, or give another graph")
    return name


def _no_collection(items: Any) -> str:
    return f"; {os.fspath(items)!r} is no collection" if isinstance(items, (str, os.PathLike)) else ""


def _items(items: Any, x: npt.NDArray[Any], shape: tuple[int, ...] | None) -> Items:
    if isinstance(items, Items):
        return items
    if items is not None:
        return Items(items, "items", shape)
    return Items(x, "x", shape) if shape is not None else Items(_RowNames(len(x)))


class _RowNames(Sequence[str]):
    """What rows are called where there are no items, made when asked for: a million names would be waited for."""

    def __init__(self, rows: int) -> None:
        self._rows = range(rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, row: Any) -> Any:
        return [f"row {one}" for one in self._rows[row]] if isinstance(row, slice) else f"row {self._rows[row]}"


def _places(xy: Any, rows: int) -> npt.NDArray[np.float32]:
    array = to_numpy(library_of(xy).to_host(xy) if hasattr(xy, "shape") else xy, "xy")
    if array.shape != (rows, 2) or array.dtype.kind not in "fiu":
        raise ValueError(f"xy is {array.dtype} of shape {array.shape}; it must be numbers, ({rows}, 2)")
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
        raise ValueError(f"xy: row {int(np.argmin(finite))} is not finite")
    return np.ascontiguousarray(array, np.float32)
