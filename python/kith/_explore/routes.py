"""Which question an address of the page asks, and the reply as bytes.

Numbers are digits alone; whatever else is asked for is not there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from kith._explore.answers import Answers, Refused
from kith._explore.given import Given

_LARGEST_TEXT = 1 << 20
_MEDIA_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


class Reply(NamedTuple):
    """What goes back to the browser."""

    status: int
    body: bytes
    media_type: str
    keep: bool = False  # in the browser's cache, while the page lives
    location: str = ""  # where to go instead


Query = dict[str, str]


class Routes:
    """The addresses below the word."""

    def __init__(self, answers: Answers, given: Given) -> None:
        self._answers = answers
        self._given = given
        self._pages = {file.name: file.read_bytes() for file in sorted((Path(__file__).parent / "page").iterdir()) if file.is_file()}
        self._gets: list[tuple[re.Pattern[str], Callable[[re.Match[str], Query], Reply]]] = [
            (re.compile(pattern, re.ASCII), make)
            for pattern, make in (
                (r"api/state", lambda m, q: _json(answers.state())),
                (r"api/browse", lambda m, q: _json(answers.browse(_whole(q, "first", 0), _whole(q, "page", 60, 200)))),
                (r"api/spread", lambda m, q: _json(answers.spread(_whole(q, "count", 48, 200)))),
                (r"api/item/(\d+)", lambda m, q: _json(answers.item(_row(m[1])))),
                (r"api/neighbours/(\d+)", lambda m, q: _json(answers.neighbours(_row(m[1]), _whole(q, "k", 20, 200)))),
                (r"api/clusters/(\d+)", lambda m, q: _json(answers.clusters(_count(m[1])))),
                (r"api/cluster/(\d+)/(\d+)", self._cluster),
                (r"api/linkage", lambda m, q: _json(answers.linkage(_real(q, "height")))),
                (r"api/linked/(\d+)", self._linked),
                (r"api/path/(\d+)/(\d+)", self._path),
                (r"api/pairs", lambda m, q: _json(answers.pairs(_whole(q, "first", 0), _whole(q, "page", 30, 100)))),
                (r"api/outliers", lambda m, q: _json(answers.outliers(_whole(q, "first", 0), _whole(q, "page", 60, 200)))),
                (r"api/map", lambda m, q: _json(answers.map_words())),
                (r"api/points", lambda m, q: Reply(200, answers.map_points(), "application/octet-stream")),
                (r"image/(\d+)", self._image),
                (r"text/(\d+)", self._text),
            )
        ]

    def get(self, path: str, query: Query) -> Reply:
        name = path or "index.html"
        if name in self._pages:
            return Reply(200, self._pages[name], _MEDIA_TYPES[Path(name).suffix], keep=False)
        for pattern, make in self._gets:
            match = pattern.fullmatch(path)
            if match is not None:
                return make(match, query)
        raise Refused(404, "there is no such page")

    def post(self, path: str, query: Query, body: bytes) -> Reply:
        k = _whole(query, "k", 20, 200)
        if path == "api/search/text":
            if len(body) > _LARGEST_TEXT:
                raise Refused(413, "a text to search for may have 1 MiB")
            return _json(self._answers.search_text(body.decode("utf-8", "replace"), k))
        if path == "api/search/image":
            return _json(self._answers.search_image(body, k))
        raise Refused(404, "there is no such search")

    def _cluster(self, match: re.Match[str], query: Query) -> Reply:
        first, page = _whole(query, "first", 0), _whole(query, "page", 60, 200)
        return _json(self._answers.cluster(_count(match[1]), _row(match[2]), first, page))

    def _linked(self, match: re.Match[str], query: Query) -> Reply:
        height = _real(query, "height")
        if height is None:
            raise Refused(400, "say at which height: ?height=0.5")
        first, page = _whole(query, "first", 0), _whole(query, "page", 60, 200)
        return _json(self._answers.linked(height, _row(match[1]), first, page))

    def _path(self, match: re.Match[str], query: Query) -> Reply:
        by = query.get("by", "steps")
        if by not in ("steps", "tree"):
            raise Refused(400, "paths are by=steps or by=tree")
        return _json(self._answers.path(_row(match[1]), _row(match[2]), by))

    def _image(self, match: re.Match[str], query: Query) -> Reply:
        row = _row(match[1])
        if row >= len(self._given) or self._given.items.kind != "images":
            raise Refused(404, f"there is no image {row}")
        side = _whole(query, "side", 0, 4096)
        picture = self._given.items.picture(row, max(side, 16) if side else None)
        return Reply(200, picture.data, picture.media_type, keep=True)

    def _text(self, match: re.Match[str], query: Query) -> Reply:
        row = _row(match[1])
        if row >= len(self._given) or self._given.items.kind != "texts":
            raise Refused(404, f"there is no text {row}")
        return Reply(200, self._given.items.caption(row).encode("utf-8", "replace"), "text/plain")


def _json(answer: dict[str, Any]) -> Reply:
    return Reply(200, json.dumps(answer, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace"), "application/json")


def error_reply(status: int, words: str, *, coming: bool = False, share: float | None = None) -> Reply:
    answer = json.dumps({"error": words, "coming": coming, "share": share}, ensure_ascii=False)
    return Reply(status, answer.encode("utf-8", "replace"), "application/json")


def _row(digits: str) -> int:
    if len(digits) > 18:
        raise Refused(404, "there is no row of so many digits")
    return int(digits)


def _count(digits: str) -> int:
    count = _row(digits)
    if not 1 <= count <= 200:
        raise Refused(400, f"{count} clusters; they can be 1 to 200")
    return count


def _whole(query: Query, name: str, default: int, most: int = 1 << 40) -> int:
    value = query.get(name)
    if value is None:
        return default
    if not re.fullmatch("[0-9]{1,13}", value, re.ASCII) or int(value) > most:
        raise Refused(400, f"{name} must be a whole number, {most} at most")
    return int(value)


def _real(query: Query, name: str) -> float | None:
    value = query.get(name)
    if value is None:
        return None
    if not re.fullmatch(r"[0-9]{1,40}(\.[0-9]{1,60})?([eE][+-]?[0-9]{1,2})?", value, re.ASCII):
        raise Refused(400, f"{name} must be a number such as 0.5")
    return float(value)
