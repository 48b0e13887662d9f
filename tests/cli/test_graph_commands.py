"""kith graph: build, merge, extend, refine, eval, info, path."""

import json

import numpy as np
import pytest

from matrix_files import leftovers, nearest, read_matrix, write_matrix


@pytest.fixture
def data(tmp_path):
    x = np.random.default_rng(1).standard_normal((800, 6)).astype(np.float32)
    return x, write_matrix(tmp_path / "x.fbin", x)


@pytest.fixture
def graph(kith, data, tmp_path):
    """The options that name a graph's files."""
    ids, distances = tmp_path / "ids.npy", tmp_path / "distances.npy"
    kith.ok("graph", "build", "--data", data[1], "-k", 7, "--out-ids", ids, "--out-distances", distances)
    return "--ids", ids, "--distances", distances


@pytest.mark.parametrize("metric", ["l2", "cosine"])
@pytest.mark.parametrize("endings", [("npy", "npy"), ("ibin", "fbin")])
def test_build(kith, data, tmp_path, metric, endings):
    x, file = data
    ids, distances = tmp_path / f"i.{endings[0]}", tmp_path / f"d.{endings[1]}"
    arguments = ["graph", "build", "--data", file, "-k", 5, "--metric", metric, "--out-ids", ids, "--out-distances", distances]
    report = kith.ok(*arguments, "--method", "exact", "--json").json
    true, values = nearest(x, x, 6, metric)
    found = read_matrix(ids)
    assert (found == true[:, 1:]).all()  # no two rows are equal: each is its own nearest
    np.testing.assert_allclose(read_matrix(distances), values[:, 1:], rtol=1e-5, atol=1e-6)
    result = report["result"]
    assert report["command"] == "graph build" and (result["k"], result["metric"]) == (5, metric)
    assert result["report"]["method"] == "exact" and result["report"]["recall"] == 1 and result["report"]["reached"]
    assert result["report"]["peak_host_bytes"] >= 800 * 5 * 12 and result["report"]["rounds"] == []
    text = kith.ok(*arguments).out
    assert "graph of 800 rows of 6 values (f32), k = 5" in text and "method exact, recall 1" in text


def test_eval(kith, data, graph, tmp_path):
    measured = kith.ok("graph", "eval", *graph, "--data", data[1], "--rows", 200, "--json").json["result"]
    assert (measured["recall"], measured["recall_at_10"], measured["standard_error"]) == (1, 1, 0)
    assert (measured["rows"], measured["k"], measured["rows_looked_at"]) == (800, 7, 200)
    ids, distances = read_matrix(graph[1]), read_matrix(graph[3])
    worse = np.roll(ids[:, :], -1, axis=1), np.roll(distances, -1, axis=1)
    worse[0][:, -1], worse[1][:, -1] = -1, np.inf  # the nearest of each is missing
    less = "--ids", write_matrix(tmp_path / "i.ibin", worse[0].astype(np.int32)), "--distances", write_matrix(tmp_path / "d.fbin", worse[1])
    measured = kith.ok("graph", "eval", *less, "--data", data[1], "--rows", 800, "--json").json["result"]
    assert measured["recall"] == pytest.approx(6 / 7) and measured["standard_error"] == 0
    assert kith.ok("graph", "eval", *less, "--data", data[1]).out.count("recall@7") == 1


def test_info(kith, graph, tmp_path):
    result = kith.ok("graph", "info", *graph, "--json").json["result"]
    ids, distances = read_matrix(graph[1]), read_matrix(graph[3])
    degrees = np.bincount(ids.ravel(), minlength=800)
    assert (result["rows"], result["k"], result["edges"], result["missing"]) == (800, 7, 5600, 0)
    assert (result["largest_in_degree"], result["rows_without_in_edges"]) == (degrees.max(), (degrees == 0).sum())
    assert result["components"] == 1
    assert result["smallest_distance"] == pytest.approx(distances.min()) and result["largest_distance"] == pytest.approx(distances.max())
    assert "800 rows, k = 7, metric l2: 5600 edges, 0 missing\n1 connected component\n" in kith.ok("graph", "info", *graph).out


def test_path(kith, graph, tmp_path):
    result = kith.ok("graph", "path", *graph, "--from", 3, "--to", 700, "--out", tmp_path / "path.npy", "--json").json["result"]
    path = result["path"]
    assert path[0] == 3 and path[-1] == 700 and result["joined"]
    assert read_matrix(tmp_path / "path.npy").ravel().tolist() == path
    ids, distances = read_matrix(graph[1]), read_matrix(graph[3])
    steps = np.full((800, 800), np.inf)
    np.put_along_axis(steps, ids.astype(np.int64), distances.astype(float), axis=1)
    steps = np.minimum(steps, steps.T)
    assert max(steps[a, b] for a, b in zip(path, path[1:])) == pytest.approx(result["width"])
    tree = kith.ok("graph", "path", *graph, "--from", 3, "--to", 700, "--by", "tree", "--json").json["result"]
    assert tree["width"] == result["width"] and len(tree["path"]) >= len(path)
    text = kith.ok("graph", "path", *graph, "--from", 3, "--to", 700).out.splitlines()
    assert text[0].startswith(f"{len(path) - 1} steps, the largest ") and text[1] == " ".join(map(str, path))
    assert kith.ok("graph", "path", *graph, "--from", 5, "--to", 5, "--json").json["result"]["path"] == [5]


def test_widths_of_pairs(kith, graph, tmp_path):
    pairs = write_matrix(tmp_path / "pairs.ibin", np.array([[3, 700], [5, 5], [700, 3]], np.int32))
    report = kith.ok("graph", "path", *graph, "--pairs", pairs, "--out-widths", tmp_path / "w.npy", "--json").json
    widths = read_matrix(tmp_path / "w.npy").ravel()
    one = kith.ok("graph", "path", *graph, "--from", 3, "--to", 700, "--json").json["result"]["width"]
    assert widths[0] == widths[2] == pytest.approx(one) and widths[1] == 0
    assert report["result"]["pairs"] == 3 and report["result"]["joined"] == 3


def test_no_path(kith, tmp_path):
    graph = ("--ids", write_matrix(tmp_path / "i.ibin", np.array([[1], [0], [3], [2]], np.int32)),
             "--distances", write_matrix(tmp_path / "d.fbin", np.ones((4, 1), np.float32)))  # fmt: skip
    result = kith.ok("graph", "path", *graph, "--from", 0, "--to", 3, "--json").json["result"]
    assert result["path"] == [] and not result["joined"] and result["parts"] == 2 and "width" not in result
    assert "no path joins 0 and 3: the graph has 2 parts" in kith.ok("graph", "path", *graph, "--from", 0, "--to", 3).out


def test_refused(kith, data, graph, tmp_path):
    out = "--out-ids", tmp_path / "i.npy", "--out-distances", tmp_path / "d.npy"
    assert "exact" in kith.fails(2, "graph", "build", "--data", data[1], "--method", "magic", *out)
    assert "k" in kith.fails(2, "graph", "build", "--data", data[1], "-k", 0, *out)
    assert kith.fails(2, "graph", "build", "--data", data[1], "--out-ids", data[1], "--out-distances", tmp_path / "d.npy")
    assert "--out-distances" in kith.fails(2, "graph", "build", "--data", data[1], "--out-ids", tmp_path / "i.npy")
    assert "800" in kith.fails(2, "graph", "path", *graph, "--from", 0, "--to", 800)
    assert "--from and --to" in kith.fails(2, "graph", "path", *graph)
    assert "go together" in kith.fails(2, "graph", "path", *graph, "--from", 0)
    assert "inner_product" in kith.fails(2, "graph", "path", *graph, "--from", 0, "--to", 1, "--metric", "inner_product")
    assert "tree" in kith.fails(2, "graph", "path", *graph, "--from", 0, "--to", 1, "--by", "width")
    wrong = write_matrix(tmp_path / "wrong.ibin", np.zeros((800, 7), np.int32))
    assert "row 0 is its own neighbour" in kith.fails(2, "graph", "info", "--ids", wrong, *graph[2:])
    assert "one of its commands" in kith.fails(2, "graph")
    few = write_matrix(tmp_path / "few.fbin", data[0][:10])
    assert "10 vectors and a graph of 800 rows" in kith.fails(2, "graph", "eval", *graph, "--data", few)
    assert leftovers(tmp_path, data[1], graph[1], graph[3], wrong, few) == []


@pytest.mark.parametrize("method", ["cells", "nn_descent"])
def test_build_to_a_recall(kith, data, tmp_path, method):
    ids, distances = tmp_path / "i.npy", tmp_path / "d.npy"
    arguments = ["graph", "build", "--data", data[1], "-k", 5, "--out-ids", ids, "--out-distances", distances]
    options = ["--method", method, "--recall", 0.97, "--seed", 3]
    report = kith.ok(*arguments, *options, "--json").json["result"]["report"]
    assert report["method"] == method and report["recall"] >= 0.97 and report["reached"] and len(report["rounds"]) > 0
    assert report["forecast_probes"] > 0 and report["forecast_comparisons"] > 0
    assert report["parameters"]["recall"] == 0.97 and report["parameters"]["seed"] == 3
    assert f"method {method}, recall" in kith.ok(*arguments, *options).out


def test_parameters_of_methods(kith, data, tmp_path):
    arguments = ["graph", "build", "--data", data[1], "-k", 5, "--out-ids", tmp_path / "i.npy", "--out-distances",
                 tmp_path / "d.npy"]  # fmt: skip
    cells = kith.ok(*arguments, "--method", "cells", "--cells", 9, "--probes", 9, "--json").json["result"]["report"]
    assert cells["parameters"]["cells"] == 9 and cells["recall"] >= 0.99
    options = ["--start", "random", "--samples", 16, "--list-length", 40, "--iterations", 12, "--delta", 0, "--update", "all"]
    found = kith.ok(*arguments, "--method", "nn_descent", *options, "--json").json["result"]["report"]
    assert found["parameters"]["list_length"] == 40 and found["parameters"]["start"] == "random"
    assert "method cells" in kith.fails(2, *arguments, "--probes", 3)
    assert "recall = 2" in kith.fails(2, *arguments, "--recall", 2)


def test_merge_extend_refine(kith, data, tmp_path):
    x = data[0]
    parts = [write_matrix(tmp_path / "a.fbin", x[:500]), write_matrix(tmp_path / "b.fbin", x[500:])]
    for name, part in zip("ab", parts):
        kith.ok("graph", "build", "--data", part, "-k", 6, "--out-ids", tmp_path / f"{name}i.npy", "--out-distances",
                tmp_path / f"{name}d.npy")  # fmt: skip
    out = ["--out-ids", tmp_path / "i.npy", "--out-distances", tmp_path / "d.npy"]
    both = ["--ids", tmp_path / "ai.npy", tmp_path / "bi.npy", "--distances", tmp_path / "ad.npy", tmp_path / "bd.npy"]
    merged = kith.ok("graph", "merge", *both, "--data", *parts, *out, "--json").json
    assert merged["command"] == "graph merge" and merged["result"]["rows"] == 800
    assert merged["result"]["report"]["recall"] > 0.95
    old = ["--ids", tmp_path / "ai.npy", "--distances", tmp_path / "ad.npy", "--data", parts[0]]
    extended = kith.ok("graph", "extend", *old, "--new", parts[1], *out, "--json").json["result"]
    true, _ = nearest(x, x, 7, "l2")
    assert extended["report"]["method"] == "extend" and (read_matrix(tmp_path / "i.npy") == true[:, 1:]).all()
    again = ["--out-ids", tmp_path / "j.npy", "--out-distances", tmp_path / "e.npy"]
    graph = ["--ids", tmp_path / "i.npy", "--distances", tmp_path / "d.npy", "--data", data[1]]
    refined = kith.ok("graph", "refine", *graph, "--recall", 0.9, *again, "--json").json["result"]
    assert refined["report"]["method"] == "refine" and refined["report"]["recall"] == 1
    assert "as many of each" in kith.fails(2, "graph", "merge", *both, "--data", parts[0], *out)
    assert "--data,--base FILE ... REQUIRED" in kith.ok("graph", "merge", "--help").out
    assert not [name for name in leftovers(tmp_path) if "tmp" in name]


def test_a_folder(kith, data, tmp_path):
    """Ids, distances and a report with hashes: those of the same graph in two files, however it came about."""
    build = ["graph", "build", "--data", data[1], "-k", 7]
    made = kith.ok(*build, "--out", tmp_path / "graph", "--json").json["result"]
    assert sorted(path.name for path in (tmp_path / "graph").iterdir()) == ["distances.npy", "ids.npy", "report.json"]
    written = json.loads((tmp_path / "graph" / "report.json").read_text())
    assert (written["metric"], written["rows"], written["k"]) == ("l2", 800, 7)
    assert {name: written[name] for name in made["hashes"]} == made["hashes"]
    shown = kith.ok("graph", "info", "--graph", tmp_path / "graph", "--json").json["result"]
    assert shown["hashes"] == made["hashes"] and shown["graph"]["metric"] == "l2"
    assert made["hashes"]["ids_xxh3"] in kith.ok("graph", "info", "--graph", tmp_path / "graph").out
    ids, distances = tmp_path / "ids.npy", tmp_path / "distances.npy"
    kith.ok(*build, "--out-ids", ids, "--out-distances", distances, "--threads", 1)
    apart = kith.ok("graph", "info", "--ids", ids, "--distances", distances, "--json").json["result"]
    assert apart["hashes"] == made["hashes"]
    assert ids.read_bytes() == (tmp_path / "graph" / "ids.npy").read_bytes()

    changed = np.load(tmp_path / "graph" / "distances.npy")
    changed[-1, -1] += 1
    np.save(tmp_path / "graph" / "distances.npy", changed)
    assert "hashes differ" in kith.fails(3, "graph", "info", "--graph", tmp_path / "graph")
    (tmp_path / "graph" / "report.json").unlink()
    assert "no report.json" in kith.fails(2, "graph", "info", "--graph", tmp_path / "graph")
    assert "--out FOLDER" in kith.fails(2, *build)
    assert "--out FOLDER" in kith.fails(2, *build, "--out", tmp_path / "graph", "--out-ids", ids)
    assert "--out FOLDER" in kith.fails(2, *build, "--out-ids", ids)
    assert "--graph FOLDER" in kith.fails(2, "graph", "info")
    assert "cannot make the folder" in kith.fails(3, *build, "--out", data[1])


def test_the_exact_graph_under_a_limit(kith, tmp_path):
    """The rows alone take 8 MB; the graph is that of all memory."""
    x = np.random.default_rng(1).standard_normal((4000, 512)).astype(np.float32)
    (tmp_path / "parts").mkdir()
    for part in range(4):
        np.save(tmp_path / "parts" / f"{part}.npy", x[1000 * part : 1000 * part + 1000])
    build = ["graph", "build", "--data", tmp_path / "parts" / "*.npy", "-k", 5, "--method", "exact", "--threads", 2, "--json"]
    hashes = [
        kith.ok(*build, *limit, "--out", tmp_path / "g").json["result"]["hashes"]
        for limit in ((), ("--memory-limit", "17M"), ("--memory-limit", "100M"))
    ]
    assert hashes[0] == hashes[1] == hashes[2]


def test_labels_are_single_linkage_cut_at_a_height(kith, tmp_path):
    np.save(tmp_path / "x.npy", np.array([[0], [1], [10], [11], [30]], np.float32))
    files = ["--ids", tmp_path / "g.npy", "--distances", tmp_path / "d.npy"]
    kith.ok("graph", "build", "--data", tmp_path / "x.npy", "-k", "2", "--out-ids", files[1], "--out-distances", files[3])
    assert "5 rows in 3 sets" in kith.ok("graph", "labels", *files, "--height", "2", "--out", tmp_path / "l.npy").out
    assert np.load(tmp_path / "l.npy").ravel().tolist() == [0, 0, 1, 1, 2]
    assert "--height is required" in kith.fails(2, "graph", "labels", *files, "--out", tmp_path / "l.npy")


def test_a_graph_in_a_folder_goes_where_two_files_go(kith, data, graph, tmp_path):
    folder = tmp_path / "graph"
    kith.ok("graph", "build", "--data", data[1], "-k", 7, "--metric", "cosine", "--out", folder)
    files = ["--ids", folder / "ids.npy", "--distances", folder / "distances.npy", "--metric", "cosine"]
    for command in (["eval", "--data", data[1], "--rows", 50], ["path", "--from", 3, "--to", 700], ["info"]):
        by_folder, by_files = (kith.ok("graph", *command, *named, "--json").json["result"] for named in (["--graph", folder], files))
        assert by_folder == by_files
    for named, out in ((["--graph", folder], "a.npy"), (files, "b.npy")):
        kith.ok("graph", "labels", *named, "--height", 0.1, "--out", tmp_path / out)
        better = ["--out-ids", tmp_path / ("i" + out), "--out-distances", tmp_path / ("d" + out)]
        kith.ok("graph", "refine", *named, "--data", data[1], "--recall", 0.9, *better)
    for letter in ("", "i", "d"):
        assert (np.load(tmp_path / f"{letter}a.npy") == np.load(tmp_path / f"{letter}b.npy")).all()
    for command in (["labels", "--height", 1, "--out", tmp_path / "l.npy"], ["info"], ["path", "--from", 0, "--to", 1]):
        assert "--graph FOLDER, or --ids and --distances" in kith.fails(2, "graph", *command)
        assert "and not both" in kith.fails(2, "graph", *command, *files, "--graph", folder)
    assert "report.json" in kith.fails(2, "graph", "info", "--graph", tmp_path)
