"""The page over HTTP: few addresses, all below a random word, and nothing that is written.

Who does not know the word gets nothing, so other users of the machine and other pages in the browser cannot look. Items are
asked for by their rows, never by a path. A request names a host that this is, which a page of another site cannot fake by
having its name resolve to 127.0.0.1.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import os
import re
import secrets
import socket
import sys
import threading
import warnings
import webbrowser
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from types import TracebackType
from typing import Any, NamedTuple, SupportsIndex, cast

from kith._explore.answers import Answers, Refused
from kith._explore.given import Given
from kith._explore.work import NotReady, Work
from kith._items import ItemError
from kith._options import text, whole_number

_LARGEST_BODY = 16 << 20
_LARGEST_TEXT = 1 << 20
_SECONDS = 30  # that a browser has for its request
_MEDIA_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Reply(NamedTuple):
    """What goes back to the browser."""

    status: int
    body: bytes
    media_type: str
    keep: bool = False  # in the browser's cache, while the page lives
    location: str = ""  # where to go instead


class Redirected(Exception):
    """The page is at another address."""


Query = dict[str, str]


class Explorer:
    """A page that is being served. ``url`` is its address; `close` ends it, and so does the end of a ``with`` block."""

    def __init__(self, given: Given, host: str = "127.0.0.1", port: SupportsIndex = 0) -> None:
        self._host = text(host, "host")
        number = whole_number(port, "port")
        if not 0 <= number <= 65535:
            raise ValueError(f"port is {number}; it must be 0 to 65535, 0 for a free one")
        self._word = secrets.token_urlsafe(16)
        self._server = _bound(self._host, number)
        try:
            self.work = Work(given)
        except BaseException:
            self._server.server_close()
            raise
        routes = _Routes(Answers(given, self.work), given)
        self._server.setup(self._word, _names_of(self._host), routes)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="kith explore: page", daemon=True)
        self._thread.start()
        self.work.start()
        self._closed = threading.Event()
        if not _is_local(self._host):
            warnings.warn(
                f"kith explore listens on {self._host}: whoever is on the network and knows the page's address sees the items",
                stacklevel=3,
            )

    @property
    def url(self) -> str:
        """The address of the page; the word in it is the key."""
        shown = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(self._host, self._host)
        host = f"[{shown}]" if ":" in shown else shown
        return f"http://{host}:{self._server.server_address[1]}/{self._word}/"

    def open_browser(self) -> bool:
        """Open the page in the browser; whether there is one.

        Other users of the machine can see what a program is started with: the browser gets a word that works once.
        """
        if sys.platform == "linux" and not any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))):
            return False  # webbrowser would start one that takes the terminal
        self._server.once = secrets.token_urlsafe(16)
        try:
            return webbrowser.open(self.url.replace(self._word, self._server.once))
        except webbrowser.Error:
            return False

    def wait(self) -> None:
        """Until Ctrl-C, or until another thread closes the page."""
        try:
            while not self._closed.wait(timeout=1):  # a timeout lets Ctrl-C in on every system
                pass
        except KeyboardInterrupt:
            print(file=sys.stderr)
        finally:
            self.close()

    def close(self) -> None:
        """End the page and what is being computed for it."""
        if self._closed.is_set():
            return
        self._closed.set()
        self._server.shutdown()
        self._server.server_close()
        self.work.close()

    def __enter__(self) -> Explorer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<kith.explore at {self.url}{' (closed)' if self._closed.is_set() else ''}>"


class _Routes:
    """Which question an address asks. Numbers are digits alone; whatever else is asked for is not there."""

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


class _Server(ThreadingHTTPServer):
    """Threads that end with the process, and no words on stderr of browsers that went away."""

    daemon_threads = True
    request_queue_size = 128
    allow_reuse_address = True
    word = ""
    once = ""  # a word that leads to the page a single time
    names: frozenset[str] = frozenset()
    routes: _Routes

    def server_bind(self) -> None:
        """Without http.server's question for this machine's full name, for which some networks take seconds."""
        TCPServer.server_bind(self)

    def setup(self, word: str, names: frozenset[str], routes: _Routes) -> None:
        self.word, self.names, self.routes = word, names, routes
        self._taking = threading.Lock()

    def takes_once(self, word: str) -> bool:
        """Whether this is the word that works once, which it does no more then."""
        with self._taking:
            taken = bool(self.once) and hmac.compare_digest(word.encode("utf-8", "replace"), self.once.encode())
            if taken:
                self.once = ""
            return taken

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exc_info()[1]
        if not isinstance(error, (OSError, ValueError)):
            print(f"kith explore: {type(error).__name__}: {error}", file=sys.stderr)


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "kith"
    sys_version = ""
    timeout = _SECONDS
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._answer(lambda path, query: self._server.routes.get(path, query))

    def do_POST(self) -> None:
        self._answer(lambda path, query: self._server.routes.post(path, query, self._body()))

    @property
    def _server(self) -> _Server:
        return cast(_Server, self.server)

    def _answer(self, ask: Callable[[str, Query], Reply]) -> None:
        try:
            path, query = self._checked()
            reply = ask(path, query)
        except Redirected as other:
            reply = Reply(302, b"", "text/plain", location=str(other))
        except Refused as refused:
            reply = _error(refused.status, str(refused))
        except NotReady as absent:
            reply = _error(503 if absent.coming else 409, str(absent), coming=absent.coming)
        except ItemError as error:
            reply = _error(404, str(error))
        except MemoryError as error:
            reply = _error(500, f"not enough memory: {error}")
        except (ConnectionError, TimeoutError):
            raise
        except Exception as error:  # a mistake of this page's own, or of the caller's items
            reply = _error(500, f"{type(error).__name__}: {error}")
        self._send(reply)

    def _checked(self) -> tuple[str, Query]:
        """The address below the word, and what follows its question mark; Refused unless this browser may ask."""
        if self.headers.get("Content-Length") not in (None, "0") or self.headers.get("Transfer-Encoding"):
            self.close_connection = True  # what is refused below leaves its body unread
        host = self.headers.get_all("Host") or []
        if len(host) != 1 or not self._is_ours(host[0]):
            raise Refused(403, "this page answers to its own address alone")
        origin = self.headers.get("Origin")
        if origin is not None and origin != f"http://{host[0]}":
            raise Refused(403, "this page answers to itself alone")
        path, _, asked = self.path.partition("?")
        word, slash, rest = path[1:].partition("/")
        if self._server.takes_once(word):
            raise Redirected(f"/{self._server.word}/")
        if not hmac.compare_digest(word.encode("utf-8", "replace"), self._server.word.encode()):
            raise Refused(403, "open the whole address that kith explore has printed: a word in it is the key")
        if not slash:
            raise Refused(404, "the address of the page ends with a slash")
        query = {}
        for pair in asked.split("&")[:16]:
            key, _, value = pair.partition("=")
            query[key] = value
        return rest, query

    def _is_ours(self, host: str) -> bool:
        match = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(?::([0-9]{1,5}))?", host, re.ASCII)
        if match is None or int(match[2] or 80) != self._server.server_address[1]:
            return False
        name = match[1].strip("[]").lower()
        if name in self._server.names:
            return True
        # Listening everywhere, by whatever address: names are what another site could lend itself, addresses are not.
        return "*" in self._server.names and _is_address(name)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding"):
            raise Refused(411, "say how long the upload is: chunks are not taken")
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch("[0-9]{1,18}", length, re.ASCII):
            raise Refused(411, "say how long the upload is")
        if int(length) > _LARGEST_BODY:
            raise Refused(413, f"an upload may have {_LARGEST_BODY >> 20} MiB, and this one has {int(length) >> 20}")
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise ConnectionAbortedError
        self.close_connection = self.headers.get("Connection", "").lower() == "close"
        return body

    def _send(self, reply: Reply) -> None:
        """The whole reply by one write: two would wait for each other on a slow day."""
        text_like = reply.media_type.startswith("text/") or reply.media_type == "application/json"
        lines = [
            f"HTTP/1.1 {reply.status} {self.responses[reply.status][0] if reply.status in self.responses else ''}",
            f"Content-Type: {reply.media_type}{'; charset=utf-8' if text_like else ''}",
            f"Content-Length: {len(reply.body)}",
            f"Content-Security-Policy: {_POLICY}",
            "X-Content-Type-Options: nosniff",
            "Referrer-Policy: no-referrer",
            "Cross-Origin-Resource-Policy: same-origin",
            "Cross-Origin-Opener-Policy: same-origin",
            f"Cache-Control: {'private, max-age=86400, immutable' if reply.keep else 'no-store'}",
        ]
        if reply.location:
            lines.append(f"Location: {reply.location}")
        if self.close_connection:
            lines.append("Connection: close")
        head = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
        self.wfile.write(head if self.command == "HEAD" else head + reply.body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What http.server refuses by itself: other methods, lines that are too long or no HTTP."""
        self.close_connection = True
        if not hasattr(self, "command") or self.command is None:
            self.command = ""
        self._send(_error(405 if code == 501 else int(code), message or self.responses[code][0]))

    def log_message(self, *_: Any) -> None:
        pass


def _bound(host: str, port: int) -> _Server:
    """Listening already, so that a port in use is known before anything is computed."""
    kind = _Server6 if ":" in host else _Server
    try:
        return kind((host, port), _Handler)
    except OSError as error:
        if isinstance(error, socket.gaierror):
            raise OSError(error.errno, f"host {host!r} is no address of this machine") from None
        hint = "; leave the port out for a free one" if port else ""
        raise OSError(error.errno, f"cannot listen on {host} port {port}: {error.strerror}{hint}") from None


def _names_of(host: str) -> frozenset[str]:
    """What browsers may call this server."""
    local = {"127.0.0.1", "localhost", "::1"}
    if _is_local(host):
        return frozenset(local | {host.lower()})
    names = {socket.gethostname().lower(), socket.getfqdn().lower(), host.lower()}
    return frozenset(local | names | ({"*"} if host in ("0.0.0.0", "::", "") else set()))


def _is_local(host: str) -> bool:
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _json(answer: dict[str, Any]) -> Reply:
    return Reply(200, json.dumps(answer, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace"), "application/json")


def _error(status: int, words: str, *, coming: bool = False) -> Reply:
    answer = json.dumps({"error": words, "coming": coming}, ensure_ascii=False)
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
