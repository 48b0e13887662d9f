"""Chromium walks through the page: clicks, keys, back, reload, a path, the map, an upload; nothing goes wrong in its console,
and it asks nobody but the page's own server.

KITH_PICTURES names a folder that keeps what the page looks like.
"""

from __future__ import annotations

import gzip
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import chromium
import numpy as np
import pytest

from kith._png import png

FASHION = Path("/usr/share/datasets/fashion-mnist")
ROUTE = "document.getElementById('main').dataset.route"  # of what is drawn
SHOWN = "document.querySelector('main > *') && !document.querySelector('main .notice progress')"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Chromium]:
    if chromium.program() is None:
        pytest.skip("no Chromium; scripts/setup --browser installs it")
    made = chromium.Chromium(tmp_path_factory.mktemp("profile"))
    yield made
    made.close()


class Walk:
    """A walk through one page."""

    def __init__(self, browser: chromium.Chromium, page: Any, name: str) -> None:
        self.browser, self.page, self.name = browser, page, name
        browser.goto("about:blank")  # else the page before may ask on
        browser.problems.clear()
        browser.hosts.clear()

    def open(self, route: str) -> None:
        self.browser.goto(self.page.url + route)
        self.browser.until(SHOWN, 120)

    def at(self, route: str) -> bool:
        return str(self.browser.evaluate("location.hash")).startswith(route)

    def until_at(self, route: str) -> None:
        self.browser.until(f"document.getElementById('main').dataset.route?.startsWith({route!r}) && {SHOWN}", 60)

    def title(self) -> str:
        return str(self.browser.evaluate("document.title"))

    def keep(self, name: str) -> None:
        folder = os.environ.get("KITH_PICTURES")
        if folder:
            self.browser.mouse("mouseMoved", 1, 1)  # so that nothing is raised
            time.sleep(0.6)  # for what is still being loaded or drawn
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.browser.picture(Path(folder) / f"{self.name}_{name}.png")

    def images_shown(self) -> None:
        """All images in sight are there."""
        self.browser.until(
            "[...document.querySelectorAll('main img')].filter(i => i.getBoundingClientRect().top < innerHeight)"
            ".every(i => i.complete && i.naturalWidth > 0)"
        )

    def finished(self) -> None:
        assert self.browser.problems == []
        assert self.browser.hosts <= {self.page.host}


def walk_everything(walk: Walk, rows: int, upload: Path | None) -> None:
    browser = walk.browser
    walk.open("")
    assert "A first look" in browser.text()
    walk.keep("first")
    walk.page.computed()
    browser.until("!document.querySelector('#work.on')")

    # Neighbours: on by clicks, back by the trail and by the browser, the same after a reload.
    browser.click("main .grid a.card", 3)
    walk.until_at("#/neighbours/")
    begun = browser.evaluate("location.hash")
    browser.evaluate("performance.clearResourceTimings()")
    browser.click("section .grid a.card", 2)
    browser.until(f"{ROUTE} !== {begun!r} && document.querySelector('.trail') && {SHOWN}")
    # A click asks once, when the button goes down, and a trail asks for nothing that was looked at.
    asked = browser.evaluate("performance.getEntriesByType('resource').map(e => e.name).filter(n => /api.(neighbours|item)/.test(n)).length")
    assert asked == 1
    walk.images_shown()
    walk.keep("neighbours")
    second, title = browser.evaluate("location.hash"), walk.title()
    browser.call("Page.reload")
    browser.until(f"document.readyState === 'complete' && {SHOWN} && document.querySelector('.trail')")
    assert browser.evaluate("location.hash") == second and walk.title() == title
    browser.evaluate("history.back()")
    browser.until(f"{ROUTE} === {begun!r} && !document.querySelector('.trail')")
    browser.click("section .head .button", 2)
    walk.until_at(begun.split("?")[0] + "?k=50")
    browser.until("document.querySelectorAll('section .grid a.card').length === 50")

    # Keys: among the cards, to a view, the list of keys.
    browser.evaluate("document.querySelector('section .grid a.card').focus()")
    browser.key("ArrowRight")
    browser.key("ArrowDown")
    place = browser.evaluate("[...document.querySelectorAll('section .grid a.card')].indexOf(document.activeElement)")
    assert place > 1
    browser.key("Enter")
    browser.until("location.hash.includes('trail=')")
    browser.key("?")
    browser.until("document.getElementById('keys').open")
    browser.click("#keys .button")
    browser.key("5")
    walk.until_at("#/map")

    # The map: hover, zoom, pan; its address keeps the place.
    browser.until("document.querySelector('.map canvas')?.width > 300")
    box = browser.evaluate("(() => { const b = document.querySelector('.map canvas').getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()")
    middle = box[0] + box[2] / 2, box[1] + box[3] / 2
    walk.keep("map")
    for _ in range(7):
        browser.mouse("mouseWheel", *middle, deltaX=0, deltaY=-300)
    browser.until("/[?&]z=/.test(location.hash)")
    browser.mouse("mousePressed", *middle, button="left", clickCount=1)
    browser.mouse("mouseMoved", middle[0] + 60, middle[1] + 20, button="left", buttons=1)
    browser.mouse("mouseReleased", middle[0] + 60, middle[1] + 20, button="left", clickCount=1)
    time.sleep(0.5)
    kept = browser.evaluate("location.hash")
    walk.keep("map_close")
    browser.call("Page.reload")
    browser.until(f"document.readyState === 'complete' && {SHOWN} && document.querySelector('.map canvas')?.width > 300")
    assert browser.evaluate("location.hash") == kept
    walk.open("#/map?at=7")
    box = browser.evaluate("(() => { const b = document.querySelector('.map canvas').getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()")
    browser.mouse("mouseMoved", box[0] + box[2] / 2 + 1, box[1] + box[3] / 2 + 1)
    browser.until("!document.querySelector('.tip').hidden")
    browser.press(box[0] + box[2] / 2, box[1] + box[3] / 2)
    browser.until("document.querySelector('.tip.fixed')")
    browser.click(".tip a.card")
    walk.until_at("#/neighbours/")

    # A path: chosen by clicks, turned round, the other kind, on the map.
    walk.open("#/path/7")
    browser.click("main .grid a.card", 5)
    browser.until(f"/^#.path.7.[0-9]+$/.test({ROUTE}) && {SHOWN}")
    if not browser.evaluate("!!document.querySelector('.strip')"):
        assert "There is no path" in browser.text()
    walk.open(f"#/path/7/{_joined(walk.page, 7, rows)}")
    assert browser.evaluate("document.querySelectorAll('.strip li').length") >= 2
    assert browser.evaluate("document.querySelectorAll('.step.largest').length") == 1
    walk.images_shown()
    walk.keep("path")
    steps = browser.evaluate("document.querySelectorAll('.strip li').length")
    browser.click(".swap")
    browser.until(f"/7$/.test({ROUTE}) && document.querySelectorAll('.strip li').length === {steps}")
    browser.click(".head .button", 1)
    walk.until_at("#/path/")
    browser.until(f"{ROUTE}.endsWith('by=tree') && document.querySelector('.strip')")
    browser.evaluate("[...document.querySelectorAll('a.button')].find(a => a.textContent === 'On the map').click()")
    walk.until_at("#/map?path=")
    browser.until("document.querySelector('.map canvas')?.width > 300")
    walk.keep("path_on_map")

    # Clusters of both kinds, and one of them.
    walk.open("#/clusters")
    walk.images_shown()
    walk.keep("clusters")
    browser.click(".sheet header a")
    browser.until(f"/clusters.[0-9]+.[0-9]+$/.test({ROUTE}) && {SHOWN}")
    walk.open("#/clusters/7")
    assert "7 clusters" in browser.text()
    walk.open("#/clusters/linkage")
    walk.keep("linkage")
    before = walk.title()
    browser.evaluate("(() => { const s = document.querySelector('input[type=range]'); s.value = s.value > 4 ? s.value - 3 : 6; s.dispatchEvent(new Event('change')); })()")
    browser.until(f"document.title !== {before!r} && {SHOWN}")
    browser.click(".sheet header a")
    browser.until(f"/linkage.[^/]+.[0-9]+$/.test({ROUTE}) && {SHOWN}")

    # The two links of the first page.
    walk.open("")
    browser.click(".door", 0)
    walk.until_at("#/near")
    assert browser.evaluate("document.querySelectorAll('.pair').length") > 5
    walk.keep("near")
    walk.open("")
    browser.click(".door", 1)
    walk.until_at("#/outliers")
    walk.keep("outliers")

    # Search: by a row's number, and by an upload.
    walk.open("#/search")
    browser.click("input[type=search]")
    browser.write("12")
    browser.key("Enter")
    walk.until_at("#/search/12")
    assert browser.evaluate("document.querySelector('#results a.card').getAttribute('href')").startswith("#/neighbours/12")
    if upload is not None:
        browser.upload("#upload", upload)
        browser.until("/nearest to/.test(document.getElementById('results').innerText)")
        walk.images_shown()
        walk.keep("search")

    # Dark and narrow.
    browser.click("#theme")
    browser.resize(390, 800)
    walk.open("#/neighbours/12")
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing runs over the side"
    browser.click("#theme")
    walk.keep("narrow")
    for name, route in (("clusters", "#/clusters"), ("path", "#/path/7/12"), ("map", "#/map"), ("near", "#/near"), ("search", "#/search"), ("first", "")):
        walk.open(route)
        assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth"), route
        walk.keep(f"narrow_{name}")
    browser.resize(1280, 800)
    if os.environ.get("KITH_PICTURES"):
        for name, route in (("neighbours", "#/neighbours/12"), ("path", "#/path/7/12"), ("map", "#/map"), ("linkage", "#/clusters/linkage"), ("search", "#/search")):
            walk.open(route)
            browser.click("#theme")
            walk.keep(f"dark_{name}")
    walk.finished()


def _joined(page: Any, row: int, rows: int) -> int:
    """A row that some way leads to."""
    return next(other for other in range(rows - 1, 0, -1) if page.get(f"api/path/{row}/{other}")["steps"])


def test_a_small_page(explore: Callable[..., Any], browser: chromium.Chromium, rng: np.random.Generator, tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    shades = np.linspace(0, 200, 300)[:, None, None]
    images = (shades + rng.integers(0, 50, (300, 12, 12))).astype(np.uint8)
    page = explore(images, images.reshape(300, -1), labels=["dark" if row < 150 else "bright" for row in range(300)])
    (tmp_path / "upload.png").write_bytes(png(images[100]))
    walk_everything(Walk(browser, page, "small"), 300, tmp_path / "upload.png")


def test_strange_texts_stay_texts(explore: Callable[..., Any], browser: chromium.Chromium, rng: np.random.Generator) -> None:
    script = "<script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\">"
    texts = [script, "שלום עולם", "👩‍👩‍👧‍👦", "y" * 1_000_000, "", *[f"text {row} {script}" for row in range(60)]]
    page = explore(texts, rng.standard_normal((len(texts), 6)), labels=[script if row % 2 else "even" for row in range(len(texts))])
    walk = Walk(browser, page.computed(), "strange")
    for route in ("", "#/neighbours/0", "#/neighbours/3", "#/search/script", "#/clusters", "#/clusters/linkage", "#/path/0/1", "#/map", "#/near", "#/outliers"):
        walk.open(route)
        assert walk.title().endswith("kith explore") and browser.evaluate("document.scripts.length") == 1, route
        assert not browser.evaluate("document.querySelector('main script, main img')"), route
    walk.open("#/neighbours/3")
    assert "1,000,000 letters" in browser.text()
    walk.open("#/neighbours/1")
    assert browser.evaluate("getComputedStyle(document.querySelector('.subject .words')).direction") == "rtl"
    walk.finished()


def test_wrong_addresses_are_told_in_words(page: Any, browser: chromium.Chromium) -> None:
    walk = Walk(browser, page.computed(), "wrong")
    for route, says in (("#/nothing", "There is no view"), ("#/%E0%A4%A", "There is no view"), ("#/__proto__", "There is no view")):
        walk.open(route)
        assert says in browser.text(), route
    walk.finished()  # what follows is told by the console too: the server says that these are not there
    walk.open("#/neighbours/300")
    assert "There is no row 300; rows are 0 to 299" in browser.text()
    walk.open("#/path/0/999999999999999999999")
    assert "There is no row" in browser.text()


def test_no_path_and_what_is_being_computed(explore: Callable[..., Any], browser: chromium.Chromium, rng: np.random.Generator) -> None:
    x = rng.standard_normal((80, 4), dtype=np.float32)
    x[40:] += 1000
    walk = Walk(browser, explore([f"text {row}" for row in range(80)], x), "parts")
    walk.open("#/path/1/70")
    assert "There is no path" in browser.text() and "2 parts" in browser.text()
    walk.open("#/path/1/9")
    assert re.search(r"\d+ steps?, none longer than", browser.text())
    walk.finished()


def test_a_server_that_has_ended_is_told_in_words(explore: Callable[..., Any], browser: chromium.Chromium, rng: np.random.Generator) -> None:
    """Buttons for more stay, and nothing is left unanswered in the console but the questions themselves."""
    page = explore([f"text {row}" for row in range(300)], rng.standard_normal((300, 4))).computed()
    walk = Walk(browser, page, "ended")
    for route in ("#/outliers", "#/near", "#/?order=rows"):
        walk.open(route)
        browser.click(".more button")
        browser.until("!document.querySelector('.more button').disabled && document.querySelector('.more span').textContent === ''")
    walk.finished()
    page.explorer.close()
    for _ in range(2):
        browser.click(".more button")
        browser.until("/does not answer/.test(document.querySelector('.more span').textContent) && !document.querySelector('.more button').disabled")
    assert all("ERR_CONNECTION_REFUSED" in problem for problem in browser.problems), browser.problems


def test_the_page_goes_on_asking_how_far_the_work_is(explore: Callable[..., Any], browser: chromium.Chromium, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    from kith._explore import work

    go_on, real = threading.Event(), work.knn_graph
    monkeypatch.setattr(work, "knn_graph", lambda *given, **more: go_on.wait(60) and real(*given, **more))
    page = explore([f"text {row}" for row in range(80)], rng.standard_normal((80, 4)))
    walk = Walk(browser, page, "asking")
    browser.goto(page.url + "#/outliers")
    browser.until("document.querySelector('main .notice progress')")
    answers = page.explorer._server.routes._answers
    real_state = answers.state
    failures = [1]

    def state() -> Any:
        failures[0] -= 1
        if failures[0] >= 0:
            raise RuntimeError("for a while")
        return real_state()

    answers.state = state
    browser.until("/for a while/.test(document.getElementById('work').innerText)")
    go_on.set()
    walk.until_at("#/outliers")
    browser.until("document.querySelector('main .card') && !document.querySelector('#work.on')")


def test_clusters_that_take_long_open_by_themselves(explore: Callable[..., Any], browser: chromium.Chromium, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    page = explore([f"text {row}" for row in range(80)], rng.standard_normal((80, 4))).computed()
    walk, work, go_on = Walk(browser, page, "long"), page.explorer.work, threading.Event()
    real = work._cells_of
    monkeypatch.setattr(work, "_cells_of", lambda count, report: report("", 1, 4) or go_on.wait(60) and real(count, report))
    browser.goto(page.url + "#/clusters/9")
    browser.until("document.querySelector('main .notice progress')?.value === 0.25 && /9 clusters: being computed/.test(document.body.innerText)")
    go_on.set()
    browser.until("document.querySelectorAll('.sheet').length === 9")
    walk.finished()


def test_what_is_pasted_elsewhere_is_not_searched_for(page: Any, browser: chromium.Chromium) -> None:
    walk = Walk(browser, page.computed(), "paste")
    paste = (
        "(() => { const given = new DataTransfer(); given.items.add(new File(['no image'], 'a.png', {type: 'image/png'}));"
        " document.dispatchEvent(new ClipboardEvent('paste', {clipboardData: given, bubbles: true})); })()"
    )
    walk.open("#/search")
    browser.evaluate(paste)
    browser.until("/no image/.test(document.querySelector('.drop').innerText)")
    browser.problems.clear()  # 400
    browser.evaluate("location.hash = '#/outliers'")
    walk.until_at("#/outliers")
    browser.evaluate(paste)
    time.sleep(0.3)
    walk.finished()


def test_a_collection_shows_its_ids(explore: Callable[..., Any], browser: chromium.Chromium, rng: np.random.Generator, tmp_path: Path) -> None:
    import kith

    if not kith._kith.has_collections:
        pytest.skip("this build has no collections")
    with kith.open(tmp_path / "notes", dimension=4, ids="text", columns={"kind": str}) as made:
        made.add(rng.standard_normal((40, 4)), ids=[f"note-{row}" for row in range(40)], columns={"kind": ["a", None] * 20}, payloads=[b"words"] * 40)
    walk = Walk(browser, explore(tmp_path / "notes", labels="kind").computed(), "ids")
    walk.open("")
    assert browser.evaluate("document.querySelectorAll('.grid .card').length") == 30
    assert "note-0" in browser.text() and "(none)" in browser.text()
    walk.open("#/search/note-17")
    browser.click("#results a.card")
    walk.until_at("#/neighbours/17")
    assert "note-17" in browser.text() and walk.title().startswith("Neighbours of item note-17")
    walk.finished()


def test_all_that_is_shown_has_a_name(page: Any, browser: chromium.Chromium) -> None:
    """Images have alt texts, what is pressed has words, and words stand out from what is behind them."""
    walk = Walk(browser, page.computed(), "names")
    contrast = """(() => {
      const parts = (c) => c.match(/[\\d.]+/g).map(Number);
      const light = (c) => { const [r, g, b] = parts(c).map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
      const behind = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (parts(c)[3] !== 0) return c; } return 'rgb(255,255,255)'; };
      let least = [99, ''];
      for (const e of document.querySelectorAll('body *')) {
        if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || e.closest('.unseen, .skip, dialog, noscript, .map') || !e.getClientRects().length) continue;
        const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((x, y) => y - x);
        const ratio = (a + 0.05) / (b + 0.05);
        if (ratio < least[0]) least = [ratio, e.outerHTML.slice(0, 200)];
      }
      return least; })()"""
    for route in ("", "#/neighbours/5", "#/search/kind", "#/clusters", "#/clusters/linkage", "#/path/0/3", "#/map", "#/near", "#/outliers"):
        walk.open(route)
        assert browser.evaluate("[...document.images].every(i => i.hasAttribute('alt'))"), route
        unnamed = browser.evaluate(
            "[...document.querySelectorAll('a, button, input, select, canvas')].filter(e => !e.textContent.trim() && !e.getAttribute('aria-label')"
            " && !e.querySelector('img[alt]') && !(e.id && document.querySelector(`label[for=${e.id}]`)) && !e.closest('[aria-hidden]')).map(e => e.outerHTML)"
        )
        assert unnamed == [], route
        assert browser.evaluate("document.querySelectorAll('h1').length") == 1 or route.startswith("#/neighbours"), route
        for _ in range(2):  # light and dark
            ratio, where = browser.evaluate(contrast)
            assert ratio >= 4.5, (route, ratio, where)
            browser.evaluate("document.getElementById('theme').click()")
    walk.finished()


def fashion_mnist() -> tuple[Any, list[str]]:
    if not FASHION.is_dir():
        pytest.skip("no Fashion-MNIST; scripts/setup --dataset installs it")
    images = np.frombuffer(gzip.decompress((FASHION / "train-images-idx3-ubyte.gz").read_bytes())[16:], np.uint8)
    codes = np.frombuffer(gzip.decompress((FASHION / "train-labels-idx1-ubyte.gz").read_bytes())[8:], np.uint8)
    names = ["T-shirt", "Trousers", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]
    return images.reshape(-1, 28, 28), [names[code] for code in codes]


def made_texts(rows: int) -> tuple[list[str], Any, list[str]]:
    """Sentences, vectors that are the sums of their words', and what each is about."""
    rng = np.random.default_rng(0)
    parts = [
        "small big old new red green quiet loud wooden paper sleepy shiny".split(),
        "cat dog river house ship garden song letter clock train".split(),
        "sleeps sings waits burns floats turns shines stands falls runs".split(),
        "in the rain,at night,by the sea,over the hills,for a while,near the harbour,without a sound,all summer long".split(","),
    ]
    picked = [rng.integers(0, len(part), rows) for part in parts]
    weights = (0.6, 1.5, 1.0, 0.5)
    x = sum((rng.standard_normal((len(part), 64)) * weight)[pick] for part, pick, weight in zip(parts, picked, weights))
    texts = [f"The {parts[0][a]} {parts[1][b]} {parts[2][c]} {parts[3][d]}." for a, b, c, d in zip(*picked)]
    noise = 0.4 * rng.standard_normal((rows, 64))
    return texts, np.asarray(x + noise, np.float32), [parts[1][b] for b in picked[1]]


@pytest.mark.slow
def test_fashion_mnist(explore: Callable[..., Any], browser: chromium.Chromium, tmp_path: Path) -> None:
    images, names = fashion_mnist()
    page = explore(images, images.reshape(len(images), -1), labels=names)
    (tmp_path / "upload.png").write_bytes(png(images[4711]))
    walk_everything(Walk(browser, page, "fashion"), len(images), tmp_path / "upload.png")


@pytest.mark.slow
def test_a_hundred_thousand_texts(explore: Callable[..., Any], browser: chromium.Chromium) -> None:
    texts, x, about = made_texts(100_000)
    walk_everything(Walk(browser, explore(texts, x, labels=about), "texts"), len(texts), None)
