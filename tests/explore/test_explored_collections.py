"""kith.explore of a collection: payloads or a column as items, its ids, labels from a column, its metric."""

from __future__ import annotations

import numpy as np
import pytest

import kith
from kith._explore import command
from kith._png import png

pytestmark = pytest.mark.skipif(not kith._kith.has_collections, reason="this build has no collections")


@pytest.fixture
def films(tmp_path, rng):
    with kith.open(tmp_path / "films", dimension=4, metric="cosine", columns={"year": int, "title": str, "genre": str}) as made:
        columns = {
            "year": [1900 + row % 100 for row in range(120)],
            "title": [f"Film {row}" for row in range(120)],
            "genre": ["jazz" if row % 3 else None for row in range(120)],
        }
        made.add(rng.standard_normal((120, 4)), ids=np.arange(120) * 10 + 7, columns=columns)
        made.remove([7])
    return tmp_path / "films"


def test_a_column_of_texts(explore, films):
    page = explore(films, labels="genre").computed()
    state = page.get("api/state")
    assert (state["rows"], state["kind"], state["metric"], state["ids"], state["labels"]) == (119, "texts", "cosine", True, ["(none)", "jazz"])
    assert page.get("api/item/0") == {"row": 0, "text": "Film 1", "label": "jazz", "id": "17"}
    with kith.open(films, mode="r") as held:
        found = held.search(held.get(17).vectors, k=6)
    told = page.get("api/neighbours/0?k=5")["found"]
    assert [int(one["id"]) for one in told] == found.ids[1:].tolist()
    np.testing.assert_allclose([one["distance"] for one in told], found.distances[1:], atol=1e-6)
    assert page.post("api/search/text", b"17")["found"][0]["id"] == "17"
    assert [one["row"] for one in page.post("api/search/text", b"Film 17")["found"]] == [16]
    page.explorer.close()
    with kith.open(films) as again:
        again.add(np.zeros((1, 4)) + 1, ids=[1])  # nothing is held


def test_another_column_and_labels_that_are_numbers(explore, films):
    with kith.open(films, mode="r") as held:
        page = explore(held, text="genre", labels="year").computed()
        assert page.get("api/item/0")["text"] == "jazz" and page.get("api/state")["scale"]
        page.explorer.close()
        assert not held.closed, "who opened it closes it"
        own = explore(held.view(), labels=list(range(119)), metric="l2")
        assert own.get("api/item/5")["label"] == "5" and own.get("api/state")["metric"] == "l2"


def test_payloads_that_are_texts(explore, tmp_path, rng):
    with kith.open(tmp_path / "notes", dimension=3, ids="text", columns={"title": str}) as made:
        texts = [f"note number {row} שלום" for row in range(30)]
        made.add(rng.standard_normal((30, 3)), ids=[f"n{row}" for row in range(30)], columns={"title": ["x"] * 30}, payloads=[text.encode() for text in texts])
    page = explore(str(tmp_path / "notes")).computed()
    assert page.get("api/item/4") == {"row": 4, "text": texts[4], "id": "n4"}
    assert [one["row"] for one in page.post("api/search/text", b"number 12")["found"]] == [12]
    assert page.post("api/search/text", b"n4")["found"][0]["row"] == 4


def test_payloads_that_are_images(explore, tmp_path, rng):
    images = rng.integers(0, 256, (20, 5, 5), dtype=np.uint8)
    with kith.open(tmp_path / "photos", dimension=25, dtype="u8") as made:
        made.add(images.reshape(20, -1), payloads=[b"" if row == 3 else png(images[row]) for row in range(20)])
    page = explore(tmp_path / "photos").computed()
    assert page.get("api/state")["kind"] == "images" and page.ask("image/7").content == png(images[7])
    assert "missing" in page.refused("image/3", 404)
    assert page.post("api/search/text", b"7")["found"][0]["row"] == 7


def test_neither_payloads_nor_texts(explore, tmp_path):
    with kith.open(tmp_path / "bare", dimension=2) as made:
        made.add(np.eye(2), ids=[40, 41], payloads=[b"\xff\x00\x01", b"\xff"])
    assert explore(tmp_path / "bare").get("api/item/1") == {"row": 1, "text": "41", "id": "41"}


def test_mistakes_with_collections(explore, films, tmp_path):
    with pytest.raises(ValueError, match="'genres', which is no column of the collection; its columns are: year, title, genre"):
        explore(films, labels="genres")
    with pytest.raises(ValueError, match="text is 'plot'"):
        explore(films, text="plot")
    with pytest.raises(TypeError, match="vectors of its own"):
        explore(films, np.eye(4))
    with pytest.raises(TypeError, match=r"x is missing: .* is no collection"):
        explore(tmp_path)
    with pytest.raises(TypeError, match="text names a column"):
        explore(["a"], np.eye(1), text="title")
    with pytest.raises(TypeError, match="labels is 'genre'"):
        explore(["a"], np.eye(1), labels="genre")
    with kith.open(tmp_path / "empty", dimension=2) as empty, pytest.raises(ValueError, match="the collection is empty"):
        explore(empty)
    with kith.open(films) as writes:
        assert explore(writes).get("api/state")["rows"] == 119


def test_the_command(films, monkeypatch, capsys, tmp_path):
    calls = []
    monkeypatch.setattr(command, "explore", lambda *given, **more: calls.append((given, more)))
    assert command.main([str(films), "--labels", "genre", "--text", "title", "--no-browser"]) == 0
    assert calls[0][0][:3] == (str(films), None, "genre") and calls[0][1]["text"] == "title"
    for arguments, says in (
        ([], "say what to look at"),
        ([str(tmp_path)], "--items"),
        ([str(films), "--vectors", "x.npy"], "give one"),
        ([str(films), "--items", "x"], "--text COLUMN"),
        ([str(films / "kith.sqlite")], "is a file" if (films / "kith.sqlite").exists() else ""),
    ):
        if says:
            assert command.main(arguments) == 2 and says in capsys.readouterr().err, arguments
