"""Clients that are slow, many, or gone: none holds a thread for ever, and none shuts the others out."""

from __future__ import annotations

import os
import socket
import threading
import time
import warnings

import pytest

from kith._explore import connections
from kith._explore.connections import Connections, user_of


def opened(page) -> socket.socket:
    host, port = page.host.split(":")
    return socket.create_connection((host, int(port)), timeout=20)


def ended(connection: socket.socket) -> bool:
    """Whether the server ends a connection, while which bytes trickle in."""
    connection.settimeout(0.05)
    until = time.monotonic() + 15
    while time.monotonic() < until:
        try:
            connection.sendall(b"a")
            if connection.recv(1 << 16) == b"":
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


@pytest.fixture
def hasty(page, monkeypatch):
    """A page that gives requests a third of a second."""
    from kith._explore import handler

    monkeypatch.setattr(page.explorer._server.connections, "_seconds", 0.3)
    monkeypatch.setattr(handler, "_UPLOAD_SECONDS", 0.3)
    return page


@pytest.mark.parametrize("begin", ["GET /", "GET {path}api/state HTTP/1.1\r\nHost: {host}\r\nX: ", "POST {path}api/search/text HTTP/1.1\r\nHost: {host}\r\nContent-Length: 9999\r\n\r\n"])
def test_a_request_that_trickles_in_is_ended(hasty, begin):
    with opened(hasty) as slow:
        slow.sendall(begin.format(path=hasty.path, host=hasty.host).encode())
        assert ended(slow)
    assert hasty.get("api/state")["rows"] == 300


def test_an_idle_connection_is_ended(hasty):
    with opened(hasty) as idle:
        assert idle.recv(10) == b""


def test_what_is_computed_has_time(hasty, monkeypatch):
    hasty.computed()
    real = hasty.explorer._server.routes._answers.state
    monkeypatch.setattr(hasty.explorer._server.routes._answers, "state", lambda: time.sleep(1) or real())
    assert hasty.get("api/state")["rows"] == 300


def test_more_connections_than_there_is_room_for(page, monkeypatch):
    held = page.explorer._server.connections
    monkeypatch.setattr(held, "_most", 8)
    known = opened(page)  # a browser that has shown the word, and waits
    request = f"GET {page.path}api/state HTTP/1.1\r\nHost: {page.host}\r\n\r\n".encode()
    known.sendall(request)
    assert b" 200 " in known.recv(1 << 16)
    crowd = [opened(page) for _ in range(60)]
    assert page.get("api/state")["rows"] == 300 and len(held) <= 8
    known.sendall(request)
    assert b" 200 " in known.recv(1 << 16), "strangers make room first"
    for one in [known, *crowd]:
        one.close()


def test_who_is_being_answered_is_not_sent_away():
    held = Connections(30, most=2)
    pairs = [socket.socketpair() for _ in range(3)]
    for ours, _ in pairs[:2]:
        assert held.take(ours)
        held.answering(ours)
    assert not held.take(pairs[2][0])
    held.expect(pairs[1][0])
    assert held.take(pairs[2][0]) and pairs[1][1].recv(1) == b"" and len(held) == 2
    held.drop(pairs[0][0])
    held.end_all()
    assert pairs[2][1].recv(1) == b""
    for pair in pairs:
        for one in pair:
            one.close()


def test_closing_ends_open_connections(explore):
    page = explore(["a", "b"], [[1.0], [2.0]])
    with opened(page) as waiting:
        waiting.sendall(f"GET {page.path}api/state HTTP/1.1\r\nHost: {page.host}\r\n\r\n".encode())
        assert b" 200 " in waiting.recv(1 << 16)
        page.explorer.close()
        assert waiting.recv(10) == b""


def test_http_1_0_is_closed_after_its_answer(page):
    for head in ("GET {path}api/state HTTP/1.0", "POST {path}api/search/text HTTP/1.0"):
        with opened(page) as old:
            old.sendall(f"{head}\r\nHost: {page.host}\r\nContent-Length: 1\r\n\r\n1".format(path=page.path).encode())
            found = b""
            while some := old.recv(1 << 16):  # until the server ends it
                found += some
            assert found.startswith(b"HTTP/1.1 200 ")


@pytest.mark.skipif(not os.path.exists("/proc/net/tcp"), reason="this system does not tell")
def test_the_user_at_the_other_end_is_known():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert user_of(client.getsockname()[1], server.getsockname()[1]) == os.getuid()
        assert user_of(1, server.getsockname()[1]) is None


def once_of(page, monkeypatch) -> str:
    import webbrowser

    found = []
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(webbrowser, "open", lambda address: found.append(address) or True)
    assert page.explorer.open_browser()
    return str(found[0]).removeprefix(f"http://{page.host}")


def test_the_word_that_works_once_works_for_this_user_alone(page, monkeypatch):
    from kith._explore import server

    once = once_of(page, monkeypatch)
    monkeypatch.setattr(server, "user_of", lambda *_: os.getuid() + 1)
    page.refused(once, 403)
    monkeypatch.setattr(server, "user_of", lambda *_: None)
    assert page.ask(once).status == 302, "another user's question did not use it up"


def test_the_word_that_works_once_expires(page, monkeypatch):
    from kith._explore import server

    monkeypatch.setattr(server, "_ONCE_SECONDS", -1)
    once = once_of(page, monkeypatch)
    page.refused(once, 403)


def test_a_warning_that_is_an_error_leaves_no_server(explore, images):
    before = {thread.name for thread in threading.enumerate()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="whoever is on the network"):
            explore(images, images.reshape(300, -1), host="0.0.0.0")
    assert {thread.name for thread in threading.enumerate()} <= before


def test_there_is_a_bound():
    assert connections.MOST <= 256
