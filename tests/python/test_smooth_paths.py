"""kith.SmoothPaths, and spanning trees with their linkages, beside scipy's."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import kith

csgraph = pytest.importorskip("scipy.sparse.csgraph")
hierarchy = pytest.importorskip("scipy.cluster.hierarchy")


def least_widths(graph):
    """Of all pairs, by trying every row in between."""
    matrix = graph.symmetric().toarray().astype(np.float32)
    there = graph.symmetric().toarray() > 0
    widths = np.where(there, matrix, np.inf).astype(np.float32)
    np.fill_diagonal(widths, 0)
    for by in range(len(graph)):
        widths = np.minimum(widths, np.maximum(widths[:, by : by + 1], widths[by : by + 1, :]))
    return widths


@pytest.mark.parametrize("k", [2, 6])
def test_widths_and_paths(k, vectors):
    graph = kith.knn_graph(vectors(120, 4), k=k)
    paths = kith.SmoothPaths(graph)
    true = least_widths(graph)
    assert len(paths) == 120 and paths.parts == graph.components()[0]
    pairs = np.array([(a, b) for a in range(120) for b in range(120)])
    widths = paths.widths(pairs)
    assert widths.dtype == np.float32 and (widths == true.ravel()).all()
    steps = graph.symmetric().toarray()
    for a, b in pairs[::37]:
        assert paths.width(a, b) == true[a, b]
        for by in ("steps", "tree"):
            found = paths.path(a, b, by=by)
            assert found.width == true[a, b]
            if np.isinf(found.width):
                assert len(found.rows) == 0
                continue
            assert found.rows.dtype == np.int64 and found.rows[0] == a and found.rows[-1] == b
            taken = steps[found.rows[:-1], found.rows[1:]]
            assert (taken > 0).all() and (a == b or taken.max() == found.width)
        short = np.where((steps > 0) & (steps <= true[a, b]), 1, 0)
        hops = csgraph.shortest_path(short, unweighted=True, indices=a)[b]
        if not np.isinf(true[a, b]):
            assert len(paths.path(a, b).rows) == hops + 1 <= len(paths.path(a, b, by="tree").rows)


def test_one_pair(vectors):
    graph = kith.knn_graph(vectors(60, 3), k=5)
    one, many = graph.smoothest_path(3, 50), kith.SmoothPaths(graph).path(3, 50)
    assert one.rows.tolist() == many.rows.tolist() and one.width == many.width
    assert graph.smoothest_path(4, 4).rows.tolist() == [4] and graph.smoothest_path(4, 4).width == 0
    rows, width = graph.smoothest_path(3, 50, by="tree")
    assert len(rows) > 1 and width == one.width


def test_parts_that_nothing_joins():
    graph = kith.KnnGraph([[1], [0], [3], [2]], [[2.0], [2.0], [3.0], [3.0]])
    paths = kith.SmoothPaths(graph)
    found = paths.path(0, 3)
    assert found.rows.shape == (0,) and found.rows.dtype == np.int64 and found.width == np.inf
    assert paths.widths([[0, 1], [1, 2], [2, 2]]).tolist() == [2, np.inf, 0]
    assert paths.widths(np.empty((0, 2), int)).shape == (0,) and paths.widths([]).shape == (0,)
    assert repr(paths) == "kith.SmoothPaths(rows=4, parts=2)"


def test_threads_change_nothing_and_may_share(vectors):
    graph = kith.knn_graph(vectors(3000, 6), k=8)
    one, other = kith.SmoothPaths(graph, threads=1), kith.SmoothPaths(graph, threads=3, memory_limit=64 << 20)
    pairs = [(i * 7 % 3000, i * 13 % 3000) for i in range(60)]
    true = [one.path(a, b).rows.tolist() for a, b in pairs]
    found: list[list[list[int]]] = []

    def walk():
        found.append([other.path(a, b).rows.tolist() for a, b in pairs])

    walkers = [threading.Thread(target=walk) for _ in range(4)]
    for walker in walkers:
        walker.start()
    for walker in walkers:
        walker.join()
    assert found == [true] * 4


def test_progress_and_limits(vectors):
    graph = kith.knn_graph(vectors(5000, 4), k=8)
    told = []
    kith.SmoothPaths(graph, progress=lambda stage, done, total: told.append((stage, done, total)))
    assert ("join rows", 5000, 5000) in told
    with pytest.raises(MemoryError):
        kith.SmoothPaths(graph, memory_limit=100_000)
    with pytest.raises(KeyError):
        kith.SmoothPaths(graph, progress=lambda *_: {}["stop"])


@pytest.mark.parametrize(
    "call, error, says",
    [
        (lambda p: p.width(0, 20), ValueError, "row 20; the graph's are 0 to 19"),
        (lambda p: p.path(-1, 0), ValueError, "row -1"),
        (lambda p: p.path(0, 1, by="width"), ValueError, "tree"),
        (lambda p: p.path(0.5, 1), TypeError, "a is a float"),
        (lambda p: p.widths([[0, 1, 2]]), ValueError, r"\(n, 2\)"),
        (lambda p: p.widths([[0.0, 1.0]]), TypeError, "integers"),
        (lambda p: p.widths([[0, 99]]), ValueError, "row 99"),
        (lambda p: p.widths(np.array([[0, 2**63]], np.uint64)), ValueError, "9223372036854775808"),
    ],
)
def test_refused(call, error, says, vectors):
    with pytest.raises(error, match=says):
        call(kith.SmoothPaths(kith.knn_graph(vectors(20, 3), k=3)))


def test_no_distance(vectors):
    graph = kith.knn_graph(vectors(20, 3), k=3, metric="inner_product")
    for call in (lambda: kith.SmoothPaths(graph), graph.spanning_tree, graph.single_linkage):
        with pytest.raises(ValueError, match="inner_product is no distance"):
            call()
    with pytest.raises(TypeError, match="KnnGraph"):
        kith.SmoothPaths(graph.ids)


@pytest.mark.parametrize("metric, scipys", [("l2", "euclidean"), ("l1", "cityblock"), ("sqeuclidean", "sqeuclidean"), ("cosine", "cosine")])
def test_scipys_single_linkage(metric, scipys, vectors):
    x = vectors(150, 5)
    graph = kith.knn_graph(x, k=149, metric=metric)
    found = graph.single_linkage()
    true = hierarchy.linkage(x.astype(np.float64), "single", metric=scipys)
    assert found.shape == true.shape and found.dtype == np.float64
    assert (found[:, [0, 1, 3]] == true[:, [0, 1, 3]]).all()
    np.testing.assert_allclose(found[:, 2], true[:, 2], rtol=1e-5)
    tree = graph.spanning_tree()
    for height in (0, found[40, 2], found[100, 2], 1e9):
        labels = tree.labels(height)
        theirs = hierarchy.fcluster(found, height, "distance")
        assert len(np.unique(labels)) == len(np.unique(theirs)) == len(np.unique(np.stack([labels, theirs]), axis=1).T)
        firsts = [labels.tolist().index(label) for label in range(labels.max() + 1)]
        assert firsts == sorted(firsts)


def test_linkage_of_many_ties():
    """The order of equal heights is free; what they join is not: all pairs meet where scipy says."""
    x = np.random.default_rng(3).integers(0, 4, (90, 3)).astype(np.float32)
    found = kith.knn_graph(x, k=89, metric="l1").single_linkage()
    true = hierarchy.linkage(x.astype(np.float64), "single", metric="cityblock")
    assert hierarchy.is_valid_linkage(found)
    np.testing.assert_array_equal(hierarchy.cophenet(found), hierarchy.cophenet(true))


def test_the_tree(vectors):
    graph = kith.knn_graph(vectors(200, 3), k=8)
    tree = graph.spanning_tree()
    assert len(tree) == 199 and tree.edges.shape == (199, 2) and tree.weights.dtype == np.float32
    assert (np.diff(tree.weights) >= 0).all() and (tree.edges[:, 0] < tree.edges[:, 1]).all()
    theirs = csgraph.minimum_spanning_tree(graph.symmetric())
    np.testing.assert_allclose(np.sort(theirs.data), tree.weights, rtol=1e-6)
    assert (tree.to_array() == np.column_stack([tree.edges, tree.weights])).all()
    assert repr(tree) == "kith.SpanningTree(rows=200)"
    edges = tree.edges
    del tree
    assert edges.sum() > 0  # they keep what they lie in
    with pytest.raises(ValueError, match="nan"):
        graph.spanning_tree().labels(np.nan)


def test_mutual_reachability(vectors):
    x = vectors(100, 3)
    graph = kith.knn_graph(x, k=99)
    for samples in (1, 4, None):
        core = graph.distances[:, (samples or 5) - 1]
        weights = np.zeros((100, 100), np.float32)
        np.put_along_axis(weights, graph.ids, graph.distances, axis=1)
        weights = np.maximum(weights, np.maximum(core[:, None], core[None, :]))
        np.fill_diagonal(weights, 0)
        tree = graph.spanning_tree("mutual_reachability", min_samples=samples)
        np.testing.assert_array_equal(np.sort(csgraph.minimum_spanning_tree(weights).data).astype(np.float32), tree.weights)
        np.testing.assert_array_equal(weights[tree.edges[:, 0], tree.edges[:, 1]], tree.weights)
    few = kith.knn_graph(x[:4], k=15).spanning_tree("mutual_reachability")  # min_samples is no more than others are
    np.testing.assert_array_equal(few.weights, kith.knn_graph(x[:4], k=3).spanning_tree("mutual_reachability", min_samples=3).weights)
    assert len(kith.knn_graph(x[:1], k=3).spanning_tree("mutual_reachability")) == 0
    for arguments, says in [
        ({"weights": "distance", "min_samples": 3}, "mutual_reachability"),
        ({"weights": "mutual_reachability", "min_samples": 100}, "1 to k = 99"),
        ({"weights": "mutual_reachability", "min_samples": 0}, "1 to k"),
        ({"weights": "core"}, "distance, mutual_reachability"),
    ]:
        with pytest.raises(ValueError, match=says):
            graph.spanning_tree(**arguments)


def test_unconnected_parts(vectors):
    x = vectors(90, 2)
    x[30:60] += 50
    x[60:] -= 80
    graph = kith.knn_graph(x, k=5)
    count, labels = graph.components()
    with pytest.raises(ValueError, match=f"{count} parts"):
        graph.spanning_tree()
    with pytest.raises(ValueError, match="give them"):
        graph.spanning_tree(unconnected="nearest")
    with pytest.raises(ValueError, match="refuse, at_inf, nearest"):
        graph.spanning_tree(unconnected="maybe")
    at_inf = graph.spanning_tree(unconnected="at_inf")
    assert np.isinf(at_inf.weights).sum() == count - 1 and (at_inf.labels(1e30) == labels).all()
    assert (graph.labels(1e30) == labels).all()
    middle = np.median(at_inf.weights)
    assert (graph.labels(middle) == at_inf.labels(middle)).all() and graph.labels(0).max() == 89
    nearest = graph.spanning_tree(unconnected="nearest", x=x)
    full = kith.knn_graph(x, k=89).spanning_tree()
    np.testing.assert_array_equal(nearest.weights[-2:], full.weights[-2:])
    np.testing.assert_array_equal(nearest.edges[-2:], full.edges[-2:])
    assert graph.single_linkage(unconnected="nearest", x=x)[-1, 3] == 90
    with pytest.raises(ValueError, match="80 vectors and a graph of 90 rows"):
        graph.spanning_tree(unconnected="nearest", x=x[:80])
