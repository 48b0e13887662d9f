"""The connections of the page's server: a bounded number of them, none of which waits for a request for ever.

A timeout of a socket starts anew with every byte, so a client that sends one now and then would hold a thread for as long as it
likes. Here a request has one deadline. Both bounds hold before anything is known of who asks: clients that have not shown the
word in the address make room first, so that others of the machine cannot shut the page's own browser out.
"""

from __future__ import annotations

import socket
import threading
import time
from dataclasses import dataclass, field

MOST = 128
_LOOK_SECONDS = 0.2  # between two looks for what is late


@dataclass
class _Connection:
    until: float | None  # when it is ended; None while its answer is computed
    knows_word: bool = False
    since: float = field(default_factory=time.monotonic)


class Connections:
    """Which sockets are open, and until when each may wait."""

    def __init__(self, seconds: float, most: int = MOST) -> None:
        self._seconds = seconds
        self._most = most
        self._open: dict[socket.socket, _Connection] = {}
        self._lock = threading.Lock()
        self._looked = 0.0

    def __len__(self) -> int:
        return len(self._open)

    def take(self, connection: socket.socket) -> bool:
        """Whether there is room for a new connection, which another one may have to make."""
        with self._lock:
            if len(self._open) >= self._most:
                waiting = [(one.knows_word, one.since, number) for number, one in enumerate(self._open.values()) if one.until is not None]
                if not waiting:
                    return False
                longest = list(self._open)[min(waiting)[2]]
                del self._open[longest]
                _end(longest)
            self._open[connection] = _Connection(time.monotonic() + self._seconds)
            return True

    def drop(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.pop(connection, None)

    def expect(self, connection: socket.socket, seconds: float | None = None) -> None:
        """What is awaited of a client must have come within so many seconds."""
        self._until(connection, time.monotonic() + (self._seconds if seconds is None else seconds))

    def answering(self, connection: socket.socket) -> None:
        """Its request is there: what takes time now is ours."""
        self._until(connection, None)

    def trust(self, connection: socket.socket) -> None:
        """It knows the word in the page's address."""
        with self._lock:
            if connection in self._open:
                self._open[connection].knows_word = True

    def end_late(self) -> None:
        """End those that have not sent their request in time."""
        now = time.monotonic()
        if now - self._looked < _LOOK_SECONDS:
            return
        self._looked = now
        with self._lock:
            for connection, one in self._open.items():
                if one.until is not None and one.until < now:
                    _end(connection)

    def end_all(self) -> None:
        with self._lock:
            for connection in self._open:
                _end(connection)

    def _until(self, connection: socket.socket, until: float | None) -> None:
        with self._lock:
            if connection in self._open:
                self._open[connection].until = until


def _end(connection: socket.socket) -> None:
    """Wakes the thread that reads from it, which closes it."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # gone already


def user_of(client_port: int, server_port: int) -> int | None:
    """The user whose program is at the other end of a connection within this machine; None where the system does not say."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table, encoding="ascii") as file:
                lines = file.read().splitlines()[1:]
        except OSError:
            continue
        for words in map(str.split, lines):
            ports = [int(words[place].rpartition(":")[2], 16) for place in (1, 2)]
            if ports == [client_port, server_port]:
                return int(words[7])
    return None
