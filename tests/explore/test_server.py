"""Who may ask the page, for what: the word in its address, its own host, rows by number, bodies of a size."""

from __future__ import annotations

import http.client
import json
import random
import socket
import string
import warnings

import pytest

from kith._explore.server import Explorer, _names_of


@pytest.fixture
def page(one_page):
    return one_page


def raw(page, content: bytes) -> bytes:
    """What comes back for bytes that no http client would send."""
    host, port = page.host.split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(content)
        connection.shutdown(socket.SHUT_WR)
        found = b""
        while some := connection.recv(1 << 16):
            found += some
        return found


def test_the_page_and_its_policy(page):
    reply = page.ask("")
    assert reply.status == 200 and reply.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = reply.headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy and "unsafe" not in policy and "http" not in policy and "data:" not in policy
    assert reply.headers["Referrer-Policy"] == "no-referrer" and reply.headers["X-Content-Type-Options"] == "nosniff"
    assert b"http://" not in reply.content and b"https://" not in reply.content and b"style=" not in reply.content


def test_every_file_of_the_page_is_served_and_asks_nobody_else(page):
    for name in page.explorer._server.routes._pages:
        content = page.ask(name).content
        assert content and b"//cdn" not in content
        for word in (b"http://", b"https://"):
            assert content.replace(b"http://www.w3.org/2000/svg", b"").count(word) == 0, name


@pytest.mark.parametrize("target", ["/", "/api/state", "/index.html", "/x/api/state", "//", "/..", "*", "/%2e%2e/", "/" + "a" * 3000])
def test_without_the_word_there_is_nothing(page, target):
    words = page.refused(target, 403) if target != "*" else str(raw(page, f"GET * HTTP/1.1\r\nHost: {page.host}\r\n\r\n".encode()))
    assert "key" in words or "403" in words
    assert page.path.strip("/") not in words


def test_a_word_that_is_almost_right(page):
    word = page.path.strip("/")
    for wrong in (word[:-1], word + "a", word.swapcase(), word[::-1], ""):
        page.refused(f"/{wrong}/api/state", 403)
    assert page.refused(f"/{word}", 404)


def test_words_are_long_and_differ(explore):
    words = {explore(["a"], [[1.0]]).path.strip("/") for _ in range(3)}
    assert len(words) == 3 and min(map(len, words)) >= 22


def test_the_browser_is_started_with_a_word_that_works_once(page, monkeypatch):
    import webbrowser

    assert not page.explorer.open_browser(), "without a screen"
    monkeypatch.setenv("DISPLAY", ":0")
    opened = []
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address) or True)
    assert page.explorer.open_browser()
    (address,) = opened
    assert page.path not in address and address.startswith(f"http://{page.host}/")
    once = address.removeprefix(f"http://{page.host}")
    page.refused(once[:-2] + "/", 403)
    first = page.ask(once)
    assert first.status == 302 and first.headers["Location"] == page.path
    page.refused(once, 403)
    assert page.refused("/", 403) and page.get("api/state")["rows"] == 300


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1:", "127.0.0.1:123456", "127.0.0.1.evil.example:{port}", "localhost.:{port}", "", "a b:{port}", "[::1]:x", "192.168.0.1:{port}", "user@127.0.0.1:{port}"])
def test_other_hosts_are_refused(page, host):
    port = page.host.split(":")[1]
    page.refused("api/state", 403, headers={"Host": host.format(port=port)})


def test_hosts_of_this_machine_are_taken(page):
    port = page.host.split(":")[1]
    for name in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]"):
        assert page.ask("api/state", headers={"Host": f"{name}:{port}"}).status == 200


def test_a_tunnel_may_have_another_port(page):
    """ssh -L 9000:127.0.0.1:8000: the browser names the port of the tunnel."""
    for host in ("localhost:9000", "127.0.0.1:80", "127.0.0.1"):
        assert page.ask("api/state", headers={"Host": host}).status == 200
    assert page.ask("api/search/text", method="POST", body=b"1", headers={"Host": "localhost:9000", "Origin": "http://localhost:9000"}).status == 200
    assert "tunnel" in page.refused("api/state", 403, headers={"Host": "myserver:9000"})
    page.refused("api/state", 403, headers={"Host": "localhost:9000", "Origin": "http://localhost:9001"})


def test_no_host_or_two(page):
    assert b" 403 " in raw(page, f"GET {page.path}api/state HTTP/1.1\r\n\r\n".encode()).split(b"\r\n")[0]
    two = f"GET {page.path}api/state HTTP/1.1\r\nHost: {page.host}\r\nHost: {page.host}\r\n\r\n"
    assert b" 403 " in raw(page, two.encode()).split(b"\r\n")[0]


def test_other_pages_may_not_post(page):
    body = b"1"
    assert page.ask("api/search/text", method="POST", body=body, headers={"Origin": f"http://{page.host}"}).status == 200
    for origin in ("http://evil.example", "null", f"https://{page.host}"):
        page.refused("api/search/text", 403, method="POST", body=body, headers={"Origin": origin})


@pytest.mark.parametrize(
    "address",
    [
        "../", "../../etc/passwd", "..%2f..%2fetc/passwd", "page.css/../main.js", "./main.js", "/main.js", "page/main.js", "server.py", "../server.py",
        "image/-1", "image/300", "image/99999999999999999999", "image/1e3", "image/0x1", "image/١", "image/1/2", "image/", "image/1%00", "image/../1",
        "text/0", "api/neighbours/-1", "api/neighbours/300", "api/neighbours/" + "9" * 300, "api/item/300", "api/path/0", "api/path/0/-1",
        "api/cluster/3/9", "api", "api/", "api/search/text", "main.js/", "MAIN.JS",
    ],
)  # fmt: skip
def test_what_is_not_there(page, address):
    page.computed()
    target = page.path + address.lstrip("/") if not address.startswith("/") else page.path + address
    line = f"GET {target} HTTP/1.1\r\nHost: {page.host}\r\nConnection: close\r\n\r\n"
    status = raw(page, line.encode("utf-8")).split(b"\r\n")[0]
    assert b" 404 " in status or b" 400 " in status, status
    assert page.get("api/state")["rows"] == 300


@pytest.mark.parametrize("query", ["k=-1", "k=201", "k=1e9", "k=x", "k=", "k=" + "9" * 400, "k=%31"])
def test_numbers_that_are_none(page, query):
    assert "whole number" in page.refused(f"api/neighbours/1?{query}", 400)


def test_heights_and_ways_that_are_none(page):
    page.computed()
    for height in ("nan", "inf", "-1", "x", "1" * 60):
        page.refused(f"api/linkage?height={height}", 400)
    assert page.refused("api/path/0/1?by=magic", 400)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE", "CONNECT", "GARBAGE"])
def test_other_methods_are_refused(page, method):
    line = f"{method} {page.path}api/state HTTP/1.1\r\nHost: {page.host}\r\n\r\n"
    assert b" 405 " in raw(page, line.encode()).split(b"\r\n")[0]


def test_a_body_of_a_gigabyte_is_refused_unread(page):
    connection = http.client.HTTPConnection(page.host, timeout=20)
    connection.putrequest("POST", page.path + "api/search/image")
    connection.putheader("Content-Length", str(1 << 30))
    connection.endheaders()
    sent = 0
    try:  # as much of it as the server takes
        for _ in range(64):
            connection.send(b"\0" * (1 << 20))
            sent += 1
    except OSError:
        pass
    try:
        assert connection.getresponse().status == 413
    except OSError:  # it had closed before we were done
        assert sent < 64
    connection.close()
    assert page.get("api/state")["rows"] == 300


@pytest.mark.parametrize("length", ["17000000", "-1", "1e3", "x", "", "9" * 40])
def test_lengths_that_are_none_or_too_large(page, length):
    line = f"POST {page.path}api/search/image HTTP/1.1\r\nHost: {page.host}\r\nContent-Length: {length}\r\n\r\n"
    status = raw(page, line.encode()).split(b"\r\n")[0]
    assert b" 413 " in status or b" 411 " in status, status


def test_chunks_and_missing_lengths_are_refused(page):
    for header in ("Transfer-Encoding: chunked\r\n", ""):
        line = f"POST {page.path}api/search/text HTTP/1.1\r\nHost: {page.host}\r\n{header}\r\n5\r\nhello\r\n0\r\n\r\n"
        assert b" 411 " in raw(page, line.encode()).split(b"\r\n")[0]


def test_a_body_that_ends_early_harms_nobody(page):
    raw(page, f"POST {page.path}api/search/text HTTP/1.1\r\nHost: {page.host}\r\nContent-Length: 1000\r\n\r\nabc".encode())
    assert page.get("api/state")["rows"] == 300


def test_one_connection_asks_many_times(page):
    connection = http.client.HTTPConnection(page.host, timeout=20)
    for row in range(30):
        connection.request("GET", f"{page.path}image/{row}")
        assert connection.getresponse().read().startswith(b"\x89PNG")
        connection.request("POST", f"{page.path}api/search/text", b"kind 1")
        assert connection.getresponse().read().startswith(b"{")
    connection.close()


def test_a_thousand_random_requests(page, capfd):
    """None ends the process, none is answered by an error of the server's own, and stderr stays empty."""
    page.computed()
    capfd.readouterr()
    dice = random.Random(7)
    pieces = ["api", "image", "text", "neighbours", "path", "cluster", "clusters", "linkage", "linked", "search", "map", "points", "..", "%2e", "0", "1", "299",
              "300", "-1", "1.5", "99999999999999999999", "é", "\0", "?", "?k=3", "?k=", "&", "=", "height=1", "?side=0", "?side=4096", "?first=300", "#"]  # fmt: skip
    headers = ["", "Content-Length: 3\r\n", "Content-Length: 99999999999\r\n", "Origin: x\r\n", "Range: bytes=0-\r\n", "X: " + "y" * 70000 + "\r\n", "Connection: close\r\n", "nonsense\r\n", ": \r\n"]
    for number in range(1000):
        if number % 5 == 0:
            content = bytes(dice.choices(range(256), k=dice.randrange(400)))
        else:
            target = page.path * dice.choice([1, 1, 1, 0]) + "/".join(dice.choices(pieces, k=dice.randrange(6)))
            method = dice.choice(["GET", "GET", "GET", "POST", "PUT", "".join(dice.choices(string.printable, k=4))])
            version = dice.choice(["HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/9", ""])
            line = f"{method} {target} {version}\r\nHost: {page.host}\r\n{dice.choice(headers)}\r\n{'abc' * dice.randrange(3)}"
            content = line.encode("utf-8")
        try:
            found = raw(page, content)
        except OSError:
            continue
        assert b" 500 " not in found.split(b"\r\n")[0], (content[:300], found[-300:])
    assert page.get("api/state")["rows"] == 300
    told = capfd.readouterr()
    assert told.err == "" and "Traceback" not in told.out


def test_random_searches(explore, images, capfd):
    """Bodies of any bytes, with and without headers of images, are answered or refused in words."""
    heads = [b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"GIF89a", b"BM", b"RIFF\0\0\0\0WEBP", b"II*\0", b"P6 9 9 255\n", b"%!PS", b"<svg>"]
    dice = random.Random(11)
    page = explore(images, images.reshape(300, -1), encode=lambda query: dice.choice([query, None, [1.0] * 64, [float("nan")] * 64, "x" * 64])).computed()
    capfd.readouterr()
    for number in range(200):
        body = dice.choice(heads) + bytes(dice.choices(range(256), k=dice.choice([0, 9, 3000])))
        address = f"api/search/{dice.choice(['text', 'image'])}?k={dice.choice(['1', '200', '0'])}"
        reply = page.ask(address, method="POST", body=body)
        assert reply.status in (200, 400), (body[:40], reply.status, reply.content[:200])
        assert json.loads(reply.content).keys() & {"found", "error"}
    assert capfd.readouterr().err == ""


def test_rows_that_are_none_wherever_rows_are_asked_for(page):
    page.computed()
    rows = ["300", "-1", "9" * 18, "9" * 19, "9" * 5000, "0x10", "1e2", "%30", "+1", " 1"]
    addresses = ["api/item/{}", "api/neighbours/{}", "image/{}", "text/{}", "api/path/{}/1", "api/path/1/{}", "api/cluster/3/{}", "api/linked/{}?height=1"]
    for address in addresses:
        for row in rows:
            line = f"GET {page.path}{address.format(row)} HTTP/1.1\r\nHost: {page.host}\r\nConnection: close\r\n\r\n"
            status = raw(page, line.encode()).split(b"\r\n")[0]
            assert b" 404 " in status or b" 400 " in status, (address, row[:30], status)


def test_listening_to_others_is_warned_of(explore, images):
    with pytest.warns(UserWarning, match="whoever is on the network"):
        page = explore(images, images.reshape(300, -1), host="0.0.0.0")
    port = page.url.split(":")[2].split("/")[0]
    page.host = f"127.0.0.1:{port}"
    assert page.get("api/state")["rows"] == 300
    assert page.ask("api/state", headers={"Host": f"192.0.2.7:{port}"}).status == 200, "by whatever address it is reached"
    page.refused("api/state", 403, headers={"Host": f"evil.example:{port}"})
    page.refused("/api/state", 403)
    assert "*" not in _names_of("127.0.0.1") and "*" not in _names_of("myhost")


def test_this_machine_is_not_warned_of(explore, images):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(explore(images, images.reshape(300, -1), host="localhost").explorer, Explorer)
