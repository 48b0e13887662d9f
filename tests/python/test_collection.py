"""Collections: what Python adds to the library's, which tests/collection proves to survive crashes."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import kith
from kith import _kith

pytestmark = pytest.mark.skipif(not _kith.has_collections, reason="built without SQLite")

COLUMNS = {"year": int, "genre": str, "price": float, "public": bool, "tags": dict}


def values(rows):
    """Values of all columns."""
    return {
        "year": [1900 + i for i in range(rows)],
        "genre": [("jazz", "rock", None)[i % 3] for i in range(rows)],
        "price": [i / 4 for i in range(rows)],
        "public": [i % 2 == 0 for i in range(rows)],
        "tags": [{"n": [i]} if i % 5 else None for i in range(rows)],
    }


@pytest.fixture
def filled(tmp_path, vectors):
    """(collection, its 60 vectors); ids 0 to 59."""
    x = vectors(60, 8)
    with kith.open(tmp_path / "c", 8, columns=COLUMNS) as collection:
        collection.add(x, columns=values(60), payloads=[bytes([i, 0, 255]) for i in range(60)])
        yield collection, x


def test_what_was_added_is_there(filled):
    collection, x = filled
    assert len(collection) == 60 and collection.count() == 60 and collection
    assert 59 in collection and np.int64(0) in collection
    assert 2**70 not in collection and np.uint64(2**63) not in collection and -1 not in collection
    assert 60 not in collection and "0" not in collection and True not in collection and 1.0 not in collection
    items = collection.get([7, 3])
    assert items.ids.tolist() == [7, 3] and (items.vectors == x[[7, 3]]).all() and items.vectors.dtype == np.float32
    given = values(60)
    assert items.columns == {name: [given[name][7], given[name][3]] for name in COLUMNS}
    assert type(items.columns["public"][0]) is bool and items.payloads == [b"\7\0\xff", b"\3\0\xff"]
    one = collection.get(5)
    assert one.ids == 5 and (one.vectors == x[5]).all() and one.payloads == b"\5\0\xff"
    assert one.columns == {"year": 1905, "genre": None, "price": 1.25, "public": False, "tags": None}
    assert list(collection) == list(range(60)) == collection.ids().tolist()
    assert collection.columns == {"year": "int", "genre": "text", "price": "real", "public": "bool", "tags": "json"}
    assert (collection.dimension, collection.metric, collection.dtype, collection.mode) == (8, "l2", "f32", "a")


def test_searches_are_exact(filled):
    collection, x = filled
    found = collection.search(x[:5], k=4)
    true = kith.knn(x[:5], x, k=4)
    assert (found.ids == true.ids).all() and (found.distances == true.distances).all()
    alone = collection.search(x[3], k=4)
    assert alone.ids.shape == (4,) and (alone.ids == true.ids[3]).all()
    wide = collection.search(x[:5].astype(np.float64), k=4)
    assert (wide.ids == true.ids).all()
    few = collection.search(x[0], k=5, ids=[4, 9])
    assert few.ids.tolist()[2:] == [-1, -1, -1] and set(few.ids.tolist()[:2]) == {4, 9} and np.isinf(few.distances[2])


def test_filters(filled):
    collection, x = filled
    years, genres = np.arange(1900, 1960), np.array(["jazz", "rock", None] * 20)
    for call, keep in [
        ({"where": "year > ? and genre = ?", "params": (1930, "jazz")}, (years > 1930) & (genres == "jazz")),
        ({"where": "public and price < ?", "params": [np.float32(8)]}, (years % 2 == 0) & (years < 1932)),
        ({"where": "genre is null"}, genres == None),  # noqa: E711
        ({"where": "id in (3, 5, 7)"}, np.isin(years, [1903, 1905, 1907])),
        ({"where": "json_extract(tags, '$.n[0]') = ?", "params": (8,)}, years == 1908),
        ({"ids": [5, 1, 99]}, np.isin(years, [1901, 1905])),
        ({"filter": years % 7 == 0}, years % 7 == 0),
        ({"filter": [8, 3]}, np.isin(years, [1903, 1908])),
        ({"filter": (years > 1950).tolist(), "where": "public"}, (years > 1950) & (years % 2 == 0)),
    ]:
        rows = np.flatnonzero(keep)
        assert collection.ids(**call).tolist() == rows.tolist(), call
        assert collection.count(**call) == len(rows), call
        found, true = collection.search(x[:4], k=3, **call), kith.knn(x[:4], x, k=3, filter=rows)
        assert (found.ids == true.ids).all() and (found.distances == true.distances).all(), call
        within = collection.range_search(x[:4], 3.0, **call)
        same = kith.range_search(x[:4], x, 3.0, filter=rows)
        assert all((a == b).all() for a, b in zip(within, same)), call


def test_parameters_of_each_query(filled):
    collection, x = filled
    params = [(1950,), [1910], (1950,), (1959,)]
    found = collection.search(x[:4], k=3, where="year >= ?", params=params)
    for i, one in enumerate(params):
        alone = collection.search(x[i], k=3, where="year >= ?", params=one)
        assert (found.ids[i] == alone.ids).all() and (found.distances[i] == alone.distances).all()
    assert (found.ids[3] == [59, -1, -1]).all()
    with pytest.raises(ValueError, match="3"):
        collection.search(x[:4], k=3, where="year >= ?", params=params[:3])


def test_text_ids(tmp_path, vectors):
    x = vectors(20, 6)
    names = [f"näme {i}" for i in range(20)]
    with kith.open(tmp_path / "c", 6, ids="text", metric="cosine") as collection:
        assert collection.add(x, ids=names) == names
        assert names[3] in collection and 3 not in collection
        found, true = collection.search(x[:2], k=3), kith.knn(x[:2], x, k=3, metric="cosine")
        assert found.ids.tolist() == [[names[i] for i in row] for row in true.ids]
        assert (found.distances == true.distances).all()
        assert collection.search(x[0], k=3, ids=[names[2]]).ids.tolist() == [names[2], None, None]
        assert collection.range_search(x[:1], 0.0).ids.tolist()[:1] == [names[0]]
        assert collection.remove(names[0]) == 1 and list(collection) == names[1:]
        assert collection.get(names[5]).ids == names[5]
        for wrong in ([1], [b"x"], [None]):
            with pytest.raises(TypeError, match="are str"):
                collection.add(x[:1], ids=wrong)
        with pytest.raises(ValueError, match="pass ids"):
            collection.add(x)


def test_odd_ids_names_and_paths(tmp_path):
    x = np.random.default_rng(7).standard_normal((5, 1536), dtype=np.float32)
    names = ["", "a'b\"c", "ü\0z", "🎷" * 50, "x" * 100_000]
    path = tmp_path / "ü 🎷?#%20;--"
    with kith.open(path, 1536, ids="text", columns={"group": int, "Select": str, "order": float}) as c:
        c.add(x, ids=names, columns={"group": [1, 2, 3, 4, 5], "Select": "'; drop table items; --"})
        c.fold()
        with pytest.raises(ValueError, match="surrogates"):
            c.add(x[:1], ids=["\udc80"])
        assert c.upsert(x[:2], ids=["twice", "twice"]) == ["twice"]
    with kith.open(path, mode="r") as c:
        assert c.ids() == [*names, "twice"] and c.search(x, k=1, where="id <> 'twice'").ids.ravel().tolist() == names
        assert all(name in c for name in names) and "nobody" not in c and 3 not in c
        assert c.count("id = ?", params=("ü\0z",)) == c.count('"group" = 3') == c.count('"Select" is null') == 1
        assert c.get("ü\0z").columns == {"group": 3, "Select": "'; drop table items; --", "order": None}
        assert c.verify().problems == []


def test_least_and_largest(tmp_path):
    with kith.open(tmp_path / "c", 1, columns={"n": int, "r": float}) as c:
        assert c.add(np.empty((0, 1), np.float32)).tolist() == c.add([], ids=[]).tolist() == []
        assert c.search([[1.0]], k=3).ids.tolist() == [[-1, -1, -1]] and c.search(np.empty((0, 1), np.float32), k=3).ids.shape == (0, 3)
        c.compact()
        c.add([[1.0], [2.0]], ids=[0, 2**63 - 2], columns={"n": [-(2**63), 2**63 - 1], "r": [float("nan"), float("inf")]})
        assert c.search([1.9], k=5).ids.tolist() == [2**63 - 2, 0, -1, -1, -1]
        assert c.get([0, 2**63 - 2]).columns == {"n": [-(2**63), 2**63 - 1], "r": [None, float("inf")]}
        assert c.get([]).vectors.shape == (0, 1)
        with pytest.raises(ValueError, match="no ids are left behind 9223372036854775806"):
            c.add([[3.0]])
        for ids in ([-1], [2**63 - 1], [2**64]):
            with pytest.raises(ValueError):
                c.add([[3.0]], ids=ids)
        for bad in (float("nan"), float("inf")):
            with pytest.raises(ValueError, match="NaN or an infinity"):
                c.upsert([[bad]])
            with pytest.raises(ValueError, match="NaN or an infinity"):
                c.search([bad])
        assert len(c) == 2 and c.remove(where="true") == 2
        c.compact()
        assert len(c) == 0 and c.info().segments == []


def test_upsert_and_remove(filled, vectors):
    collection, x = filled
    new = vectors(2, 8)
    assert collection.upsert(new, ids=[7, 100], columns={"year": 5}).tolist() == [7, 100]
    assert len(collection) == 61 and (collection.get(7).vectors == new[0]).all()
    assert collection.get(7).columns["genre"] is None and collection.get([7, 100]).columns["year"] == [5, 5]
    assert collection.remove([7, 7, 1000]) == 1 and 7 not in collection
    assert collection.remove(where="year < ?", params=(1910,)) == 10  # 0 to 9 without 7, and 100
    assert collection.remove(20) == 1
    assert collection.add(new[:1]).tolist() == [101]  # none comes back
    with pytest.raises(ValueError, match="where"):
        collection.remove()


def test_a_batch_is_one(filled, vectors):
    collection, _ = filled
    before = collection.version
    with collection.batch() as same:
        assert same is collection
        collection.add(vectors(2, 8))
        collection.remove([0])
        assert len(collection) == 60
    assert len(collection) == 61 and collection.version > before
    with pytest.raises(KeyError), collection.batch():
        collection.remove(where="true")
        raise KeyError
    assert len(collection) == 61


def test_views_stay(filled, vectors):
    collection, x = filled
    view = collection.view()
    collection.remove(where="true")
    assert len(collection) == 0 and len(view) == 60 and list(view)[:2] == [0, 1]
    assert (view.search(x[:3], k=2).ids == kith.knn(x[:3], x, k=2).ids).all()
    assert (view.get(9).vectors == x[9]).all()
    assert "60 items" in repr(view)
    assert (collection.search(x[:3], k=2).ids == -1).all()


@pytest.mark.parametrize("use", [copy.copy, copy.deepcopy, pickle.dumps])
def test_copies_are_refused_with_what_to_do(filled, use):
    collection, _ = filled
    for one, name in ((collection, "Collection"), (collection.view(), "CollectionView")):
        with pytest.raises(TypeError, match=rf"a {name} reads an open directory.*kith\.open\(path, mode='r'\)"):
            use(one)
    assert len(collection) == 60


def test_a_relative_path_stays_where_it_was(tmp_path, vectors, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with kith.open("c", 8) as collection:
        (tmp_path / "other").mkdir()
        monkeypatch.chdir(tmp_path / "other")
        collection.add(vectors(20, 8))
        collection.fold()
        assert collection.path == "c" and collection.search(vectors(1, 8), k=1, where="id >= 0").ids.shape == (1, 1)
        collection.snapshot("copy")
        collection.compact()
    assert len(kith.open(tmp_path / "c", mode="r")) == len(kith.open("copy", mode="r")) == 20
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "other"]


def test_opened_again(filled, tmp_path):
    collection, x = filled
    found = collection.search(x, k=5, where="public")
    with kith.open(tmp_path / "c", mode="r") as reader:
        assert (reader.search(x, k=5, where="public").ids == found.ids).all()
        assert not reader.refresh()
        collection.remove([0])
        assert 0 in reader and reader.refresh() and 0 not in reader
        with pytest.raises(RuntimeError):
            reader.remove([1])
    with pytest.raises(RuntimeError, match=str(os.getpid())):
        kith.open(tmp_path / "c")
    collection.close()
    collection.close()
    assert collection.closed and "closed" in repr(collection)
    with pytest.raises(RuntimeError):
        collection.search(x)
    with kith.open(tmp_path / "c", 8, metric="euclidean", dtype=np.float32, columns={"year": "int", "more": "text"}) as again:
        assert len(again) == 59 and again.get(1).columns["more"] is None
        assert (again.search(x, k=5, where="public", ids=again.ids()).ids != 0).all()


@pytest.mark.parametrize(
    "settings", [{"dimension": 9}, {"metric": "cosine"}, {"dtype": "f16"}, {"ids": "text"}, {"columns": {"year": str}},
                 {"index": "IVF,SQ8"}]
)
def test_other_settings_are_refused(filled, tmp_path, settings):
    collection, _ = filled
    with pytest.raises(ValueError, match=next(iter(settings)) if "columns" not in settings else "'year' of type 'int'"):
        kith.open(tmp_path / "c", mode="r", **settings)


def test_open_errors(tmp_path):
    with pytest.raises(FileNotFoundError, match="dimension"):
        kith.open(tmp_path / "none")
    with pytest.raises(FileNotFoundError):
        kith.open(tmp_path / "none", 3, mode="r")
    assert not (tmp_path / "none").exists()
    for wrong, error, words in [
        ({"mode": "w"}, ValueError, "empties nothing"),
        ({"sync": True}, ValueError, "later"),
        ({"ids": "uuid"}, ValueError, "text"),
        ({"columns": {"a": complex}}, TypeError, "column 'a'"),
        ({"columns": {"id": int}}, ValueError, "id"),
        ({"columns": {"a": "decimal"}}, ValueError, "decimal"),
        ({"dtype": "complex64"}, TypeError, "f32"),
        ({"metric": "haversine"}, ValueError, "haversine"),
        ({"index": "IVFx"}, ValueError, "IVFx"),
        ({"dimension": 0}, ValueError, "0"),
        ({"timeout": -1}, ValueError, "timeout"),
        ({"device": "gpu"}, ValueError, "gpu"),
        ({"dim": 3}, TypeError, "dimension"),
        ({"read_only": True}, TypeError, "mode"),
    ]:
        with pytest.raises(error, match=words):
            kith.open(tmp_path / "none", **{"dimension": 3, **wrong})


def test_bad_items_lose_nothing(filled, vectors):
    collection, x = filled
    one = vectors(1, 8)
    for call, error, words in [
        ({"vectors": vectors(2, 7)}, ValueError, "7"),
        ({"vectors": one, "ids": [3]}, ValueError, "3"),
        ({"vectors": vectors(2, 8), "ids": [200, 200]}, ValueError, "200"),
        ({"vectors": one, "ids": [1, 2]}, ValueError, "2 ids and 1 vectors"),
        ({"vectors": one, "ids": ["a"]}, TypeError, 'ids="text"'),
        ({"vectors": one, "ids": [1.5]}, TypeError, "are int"),
        ({"vectors": one, "columns": {"yaer": [1]}}, ValueError, "'yaer'"),
        ({"vectors": one, "columns": {"year": [1, 2]}}, ValueError, "2 values"),
        ({"vectors": one, "columns": {"year": ["1"]}}, TypeError, "column 'year', row 0"),
        ({"vectors": one, "columns": {"genre": [1]}}, TypeError, "column 'genre', row 0"),
        ({"vectors": one, "columns": {"public": [1]}}, TypeError, "is no bool"),
        ({"vectors": one, "columns": {"tags": [{"a": float("nan")}]}}, ValueError, "column 'tags'"),
        ({"vectors": one, "columns": {"year": [2**63]}}, ValueError, "64 bits"),
        ({"vectors": one, "payloads": ["text"]}, TypeError, "encode"),
        ({"vectors": one, "payloads": b"x"}, TypeError, "list of bytes"),
        ({"vectors": np.full((1, 8), np.nan)}, ValueError, "NaN|infinity|finite"),
    ]:
        before = collection.version
        with pytest.raises(error, match=words):
            collection.add(**call)
        assert len(collection) == 60 and collection.version == before
    with pytest.raises(ValueError, match="999"):
        collection.get([1, 999])


def test_bad_filters(filled):
    collection, x = filled
    for call, error, words in [
        ({"where": "yaer > 3"}, ValueError, "yaer"),
        ({"where": "year > "}, ValueError, "where|syntax|incomplete"),
        ({"where": "year > ?"}, ValueError, "param"),
        ({"where": "year > 3", "params": (1,)}, ValueError, "param"),
        ({"where": "1; drop table items"}, ValueError, "where"),
        ({"where": "year in (select 1 from sqlite_master)"}, ValueError, "where"),
        ({"params": (1,)}, ValueError, "there is none"),
        ({"where": "year > :y", "params": {"y": 1}}, TypeError, "dict"),
        ({"where": "year > ?", "params": 5}, TypeError, "sequence"),
        ({"where": "year > ?", "params": (b"x",)}, TypeError, r"params\[0\]"),
        ({"where": 5}, TypeError, "where"),
        ({"filter": "year > 3"}, TypeError, "where"),
        ({"filter": np.ones(59, bool)}, ValueError, "60"),
        ({"filter": [1], "ids": [2]}, ValueError, "one of them"),
        ({"n_results": 3}, TypeError, "k$"),
        ({"limit": 3}, TypeError, "k$"),
        ({"query_filter": 3}, TypeError, "where="),
    ]:
        with pytest.raises(error, match=words):
            collection.search(x[0], **call)
    assert len(collection) == 60


@pytest.mark.parametrize(
    "where",
    [
        "1) or (1=1", "year = 1 -- x", "year = 1 /* x */", "load_extension('x')", "(select count(*) from sqlite_master) > 0",
        "year in (select _row from items)", "(select count(*) from \"items\") > 0", "rowid = 0", "main.items.year = 1",
        "_take(1)", "count(*) > 0", "sum(year) over () > 0", "raise(ignore)", "randomblob(10)", "pragma_table_info('items')",
        "writefile('/tmp/x', 'y')", "year = 1\0", "   ", "attach 'x' as y", "(update items set year = 1)",
    ],
)
def test_expressions_cannot_leave_their_parentheses(filled, where):
    c, _ = filled
    before = c.ids().tolist()
    for call in (c.count, c.ids, lambda where: c.search(np.zeros(c.dimension), where=where), lambda where: c.remove(where=where)):
        with pytest.raises(ValueError, match="where"):
            call(where)
    assert c.ids().tolist() == before and c.verify().problems == []


def test_other_names_are_answered(filled):
    collection, _ = filled
    for name, words in [("query", "search"), ("delete", "remove"), ("optimize", "compact"), ("persist", "nothing")]:
        with pytest.raises(AttributeError, match=words):
            getattr(collection, name)
    assert not hasattr(collection, "no_such_thing")
    with pytest.raises(AttributeError, match="kith.open"):
        kith.PersistentClient  # noqa: B018


@pytest.mark.parametrize("dtype", ["f16", "bf16", "u8", "i8"])
def test_dtypes(tmp_path, vectors, dtype):
    numbers = {"f16": np.float16, "bf16": np.float32, "u8": np.uint8, "i8": np.int8}
    x = vectors(30, 8, numbers[dtype])
    if dtype == "bf16":
        x = (x.view(np.uint32) & 0xFFFF0000).view(np.float32)
    with kith.open(tmp_path / "c", 8, dtype=dtype) as collection:
        collection.add(x)
        assert collection.dtype == dtype
        found = collection.get(list(range(30))).vectors
        assert found.dtype == numbers[dtype] and (found == x).all()
        assert (collection.search(x[:3], k=2).ids == kith.knn(x[:3], x, k=2).ids).all()


def test_fold_compact_snapshot_verify(filled, tmp_path):
    collection, x = filled
    found = collection.search(x, k=5)
    collection.create_index("year")
    collection.fold()
    assert collection.info().newest == 0 and len(collection.info().segments) == 1
    collection.remove(list(range(10)))
    collection.snapshot(tmp_path / "copy")
    collection.compact()
    info = collection.info()
    assert info.size == 50 and info.removed == 0 and info.segments[0].rows == 50 and info.not_indexed == 50
    with kith.open(tmp_path / "copy") as copy:
        assert (copy.get(copy.ids()).vectors == x[10:]).all() and copy.verify().sound
        copy.remove(where="true")
    report = collection.verify()
    assert report.sound and report.items == 50 and report.files >= 2
    kept = (found.ids >= 10).all(axis=1)
    assert kept.any() and (collection.search(x[kept], k=5).ids == found.ids[kept]).all()
    path = tmp_path / "c" / info.segments[0].file
    collection.close()
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    path.write_bytes(damaged)
    try:
        with kith.open(tmp_path / "c", mode="r") as again:
            report = again.verify()
            assert not report.sound and path.name in report.problems[0][0]
    except kith.CorruptFileError as error:  # where the byte addresses memory
        assert path.name in str(error)


def test_settings_of_calls(filled):
    collection, x = filled
    true = collection.search(x, k=5)
    for settings in ({"threads": 1}, {"device": "cpu"}, {"memory_limit": "64M"}):
        assert (collection.search(x, k=5, **settings).ids == true.ids).all()
    with pytest.raises(MemoryError):
        collection.search(x, k=5, memory_limit=100)


def test_threads(filled, vectors):
    collection, x = filled
    more = [vectors(5, 8) for _ in range(8)]
    errors = []

    def work(number):
        try:
            for row in more[number]:
                collection.add(row)
                assert collection.search(x[:2], k=3).ids.shape == (2, 3)
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and len(collection) == 100


def test_another_process_reads(filled, tmp_path):
    collection, _ = filled
    program = f"""
import kith
reader = kith.open({str(tmp_path / "c")!r}, mode="r")
assert len(reader) == 60, len(reader)
try:
    kith.open({str(tmp_path / "c")!r})
except RuntimeError as error:
    assert "{os.getpid()}" in str(error), error
else:
    raise AssertionError
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_arrow(filled):
    pa = pytest.importorskip("pyarrow")
    collection, x = filled
    table = collection.to_arrow()
    assert table.schema.names == ["id", "vector", *COLUMNS, "payload"] and table.num_rows == 60
    assert (np.stack(table["vector"].to_pylist()).astype(np.float32) == x).all()
    assert table["year"].to_pylist()[3] == 1903 and table["genre"].to_pylist()[2] is None
    assert collection.to_arrow("year < ?", (1905,)).num_rows == 5
    assert collection.to_arrow("false").num_rows == 0
    collection.remove(where="true")
    with pytest.raises(ValueError, match="alone"):
        collection.add(table, ids=[1])
    assert collection.add(table).tolist() == list(range(60))
    assert collection.to_arrow().equals(table)
    items = collection.get(list(range(60)))
    assert (items.vectors == x).all() and items.columns == values(60) and items.payloads[4] == b"\4\0\xff"
    tags = table.schema.get_field_index("tags")
    with pytest.raises(ValueError, match="column 'tags', row 0: .* is no JSON"):
        collection.upsert(table.set_column(tags, "tags", pa.array(["{n"] * 60)))
    collection.upsert(table.set_column(tags, "tags", pa.array([{"n": [i]} for i in range(60)])))  # values as they are
    assert collection.get(5).columns["tags"] == {"n": [5]}
    with pytest.raises(ValueError, match="no column 'vector'"):
        collection.add(pa.table({"embedding": [[1.0] * 8]}))
    with pytest.raises(ValueError, match="differ in length"):
        collection.add(pa.table({"vector": [[1.0] * 8, [1.0] * 7]}))


def test_pandas(filled):
    pd = pytest.importorskip("pandas")
    collection, x = filled
    frame = collection.to_pandas()
    assert list(frame.columns) == ["id", "vector", *COLUMNS, "payload"] and len(frame) == 60
    assert (np.stack(frame["vector"]) == x).all() and frame["tags"][6] == {"n": [6]} and frame["year"][3] == 1903
    collection.remove(where="true")
    assert len(collection.to_pandas()) == 0
    frame.loc[2, "price"] = None
    collection.add(frame)
    assert collection.get(2).columns["price"] is None and collection.get(6).columns["tags"] == {"n": [6]}
    assert collection.get(3).columns["year"] == 1903 and (collection.get(3).vectors == x[3]).all()
    with pytest.raises(ValueError, match="no column 'vector'"):
        collection.add(pd.DataFrame({"x": [1]}))
