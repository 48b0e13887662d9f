"""Pictures of neighbours, paths and groups: what was found, for eyes."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
import numpy.typing as npt

from kith._errors import kind_of
from kith._items import ItemError, Items
from kith._kmeans import KMeans
from kith._libraries import library_of
from kith._near_duplicates import NearDuplicates
from kith._options import whole_number
from kith._other_names import answers_other_names
from kith._range_search import RangeNeighbors
from kith._smooth_paths import SmoothPath

_INK, _QUIET, _ACCENT, _OTHER = "#24292f", "#8b949e", "#2f6f9f", "#c4552d"
_CELL = 0.95  # inches of an image's side
_GAP = 0.1  # inches between images
_LINE = 0.22  # and of a line of text
_MARGIN = 0.12
_LETTERS = 110  # of a text, at most


class _Tile(NamedTuple):
    """An item with what is written under it."""

    item: int
    caption: str = ""
    marked: bool = False


class _Row(NamedTuple):
    """A row of tiles. `query`: the query that they belong to, drawn first; None for no query."""

    title: str
    query: int | None
    tiles: list[_Tile]


@answers_other_names("kith.show()")
def show(
    items: Any,
    found: Any,
    *,
    queries: Any = None,
    labels: Sequence[Any] | None = None,
    query_labels: Sequence[Any] | None = None,
    rows: SupportsIndex = 8,
    columns: SupportsIndex = 10,
    shape: tuple[int, ...] | None = None,
    cmap: str = "gray_r",
) -> Any:
    """Draw what was found, as images or texts: queries with their neighbours, a path, clusters, groups.

    Parameters
    ----------
    items : array_like of images, sequence of str, folder, or sequence of image files
        What the vectors of the base stand for: images as (rows, height, width) or (rows, height, width, 3), or as vectors
        of their pixels, (rows, height * width), if they are square or `shape` says what they are; a folder of images, in the order
        of their names; paths; texts, or a ``.txt`` or ``.jsonl`` file of them.
    found : Neighbors, RangeNeighbors, KnnGraph, SmoothPath, KMeans, NearDuplicates, or array_like
        Neighbours are row numbers of `items`, (queries, k), and are drawn beside who asked for them. A `SmoothPath` is a film
        strip. A fitted `KMeans`, and a label for each item (1-D, as many as `items`), are drawn as groups, a line each, the
        largest first; so is a list of arrays of rows, or what `near_duplicates` has found.
    queries : like `items`, optional
        What the queries stand for. By default `items` themselves, as in a `KnnGraph`.
    labels, query_labels : sequence, optional
        The class of each item and of each query; a neighbour of another class than its query's is marked. Without
        `query_labels`, `labels` are also used for the queries, if these are `items`.
    rows : int, default 8
        How many queries or groups to draw, from the first on.
    columns : int, default 10
        How many neighbours, or items of a group, at most; a path goes on in the next line.
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
        matplotlib is not installed: ``pip install matplotlib``.
    ValueError
        Items that are neither images nor texts, ids beyond them, fewer queries than results.

    Examples
    --------
    >>> import numpy as np, kith
    >>> images = np.random.default_rng(0).integers(0, 256, (50, 8, 8), dtype=np.uint8)
    >>> picture = kith.show(images, kith.knn_graph(images.reshape(50, -1), k=5), rows=3)  # doctest: +SKIP
    >>> picture.savefig("neighbours.png")  # doctest: +SKIP
    """
    most, width = whole_number(rows, "rows"), whole_number(columns, "columns")
    if most < 1 or width < 1:
        raise ValueError(f"rows is {rows} and columns is {columns}; each must be at least 1")
    for given, name in ((labels, "labels"), (query_labels, "query_labels")):
        if given is not None and (isinstance(given, (str, bytes)) or not hasattr(given, "__getitem__")):
            raise TypeError(f"{name} is {kind_of(given)}; it must be a sequence with a label for each")
    things = Items(items, "items", shape)
    asked = things if queries is None else Items(queries, "queries", shape)
    if query_labels is None and queries is None:
        query_labels = labels
    lines = _lines(found, things, most, width, labels, query_labels)
    if not lines:
        raise ValueError("nothing was found, and there is nothing to draw")
    _check(lines, things, asked)
    picture = _picture()
    if things.kind == "texts" or asked.kind == "texts":
        if things.kind != asked.kind:
            raise ValueError("items are texts and queries images, or the other way round; give both of one kind")
        _draw_texts(picture, things, asked, lines)
    else:
        _draw_images(picture, things, asked, lines, cmap)
    return picture


def _lines(
    found: Any, things: Items, most: int, width: int, labels: Sequence[Any] | None, query_labels: Sequence[Any] | None
) -> list[_Row]:
    """What to draw, in lines of tiles."""
    if isinstance(found, SmoothPath):
        return _path(found, width, labels)
    groups = _groups(found, len(things))
    if groups is not None:
        return [_group(title, members, width, labels) for _, (title, members) in zip(range(most), groups)]
    lines = []
    for query, (ids, distances) in zip(range(most), _neighbours(found)):
        name = "" if query_labels is None else str(query_labels[query])
        tiles = []
        for place, item in enumerate(ids[:width].tolist()):
            if item < 0:
                continue
            other = "" if labels is None or query_labels is None or item >= len(labels) else str(labels[item])
            marked = other not in ("", name)
            told = [other] if marked else []
            told += [] if distances is None else [f"{distances[place]:.4g}"]
            tiles.append(_Tile(item, " · ".join(told), marked))
        lines.append(_Row(name, query, tiles))
    return lines


def _path(path: SmoothPath, width: int, labels: Sequence[Any] | None) -> list[_Row]:
    steps = path.rows.tolist()
    if not steps:
        raise ValueError("no path joins the two rows: they lie in two parts of the graph")
    title = f"{len(steps) - 1} steps, the largest {path.width:.4g}"
    tiles = [_Tile(row, "" if labels is None else str(labels[row]), place in (0, len(steps) - 1)) for place, row in enumerate(steps)]
    return [_Row(title if first == 0 else "", None, tiles[first : first + width]) for first in range(0, len(tiles), width)]


def _group(title: str, members: npt.NDArray[np.int64], width: int, labels: Sequence[Any] | None) -> _Row:
    return _Row(title, None, [_Tile(row, "" if labels is None else str(labels[row])) for row in members[:width].tolist()])


def _groups(found: Any, items: int) -> Iterator[tuple[str, npt.NDArray[np.int64]]] | None:
    """Titles and rows of groups, the largest first; None for what is no groups."""
    if isinstance(found, NearDuplicates):
        return ((f"{len(rows)} alike", rows) for rows in found.groups())
    if isinstance(found, KMeans):
        return _labelled(np.asarray(found.labels_), items, "cluster")
    if isinstance(found, (list, tuple)) and not hasattr(found, "ids") and _are_groups(found):
        return ((f"{len(rows)} items", np.asarray(rows, np.int64)) for rows in found)
    if hasattr(found, "ids"):
        return None
    array = np.asarray(library_of(found).to_host(found) if hasattr(found, "shape") else found)
    if array.ndim == 1 and array.size == items and items > 1 and array.dtype.kind in "iu":
        return _labelled(array, items, "label")
    return None


def _are_groups(found: Any) -> bool:
    """Whether it is a list of arrays of rows, and no matrix."""
    return len(found) > 0 and all(isinstance(one, np.ndarray) and one.ndim == 1 and one.dtype.kind in "iu" for one in found)


def _labelled(labels: npt.NDArray[Any], items: int, what: str) -> Iterator[tuple[str, npt.NDArray[np.int64]]]:
    if labels.size != items:
        raise ValueError(f"there are {labels.size} labels, and {items} items; give those that were clustered")
    order = np.argsort(labels, kind="stable")
    names, firsts, sizes = np.unique(labels[order], return_index=True, return_counts=True)
    for place in np.argsort(-sizes, kind="stable"):
        yield f"{what} {names[place]}: {sizes[place]}", order[firsts[place] : firsts[place] + sizes[place]]


def _neighbours(found: Any) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.float32] | None]]:
    """Ids and distances of each query."""
    if isinstance(found, RangeNeighbors):
        offsets, rows, far = (library_of(part).to_host(part) for part in found)
        for first, last in zip(offsets.tolist(), offsets.tolist()[1:]):
            yield rows[first:last], far[first:last]
        return
    given = getattr(found, "ids", found)
    ids = np.asarray(library_of(given).to_host(given) if hasattr(given, "shape") else given)
    if ids.dtype.kind not in "iu" or ids.ndim not in (1, 2):
        raise ValueError(f"found is {ids.dtype} of shape {ids.shape}; neighbours must be ids, (queries, k)")
    distances = getattr(found, "distances", None)
    if distances is not None:
        distances = library_of(distances).to_host(distances)
    if ids.ndim == 1:  # of one query
        yield ids.astype(np.int64), distances
        return
    for query in range(len(ids)):
        yield ids[query].astype(np.int64), None if distances is None else distances[query]


def _check(lines: list[_Row], things: Items, asked: Items) -> None:
    last = max((line.query for line in lines if line.query is not None), default=-1)
    if last >= len(asked):
        raise ValueError(f"there are {last + 1} results, but {len(asked)} queries; give what the queries stand for")
    largest = max((tile.item for line in lines for tile in line.tiles), default=-1)
    if largest >= len(things):
        raise ValueError(f"neighbours hold the id {largest}, and there are {len(things)} items")


def _picture() -> Any:
    """A figure that a notebook draws, whichever backend matplotlib has there."""
    try:
        figure: Any = import_module("matplotlib.figure")
        canvas: Any = import_module("matplotlib.backends.backend_agg")
    except ImportError:
        raise ImportError("kith.show draws with matplotlib, which is missing: pip install matplotlib") from None
    picture = type("Picture", (figure.Figure,), {"_repr_png_": _png})()
    canvas.FigureCanvasAgg(picture)
    return picture


def _png(picture: Any) -> bytes:
    file = io.BytesIO()
    picture.savefig(file, format="png", dpi=100)
    return file.getvalue()


def _draw_images(picture: Any, things: Items, asked: Items, lines: list[_Row], cmap: str) -> None:
    with_queries = any(line.query is not None for line in lines)
    beside = _CELL + 2.5 * _GAP if with_queries else 0.0
    cells = max(1, *(len(line.tiles) for line in lines))
    width = max(2 * _MARGIN + beside + cells * (_CELL + _GAP) - _GAP, 3.0)
    titled = [bool(line.title) and line.query is None for line in lines]
    heights = [_CELL + _LINE + _GAP / 2 + (_LINE if has else 0.0) for has in titled]
    top = _MARGIN + (_LINE if with_queries else 0.0)
    height = top + sum(heights) + _MARGIN
    picture.set_size_inches(width, height)

    def place(left: float, down: float) -> Any:
        return picture.add_axes((left / width, 1 - (down + _CELL) / height, _CELL / width, _CELL / height))

    def write(left: float, down: float, text: str, colour: str) -> None:
        picture.text(left / width, 1 - down / height, text, color=colour, weight="bold", fontsize=9, va="top")

    if with_queries:
        write(_MARGIN, _MARGIN / 2, "query", _ACCENT)
        write(_MARGIN + beside, _MARGIN / 2, "nearest", _INK)
    for line, has_title, taken in zip(lines, titled, heights):
        down = top
        if has_title:
            write(_MARGIN, down, line.title, _INK)
            down += _LINE
        if line.query is not None:
            _draw_image(place(_MARGIN, down), asked, line.query, cmap, line.title, _ACCENT, framed=True)
        for column, tile in enumerate(line.tiles):
            axes = place(_MARGIN + beside + column * (_CELL + _GAP), down)
            colour = (_OTHER if line.query is not None else _ACCENT) if tile.marked else _QUIET
            _draw_image(axes, things, tile.item, cmap, tile.caption, colour, framed=tile.marked)
        top += taken


def _draw_image(axes: Any, things: Items, row: int, cmap: str, caption: str, colour: str, *, framed: bool) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    try:
        axes.imshow(things.pixels(row), cmap=cmap, interpolation="nearest")
    except ItemError as error:
        axes.text(0.5, 0.5, textwrap.fill(str(error), 14), fontsize=5, color=_QUIET, ha="center", va="center")
    for spine in axes.spines.values():
        spine.set_edgecolor(colour if framed else "#dcdfe3")
        spine.set_linewidth(1.5 if framed else 0.8)
    axes.set_xlabel(textwrap.shorten(caption, 22, placeholder="…"), fontsize=7, color=colour, labelpad=2)


def _draw_texts(picture: Any, things: Items, asked: Items, lines: list[_Row]) -> None:
    assert things.texts is not None and asked.texts is not None
    count = sum(1 + bool(line.title or line.query is not None) + len(line.tiles) for line in lines)
    picture.set_size_inches(9, count * _LINE + 0.2)
    height, at = picture.get_figheight(), 0.1
    for line in lines:
        title = line.title
        if line.query is not None:
            title = asked.texts[line.query] + (f"  ({line.title})" if line.title else "")
        if title:
            _write(picture, 0.02, 1 - at / height, title, _ACCENT, weight="bold")
            at += _LINE
        for tile in line.tiles:
            _write(picture, 0.03, 1 - at / height, tile.caption, _OTHER if tile.marked else _QUIET)
            left = 0.12 if len(tile.caption) < 10 else 0.2
            _write(picture, left, 1 - at / height, things.texts[tile.item], _OTHER if tile.marked else _INK)
            at += _LINE
        at += _LINE


def _write(picture: Any, left: float, top: float, text: str, colour: str, **style: Any) -> None:
    # Dollars would begin a formula.
    short = textwrap.shorten(text, _LETTERS, placeholder=" ...").replace("$", r"\$")
    picture.text(left, top, short, color=colour, fontsize=9, va="top", **style)
