"""kith collection: create, add, remove, search, info, verify, compact, snapshot, export."""

import base64
import json

import numpy as np
import pytest

from matrix_files import nearest, read_matrix, write_matrix


@pytest.fixture
def films(kith, tmp_path):
    """(directory, vectors): 50 items with ids from 100 on, years and titles."""
    if "built without SQLite" in kith("collection").err:
        pytest.skip("built without SQLite")
    x = np.random.default_rng(1).standard_normal((50, 8)).astype(np.float32)
    lines = [
        {"id": 100 + i, "year": 1900 + i, "title": f"film {i}", "tags": {"n": i}, "payload": base64.b64encode(bytes([i, 0])).decode()}
        for i in range(50)
    ]
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    path = tmp_path / "films"
    made = kith.ok("collection", "create", path, "--dimension", 8, "--column", "year:int", "title:text", "tags:json", "--json")
    assert made.json["result"] == {"dimension": 8, "metric": "l2", "dtype": "f32", "ids": "int", "factory": "Flat"}
    added = kith.ok("collection", "add", path, "--vectors", write_matrix(tmp_path / "x.fbin", x), "--items",
                    tmp_path / "items.jsonl", "--json")
    assert added.json["added"] == added.json["size"] == 50
    return path, x


def test_search(kith, films, tmp_path):
    path, x = films
    queries = write_matrix(tmp_path / "q.fbin", x[:4])
    true, distances = nearest(x[:4], x, 3, "l2")
    found = kith.ok("collection", "search", path, "--queries", queries, "-k", 3, "--json").json["result"]["found"]
    assert [one["ids"] for one in found] == (100 + true).tolist()
    np.testing.assert_allclose([one["distances"] for one in found], distances, rtol=1e-5, atol=1e-6)
    text = kith.ok("collection", "search", path, "--queries", queries, "-k", 3).out
    assert text.splitlines()[0].startswith("100 0, ")
    ids, lines = tmp_path / "i.ibin", tmp_path / "found.jsonl"
    kith.ok("collection", "search", path, "--queries", queries, "-k", 3, "--out-ids", ids, "--out", lines)
    assert (read_matrix(ids) == 100 + true).all()
    assert [json.loads(line)["ids"] for line in lines.read_text().splitlines()] == (100 + true).tolist()
    some = kith.ok("collection", "search", path, "--queries", queries, "-k", 60, "--where", "year > ? and title != ?",
                   "--params", 1945, "film 47", "--json").json["result"]["found"]
    assert all(sorted(one["ids"]) == [146, 148, 149] for one in some)
    few = kith.ok("collection", "search", path, "--queries", queries, "--ids", 101, 7, "--json").json["result"]["found"]
    assert [one["ids"] for one in few] == [[101]] * 4


def test_upkeep(kith, films, tmp_path):
    path, x = films
    assert kith.ok("collection", "remove", path, "--where", "year < ?", "--params", 1910, "--json").json["removed"] == 10
    assert kith.ok("collection", "remove", path, "--ids", 110, 111, 5).out.startswith("removed 2 items")
    kith.ok("collection", "snapshot", path, tmp_path / "copy")
    compacted = kith.ok("collection", "compact", path, "--json").json
    assert compacted["size"] == 38
    for one in (path, tmp_path / "copy"):
        info = kith.ok("collection", "info", one, "--json").json["result"]
        assert info["size"] == 38 and [column["name"] for column in info["columns"]] == ["year", "title", "tags"]
        verified = kith.ok("collection", "verify", one, "--json").json
        assert verified["sound"] and verified["items"] == 38
    assert "38 items of 8 x f32" in kith.ok("collection", "info", path).out
    segment = next((path / "segments").iterdir())
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 1
    segment.write_bytes(content)
    done = kith("collection", "verify", path)
    assert done.code == 3 and segment.name in done.err


def test_export_and_upsert(kith, films, tmp_path):
    path, x = films
    out, lines = tmp_path / "out.fbin", tmp_path / "out.jsonl"
    kith.ok("collection", "export", path, "--out-vectors", out, "--out-items", lines)
    assert (read_matrix(out) == x).all()
    items = [json.loads(line) for line in lines.read_text().splitlines()]
    assert items[3] == {"id": 103, "year": 1903, "title": "film 3", "tags": {"n": 3}, "payload": base64.b64encode(b"\3\0").decode()}
    kith.ok("collection", "add", path, "--vectors", out, "--items", lines, "--upsert")
    again = tmp_path / "again.jsonl"
    kith.ok("collection", "export", path, "--out-items", again)
    assert again.read_text() == lines.read_text()
    few = tmp_path / "few.fbin"
    kith.ok("collection", "export", path, "--out-vectors", few, "--where", "id >= ?", "--params", 148)
    assert (read_matrix(few) == x[48:]).all()


def test_text_ids(kith, films, tmp_path):
    _, x = films
    path, lines = tmp_path / "texts", tmp_path / "texts.jsonl"
    lines.write_text("".join(json.dumps({"id": f"ä{i}"}) + "\n" for i in range(50)))
    kith.ok("collection", "create", path, "--dimension", 8, "--ids", "text", "--metric", "cosine")
    kith.ok("collection", "add", path, "--vectors", tmp_path / "x.fbin", "--items", lines)
    queries = write_matrix(tmp_path / "q.fbin", x[:2])
    found = kith.ok("collection", "search", path, "--queries", queries, "-k", 1, "--json").json["result"]["found"]
    assert [one["ids"] for one in found] == [["ä0"], ["ä1"]]
    error = kith.fails(2, "collection", "search", path, "--queries", queries, "--out-ids", tmp_path / "i.ibin")
    assert "--out" in error
    assert kith.ok("collection", "remove", path, "--ids", "ä3", "--json").json["removed"] == 1


@pytest.mark.parametrize(
    "line, words",
    [
        ("{", "line 1: this is no JSON object"),
        ('{"id": "x"}', 'line 1: the id "x" is no integer'),
        ('{"yaer": 3}', "line 1: the collection has no column 'yaer'"),
        ('{"year": "3"}', "line 1: column 'year' is of type int"),
        ('{"payload": "?"}', "line 1: the payload is no base64"),
        ('{"year": 1}', "line 2: the file ends"),
        ('{"id": 1}\n{"year": 1}', "line 2: some lines have an id"),
        ('{"year": 1}\n{"year": 2}\n{"year": 3}', "line 3: there are more lines"),
    ],
)
def test_wrong_items_add_nothing(kith, films, tmp_path, line, words):
    path, x = films
    (tmp_path / "wrong.jsonl").write_text(line + "\n")
    two = write_matrix(tmp_path / "two.fbin", x[:2])
    assert words in kith.fails(2, "collection", "add", path, "--vectors", two, "--items", tmp_path / "wrong.jsonl")
    assert kith.ok("collection", "info", path, "--json").json["result"]["size"] == 50


def test_errors(kith, films, tmp_path):
    path, x = films
    queries = write_matrix(tmp_path / "q.fbin", x[:2])
    assert "no type" in kith.fails(2, "collection", "create", tmp_path / "n", "--dimension", 3, "--column", "year")
    assert "nothing" in kith.fails(2, "collection", "remove", path)
    assert "yaer" in kith.fails(2, "collection", "search", path, "--queries", queries, "--where", "yaer > 3")
    assert "is no integer" in kith.fails(2, "collection", "remove", path, "--ids", "x")
    assert "no output" in kith.fails(2, "collection", "export", path)
    many = write_matrix(tmp_path / "many.fbin", np.zeros((101, 8), np.float32))
    assert "--out" in kith.fails(2, "collection", "search", path, "--queries", many)
    missing = kith("collection", "info", tmp_path / "none")
    assert missing.code != 0 and str(tmp_path / "none") in missing.err
    assert "100" in kith.fails(2, "collection", "add", path, "--vectors", tmp_path / "x.fbin", "--items", tmp_path / "items.jsonl")


@pytest.mark.slow
def test_large_adds_are_segments_at_once(kith, films, tmp_path):
    """Rows that no 64 MiB are a multiple of: a piece that is a little smaller would stay in SQLite until the end."""
    path, vectors = tmp_path / "large", tmp_path / "large.u8bin"
    rows = (64 << 20) // (384 * 4) + 110
    x = np.random.default_rng(2).integers(0, 255, (rows, 384), dtype=np.uint8)
    write_matrix(vectors, x)
    kith.ok("collection", "create", path, "--dimension", 384)
    kith.ok("collection", "add", path, "--vectors", vectors, "--memory-limit", "400M")
    info = kith.ok("collection", "info", path, "--json").json["result"]
    assert [segment["rows"] for segment in info["segments"]] == [rows - 109] and info["newest"] == 109
    wanted = kith("collection", "add", path, "--vectors", vectors, "--memory-limit", "60M")
    assert wanted.code != 0 and "would do" in wanted.err
    assert kith.ok("collection", "info", path, "--json").json["result"]["size"] == rows
