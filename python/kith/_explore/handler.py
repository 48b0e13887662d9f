"""HTTP for the page: who may ask, how large and how slow a request may be, and the reply.

Who does not know the word in the address gets nothing, so other users of the machine and other pages in the browser cannot look.
A request names a host that this is, which a page of another site cannot fake by having its name resolve to 127.0.0.1.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, cast

from kith._explore.answers import Refused
from kith._explore.jobs import NotReady
from kith._explore.routes import Query, Reply, error_reply
from kith._items import ItemError

if TYPE_CHECKING:
    from kith._explore.server import PageServer

SECONDS = 30  # that a browser has for its request
_UPLOAD_SECONDS = 120  # and for a body, once it has shown the word
_SEND_SECONDS = 120  # for taking its answer
_LARGEST_BODY = 16 << 20
_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class _Redirected(Exception):
    """The page is at another address."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "kith"
    sys_version = ""
    timeout = _SEND_SECONDS  # of the socket; requests have a deadline, see connections
    disable_nagle_algorithm = True

    def handle_one_request(self) -> None:
        connections = self._server.connections
        connections.expect(self.connection)
        try:
            if not self.rfile.peek(1):  # type: ignore[attr-defined]  # a BufferedReader, which waits for a byte
                self.close_connection = True
                return
        except OSError:
            self.close_connection = True
            return
        connections.expect(self.connection)
        super().handle_one_request()

    def do_GET(self) -> None:
        self._answer(lambda path, query: self._server.routes.get(path, query))

    def do_POST(self) -> None:
        self._answer(lambda path, query: self._server.routes.post(path, query, self._body()))

    @property
    def _server(self) -> PageServer:
        return cast("PageServer", self.server)

    def _answer(self, ask: Callable[[str, Query], Reply]) -> None:
        self._closes = self.close_connection  # what the request asked for
        try:
            path, query = self._checked()
            self._server.connections.trust(self.connection)
            self._server.connections.answering(self.connection)
            reply = ask(path, query)
        except _Redirected as other:
            reply = Reply(302, b"", "text/plain", location=str(other))
        except Refused as refused:
            self.close_connection |= refused.status == 403
            reply = error_reply(refused.status, str(refused))
        except NotReady as absent:
            reply = error_reply(202 if absent.coming else 409, str(absent), coming=absent.coming, share=absent.share)
        except ItemError as error:
            reply = error_reply(404, str(error))
        except MemoryError as error:
            reply = error_reply(500, f"not enough memory: {error}")
        except (ConnectionError, TimeoutError):
            raise
        except Exception as error:  # a mistake of this page's own, or of the caller's items
            reply = error_reply(500, f"{type(error).__name__}: {error}")
        self._send(reply)

    def _checked(self) -> tuple[str, Query]:
        """The address below the word, and what follows its question mark; Refused unless this browser may ask."""
        if self.headers.get("Content-Length") not in (None, "0") or self.headers.get("Transfer-Encoding"):
            self.close_connection = True  # what is refused below leaves its body unread
        host = self.headers.get_all("Host") or []
        if len(host) != 1 or not self._is_ours(host[0]):
            raise Refused(403, "open the address that kith explore has printed; through a tunnel, with 127.0.0.1 or localhost in it")
        origin = self.headers.get("Origin")
        if origin is not None and origin != f"http://{host[0]}":
            raise Refused(403, "this page answers to itself alone")
        path, _, asked = self.path.partition("?")
        word, slash, rest = path[1:].partition("/")
        if self._server.takes_once(word, self.client_address[:2]):
            raise _Redirected(f"/{self._server.word}/")
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
        if match is None:  # the port may be any: a tunnel has its own, and no site can take the names of this machine
            return False
        name = match[1].strip("[]").lower()
        if name in self._server.names:
            return True
        # Listening everywhere, by whatever address: names are what another site could lend itself, addresses are not.
        return "*" in self._server.names and is_address(name)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding"):
            raise Refused(411, "say how long the upload is: chunks are not taken")
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch("[0-9]{1,18}", length, re.ASCII):
            raise Refused(411, "say how long the upload is")
        if int(length) > _LARGEST_BODY:
            raise Refused(413, f"an upload may have {_LARGEST_BODY >> 20} MiB, and this one has {int(length) >> 20}")
        self._server.connections.expect(self.connection, _UPLOAD_SECONDS)
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise ConnectionAbortedError
        self._server.connections.answering(self.connection)
        self.close_connection = self._closes
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
        self._send(error_reply(405 if code == 501 else int(code), message or self.responses[code][0]))

    def log_message(self, *_: Any) -> None:
        pass


def is_address(name: str) -> bool:
    """Whether a host is an address of numbers, not a name."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
