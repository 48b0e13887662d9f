"""Data that pages stumble over: one item, equal rows, broken files, huge and strange texts, a graph of several parts."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import kith
from kith._png import png

ADDRESSES = ["api/state", "api/browse", "api/spread", "api/item/0", "api/neighbours/0", "api/map", "api/points"]
ASKED_LATER = ["api/clusters/20", "api/linkage", "api/path/0/0", "api/pairs", "api/outliers"]


def check_all(page):
    """Every view has an answer, or says in words why there is none."""
    for address in ADDRESSES + ASKED_LATER:
        reply = page.ask(address)
        assert reply.status in (200, 409), (address, reply.status, reply.content[:300])


def test_one_item(explore):
    page = explore(["alone"], np.ones((1, 3), np.float32)).computed()
    check_all(page)
    assert page.get("api/neighbours/0")["found"] == []
    assert page.get("api/clusters/20")["count"] == 1
    assert "no neighbours" in page.refused("api/path/0/0", 409)
    assert page.get("api/map")["points"] == 1


@pytest.mark.parametrize("columns", [1, 2, 7])
def test_two_items(explore, columns):
    page = explore(["a", "b"], np.arange(2 * columns, dtype=np.float32).reshape(2, columns)).computed()
    check_all(page)
    assert page.get("api/path/0/1")["count"] == 2 and len(page.get("api/neighbours/1?k=20")["found"]) == 1


@pytest.mark.parametrize("value", [0, 3])
@pytest.mark.parametrize("metric", ["l2", "cosine", "inner_product"])
def test_all_equal(explore, value, metric):
    page = explore(np.full((70, 2, 2), value, np.uint8), np.full((70, 4), value, np.float32), metric=metric).computed()
    check_all(page)
    assert len(page.get("api/neighbours/5?k=20")["found"]) == 20
    assert sum(sheet["size"] for sheet in page.get("api/clusters/20")["sheets"]) == 70
    if metric == "l2":
        assert page.get("api/pairs")["same"] == 70 and "equal" in page.get("api/map")["axes"]


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int8, np.uint8, np.int64])
def test_dtypes(explore, rng, dtype):
    x = (rng.standard_normal((80, 6)) * 20).astype(dtype)
    page = explore(None, x).computed()
    check_all(page)
    assert all(stage["state"] == "done" for stage in page.get("api/state")["stages"])
    np.testing.assert_array_equal([one["row"] for one in page.get("api/neighbours/3?k=9")["found"]], kith.knn_graph(x, k=9).ids[3])


def test_bits(explore, rng):
    x = rng.integers(0, 256, (90, 8), dtype=np.uint8)
    page = explore(None, x, metric="hamming").computed()
    check_all(page)
    assert page.get("api/clusters/20")["count"] > 1 and page.get("api/neighbours/0")["found"][0]["distance"] >= 0


def test_a_metric_that_is_no_distance_says_so(explore, rng):
    page = explore(None, rng.standard_normal((50, 4)), metric="inner_product").computed()
    check_all(page)
    for address in ("api/path/0/1", "api/linkage", "api/pairs", "api/outliers"):
        assert "inner_product is no distance" in page.refused(address, 409)


def test_a_graph_of_several_parts(explore, rng):
    x = np.repeat(np.arange(5), 30)[:, None] * 100 + rng.random((150, 3))
    page = explore(None, x).computed()
    check_all(page)
    assert page.get("api/path/0/149")["parts"] == 5
    curve = page.get("api/linkage")["curve"]
    whole = page.get(f"api/linkage?height={curve['heights'][-1]}")
    assert whole["clusters"] == 5 and whole["single"] == 0 and curve["clusters"][-1] == 5


def test_images_missing_broken_and_of_several_sizes(explore, tmp_path, rng):
    pytest.importorskip("PIL")
    for row, shape in enumerate([(4, 4), (300, 20), (1, 900, 3)]):
        (tmp_path / f"{row}.png").write_bytes(png(rng.integers(0, 256, shape, dtype=np.uint8)))
    (tmp_path / "3.png").write_bytes(b"\x89PNG\r\n\x1a\nbroken")
    (tmp_path / "4.jpg").write_bytes(b"<html><script>alert(1)</script>")
    (tmp_path / "5.gif").write_bytes(b"")
    page = explore(tmp_path, rng.standard_normal((6, 4))).computed()
    check_all(page)
    (tmp_path / "2.png").unlink()
    for row in (0, 1):
        reply = page.ask(f"image/{row}?side=240")
        assert reply.status == 200 and reply.headers["Content-Type"] == "image/png"
    assert "No such file" in page.refused("image/2", 404)
    assert page.ask("image/3?side=240").headers["Content-Type"] in ("image/png", "application/json")
    assert page.refused("image/4", 404) == "item 4 is no image that Pillow can read", "never sent as what it says it is"
    assert "is empty" in page.refused("image/5", 404)


def test_texts_of_a_megabyte_right_to_left_and_emoji(explore, rng):
    texts = ["x" * 1_000_000, "שלום עולם", "👩‍👩‍👧‍👦🏳️‍🌈", "a\0b\x1b[31m\ud800", "", "<script>alert(1)</script>"]
    page = explore(texts, rng.standard_normal((6, 4)), labels=["<script>alert(2)</script>", "مرحبا", "", None, "👍", "x" * 5000]).computed()
    check_all(page)
    card = page.get("api/neighbours/1")["item"]
    assert card["text"] == texts[1] and card["label"] == "مرحبا"
    long = page.get("api/item/0")
    assert long["letters"] == 1_000_000 and len(long["text"]) == 20_000
    assert len(page.ask("api/browse").content) < 20_000, "cards are short"
    whole = page.ask("text/0")
    assert len(whole.content) == 1_000_000 and whole.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert page.get("api/item/2")["text"] == texts[2] and page.get("api/item/5")["text"] == texts[5]
    assert page.ask("text/5").headers["X-Content-Type-Options"] == "nosniff"


def test_two_browsers_at_once(page):
    page.computed()
    expected = [page.ask(f"api/neighbours/{row}").content for row in range(20)]
    wrong = []

    def browse():
        for _ in range(5):
            for row in range(20):
                if page.ask(f"api/neighbours/{row}").content != expected[row]:
                    wrong.append(row)

    threads = [threading.Thread(target=browse) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_port_in_use(explore, page, images):
    port = int(page.host.split(":")[1])
    with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1 port {port}: .*leave the port out"):
        explore(images, images.reshape(300, -1), port=port)
    with pytest.raises(OSError, match="no address of this machine"):
        explore(images, images.reshape(300, -1), host="no.such.host.invalid")


def test_what_fails_is_told_and_the_rest_goes_on(explore, images, monkeypatch):
    from kith._explore import work

    def broken(*_, **__):
        raise ValueError("the graph cannot be built on a Tuesday")

    monkeypatch.setattr(work, "knn_graph", broken)
    page = explore(images, images.reshape(300, -1)).computed()
    check_all(page)
    assert "Tuesday" in page.refused("api/path/0/1", 409)
    assert len(page.get("api/neighbours/5?k=20")["found"]) == 20 and page.get("api/clusters/4")["count"] == 4


def test_the_page_works_while_things_are_computed(explore, images, monkeypatch):
    from kith._explore import work

    go_on, real = threading.Event(), work.knn_graph

    def slow(*given, **more):
        assert go_on.wait(60)
        return real(*given, **more)

    monkeypatch.setattr(work, "knn_graph", slow)
    page = explore(images, images.reshape(300, -1))
    try:
        assert len(page.get("api/neighbours/5?k=20")["found"]) == 20
        words = page.refused("api/path/0/1", 202)
        assert "being computed" in words
    finally:
        go_on.set()
    assert page.computed().get("api/path/0/3")["count"] >= 2


def test_a_first_search_that_fails_holds_up_nothing(explore, images, monkeypatch):
    from kith._explore import work

    real = work.Index.search

    def broken(self, queries, *given, **more):
        if len(queries) > 1:
            raise RuntimeError("no search of many")
        return real(self, queries, *given, **more)

    monkeypatch.setattr(work.Index, "search", broken)
    page = explore(images, images.reshape(300, -1)).computed()
    assert all(stage["state"] == "done" for stage in page.get("api/state")["stages"])


def test_files_of_programs_are_not_opened(explore, rng, tmp_path, monkeypatch):
    """Pillow would start Ghostscript for PostScript, whatever a file is called."""
    eps = pytest.importorskip("PIL.EpsImagePlugin")
    monkeypatch.setattr(eps, "Ghostscript", lambda *_, **__: pytest.fail("Ghostscript is started"))
    script = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n%%EOF\n"
    (tmp_path / "0.png").write_bytes(script)
    (tmp_path / "1.png").write_bytes(png(np.zeros((2, 2), np.uint8)))
    page = explore(tmp_path, rng.standard_normal((2, 4)), encode=lambda image: np.zeros(4))
    assert "no image that Pillow can read" in page.refused("image/0?side=96", 404)
    assert "no image that Pillow can read" in page.refused("api/search/image", 400, method="POST", body=script)


def test_images_of_too_many_pixels(explore, rng):
    pil = pytest.importorskip("PIL.Image")
    import io

    file = io.BytesIO()
    pil.new("1", (9000, 8000)).save(file, "PNG")
    page = explore([file.getvalue()], rng.standard_normal((1, 4)), encode=lambda image: np.zeros(4))
    assert "9000 x 8000 pixels" in page.refused("api/search/image", 400, method="POST", body=file.getvalue())


def test_photographs_are_decoded_smaller(explore, rng, monkeypatch):
    pil = pytest.importorskip("PIL.Image")
    import io

    file, decoded = io.BytesIO(), []
    made = pil.linear_gradient("L").resize((2400, 1800)).convert("RGB")
    made.save(file, "JPEG", quality=95, exif=_turned(pil))
    monkeypatch.setattr(pil.Image, "resize", lambda self, *given, _real=pil.Image.resize, **more: decoded.append(self.size) or _real(self, *given, **more))
    page = explore([file.getvalue()], rng.standard_normal((1, 4)))
    shown = pil.open(io.BytesIO(page.ask("image/0?side=240").content))
    assert shown.size == (180, 240), "upright, as its camera was held"
    assert max(decoded[0]) < 1000


def _turned(pil):
    exif = pil.Exif()
    exif[274] = 6
    return exif


@pytest.mark.parametrize("mode, values", [("I;16", [0, 32896, 65535]), ("F", [-1.0, 0.0, 1.0]), ("I", [-500, 0, 500])])
def test_grey_values_of_more_than_eight_bits(explore, mode, values):
    pil = pytest.importorskip("PIL.Image")
    import io

    kind = {"I;16": np.uint16, "F": np.float32, "I": np.int32}[mode]
    file = io.BytesIO()
    pil.fromarray(np.array([values], kind)).save(file, "TIFF")
    given = pil.fromarray(np.array([values], kind))
    for item in (file.getvalue(), given):
        shown = pil.open(io.BytesIO(explore([item], np.eye(1)).ask("image/0?side=96").content))
        grey = np.asarray(shown)[0].tolist()
        assert grey[0] == 0 and abs(grey[1] - 128) <= 1 and grey[2] == 255


@pytest.mark.slow
def test_a_million_items(explore):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1_000_000, 4), dtype=np.float32)
    graph_ids = np.arange(1_000_000)[:, None] + np.array([[1, 2]])
    graph = kith.KnnGraph(np.where(graph_ids < 1_000_000, graph_ids, graph_ids - 1_000_000), np.ones((1_000_000, 2), np.float32))
    page = explore(None, x, graph=graph, labels=np.arange(1_000_000) % 7).computed()
    check_all(page)
    assert page.get("api/map")["points"] == 1_000_000 and len(page.ask("api/points").content) == 13_000_000
    assert page.get("api/path/0/3000")["count"] > 100
