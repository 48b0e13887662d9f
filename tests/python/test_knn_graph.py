"""kith.knn_graph and what a KnnGraph becomes for others."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kith
from conftest import METRICS, distances_of


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("rows, k", [(200, 7), (4, 3), (40, 39)])
def test_the_nearest_others(metric, rows, k, vectors_for):
    x = vectors_for(metric, rows, 9)
    graph = kith.knn_graph(x, k=k, metric=metric)
    assert (len(graph), graph.k, graph.metric) == (rows, k, metric)
    assert graph.ids.dtype == np.int64 and graph.distances.dtype == np.float32
    true = distances_of(x, x, metric)
    if metric == "inner_product":
        true = -true
    np.fill_diagonal(true, np.inf)
    nearest = np.sort(true, axis=1)[:, :k]
    signed = -graph.distances if metric == "inner_product" else graph.distances
    np.testing.assert_allclose(signed, nearest, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(np.take_along_axis(true, graph.ids, axis=1), nearest, rtol=1e-5, atol=1e-5)


def test_duplicates_are_neighbours_and_the_row_is_not():
    x = np.repeat(np.array([[0.0], [9.0]], np.float32), 5, axis=0)
    graph = kith.knn_graph(x, k=4, method="exact")
    assert graph.ids[0].tolist() == [1, 2, 3, 4] and graph.ids[3].tolist() == [0, 1, 2, 4]
    assert (graph.distances == 0).all()


def test_fewer_rows_than_k(vectors):
    graph = kith.knn_graph(vectors(3, 4), k=5)
    assert (graph.ids[:, 2:] == -1).all() and np.isinf(graph.distances[:, 2:]).all()
    assert graph.to_csr().nnz == 6
    with pytest.raises(ValueError, match="row 0.*lower k"):
        graph.to_umap()


def test_to_csr(vectors):
    pytest.importorskip("scipy")
    x = np.vstack([vectors(60, 5), vectors(1, 5).repeat(3, axis=0)])
    graph = kith.knn_graph(x, k=6)
    matrix = graph.to_csr()
    assert matrix.shape == (63, 63) and matrix.dtype == np.float32 and matrix.nnz == 63 * 6
    assert matrix.has_sorted_indices and matrix.diagonal().sum() == 0
    for i in range(63):
        columns, values = matrix.indices[matrix.indptr[i] : matrix.indptr[i + 1]], matrix.data[matrix.indptr[i] : matrix.indptr[i + 1]]
        assert dict(zip(columns.tolist(), values.tolist())) == dict(zip(graph.ids[i].tolist(), graph.distances[i].tolist()))


def test_to_csr_without_scipy():
    program = """
import sys; sys.modules["scipy"] = None; sys.modules["scipy.sparse"] = None
import numpy as np, kith
try: kith.knn_graph(np.zeros((4, 2), np.float32), k=1).to_csr()
except ImportError as error: print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "pip install scipy" in done.stdout, done.stderr


def test_to_umap(vectors):
    x = vectors(50, 5)
    graph = kith.knn_graph(x, k=6, metric="cosine")
    indices, distances = graph.to_umap()
    assert indices.shape == distances.shape == (50, 7) and indices.dtype == np.int64 and distances.dtype == np.float32
    assert (indices[:, 0] == np.arange(50)).all() and (distances[:, 0] == 0).all()
    assert (indices[:, 1:] == graph.ids).all() and (distances[:, 1:] == graph.distances).all()
    indices[:], distances[:] = -1, np.inf  # UMAP writes into them
    assert (graph.ids >= 0).all()


def test_inner_product_is_no_distance(vectors):
    with pytest.raises(ValueError, match="no distance"):
        kith.knn_graph(vectors(20, 5), k=3, metric="inner_product").to_umap()


def test_a_graph_of_your_own():
    with pytest.raises(ValueError, match="unknown metric 'foo'"):
        kith.KnnGraph([[1], [0]], [[2.0], [2.0]], metric="foo")
    graph = kith.KnnGraph([[1], [0]], [[2.0], [2.0]], metric="l1")
    assert graph.to_umap()[0].tolist() == [[0, 1], [1, 0]]
    assert repr(graph) == "kith.KnnGraph(rows=2, k=1, metric='l1')"
    with pytest.raises(ValueError, match=r"\(rows, k\)"):
        kith.KnnGraph([[1], [0]], [[2.0]])


@pytest.mark.parametrize(
    "ids, error, says",
    [
        ([[10**7], [1]], ValueError, "row 0 has the neighbour 10000000 in column 0; the graph has 2 rows"),
        ([[1], [2]], ValueError, "row 1 has the neighbour 2"),
        ([[1], [-2]], ValueError, "row 1 has the neighbour -2"),
        ([[1], [1]], ValueError, "row 1 is its own neighbour"),
        ([[1, 1], [0, -1]], ValueError, "row 0 has the neighbour 1 twice"),
        ([[-1, 1], [0, -1]], ValueError, "row 0 has the neighbour 1 in column 1, behind a -1"),
        ([[1.0], [0.0]], TypeError, "ids are float64; they must be integers"),
        ([[True], [False]], TypeError, "bool"),
        ([["1"], ["0"]], TypeError, "integers"),
        (np.array([[2**63 + 1], [0]], np.uint64), ValueError, "9223372036854775809"),
    ],
)
def test_ids_from_outside_are_checked(ids, error, says):
    with pytest.raises(error, match=says):
        kith.KnnGraph(ids, np.ones(np.shape(ids), np.float32))


def test_arrays_that_were_changed_are_checked_before_they_are_read(vectors):
    graph = kith.KnnGraph(np.array([[1, 2], [0, -1], [1, -1]], np.int8), np.ones((3, 2), int))
    assert graph.ids.dtype == np.int64 and graph.to_csr().toarray().tolist() == [[0, 1, 1], [1, 0, 0], [0, 1, 0]]
    found = kith.knn_graph(vectors(50, 4), k=3)
    ids, distances = found.ids.copy(), found.distances.copy()
    graph = kith.KnnGraph(ids, distances)
    assert np.shares_memory(graph.ids, ids) and np.shares_memory(graph.distances, distances)
    graph.validate()
    ids[7, 1] = 10**12
    reads = (graph.validate, graph.to_csr, graph.to_umap, graph.to_host, graph.to_scanpy, graph.reversed, graph.mutual,
             graph.symmetric, graph.in_degrees, graph.components, graph.spanning_tree, lambda: graph.smoothest_path(0, 1))  # fmt: skip
    for read in reads:
        with pytest.raises(ValueError, match="row 7 has the neighbour 1000000000000"):
            read()


def test_a_graph_does_not_change(vectors):
    for graph in (kith.knn_graph(vectors(20, 4), k=3), kith.KnnGraph([[1], [0]], [[2.0], [2.0]])):
        for array in (graph.ids, graph.distances):
            with pytest.raises(ValueError, match="read-only"):
                array[0, 0] = 1


@pytest.mark.parametrize(
    "distances, says",
    [([[1.0, np.nan], [1.0, 2.0], [1.0, 2.0]], "row 0 has the distance nan"), ([[1, 2], [3, 2], [1, 2]], "row 1 has the distance 2 in column 1 behind 3")],
)
def test_distances_from_outside_are_checked(distances, says):
    with pytest.raises(ValueError, match=says):
        kith.KnnGraph([[1, 2], [0, 2], [0, 1]], distances)


def test_the_report(vectors):
    report = kith.knn_graph(vectors(300, 6), k=4).report
    assert report.method == "exact" and report.recall == report.recall_at_10 == 1 and report.standard_error == 0
    assert report.reached and report.rounds == () and report.parameters == {}
    assert report.peak_bytes >= 300 * 4 * 12 and report.peak_device_bytes == 0 and report.seconds > 0
    given = kith.KnnGraph([[1], [0]], [[2.0], [2.0]]).report
    assert given == kith.GraphReport() and given.method == "given" and given.recall is None


def test_measured_recall(vectors):
    x = vectors(400, 5)
    graph = kith.knn_graph(x, k=12)
    assert graph.measure_recall(x) == kith.GraphRecall(1, 0, 1, 400)
    worse = kith.KnnGraph(graph.ids[:, 3:], graph.distances[:, 3:])  # 9 of the 9 nearest should be there; 6 are
    measured = worse.measure_recall(x, rows=100, seed=3)
    assert measured.recall == pytest.approx(6 / 9) and measured.rows == 100 and measured == worse.measure_recall(x, rows=100, seed=3)
    mixed = kith.KnnGraph(np.where(np.arange(400)[:, None] % 2, graph.ids[:, 3:], graph.ids[:, :9]),
                          np.where(np.arange(400)[:, None] % 2, graph.distances[:, 3:], graph.distances[:, :9]))  # fmt: skip
    measured = mixed.measure_recall(x, rows=100)
    assert 0 < measured.standard_error < 0.03 and abs(measured.recall - 5 / 6) < 4 * measured.standard_error
    for arguments, says in [({"rows": 0}, "rows = 0"), ({"seed": -1}, "seed = -1")]:
        with pytest.raises(ValueError, match=says):
            graph.measure_recall(x, **arguments)
    with pytest.raises(ValueError, match="300 vectors and a graph of 400 rows"):
        graph.measure_recall(x[:300])
    with pytest.raises(ValueError, match="no neighbours"):
        kith.knn_graph(x[:1], k=2).measure_recall(x[:1])


def test_matrices_of_edges(vectors):
    graph = kith.knn_graph(vectors(90, 3), k=5)
    there = graph.to_csr().toarray()
    assert (graph.reversed().toarray() == there.T).all()
    assert (graph.symmetric().toarray() == np.maximum(there, there.T)).all()
    assert (graph.mutual().toarray() == np.where((there > 0) & (there.T > 0), there, 0)).all()
    assert (graph.in_degrees() == (there > 0).sum(axis=0)).all()
    assert graph.symmetric().has_canonical_format


def test_components(vectors):
    csgraph = pytest.importorskip("scipy.sparse.csgraph")
    x = vectors(200, 2)
    x[100:] += 100
    graph = kith.knn_graph(x, k=2)
    count, labels = graph.components()
    true_count, true_labels = csgraph.connected_components(graph.to_csr(), directed=False)
    assert count == true_count > 1 and (labels == true_labels).all() and labels.dtype == np.int64


def test_files(tmp_path, vectors):
    graph = kith.knn_graph(vectors(70, 5), k=4, metric="cosine")
    for ids, distances in [("a.npy", "b.npy"), ("a.ibin", "b.fbin"), ("a.ivecs", "b.fvecs"), ("a.hdf5", "b.hdf5")]:
        graph.save(tmp_path / ids, tmp_path / distances)
        back = kith.KnnGraph.load(tmp_path / ids, tmp_path / distances, metric="cosine")
        assert back.ids.tobytes() == graph.ids.tobytes() and back.distances.tobytes() == graph.distances.tobytes()
        assert back.metric == "cosine" and back.ids.dtype == np.int64 and back.report.method == "given"
        assert not back.ids.flags.writeable
        assert (back.to_csr() != graph.to_csr()).nnz == 0
    with pytest.raises(ValueError, match="two files"):
        graph.save(tmp_path / "c.npy", tmp_path / "c.npy")
    with pytest.raises(OSError):
        kith.KnnGraph.load(tmp_path / "none.npy", tmp_path / "b.npy")
    with pytest.raises(ValueError, match="metric"):
        kith.KnnGraph.load(tmp_path / "a.npy", tmp_path / "b.npy", metric="foo")


@pytest.mark.parametrize(
    "ids, distances, says",
    [
        ([[0], [1]], [[1], [1]], "row 0 is its own neighbour"),
        ([[1], [5]], [[1], [1]], "row 1 has the neighbour 5"),
        ([[1, 1], [0, -1]], [[1, 1], [1, 1]], "twice"),
        ([[1], [0]], [[1], [np.nan]], "row 1 has the distance nan"),
        ([[1], [0]], [[1, 2], [1, 2]], "2 x 1 and .* 2 x 2"),
    ],
)
def test_files_that_are_no_graph(ids, distances, says, tmp_path):
    kith.write_vectors(tmp_path / "ids.npy", np.array(ids))
    kith.write_vectors(tmp_path / "distances.npy", np.array(distances, np.float32))
    with pytest.raises(ValueError, match=says) as error:
        kith.KnnGraph.load(tmp_path / "ids.npy", tmp_path / "distances.npy")
    assert "ids.npy" in str(error.value)


def connectivities_of(distances, ids):
    """UMAP's weights, written down once more: https://arxiv.org/abs/1802.03426, section 3.1."""
    rows, k = ids.shape
    weights = np.zeros((rows, rows))
    for i in range(rows):
        d = distances[i].astype(float)
        rho = d[d > 0][0] if (d > 0).any() else 0.0
        low, high, sigma = 0.0, np.inf, 1.0
        for _ in range(64):
            total = np.exp(-np.maximum(d - rho, 0) / sigma).sum()
            if abs(total - np.log2(k + 1)) < 1e-5:
                break
            if total > np.log2(k + 1):
                high, sigma = sigma, (low + sigma) / 2
            else:
                low, sigma = sigma, sigma * 2 if high == np.inf else (sigma + high) / 2
        mean = d.sum() / (k + 1) if rho > 0 else distances.sum() / (rows * (k + 1))
        weights[i, ids[i]] = np.exp(-np.maximum(d - rho, 0) / max(sigma, 1e-3 * mean))
    return weights + weights.T - weights * weights.T


def test_to_scanpy(vectors):
    x = np.vstack([vectors(60, 5), vectors(1, 5).repeat(9, axis=0)])  # duplicates too
    graph = kith.knn_graph(x, k=6)

    class Data:
        def __init__(self):
            self.obsp, self.uns = {}, {}

    data = Data()
    made = graph.to_scanpy(data)
    np.testing.assert_allclose(made["connectivities"].toarray(), connectivities_of(graph.distances, graph.ids), rtol=1e-4, atol=1e-6)
    assert (made["distances"] != graph.to_csr()).nnz == 0
    assert data.obsp["connectivities"] is made["connectivities"] and data.obsp["distances"] is made["distances"]
    assert data.uns["neighbors"]["params"] == {
        "n_neighbors": 7,
        "method": "umap",
        "random_state": 0,
        "metric": "euclidean",
    }
    assert type(made["connectivities"]).__name__ == "csr_matrix"
    with pytest.raises(ValueError, match="fewer than k"):
        kith.knn_graph(x[:4], k=6).to_scanpy()
    with pytest.raises(ValueError, match="no distance"):
        kith.knn_graph(x, k=6, metric="inner_product").to_scanpy()


def test_threads_change_nothing(vectors):
    x = vectors(500, 12)
    one, other = kith.knn_graph(x, k=9, threads=1), kith.knn_graph(x, k=9, threads=3, memory_limit=64 << 20)
    assert one.ids.tobytes() == other.ids.tobytes() and one.distances.tobytes() == other.distances.tobytes()


@pytest.mark.parametrize(
    "arguments, error, says",
    [
        ({"k": 0}, ValueError, "k"),
        ({"k": 1.5}, TypeError, "k"),
        ({"method": "magic"}, ValueError, "exact"),
        ({"method": None}, TypeError, "method"),
        ({"metric": "euclid"}, ValueError, "metric"),
    ],
)
def test_refused(arguments, error, says, vectors):
    with pytest.raises(error, match=says):
        kith.knn_graph(vectors(20, 5), **arguments)


def test_limits_hold_for_what_is_made_of_a_graph(vectors, tmp_path):
    pytest.importorskip("scipy")
    graph = kith.knn_graph(vectors(3000, 6), k=10)
    files = tmp_path / "i.npy", tmp_path / "d.npy"
    for make in (graph.to_csr, graph.reversed, graph.symmetric, graph.mutual, graph.components, graph.in_degrees):
        with pytest.raises(MemoryError):
            make(memory_limit=1000)
        make(threads=1, memory_limit=1 << 26)
    graph.save(*files, threads=1, memory_limit=1 << 24)
    with pytest.raises(MemoryError):
        kith.KnnGraph.load(*files, memory_limit=1000)
    assert (kith.KnnGraph.load(*files, memory_limit=1 << 24).ids == graph.ids).all()


def test_a_folder_is_mapped(tmp_path: Path) -> None:
    """As kith graph build --out writes it: two arrays and a report."""
    x = np.random.default_rng(1).standard_normal((300, 4)).astype(np.float32)
    graph = kith.knn_graph(x, k=5, metric="cosine")
    np.save(tmp_path / "ids.npy", graph.ids)
    np.save(tmp_path / "distances.npy", graph.distances)
    lines = ['"kith_graph": 1', '"metric": "cosine"', '"rows": 300', '"k": 5']
    hashes = ['"ids_xxh3": "0000000000000001"', '"distances_xxh3": "0000000000000002"']
    (tmp_path / "report.json").write_text("{\n  " + ",\n  ".join(lines + hashes) + "\n}\n")
    for limit in (None, 100_000):
        again = kith.KnnGraph.load(tmp_path, memory_limit=limit)
        assert again.metric == "cosine" and np.array_equal(again.ids, graph.ids)
        assert np.array_equal(again.distances, graph.distances) and not again.ids.flags.writeable
    with pytest.raises(ValueError, match="is of the metric 'cosine', not 'l2'"):
        kith.KnnGraph.load(tmp_path, metric="l2")
    (tmp_path / "report.json").unlink()
    with pytest.raises(ValueError, match="holds no report.json"):
        kith.KnnGraph.load(tmp_path)


def test_out_is_a_folder_of_the_same_bytes(tmp_path: Path) -> None:
    x = np.random.default_rng(1).standard_normal((3000, 64)).astype(np.float32)
    np.save(tmp_path / "a.npy", x[:1300])
    np.save(tmp_path / "b.npy", x[1300:])
    truth = kith.knn_graph(x, k=5, method="exact")
    for source in (str(tmp_path / "[ab].npy"), x):
        for limit in (None, 600_000):
            graph = kith.knn_graph(source, k=5, method="exact", out=tmp_path / "g", memory_limit=limit, threads=2)
            assert np.array_equal(graph.ids, truth.ids) and np.array_equal(graph.distances, truth.distances)
            assert graph.report.method == "exact"
    with pytest.raises(ValueError, match="out needs files"):
        kith.knn_graph(x.tolist(), k=5, out=tmp_path / "g")


def test_cells_in_parts(tmp_path):
    """Two parts in turns, and two that wait for each other."""
    x = np.random.default_rng(3).standard_normal((3000, 16)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    asked = {"k": 5, "method": "cells", "cells": 20, "recall": 0.7, "device": "cpu", "threads": 1}
    truth = kith.knn_graph(x, **asked)
    ended: dict[str, kith.KnnGraph] = {}
    with pytest.raises(kith.UnfinishedError, match="has done its share"):
        kith.knn_graph(tmp_path / "x.npy", out=tmp_path / "g", part="2/2", wait=False, **asked)
    for _ in range(10):
        for part in ("1/2", "2/2"):
            try:
                ended[part] = kith.knn_graph(tmp_path / "x.npy", out=tmp_path / "g", part=part, wait=False, **asked)
            except kith.UnfinishedError:
                continue
        if len(ended) == 2:
            break
    with ThreadPoolExecutor() as threads:
        calls = [
            threads.submit(kith.knn_graph, tmp_path / "x.npy", out=tmp_path / "h", part=part, **asked)
            for part in ("1/2", "2/2")
        ]
        waited = [call.result() for call in calls]
    for graph in (*ended.values(), *waited):
        assert (graph.ids == truth.ids).all() and (graph.distances == truth.distances).all()
        assert graph.report.recall == truth.report.recall
    assert not (tmp_path / "g" / "work").exists() and not (tmp_path / "h" / "work").exists()
    with pytest.raises(ValueError, match="wait=False goes with part"):
        kith.knn_graph(tmp_path / "x.npy", out=tmp_path / "g", wait=False, **asked)


def test_cells_from_disk(tmp_path):
    """A limit below the vectors gives the graph in memory, and the work folder is gone."""
    x = np.random.default_rng(3).standard_normal((12_000, 160)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    asked = {"k": 5, "method": "cells", "cells": 40, "recall": 0.7, "device": "cpu"}
    truth = kith.knn_graph(x, **asked)
    for limit in (10 << 20, 1 << 30):
        graph = kith.knn_graph(tmp_path / "x.npy", out=tmp_path / "g", memory_limit=limit, **asked)
        assert (graph.ids == truth.ids).all() and (graph.distances == truth.distances).all()
        assert graph.report.method == "cells" and graph.report.recall == truth.report.recall
        assert not (tmp_path / "g" / "work").exists()
    again = kith.knn_graph(
        tmp_path / "x.npy", out=tmp_path / "g", work=tmp_path / "w", keep_work=True, memory_limit=10 << 20, **asked
    )
    assert (again.ids == truth.ids).all() and (tmp_path / "w" / "manifest").exists()
    with pytest.raises(ValueError, match="seed is 1, and was 0"):
        kith.knn_graph(tmp_path / "x.npy", out=tmp_path / "g", work=tmp_path / "w", seed=1, memory_limit=10 << 20, **asked)
    with pytest.raises(ValueError, match="work, keep_work, int32_ids and part go with out"):
        kith.knn_graph(tmp_path / "x.npy", work=tmp_path / "w")


def test_ids_alone_and_as_int32(tmp_path: Path) -> None:
    x = np.random.default_rng(3).standard_normal((300, 8)).astype(np.float32)
    truth = kith.knn_graph(x, k=4, device="cpu")
    found = kith.knn_graph_ids(x, tmp_path / "g", k=4, int32_ids=True, device="cpu")
    assert found.ids.dtype == np.int32 and (found.ids == truth.ids).all() and found.report.recall == truth.report.recall
    assert not (tmp_path / "g" / "distances.npy").exists()
    with pytest.raises(ValueError, match="ids alone"):
        kith.KnnGraph.load(tmp_path / "g")
    narrow = kith.knn_graph(x, k=4, out=tmp_path / "n", int32_ids=True, device="cpu")
    assert (narrow.ids == truth.ids).all() and np.load(tmp_path / "n" / "ids.npy").dtype == np.int32


def test_ggm_and_merged_folders(tmp_path: Path) -> None:
    """Shards and folders, in memory and from disk, are one graph."""
    x = np.random.default_rng(4).standard_normal((3000, 16)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    rounds: dict[str, Any] = {"recall": 0.8, "list_length": 24, "iterations": 3, "device": "cpu", "threads": 2}
    truth = kith.knn_graph(x, k=5, method="ggm", shards=6, **rounds)
    assert truth.report.method == "ggm" and truth.report.parameters["shards"] == 6
    disk = kith.knn_graph(
        tmp_path / "x.npy", k=5, method="ggm", shards=6, out=tmp_path / "g", memory_limit=3 << 20, **rounds
    )
    assert (disk.ids == truth.ids).all() and (disk.distances == truth.distances).all()
    parts = [x[:1000], x[1000:1900], x[1900:]]
    pairs = [each for part in parts for each in (kith.knn_graph(part, k=5, method="exact"), part)]
    merged = kith.merge_graphs(*pairs, **rounds)
    for limit in (None, 5 << 20):
        there = kith.merge_graphs(*pairs, out=tmp_path / "m", memory_limit=limit, **rounds)
        assert (there.ids == merged.ids).all() and (there.distances == merged.distances).all()
    with pytest.raises(ValueError, match="work and keep_work go with out"):
        kith.merge_graphs(*pairs, keep_work=True, **rounds)
    with pytest.raises(ValueError, match="shards is a parameter of the method ggm"):
        kith.knn_graph(x, k=5, method="cells", shards=2)


def test_to_scanpy_counts_as_scanpy_does(vectors):
    pytest.importorskip("scipy")
    graph = kith.knn_graph(vectors(60, 5), k=20)
    made = graph.to_scanpy(n_neighbors=15, use_rep="X_pca")
    assert made["distances"].nnz == 60 * 14
    params = made["neighbors"]["params"]
    assert params["n_neighbors"] == 15 and params["metric"] == "euclidean" and params["use_rep"] == "X_pca"
    with pytest.raises(ValueError, match="k=29"):
        graph.to_scanpy(n_neighbors=30)

    class Observations:
        n_obs = 61

    with pytest.raises(ValueError, match="60 rows, and adata has 61"):
        graph.to_scanpy(Observations())
