"""The page of `explore`, served: a server for this machine, its word, and the browser that is opened.

All addresses are below a random word, and nothing is written. Items are asked for by their rows, never by a path.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import secrets
import socket
import sys
import threading
import time
import warnings
import webbrowser
from http.server import ThreadingHTTPServer
from socketserver import TCPServer
from types import TracebackType
from typing import Any, SupportsIndex

from kith._explore.answers import Answers
from kith._explore.connections import Connections, user_of
from kith._explore.given import Given
from kith._explore.handler import SECONDS, Handler, is_address
from kith._explore.routes import Routes
from kith._explore.work import Work
from kith._options import text, whole_number

_ONCE_SECONDS = 120  # that the browser has for its first question


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
            if not _is_local(self._host):  # before anything is served: a warning may be made an error
                warnings.warn(
                    f"kith explore listens on {self._host}: whoever is on the network and knows the page's address sees the items",
                    stacklevel=4,
                )
            self.work = Work(given)
        except BaseException:
            self._server.server_close()
            raise
        self._server.setup(self._word, _names_of(self._host), Routes(Answers(given, self.work), given))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="kith explore: page", daemon=True)
        self._thread.start()
        self.work.start()
        self._closed = threading.Event()
        self._close_given = given.close

    @property
    def url(self) -> str:
        """The address of the page; the word in it is the key."""
        shown = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(self._host, self._host)
        host = f"[{shown}]" if ":" in shown else shown
        return f"http://{host}:{self._server.server_address[1]}/{self._word}/"

    def open_browser(self) -> bool:
        """Open the page in the browser; whether there is one.

        Other users of the machine can see what a program is started with: the browser gets a word that works once, for two
        minutes, and for nobody but the user who runs this.
        """
        if sys.platform == "linux" and not any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))):
            return False  # webbrowser would start one that takes the terminal
        try:
            return webbrowser.open(self.url.replace(self._word, self._server.make_once()))
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
        self._server.connections.end_all()
        self.work.close()
        self._close_given()

    def __enter__(self) -> Explorer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<kith.explore at {self.url}{' (closed)' if self._closed.is_set() else ''}>"


class PageServer(ThreadingHTTPServer):
    """Threads that end with the process, and no words on stderr of browsers that went away."""

    daemon_threads = True
    request_queue_size = 128
    allow_reuse_address = True
    word = ""
    names: frozenset[str] = frozenset()
    routes: Routes

    def __init__(self, address: tuple[str, int]) -> None:
        self.connections = Connections(SECONDS)
        self._once: tuple[str, float] | None = None  # a word that leads to the page a single time, and until when
        self._taking = threading.Lock()
        super().__init__(address, Handler)

    def server_bind(self) -> None:
        """Without http.server's question for this machine's full name, for which some networks take seconds."""
        TCPServer.server_bind(self)

    def setup(self, word: str, names: frozenset[str], routes: Routes) -> None:
        self.word, self.names, self.routes = word, names, routes

    def make_once(self) -> str:
        """A new word that works once."""
        word = secrets.token_urlsafe(16)
        self._once = word, time.monotonic() + _ONCE_SECONDS
        return word

    def takes_once(self, word: str, client: tuple[str, int]) -> bool:
        """Whether this is the word that works once, which it does no more then, asked by a program of this user."""
        with self._taking:
            if self._once is None or not hmac.compare_digest(word.encode("utf-8", "replace"), self._once[0].encode()):
                return False
            if time.monotonic() > self._once[1]:
                self._once = None
                return False
            if user_of(client[1], self.server_address[1]) not in (None, 0, os.getuid() if hasattr(os, "getuid") else 0):
                return False
            self._once = None
            return True

    def process_request(self, request: Any, client_address: Any) -> None:
        if self.connections.take(request):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def shutdown_request(self, request: Any) -> None:
        self.connections.drop(request)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        self.connections.end_late()

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exc_info()[1]
        if not isinstance(error, (OSError, ValueError)):
            print(f"kith explore: {type(error).__name__}: {error}", file=sys.stderr)


class _PageServer6(PageServer):
    address_family = socket.AF_INET6


def _bound(host: str, port: int) -> PageServer:
    """Listening already, so that a port in use is known before anything is computed."""
    kind = _PageServer6 if ":" in host else PageServer
    try:
        return kind((host, port))
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
    return host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)
