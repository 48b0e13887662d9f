"""kith index: build, add, search, tune, inspect, convert, merge."""

import re
from pathlib import Path

import numpy as np
import pytest

from matrix_files import leftovers, nearest, read_matrix, write_matrix
from test_memory_limit import MIB, peak_memory

GOLDEN = Path(__file__).parents[1] / "golden" / "kith" / "recipes"


@pytest.fixture
def data(tmp_path):
    """(base, queries) and their files."""
    random = np.random.default_rng(1)
    base = random.standard_normal((3000, 16)).astype(np.float32)
    queries = random.standard_normal((40, 16)).astype(np.float32)
    return base, queries, write_matrix(tmp_path / "b.fbin", base), write_matrix(tmp_path / "q.fbin", queries)


def build(kith, base, out, *more, factory="IVF16,Flat"):
    return kith.ok("index", "build", "--base", base, "--factory", factory, "--out", out, *more)


def probing(factory, count):
    """Options of a search that looks at so many lists: none for an index without lists, which refuses --probes."""
    return ["--probes", count] if "IVF" in factory else []


def found(kith, index, queries, tmp_path, *more, k=5):
    ids, distances = tmp_path / "i.ibin", tmp_path / "d.fbin"
    kith.ok("index", "search", "--index", index, "--queries", queries, "-k", k, "--out-ids", ids, "--out-distances",
            distances, *more)
    return read_matrix(ids), read_matrix(distances)


@pytest.mark.parametrize("metric", ["l2", "inner_product", "cosine"])
def test_all_lists_are_exact_search(kith, data, tmp_path, metric):
    base, queries, b, q = data
    build(kith, b, tmp_path / "x.kith", "--metric", metric)
    ids, distances = found(kith, tmp_path / "x.kith", q, tmp_path, "--probes", 16)
    true, values = nearest(queries, base, 5, metric)
    assert (ids == true).all()
    np.testing.assert_allclose(distances, values, rtol=1e-5, atol=1e-6)


def test_reports(kith, data, tmp_path):
    _, _, b, q = data
    index = tmp_path / "x.kith"
    report = build(kith, b, index, "--json", "--seed", 3, factory="IVF,SQ8").json
    assert report["command"] == "index build" and report["result"]["out"] == str(index)
    assert report["timings"]["train_seconds"] > 0 and report["memory"]["peak_resident_bytes"] > 0
    info = report["result"]["index"]
    assert (info["factory"], info["size"], info["dimension"], info["lists"]) == ("IVF,SQ8", 3000, 16, 54)
    seen = kith.ok("index", "inspect", index, "--json").json["result"]
    assert seen["file_bytes"] == index.stat().st_size
    assert seen["index"]["size"] == 3000 and seen["index"]["code_bytes"] == 16 and seen["index"]["imbalance"] >= 1
    assert sum(seen["index"]["parts"].values()) == seen["index"]["host_bytes"]
    text = kith.ok("index", "inspect", index).out
    assert "IVF,SQ8, metric l2: 3000 vectors of 16 values (f32)" in text and "54 lists" in text and "16 bytes a vector" in text
    arguments = ["index", "search", "--index", index, "--queries", q, "--out-ids", tmp_path / "i.ibin"]
    searched = kith.ok(*arguments, "--probes", 4, "--refine", 2, "--refine-from", b, "--json").json["result"]
    assert (searched["k"], searched["probes"], searched["refine"]) == (10, 4, 2)
    assert "IVF,SQ8 of 3000 vectors" in kith.ok(*arguments).out
    assert build(kith, b, index, "--quiet").out == ""


def test_the_same_index_twice(kith, data, tmp_path):
    _, _, b, _ = data
    for name, more in [("1", ["--threads", 1]), ("2", ["--threads", 2]), ("3", ["--seed", 5])]:
        build(kith, b, tmp_path / f"{name}.kith", *more, factory="IVF16,SQ8")
    one, two, other = ((tmp_path / f"{n}.kith").read_bytes() for n in "123")
    assert one == two and one != other


def test_ids_and_growth(kith, data, tmp_path):
    base, queries, b, q = data
    half = write_matrix(tmp_path / "half.fbin", base[:1000]), write_matrix(tmp_path / "rest.fbin", base[1000:])
    names = write_matrix(tmp_path / "n.npy", np.arange(1000)[:, None] * 7), write_matrix(tmp_path / "m.npy", np.arange(2000)[:, None] * 7 + 7000)
    grown = tmp_path / "x.kith"
    build(kith, half[0], grown, "--train", b, "--ids", names[0])
    kith.ok("index", "add", "--index", grown, "--base", half[1], "--ids", names[1], "--out", tmp_path / "y.kith")
    assert kith.ok("index", "inspect", grown, "--json").json["result"]["index"]["size"] == 1000
    kith.ok("index", "add", "--index", grown, "--base", half[1], "--ids", names[1])
    for path in (grown, tmp_path / "y.kith"):
        ids, _ = found(kith, path, q, tmp_path, "--probes", 16)
        assert (ids == nearest(queries, base, 5, "l2")[0] * 7).all()
    assert "is in the index already" in kith.fails(2, "index", "add", "--index", grown, "--base", half[1], "--ids", names[1])
    assert "2000 x 1 ids" in kith.fails(2, "index", "add", "--index", grown, "--base", half[0], "--ids", names[1])


def test_filters(kith, data, tmp_path):
    base, queries, b, q = data
    build(kith, b, tmp_path / "x.kith")
    keep = write_matrix(tmp_path / "keep.npy", np.array([[5, 17, 2000]]))
    ids, _ = found(kith, tmp_path / "x.kith", q, tmp_path, "--probes", 16, "--filter", keep, k=4)
    assert set(ids[:, :3].ravel()) == {5, 17, 2000} and (ids[:, 3] == -1).all()
    more = write_matrix(tmp_path / "more.npy", np.array([[5, 17, 4000, 2000]]))  # one that is not there
    again, _ = found(kith, tmp_path / "x.kith", q, tmp_path, "--probes", 16, "--filter", more, k=4)
    assert (again == ids).all()
    search = ["index", "search", "--index", tmp_path / "x.kith", "--queries", q, "--out-ids", tmp_path / "i.ibin"]
    assert "id 4000 at position 2 is not in the index" in kith.fails(2, *search, "--filter", more, "--filter-strict")


@pytest.mark.parametrize("factory", ["Flat", "IVF16,SQ8", "PCA8,IVF16,Flat", "RQ3x4_Ncqint8", "IVF16,RaBitQ"])
def test_faiss_files(kith, data, tmp_path, factory):
    _, _, b, q = data
    build(kith, b, tmp_path / "x.kith", "--metric", "sqeuclidean", factory=factory)
    kith.ok("index", "convert", tmp_path / "x.kith", tmp_path / "x.faiss")
    report = kith.ok("index", "convert", tmp_path / "x.faiss", tmp_path / "y.kith", "--json").json["result"]
    assert report["index"]["size"] == 3000
    results = [found(kith, tmp_path / name, q, tmp_path, *probing(factory, 4)) for name in ("x.kith", "x.faiss", "y.kith")]
    for ids, distances in results[1:]:
        assert (ids == results[0][0]).all() and (distances == results[0][1]).all()


def test_wrong_usage(kith, data, tmp_path):
    _, _, b, q = data
    out = tmp_path / "x.kith"
    assert "needs one of its commands: build, add, remove, search, range, tune, inspect, convert, merge; see kith index --help" in kith.fails(2, "index")
    for factory, says in (("cosine", "'cosine' is a metric, not a part of an index"), ("hnsw32", "Kith has no part 'hnsw32'"), ("hnsw", "Graph64")):
        assert says in kith.fails(2, "index", "build", "--base", b, "--factory", factory, "--out", out)
    assert "--ids names a file of ids, and there is no '1,2'; make one" in kith.fails(2, "index", "remove", "--index", out, "--ids", "1,2")
    assert "unknown command 'index frob'; known are: build, add, remove, search, range, tune, inspect, convert, merge" in kith.fails(2, "index", "frob")
    assert "see kith index build --help" in kith.fails(2, "index", "build", "--base", b)
    assert "--base" in kith.ok("index", "build", "--help").out and "Usage: kith index build" in kith.ok("index", "build", "--help").out
    wrong = ["index", "build", "--base", b, "--out", out, "--factory"]
    assert "Kith has no part 'LSH32'" in kith.fails(2, *wrong, "LSH32")
    assert "Graph64 serves as HNSW32 does" in kith.fails(2, *wrong, "HNSW32")
    assert "3000 training rows for 4000 centres" in kith.fails(2, *wrong, "IVF4000,Flat")
    assert "the same file" in kith.fails(2, "index", "build", "--base", b, "--factory", "Flat", "--out", b)
    assert "--factory" in kith.fails(2, *wrong, "")
    assert leftovers(tmp_path, b, q) == []
    build(kith, b, out)
    search = ["index", "search", "--index", out, "--queries", q]
    assert "index search has no output" in kith.fails(2, *search)
    assert "probes is -1" in kith.fails(2, *search, "--probes", -1, "--out-ids", tmp_path / "i.ibin")
    assert "beam = 9 is for indexes that walk" in kith.fails(2, *search, "--beam", 9, "--out-ids", tmp_path / "i.ibin")
    assert "none.kith" in kith.fails(3, "index", "inspect", tmp_path / "none.kith")
    assert "is a file of vectors or ids, not an index; kith index build makes" in kith.fails(2, "index", "inspect", q)
    knn = ["knn", "--base", out, "--queries", q, "--out-ids", tmp_path / "i.ibin"]
    for command in (knn, ["convert", out, tmp_path / "x.npy"]):
        assert "is a .kith file: an index or a quantizer, not vectors" in kith.fails(2, *command)
    out.write_bytes(out.read_bytes()[:5000])
    assert "x.kith" in kith.fails(3, "index", "inspect", out)
    error = kith("index", "inspect", out, "--json")
    assert error.code == 3 and error.json["error"]["type"] == "CorruptFile"


@pytest.mark.parametrize("factory", ["PQ8", "IVF32,PQ8"])
def test_a_memory_limit_changes_nothing(kith_unsanitized, tmp_path, factory):
    """Building, from the file alone, and searching within little more than a quarter of the file's size."""
    kith = kith_unsanitized
    random = np.random.default_rng(2)
    rows = 400_000
    base = write_matrix(tmp_path / "b.fbin", random.standard_normal((rows, 64)).astype(np.float32))
    queries = write_matrix(tmp_path / "q.fbin", random.standard_normal((5_000, 64)).astype(np.float32))
    limit = rows * 64 * 4 * 9 // 32 // MIB
    build = ["index", "build", "--base", base, "--factory", factory, "--threads", 2, "--out"]
    kith.ok(*build, tmp_path / "x.kith")
    assert peak_memory(kith, *build, tmp_path / "y.kith", "--memory-limit", f"{limit}M") <= limit * MIB
    assert (tmp_path / "x.kith").read_bytes() == (tmp_path / "y.kith").read_bytes()
    search = ["index", "search", "--index", tmp_path / "y.kith", "--queries", queries, "-k", 50, *probing(factory, 4), "--threads", 2]
    outputs = []
    for name, more in [("free", []), ("limited", ["--memory-limit", f"{limit}M"])]:
        found = [tmp_path / f"{name}.ibin", tmp_path / f"{name}.fbin"]
        peak = peak_memory(kith, *search, "--out-ids", found[0], "--out-distances", found[1], *more)
        assert not more or peak <= limit * MIB
        outputs.append([path.read_bytes() for path in found])
    assert outputs[0] == outputs[1]


def test_too_small_a_limit_names_one_that_does(kith_unsanitized, data, tmp_path):
    _, _, b, q = data
    build(kith_unsanitized, b, tmp_path / "x.kith", "--threads", 1, factory="IVF16,PQ4,RFlat")
    search = ["index", "search", "--index", tmp_path / "x.kith", "--queries", q, "--threads", 1, "-k", 1000, "--refine", 3,
              "--out-ids", tmp_path / "i.ibin"]
    own = kith_unsanitized.fails(4, *search, "--memory-limit", "4M")
    little = int(float(re.search(r"less than the ([0-9.]+) MiB", own)[1])) + 2
    limit = int(re.search(r"--memory-limit (\d+)M would do", kith_unsanitized.fails(4, *search, "--memory-limit", f"{little}M"))[1])
    assert peak_memory(kith_unsanitized, *search, "--memory-limit", f"{limit}M") <= limit * MIB


def test_merge(kith, data, tmp_path):
    base, queries, b, q = data
    half = write_matrix(tmp_path / "half.fbin", base[:1200]), write_matrix(tmp_path / "rest.fbin", base[1200:])
    whole, one, two, out = (tmp_path / f"{name}.kith" for name in ("whole", "one", "two", "out"))
    build(kith, b, whole, factory="IVF16,SQ8")
    for path, part in [(one, half[0]), (two, half[1])]:
        build(kith, part, path, "--train", b, "--expected-rows", 3000, factory="IVF16,SQ8")
    refused = kith.fails(2, "index", "merge", one, two, "--out", out)
    assert "id 0 is in both indexes" in refused and "merge with --shift-ids" in refused and "shift_ids" not in refused
    assert not out.exists()
    report = kith.ok("index", "merge", one, two, "--out", out, "--shift-ids", "--json").json["result"]
    assert (report["added"], report["index"]["size"]) == (1800, 3000)
    assert out.read_bytes() == whole.read_bytes()
    assert "1800 vectors of" in kith.ok("index", "merge", one, two, "--out", out, "--shift-ids").out
    build(kith, half[1], two, factory="IVF16,SQ8")
    assert "the centres of their lists differ" in kith.fails(2, "index", "merge", one, two, "--out", tmp_path / "n.kith", "--shift-ids")
    assert "the same file" in kith.fails(2, "index", "merge", one, two, "--out", one)


def test_refine_from(kith, data, tmp_path):
    base, queries, b, q = data
    build(kith, b, tmp_path / "x.kith", factory="PQ4x4")
    ids, distances = found(kith, tmp_path / "x.kith", q, tmp_path, "--refine", 1000, "--refine-from", b)
    true, values = nearest(queries, base, 5, "l2")
    assert (ids == true).all()
    np.testing.assert_allclose(distances, values, rtol=1e-5)
    narrow = write_matrix(tmp_path / "narrow.fbin", base[:, :7])
    arguments = ["index", "search", "--index", tmp_path / "x.kith", "--queries", q, "--out-ids", tmp_path / "n.ibin"]
    assert "vectors of 7 columns" in kith.fails(2, *arguments, "--refine-from", narrow)


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.subtracted.kith")), ids=lambda path: path.name)
def test_an_index_of_float64_vectors(kith, path, tmp_path):
    """Files that Python wrote, with what is subtracted from vectors and queries."""
    kith.ok("index", "convert", path, tmp_path / "again.kith")
    assert (tmp_path / "again.kith").read_bytes() == path.read_bytes()
    queries = np.zeros((2, 8), np.float32)
    queries[:, 0] = 1.7e9  # where the vectors are: without the subtraction all would be as far as that
    ids, distances = found(kith, path, write_matrix(tmp_path / "q.fbin", queries), tmp_path, k=3)
    assert (ids >= 0).all() and np.isfinite(distances).all() and (distances < 1e7).all()
    added = write_matrix(tmp_path / "more.fbin", queries)
    assert "subtracts an offset" in kith.fails(2, "index", "add", "--index", tmp_path / "again.kith", "--base", added)


def test_a_graph_walked_by_codes_of_four_bits(kith, tmp_path):
    rng = np.random.default_rng(2)
    base = write_matrix(tmp_path / "many.fbin", rng.standard_normal((5000, 40)).astype(np.float32))
    index = tmp_path / "four.kith"
    build(kith, base, index, factory="Graph16x4")
    assert "graph of up to 16 neighbours, walked by codes of 4 bits" in kith.ok("index", "inspect", index).out
    assert kith.ok("index", "inspect", index, "--json").json["result"]["index"]["walk_bits"] == 4
    assert "use Graph32" in kith.fails(
        2, "index", "build", "--base", base, "--factory", "Graph32x4", "--metric", "l1", "--out", index)


@pytest.mark.parametrize("factory", ["IVF16,Flat", "Graph16", "Flat"])
def test_tune_prints_a_table_and_a_picture_and_search_uses_it(kith, data, tmp_path, factory):
    _, _, b, q = data
    if factory == "Graph16":
        b = write_matrix(tmp_path / "many.fbin", np.random.default_rng(2).standard_normal((6000, 8)).astype(np.float32))
        q = write_matrix(tmp_path / "few.fbin", np.random.default_rng(3).standard_normal((40, 8)).astype(np.float32))
    index, tuned = tmp_path / "x.kith", tmp_path / "tuned.kith"
    build(kith, b, index, factory=factory)
    if factory == "IVF16,Flat":
        assert "tune" in kith.fails(
            2, "index", "search", "--index", index, "--queries", q, "--recall", 0.9, "--out-ids", tmp_path / "i.ibin")
    text = kith.ok("index", "tune", "--index", index, "--queries", q, "-k", 5, "--recall", 0.9, "--out", tuned).out
    assert "<- chosen" in text and "us a query" in text and "@" in text and f"wrote {tuned}" in text
    arguments = ["--index", tuned, "--queries", q, "-k", 5, "--recall", 0.9, "--batch", 1]
    report = kith.ok("index", "tune", *arguments, "--json").json
    result = report["result"]
    assert report["command"] == "index tune" and result["reached"] and result["chosen"]["recall"] >= 0.9
    assert result["chosen"] in result["searches"]
    names = [name for name in ("probes", "beam", "width", "refine") if name in result["chosen"]]
    chosen = [word for name in names for word in (f"--{name}", result["chosen"][name])]
    by_recall = found(kith, tuned, q, tmp_path, "--recall", 0.9)
    by_parameters = found(kith, tuned, q, tmp_path, *chosen)
    assert (by_recall[0] == by_parameters[0]).all() and (by_recall[1] == by_parameters[1]).all()
    assert "tuned for k = 5" in kith.ok("index", "inspect", tuned).out


def test_an_index_larger_than_the_limit(kith_unsanitized, tmp_path):
    """Built, grown and merged within less than half of its own size, with the bytes of no limit; searched on disk."""
    kith = kith_unsanitized
    rows = np.random.default_rng(5).standard_normal((300_000, 64)).astype(np.float32)
    whole, first, rest = (write_matrix(tmp_path / f"{name}.fbin", part) for name, part in
                          [("whole", rows), ("first", rows[:100_000]), ("rest", rows[100_000:])])
    queries = write_matrix(tmp_path / "q.fbin", rows[:500])
    common = ["--factory", "IVF32,Flat", "--train", first, "--expected-rows", 300_000, "--threads", 2]
    x, y, part, two, grown, merged = (tmp_path / f"{name}.kith" for name in ("x", "y", "s-1", "s-2", "grown", "merged"))
    kith.ok("index", "build", "--base", whole, "--out", x, *common)
    limit = 32
    assert x.stat().st_size > 2 * limit * MIB
    runs = [
        (y, ["index", "build", "--base", whole, "--out", y, *common]),
        (part, ["index", "build", "--base", first, "--out", part, *common]),
        (two, ["index", "build", "--base", rest, "--out", two, *common]),
        (grown, ["index", "add", "--index", part, "--base", rest, "--out", grown, "--threads", 2]),
        (merged, ["index", "merge", part, two, "--shift-ids", "--out", merged]),
    ]
    for out, command in runs:
        assert peak_memory(kith, *command, "--memory-limit", f"{limit}M") <= limit * MIB, command
        if out not in (part, two):
            assert out.read_bytes() == x.read_bytes(), command
    assert [path for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    expected = found(kith, x, queries, tmp_path, "--probes", 3)
    for index, more in [(y, ["--lists", "disk"]), (y, ["--mmap", "--verify"]), (tmp_path / "s-*.kith", ["--mmap"]), (tmp_path / "s-*.kith", [])]:
        ids, distances = found(kith, index, queries, tmp_path, "--probes", 3, *more)
        assert (ids == expected[0]).all() and (distances == expected[1]).all()
    assert "'host' or on 'disk'" in kith.fails(2, "index", "search", "--index", y, "--queries", queries, "--lists", "ssd", "--out-ids", tmp_path / "i.ibin")


def test_a_graph_index_is_built_from_a_graph(kith, tmp_path):
    random = np.random.default_rng(2)
    base = random.standard_normal((5000, 12)).astype(np.float32)
    path = write_matrix(tmp_path / "base.fbin", base)
    graph = tmp_path / "graph"
    kith.ok("graph", "build", "--data", path, "-k", "40", "--out", graph)
    out = tmp_path / "started.kith"
    said = build(kith, path, out, "--start", graph, factory="Graph16")
    assert "start has 40 neighbours" in said.out
    queries = write_matrix(tmp_path / "queries.fbin", base[:40])
    ids, _ = found(kith, out, queries, tmp_path, k=1)
    assert (ids[:, 0] == np.arange(40)).mean() > 0.9
    other = write_matrix(tmp_path / "other.fbin", base[::-1].copy())
    error = kith("index", "build", "--base", other, "--factory", "Graph16", "--start", graph, "--out", out)
    assert error.code != 0 and "a graph of other rows" in error.err


def test_remove_replace_and_range(kith, tmp_path):
    rng = np.random.default_rng(5)
    x = rng.standard_normal((100, 6)).astype(np.float32)
    index, ids = tmp_path / "x.kith", tmp_path / "ids.npy"
    np.save(tmp_path / "x.npy", x)
    kith.ok("index", "build", "--base", tmp_path / "x.npy", "--factory", "Flat", "--out", index)
    np.save(ids, np.array([3, 5, 5000]))
    assert "removed 2 of 3 ids, 98" in kith.ok("index", "remove", "--index", index, "--ids", ids).out
    np.save(tmp_path / "new.npy", x[:4] + 10)
    np.save(ids, np.array([0, 1, 3, 200]))
    add = ["index", "add", "--index", index, "--base", tmp_path / "new.npy", "--ids", ids]
    assert "in the index already" in kith.fails(2, *add)
    assert "2 of them in the place of others" in kith.ok(*add, "--replace").out
    assert "give --ids" in kith.fails(2, *add[:-2], "--replace")
    outputs = ["--out-offsets", tmp_path / "o.npy", "--out-ids", tmp_path / "i.npy", "--out-distances", tmp_path / "d.npy"]
    kith.ok("index", "range", "--index", index, "--queries", tmp_path / "new.npy", "--radius", "0.01", *outputs)
    assert np.load(tmp_path / "o.npy").ravel().tolist() == [0, 1, 2, 3, 4]
    assert np.load(tmp_path / "i.npy").ravel().tolist() == [0, 1, 3, 200]
    assert np.load(tmp_path / "d.npy").max() == 0
    said = kith.ok("index", "range", "--index", index, "--queries", tmp_path / "new.npy", "--radius", "-1", *outputs).out
    assert "radius is -1" in said and np.load(tmp_path / "i.npy").size == 0


def test_an_index_is_written_under_a_name_that_says_its_format(kith, tmp_path):
    base = write_matrix(tmp_path / "b.fbin", np.random.default_rng(0).standard_normal((300, 8)).astype(np.float32))
    build = ["index", "build", "--base", base, "--factory", "Flat", "--out"]
    refused = kith.fails(2, *build, tmp_path / "x.bin")
    assert "x.bin.kith' for Kith's" in refused and "x.bin.index' for FAISS's" in refused
    assert not (tmp_path / "x.bin").exists()
    for name in ("x.kith", "x.faiss", "x.index"):
        kith.ok(*build, tmp_path / name)
        assert "300 vectors" in kith.ok("info", tmp_path / name).out
    assert (tmp_path / "x.index").read_bytes() == (tmp_path / "x.faiss").read_bytes() != (tmp_path / "x.kith").read_bytes()
    (tmp_path / "x.index").rename(tmp_path / "old.name")  # read, and changed in its place
    kith.ok("index", "add", "--index", tmp_path / "old.name", "--base", base)
    assert "600 vectors" in kith.ok("index", "inspect", tmp_path / "old.name").out
    assert "names no format" in kith.fails(2, "index", "convert", tmp_path / "x.kith", tmp_path / "y.name")
