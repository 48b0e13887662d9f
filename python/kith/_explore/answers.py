"""What the page asks, answered: each method takes numbers and words that were checked, and returns what becomes JSON."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import numpy.typing as npt

from kith._explore.given import Given
from kith._explore.clusterings import Clusters
from kith._explore.jobs import NotReady
from kith._explore.work import Work
from kith._knn import knn

_CARD_LETTERS = 240  # of a text on a card
_ITEM_LETTERS = 20_000  # and of the item that is looked at
_FOUND_ROWS = 60  # of a search for a part of a text
_SEARCH_SECONDS = 3.0
_SHEET = 16  # items on a contact sheet
_SHEETS = 60
_STRIP = 400  # steps of a path that are drawn
_MAP_STEPS = 20_000  # and on the map
_MAP_POINTS = 2_000_000
_MOST_CLASSES = 12  # colours of the map
_LABEL_LETTERS = 120
_MOST_DIGITS = 18  # of a row's number, as far as it could be one


class Refused(Exception):
    """A question that has no answer; the words are for the page."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class Answers:
    """Everything that the page shows of what was given."""

    def __init__(self, given: Given, work: Work) -> None:
        self._given = given
        self._work = work
        self._points: tuple[str, bytes] | None = None

    def state(self) -> dict[str, Any]:
        """What there is, and how far the work is."""
        given, labels = self._given, self._given.labels
        return {
            "rows": len(given),
            "columns": int(given.x.shape[1]),
            "dtype": str(given.x.dtype),
            "metric": given.metric,
            "kind": given.items.kind,
            "noun": given.noun,
            # Names are told where each has its colour: of a million classes none has.
            "classes": 0 if labels is None else len(labels.names),
            "labels": [] if labels is None or len(labels.names) > _MOST_CLASSES else list(map(_label, labels.names)),
            "scale": labels is not None and labels.values is not None,
            "search_image": given.encode is not None,
            "search_text": given.encodes_texts,
            "ids": given.ids is not None,
            "clusters": self._work.default_count(),
            "stages": [
                {
                    "name": stage.name,
                    "title": stage.title,
                    "state": stage.state,
                    "done": stage.done,
                    "total": stage.total,
                    "seconds": round(stage.seconds, 2),
                    "words": stage.words,
                }
                for stage in self._work.stages.values()
            ],
        }

    def browse(self, first: int, count: int) -> dict[str, Any]:
        """Rows in their order, from one on."""
        self._row(first)
        rows = range(first, min(first + count, len(self._given)))
        return {"first": first, "rows": len(self._given), "items": [self._card(row) for row in rows]}

    def spread(self, count: int) -> dict[str, Any]:
        """Rows evenly spread over all."""
        total = len(self._given)
        count = min(count, total)
        rows = sorted({round(place * (total - 1) / max(1, count - 1)) for place in range(count)})
        return {"rows": total, "items": [self._card(row) for row in rows]}

    def item(self, row: int) -> dict[str, Any]:
        self._row(row)
        return self._card(row, _ITEM_LETTERS)

    def neighbours(self, row: int, k: int) -> dict[str, Any]:
        """An item and its nearest others: from the graph where it has that many, else by exact search."""
        self._row(row)
        k = min(k, len(self._given) - 1)
        graph = self._work.graph_if_ready()
        if k == 0:
            ids, distances, by = np.zeros(0, np.int64), np.zeros(0, np.float32), "exact search"
        elif graph is not None and k <= graph.k:
            ids, distances = np.asarray(graph.ids[row, :k]), np.asarray(graph.distances[row, :k])
            recall = graph.report.recall
            by = "the k-NN graph" + ("" if recall is None or recall >= 1 else f", which has {recall:.1%} of all neighbours")
            by = "exact search, kept in the k-NN graph" if recall == 1 else by
        else:
            found = self._work.search(self._given.x[row : row + 1], k + 1)
            kept = np.flatnonzero(np.asarray(found.ids[0]) != row)[:k]
            ids, distances, by = np.asarray(found.ids[0])[kept], np.asarray(found.distances[0])[kept], "exact search"
        return {"item": self._card(row, _ITEM_LETTERS), "found": self._cards(ids, distances), "by": by}

    def clusters(self, count: int) -> dict[str, Any]:
        """The cells of k-means as contact sheets, the largest first."""
        cells = self._work.cells(min(count, len(self._given)))
        sizes = np.diff(cells.begins)
        by_size = np.argsort(-sizes, kind="stable")
        return {
            "count": int((sizes > 0).sum()),
            "rows": len(self._given),
            "spherical": self._given.metric in ("cosine", "inner_product"),
            "sheets": [self._sheet(cells, int(cell)) for cell in by_size if sizes[cell] > 0][:200],
        }

    def cluster(self, count: int, cell: int, first: int, page: int) -> dict[str, Any]:
        """Rows of one cell, from its middle outwards."""
        return self._one_of(self._work.cells(min(count, len(self._given))), cell, first, page)

    def linkage(self, height: float | None) -> dict[str, Any]:
        """Single linkage cut at a height, the largest clusters as contact sheets, and the curve to choose it by."""
        linkage = self._work.linkage()
        at = linkage.suggested if height is None else height
        cut = self._work.cut(at)
        sizes = np.diff(cut.begins)
        return {
            "height": at,
            "rows": len(self._given),
            "clusters": len(cut),
            "single": int((sizes == 1).sum()),
            "sheets": [self._sheet(cut, cell) for cell in range(min(_SHEETS, int((sizes > 1).sum()) or 1))],
            "curve": {
                "heights": linkage.heights,
                "clusters": linkage.clusters,
                "largest": linkage.largest,
                "smallest": linkage.smallest,
            },
        }

    def linked(self, height: float, cell: int, first: int, page: int) -> dict[str, Any]:
        """Rows of one cluster of single linkage."""
        return self._one_of(self._work.cut(height), cell, first, page)

    def path(self, a: int, b: int, by: str) -> dict[str, Any]:
        """The smoothest path between two items; or that there is none, and how large the parts are that they lie in."""
        self._row(a)
        self._row(b)
        paths = self._work.paths()
        found = paths.path(a, b, by)
        rows = found.rows
        answer: dict[str, Any] = {"by": by, "from": self._card(a), "to": self._card(b), "count": len(rows)}
        if len(rows) == 0:
            labels = self._work.parts()
            sizes = [int((labels == labels[row]).sum()) for row in (a, b)]
            return {**answer, "parts": paths.parts, "sizes": sizes, "steps": [], "width": None}
        steps = self._step_lengths(rows)
        largest = int(np.argmax(steps)) if len(steps) else -1
        return {
            **answer,
            "width": _number(found.width),
            "items": [self._card(int(row)) for row in rows[: _STRIP + 1]],
            "rows": rows[:_MAP_STEPS].tolist(),
            "steps": [_number(step) for step in steps[:_STRIP]],
            "largest": largest,
            "cut": len(rows) > _STRIP + 1,
            # The largest step where it is behind those that are drawn.
            "beyond": [self._card(int(row)) for row in rows[largest : largest + 2]] if largest >= _STRIP else [],
            "direct": _number(self._direct(a, b)),
        }

    def pairs(self, first: int, page: int) -> dict[str, Any]:
        """The closest pairs."""
        pairs = self._work.pairs()
        graph = self._work.graph()
        shown = pairs[first : first + page]
        nearest = np.asarray(graph.distances[:, 0])
        return {
            "first": first,
            "count": len(pairs),
            "same": int((nearest == 0).sum()),
            "pairs": [
                {"items": [self._card(int(a)), self._card(int(b))], "distance": _number(self._between(int(a), int(b)))}
                for a, b in shown
            ],
        }

    def outliers(self, first: int, page: int) -> dict[str, Any]:
        """The rows whose neighbours are farthest."""
        rows, place = self._work.outliers()
        far = np.asarray(self._work.graph().distances[:, place - 1])
        shown = rows[first : first + page]
        return {"first": first, "count": len(rows), "place": place, "found": self._cards(shown, far[shown])}

    def search_text(self, text: str, k: int) -> dict[str, Any]:
        """By the caller's `encode` where there is one; else a row's number, or a part of a text, a label or a file's name."""
        if self._given.encodes_texts:
            try:
                vector = self._given.vector_of_text(text)
            except ValueError as error:
                return {**self._containing(text), "words": str(error)}
            return {**self._near(vector, k), "how": "encoded"}
        return self._containing(text)

    def search_image(self, data: bytes, k: int) -> dict[str, Any]:
        """The nearest of an uploaded image."""
        if self._given.encode is None:
            raise Refused(400, "images can be searched where kith.explore is called with encode=")
        try:
            return {**self._near(self._given.vector_of_image(data), k), "how": "encoded"}
        except ValueError as error:
            raise Refused(400, str(error)) from None

    def map_words(self) -> dict[str, Any]:
        """What the map shows: how many points, of what, and the classes that colour it."""
        _, words = self._work.places()
        total = len(self._given)
        shown = min(total, _MAP_POINTS)
        codes, names, by = self._colours()
        counts = np.bincount(codes, minlength=len(names)).tolist() if names else []
        return {"points": shown, "rows": total, "axes": words, "by": by, "names": names, "counts": counts}

    def map_points(self) -> bytes:
        """Places and colours in a random order, whose first thousand, say, are a fair sample: x and y as float32, rows as
        uint32, colours as bytes, array after array."""
        places, _ = self._work.places()
        codes, _, by = self._colours()
        kept = self._points  # of the same colours: clusters come later than places
        if kept is not None and kept[0] == by:
            return kept[1]
        order = np.random.default_rng(0).permutation(len(places))[:_MAP_POINTS]
        arrays = (
            places[order, 0].astype("<f4"),
            places[order, 1].astype("<f4"),
            order.astype("<u4"),
            codes[order].astype(np.uint8),
        )
        content = b"".join(array.tobytes() for array in arrays)
        self._points = by, content
        return content

    def _colours(self) -> tuple[npt.NDArray[np.int32], list[str], str]:
        """A colour's number for each row, the names of the classes, and what they are."""
        labels = self._given.labels
        if labels is not None and labels.values is not None:
            finite = np.where(np.isfinite(labels.values), labels.values, np.nan)
            low, high = (np.nanmin(finite), np.nanmax(finite)) if np.isfinite(finite).any() else (0.0, 1.0)
            scaled = np.nan_to_num((finite - low) / ((high - low) or 1.0)) * 255
            return scaled.astype(np.int32), [], f"{low:.4g} to {high:.4g}"
        if labels is not None:
            assert labels.codes is not None
            return _few_classes(labels.codes, labels.names) + ("labels",)
        try:
            cells = self._work.cells(self._work.default_count())
        except NotReady:
            return np.zeros(len(self._given), np.int32), ["all"], ""
        names = [f"cluster {cell}" for cell in range(len(cells))]
        return _few_classes(cells.labels, names) + ("clusters",)

    def _row(self, row: int) -> None:
        if not 0 <= row < len(self._given):
            raise Refused(404, f"there is no row {row}; rows are 0 to {len(self._given) - 1}")

    def _card(self, row: int, letters: int = _CARD_LETTERS) -> dict[str, Any]:
        """An item as a card shows it: its row, its text or the name of its file, its label."""
        caption = self._given.items.caption(row)
        card: dict[str, Any] = {"row": row, "text": caption[:letters]}
        if len(caption) > letters:
            card["letters"] = len(caption)
        if self._given.labels is not None:
            card["label"] = _label(self._given.labels[row])
        if self._given.ids is not None:
            card["id"] = str(self._given.ids[row])[:_LABEL_LETTERS]
        return card

    def _cards(self, ids: npt.NDArray[Any], distances: npt.NDArray[Any]) -> list[dict[str, Any]]:
        found = zip(ids.tolist(), distances.tolist())
        return [{**self._card(row), "distance": _number(distance)} for row, distance in found if row >= 0]

    def _sheet(self, clusters: Clusters, cell: int) -> dict[str, Any]:
        """A cluster's size and spread, the shares of labels, and items from its first row to its last."""
        rows = clusters.rows(cell)
        places = np.unique(np.linspace(0, len(rows) - 1, min(_SHEET, len(rows))).astype(np.int64))
        sheet: dict[str, Any] = {
            "cell": cell,
            "size": len(rows),
            "items": [self._card(int(row)) for row in rows[places]],
        }
        if clusters.spreads is not None:
            sheet["spread"] = _number(clusters.spreads[cell])
        labels = self._given.labels
        if labels is not None and labels.codes is not None:
            codes, counts = np.unique(labels.codes[rows], return_counts=True)
            top = np.argsort(-counts, kind="stable")[:4]
            sheet["shares"] = [
                {"label": _label(labels.names[code]), "share": float(count / len(rows))}
                for code, count in zip(codes[top].tolist(), counts[top].tolist())
            ]
        return sheet

    def _one_of(self, clusters: Clusters, cell: int, first: int, page: int) -> dict[str, Any]:
        if not 0 <= cell < len(clusters):
            raise Refused(404, f"there is no cluster {cell}; they are 0 to {len(clusters) - 1}")
        rows = clusters.rows(cell)[first : first + page]
        return {"sheet": self._sheet(clusters, cell), "first": first, "items": [self._card(int(row)) for row in rows]}

    def _containing(self, text: str) -> dict[str, Any]:
        """Rows whose number or id it is, or whose text or label has it, as far as a few seconds reach."""
        found: list[int] = []
        wanted = text.strip()
        if self._given.ids is not None:
            found += self._given.rows_of_id(wanted)
        elif wanted.isascii() and wanted.isdigit() and len(wanted) <= _MOST_DIGITS and int(wanted) < len(self._given):
            found.append(int(wanted))
        folded, until, looked = wanted.casefold(), time.monotonic() + _SEARCH_SECONDS, len(self._given)
        labels = self._given.labels
        wearing = set() if labels is None else {code for code, name in enumerate(labels.names) if folded in name.casefold()}
        for row, caption in enumerate(self._given.items.captions()):
            if folded in caption.casefold() or (
                wearing and labels is not None and labels.codes is not None and int(labels.codes[row]) in wearing
            ):
                if row not in found[:1]:
                    found.append(row)
                if len(found) > _FOUND_ROWS:
                    break
            if row % 1000 == 0 and time.monotonic() > until:
                looked = row + 1
                break
        answer: dict[str, Any] = {"how": "contained", "found": [self._card(row) for row in found[:_FOUND_ROWS]]}
        answer["more"] = len(found) > _FOUND_ROWS
        answer["looked"] = looked
        return answer

    def _near(self, vector: npt.NDArray[Any], k: int) -> dict[str, Any]:
        try:
            found = self._work.search(vector, min(k, len(self._given)))
        except (ValueError, TypeError) as error:
            raise Refused(400, f"the vector that encode= made cannot be searched for: {error}") from None
        return {"found": self._cards(np.asarray(found.ids[0]), np.asarray(found.distances[0]))}

    def _step_lengths(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """The lengths of a path's steps, which are edges of the graph and kept with either of their rows."""
        graph = self._work.graph()
        lengths = np.full(max(0, len(rows) - 1), np.inf)
        for ends, others in ((rows[:-1], rows[1:]), (rows[1:], rows[:-1])):
            found = np.asarray(graph.ids[ends]) == others[:, np.newaxis]
            here = np.where(found, np.asarray(graph.distances[ends], np.float64), np.inf)
            lengths = np.minimum(lengths, here.min(axis=1, initial=np.inf))
        return lengths

    def _between(self, a: int, b: int) -> float:
        return float(self._step_lengths(np.array([a, b]))[0])

    def _direct(self, a: int, b: int) -> float:
        """How far two rows are from each other, straight."""
        x = self._given.x
        found = knn(x[a : a + 1], x[b : b + 1], k=1, metric=self._given.metric, device="cpu")
        return float(np.asarray(found.distances)[0, 0])


def _number(value: Any) -> float | None:
    """JSON has no infinities."""
    number = float(value)
    return number if math.isfinite(number) else None


def _label(name: str) -> str:
    """A label as the page shows it."""
    return name[:_LABEL_LETTERS] or "(none)"


def _few_classes(codes: npt.NDArray[np.int32], names: list[str]) -> tuple[npt.NDArray[np.int32], list[str]]:
    """The largest classes by name, and all others as one: no more than there are colours."""
    if len(names) <= _MOST_CLASSES:
        return codes, list(map(_label, names))
    largest = np.sort(np.argsort(-np.bincount(codes, minlength=len(names)), kind="stable")[: _MOST_CLASSES - 1])
    number = np.full(len(names), _MOST_CLASSES - 1, np.int32)
    number[largest] = np.arange(_MOST_CLASSES - 1, dtype=np.int32)
    return number[codes], [_label(names[code]) for code in largest] + [f"{len(names) - _MOST_CLASSES + 1} others"]
