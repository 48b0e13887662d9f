"""A page that is served, and ways to ask it."""

from __future__ import annotations

import http.client
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for chromium, whatever import mode pytest runs in

import kith  # noqa: E402


class Page:
    """What kith.explore serves, asked without a browser."""

    def __init__(self, explorer: Any) -> None:
        self.explorer = explorer
        self.url: str = explorer.url
        split = urlsplit(self.url)
        self.host, self.path = split.netloc, split.path

    def ask(self, address: str, *, method: str = "GET", body: bytes | None = None, headers: dict[str, str] | None = None) -> Any:
        """The reply, its body read; `address` begins below the word, or with a slash at the root."""
        connection = http.client.HTTPConnection(self.host, timeout=30)
        try:
            target = address if address.startswith("/") else self.path + address
            connection.putrequest(method, target, skip_host=True)
            sent = {"Host": self.host, **(headers or {})}
            if body is not None:
                sent.setdefault("Content-Length", str(len(body)))
            for name, value in sent.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            reply = connection.getresponse()
            reply.content = reply.read()  # type: ignore[attr-defined]
            return reply
        finally:
            connection.close()

    def get(self, address: str) -> Any:
        """The answer of an address that has one."""
        reply = self.ask(address)
        assert reply.status == 200, (address, reply.status, reply.content[:500])
        return json.loads(reply.content)

    def post(self, address: str, body: bytes) -> Any:
        reply = self.ask(address, method="POST", body=body)
        assert reply.status == 200, (address, reply.status, reply.content[:500])
        return json.loads(reply.content)

    def refused(self, address: str, status: int, **more: Any) -> str:
        """Why an address is refused, in words."""
        reply = self.ask(address, **more)
        assert reply.status == status, (address, reply.status, reply.content[:500])
        return str(json.loads(reply.content)["error"])

    def computed(self) -> Page:
        assert self.explorer.work.wait(120)
        return self


@pytest.fixture
def explore() -> Iterator[Callable[..., Page]]:
    """kith.explore without a browser, ended after the test."""
    open_pages = []

    def start(*given: Any, **more: Any) -> Page:
        page = kith.explore(*given, **{"browser": False, "block": False, "device": "cpu", **more})
        open_pages.append(page)
        return Page(page)

    yield start
    for page in open_pages:
        page.close()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261118)


@pytest.fixture
def images(rng: np.random.Generator) -> Any:
    return three_kinds(rng)


def three_kinds(rng: np.random.Generator) -> Any:
    """300 images of 8 x 8 in three kinds: bright in one of three columns."""
    made = rng.integers(0, 90, (300, 8, 8))
    for row in range(300):
        made[row, :, 2 * (row % 3) : 2 * (row % 3) + 2] += 150
    return made.astype(np.uint8)


@pytest.fixture
def page(explore: Callable[..., Page], images: Any) -> Page:
    """A page of those images and their kinds."""
    return explore(images, images.reshape(300, -1), labels=[f"kind {row % 3}" for row in range(300)])


@pytest.fixture(scope="module")
def one_page() -> Iterator[Page]:
    """The same, for all tests of a file that only ask."""
    made = three_kinds(np.random.default_rng(20261118))
    with kith.explore(made, made.reshape(300, -1), labels=[f"kind {row % 3}" for row in range(300)], browser=False, block=False, device="cpu") as page:
        yield Page(page)


@pytest.fixture(autouse=True)
def no_display(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test opens the browser of whoever runs it."""
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
