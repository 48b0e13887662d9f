"""Pictures of neighbours: what a search found, for eyes."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from importlib import import_module
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from kith._libraries import library_of
from kith._options import whole_number

_INK, _QUIET, _ACCENT, _OTHER = "#24292f", "#8b949e", "#2f6f9f", "#c4552d"
_CELL = 0.95  # inches of an image's side
_LINE = 0.22  # and of a line of text
_LETTERS = 110  # of a text, at most


def show(
    items: Any,
    neighbours: Any,
    *,
    queries: Any = None,
    labels: Sequence[Any] | None = None,
    query_labels: Sequence[Any] | None = None,
    rows: SupportsIndex = 8,
    columns: SupportsIndex = 10,
    shape: tuple[int, ...] | None = None,
    cmap: str = "gray_r",
) -> Any:
    """Draw queries, each with its nearest neighbours beside it: images or texts.

    Parameters
    ----------
    items : array_like of images, or sequence of str
        What the vectors of the base stand for: images as (rows, height, width) or (rows, height, width, 3), or as vectors
        of their pixels, (rows, height * width), if they are square or `shape` says what they are.
    neighbours : Neighbors, KnnGraph, or array_like of int (queries, k)
        What a search returned: row numbers of `items`, and, where there are some, distances.
    queries : like `items`, optional
        What the queries stand for. By default `items` themselves, as in a `KnnGraph`.
    labels, query_labels : sequence, optional
        The class of each item and of each query; a neighbour of another class than its query's is marked. Without
        `query_labels`, `labels` are those of the queries too, where the queries are `items`.
    rows : int, default 8
        How many queries to draw, from the first on.
    columns : int, default 10
        How many neighbours of each, at most.
    shape : tuple of int, optional
        (height, width) or (height, width, 3) of images given as vectors.
    cmap : str, default "gray_r"
        matplotlib's colour map for images of one channel; ``"gray"`` for light on dark.

    Returns
    -------
    matplotlib.figure.Figure
        ``.savefig("neighbours.png")`` writes it; a notebook draws it.

    Raises
    ------
    ImportError
        matplotlib is not installed: ``pip install 'kithnn[show]'``.
    ValueError
        Items that are neither images nor texts, ids beyond them, fewer queries than results.

    Examples
    --------
    >>> import numpy as np, kith
    >>> images = np.random.default_rng(0).integers(0, 256, (50, 8, 8), dtype=np.uint8)
    >>> picture = kith.show(images, kith.knn_graph(images.reshape(50, -1), k=5), rows=3)  # doctest: +SKIP
    >>> picture.savefig("neighbours.png")  # doctest: +SKIP
    """
    ids, distances = _found(neighbours)
    count = min(whole_number(rows, "rows"), len(ids))
    width = min(whole_number(columns, "columns"), ids.shape[1])
    if count < 1 or width < 1:
        raise ValueError(f"rows is {rows} and columns is {columns}; each must be at least 1, and neighbours have some")
    if query_labels is None and queries is None:
        query_labels = labels
    things = _Items(items, "items", shape)
    asked = things if queries is None else _Items(queries, "queries", shape)
    if len(asked) < count:
        raise ValueError(f"there are {len(ids)} results, but {len(asked)} queries; give what the queries stand for")
    shown = ids[:count, :width]
    if shown.max(initial=-1) >= len(things):
        raise ValueError(f"neighbours hold the id {shown.max()}, and there are {len(things)} items")
    rows_shown = [
        _Row(query, shown[query], None if distances is None else distances[query, :width], labels, query_labels)
        for query in range(count)
    ]
    picture = _picture()
    if things.texts is not None or asked.texts is not None:
        _draw_texts(picture, things, asked, rows_shown)
    else:
        _draw_images(picture, things, asked, rows_shown, width, cmap)
    return picture


class _Items:
    """Images or texts, one for each vector."""

    def __init__(self, given: Any, name: str, shape: tuple[int, ...] | None) -> None:
        self.texts: list[str] | None = None
        self.images: npt.NDArray[Any] | None = None
        if not hasattr(given, "shape") and len(given) > 0 and isinstance(given[0], str):
            self.texts = [str(text) for text in given]
            return
        array = np.asarray(library_of(given).to_host(given) if hasattr(given, "shape") else given)
        if array.dtype.kind in "UO" and array.ndim == 1:
            self.texts = [str(text) for text in array]
            return
        self.images = _as_images(array, name, shape)

    def __len__(self) -> int:
        if self.texts is not None:
            return len(self.texts)
        assert self.images is not None
        return len(self.images)


class _Row:
    """A query and what it found; who is of another class."""

    def __init__(
        self,
        query: int,
        ids: npt.NDArray[np.int64],
        distances: npt.NDArray[np.float32] | None,
        labels: Sequence[Any] | None,
        query_labels: Sequence[Any] | None,
    ) -> None:
        self.query = query
        self.name = "" if query_labels is None else str(query_labels[query])
        self.found = []
        for column, row in enumerate(ids.tolist()):
            if row < 0:
                continue
            name = "" if labels is None else str(labels[row])
            other = query_labels is not None and labels is not None and name != self.name
            distance = "" if distances is None else f"{distances[column]:.4g}"
            self.found.append((row, distance, name if other else "", other))


def _found(neighbours: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32] | None]:
    given = getattr(neighbours, "ids", neighbours)
    ids = np.asarray(library_of(given).to_host(given) if hasattr(given, "shape") else given)
    if ids.dtype.kind not in "iu" or ids.ndim not in (1, 2):
        raise ValueError(f"neighbours are {ids.dtype} of shape {ids.shape}; they must be ids, (queries, k)")
    distances = getattr(neighbours, "distances", None)
    if distances is not None:
        distances = library_of(distances).to_host(distances)
    if ids.ndim == 1:  # of one query
        return ids[np.newaxis].astype(np.int64), None if distances is None else distances[np.newaxis]
    return ids.astype(np.int64), distances


def _as_images(array: npt.NDArray[Any], name: str, shape: tuple[int, ...] | None) -> npt.NDArray[Any]:
    if array.dtype.kind not in "fiub" or array.ndim not in (2, 3, 4):
        raise ValueError(f"{name} are {array.dtype} of shape {array.shape}; give images, vectors of pixels, or texts")
    if shape is not None:
        if int(np.prod(shape)) != int(np.prod(array.shape[1:])):
            raise ValueError(f"shape is {shape}, and {name} have {int(np.prod(array.shape[1:]))} values each")
        return array.reshape(len(array), *shape)
    if array.ndim > 2:
        return array
    side = round(array.shape[1] ** 0.5)
    if side * side != array.shape[1]:
        raise ValueError(f"{name} have {array.shape[1]} values each, which is no square: say what they are with shape=")
    return array.reshape(-1, side, side)


def _picture() -> Any:
    """A figure that a notebook draws, whichever backend matplotlib has there."""
    try:
        figure: Any = import_module("matplotlib.figure")
        canvas: Any = import_module("matplotlib.backends.backend_agg")
    except ImportError:
        raise ImportError("kith.show draws with matplotlib, which is missing: pip install 'kithnn[show]'") from None
    picture = type("Picture", (figure.Figure,), {"_repr_png_": _png})()
    canvas.FigureCanvasAgg(picture)
    return picture


def _png(picture: Any) -> bytes:
    file = io.BytesIO()
    picture.savefig(file, format="png", dpi=100)
    return file.getvalue()


def _draw_images(picture: Any, things: _Items, asked: _Items, rows: list[_Row], columns: int, cmap: str) -> None:
    picture.set_size_inches((columns + 1.6) * _CELL, len(rows) * (_CELL + _LINE) + 0.4)
    grid = picture.subplots(len(rows), columns + 1, squeeze=False, gridspec_kw={"width_ratios": [1.25] + [1] * columns})
    for axes in grid.flat:
        axes.set_axis_off()
    assert things.images is not None and asked.images is not None
    for line, row in zip(grid, rows):
        _draw_image(line[0], asked.images[row.query], cmap, row.name, _ACCENT, framed=True)
        for axes, (item, distance, name, other) in zip(line[1:], row.found):
            caption = f"{name} {distance}".strip()
            _draw_image(axes, things.images[item], cmap, caption, _OTHER if other else _QUIET, framed=other)
    grid[0, 0].text(0, 1.12, "query", transform=grid[0, 0].transAxes, color=_ACCENT, weight="bold", fontsize=9)
    grid[0, 1].text(0, 1.12, "nearest", transform=grid[0, 1].transAxes, color=_INK, weight="bold", fontsize=9)
    picture.subplots_adjust(left=0.02, right=0.99, top=1 - 0.4 / picture.get_figheight(), bottom=0.05, wspace=0.12, hspace=0.3)


def _draw_image(axes: Any, image: npt.NDArray[Any], cmap: str, caption: str, colour: str, *, framed: bool) -> None:
    axes.set_axis_on()
    axes.set_xticks([])
    axes.set_yticks([])
    axes.imshow(image, cmap=cmap, interpolation="nearest")
    for spine in axes.spines.values():
        spine.set_edgecolor(colour if framed else "#dcdfe3")
        spine.set_linewidth(1.5 if framed else 0.8)
    axes.set_xlabel(caption, fontsize=7, color=colour, labelpad=2)


def _draw_texts(picture: Any, things: _Items, asked: _Items, rows: list[_Row]) -> None:
    if things.texts is None or asked.texts is None:
        raise ValueError("items are texts and queries images, or the other way round; give both of one kind")
    lines = sum(2 + len(row.found) for row in rows)
    picture.set_size_inches(9, lines * _LINE + 0.2)
    height, at = picture.get_figheight(), 0.1
    for row in rows:
        title = asked.texts[row.query] if not row.name else f"{asked.texts[row.query]}  ({row.name})"
        _write(picture, 0.02, 1 - at / height, title, _ACCENT, weight="bold")
        at += _LINE
        for item, distance, name, other in row.found:
            text = things.texts[item] if not name else f"{things.texts[item]}  ({name})"
            _write(picture, 0.03, 1 - at / height, distance, _QUIET)
            _write(picture, 0.12, 1 - at / height, text, _OTHER if other else _INK)
            at += _LINE
        at += _LINE


def _write(picture: Any, left: float, top: float, text: str, colour: str, **style: Any) -> None:
    # Dollars would begin a formula.
    short = textwrap.shorten(text, _LETTERS, placeholder=" ...").replace("$", r"\$")
    picture.text(left, top, short, color=colour, fontsize=9, va="top", **style)
