"""knn_graph by cells and by NN-Descent; graphs made of graphs."""

import re
import warnings

import numpy as np
import pytest

import kith


@pytest.fixture
def x():
    return np.random.default_rng(3).standard_normal((3000, 10), dtype=np.float32)


@pytest.mark.parametrize("method", ["cells", "nn_descent"])
def test_reaches_the_recall_and_says_how(x, method):
    graph = kith.knn_graph(x, k=8, method=method, recall=0.95, seed=4)
    report = graph.report
    assert report.method == method and report.reached and report.recall >= 0.95 and report.standard_error < 0.02
    assert report.parameters["recall"] == 0.95 and report.parameters["seed"] == 4 and len(report.rounds) > 0
    assert report.rounds[-1].recall == report.recall and report.rounds[0].comparisons > 0
    measured = graph.measure_recall(x, rows=3000)
    assert abs(measured.recall - report.recall) <= 3 * report.standard_error
    graph.validate()


@pytest.mark.parametrize("method", ["cells", "nn_descent"])
@pytest.mark.parametrize("metric", ["l2", "cosine", "inner_product"])
def test_same_bytes_for_any_threads_and_limit(x, method, metric):
    one, other = (
        kith.knn_graph(x, k=8, metric=metric, method=method, threads=threads, memory_limit=limit)
        for threads, limit in ((1, None), (3, 100 << 20))
    )
    assert (one.ids == other.ids).all() and (one.distances == other.distances).all()


def test_parameters_of_a_method(x):
    graph = kith.knn_graph(x, k=8, method="cells", cells=30, probes=np.int64(30))
    assert graph.report.parameters["cells"] == 30 and graph.report.reached
    foreseen = graph.report.forecast
    assert foreseen is not None and foreseen.probes == graph.report.parameters["probes"]
    assert foreseen.comparisons == sum(one.comparisons for one in graph.report.rounds)
    with pytest.warns(RuntimeWarning, match="below the 0.99 asked for"):
        rough = kith.knn_graph(x, k=8, method="cells", cells=50, probes=2)
    assert not rough.report.reached and rough.report.recall < 0.99
    graph = kith.knn_graph(
        x, k=8, method="nn_descent", start="random", samples=16, list_length=32, iterations=15, delta=0.0, update="all",
        recall=0.9,
    )  # fmt: skip
    assert graph.report.parameters["start"] == "random" and graph.report.parameters["update"] == "all"
    assert graph.report.reached


def test_auto_is_exact_for_few_rows_and_for_certainty(x):
    for graph in (kith.knn_graph(x, k=5), kith.knn_graph(x, k=5, recall=1)):
        assert graph.report.method == "exact" and graph.report.recall == 1


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"recall": 0}, ValueError, "recall = 0"),
        ({"recall": 2}, ValueError, "recall = 2"),
        ({"recall": "much"}, TypeError, "recall"),
        ({"recall": 1, "method": "cells"}, ValueError, "exact"),
        ({"seed": -1}, ValueError, "seed"),
        ({"cells": 4}, ValueError, "method cells"),
        ({"method": "cells", "cells": 0}, ValueError, "cells = 0"),
        ({"method": "cells", "probes": 1.5}, TypeError, "probes"),
        ({"method": "cells", "samples": 3}, ValueError, "nn_descent"),
        ({"method": "cells", "metric": "l1"}, ValueError, "nn_descent"),
        ({"method": "nn_descent", "start": "best"}, ValueError, "best"),
        ({"method": "nn_descent", "list_length": 3}, ValueError, "list_length = 3"),
        ({"method": "nn_descent", "iterations": 0}, ValueError, "iterations = 0"),
        ({"method": "fastest"}, ValueError, "fastest"),
    ],
)
def test_refused(x, arguments, error, text):
    with pytest.raises(error, match=text):
        kith.knn_graph(x, k=8, **arguments)


def test_too_small_a_limit_names_one_that_would_do(x):
    with pytest.raises(MemoryError, match="would do") as caught:
        kith.knn_graph(x, k=8, method="cells", memory_limit=500_000, threads=2)
    limit = int(re.findall(r"limit of (\d+) bytes", str(caught.value))[-1])
    kith.knn_graph(x, k=8, method="cells", memory_limit=limit, threads=2)


def test_merge(x):
    a, b, c = x[:1000], x[1000:2200], x[2200:]
    parts = [kith.knn_graph(part, k=8) for part in (a, b, c)]
    two = kith.merge_graphs(parts[0], a, parts[1], b)
    assert len(two) == 2200 and two.report.method == "merge" and two.report.recall >= 0.99
    assert two.measure_recall(x[:2200], rows=2200).recall > 0.98
    three = kith.merge_graphs(parts[0], a, parts[1], b, parts[2], c, seed=3, threads=2)
    assert three.measure_recall(x, rows=3000).recall > 0.97
    with pytest.raises(ValueError, match="k = 5"):
        kith.merge_graphs(parts[0], a, kith.knn_graph(b, k=5), b)
    with pytest.raises(ValueError, match="built of"):
        kith.merge_graphs(parts[0], b[:1000], parts[1], b)
    with pytest.raises(TypeError, match="pairs"):
        kith.merge_graphs(parts[0], a, parts[1], b, parts[2])
    with pytest.raises(TypeError, match="KnnGraph"):
        kith.merge_graphs(a, a, parts[1], b)


def test_merge_of_float64_that_lies_far_away(x):
    far = x.astype(np.float64) + 1e9  # narrowed together, not each by itself
    a, b = far[:1400], far[1400:]
    graph = kith.merge_graphs(kith.knn_graph(a, k=8), a, kith.knn_graph(b, k=8), b)
    near = kith.knn_graph(far, k=8)
    assert (graph.ids == near.ids).mean() > 0.95


def test_extend_and_refine(x):
    graph = kith.extend_graph(kith.knn_graph(x[:2900], k=8), x[:2900], x[2900:])
    true = kith.knn_graph(x, k=8)
    assert (graph.ids == true.ids).all() and graph.report.method == "extend"
    rough = kith.knn_graph(x, k=8, method="cells", cells=60, recall=0.5)
    better = kith.refine_graph(rough, x, 0.99)
    assert better.report.method == "refine" and better.report.recall >= 0.99 > rough.report.recall
    assert better.measure_recall(x, rows=3000).recall > 0.98


def test_extending_files_under_a_limit(x, tmp_path):
    """The graph of memory; new rows that are compared with all need no memory for the old ones."""
    x = np.tile(x, (1, 8)) * np.float32(0.5)
    np.save(tmp_path / "old.npy", x[:2900])
    np.save(tmp_path / "new.npy", x[2900:])
    old = kith.knn_graph(tmp_path / "old.npy", k=8, out=tmp_path / "graph")
    expected = kith.extend_graph(old, x[:2900], x[2900:])
    files = old, tmp_path / "old.npy", tmp_path / "new.npy"
    limit = x.nbytes // 2
    graph = kith.extend_graph(*files, out=tmp_path / "extended", memory_limit=limit, device="cpu")
    assert (graph.ids == expected.ids).all() and (graph.distances == expected.distances).all()
    assert graph.report.method == "extend" and graph.report.recall is None
    mapped = kith.KnnGraph.load(tmp_path / "extended")
    assert (mapped.ids == expected.ids).all()
    again = kith.extend_graph(*files, recall=1, out=tmp_path / "again", work=tmp_path / "work", keep_work=True, device="cpu")
    assert (again.ids == expected.ids).all() and (tmp_path / "work" / "manifest").exists()
    with pytest.raises(ValueError, match="go with out"):
        kith.extend_graph(old, x[:2900], x[2900:], keep_work=True)
    with pytest.raises(ValueError, match="x names a file: give out"):
        kith.extend_graph(*files)
    with pytest.raises(ValueError, match="new names a file: give out"):
        kith.extend_graph(old, x[:2900], [tmp_path / "new.npy"])
    with pytest.raises(ValueError, match="x2 names a file: give out"):
        kith.merge_graphs(old, x[:2900], old, str(tmp_path / "old.npy"))
    with pytest.raises(ValueError, match="out needs files"):
        kith.extend_graph(old, x[:2900].astype(np.float64), x[2900:], out=tmp_path / "other")
    with pytest.raises(ValueError, match="new rows must have the same"):
        kith.extend_graph(old, tmp_path / "old.npy", x[2900:, :7].copy(), out=tmp_path / "other")


def test_merging_float64_sets_far_apart_says_why_it_is_refused():
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((300, 6)) + offset for offset in (1e6, 3e8))
    one, two = kith.knn_graph(a, k=5), kith.knn_graph(b, k=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="subtract one offset from all sets"):
            kith.merge_graphs(one, a, two, b)
    near = a + 0.5
    assert len(kith.merge_graphs(one, a, kith.knn_graph(near, k=5), near)) == 600
