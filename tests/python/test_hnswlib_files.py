"""hnswlib's files, by hnswlib itself: it searches and grows what Kith wrote, and Kith searches what it wrote. FAISS's HNSW
files likewise."""

from __future__ import annotations

from pathlib import Path

import kith
import numpy as np
import pytest

ROWS, COLS = 6_000, 20
SPACES = {"l2": "l2", "sqeuclidean": "l2", "inner_product": "ip", "cosine": "cosine"}


@pytest.fixture(scope="module")
def base() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.standard_normal((ROWS, 8), dtype=np.float32) @ rng.standard_normal((8, COLS), dtype=np.float32)


def recall(ids: np.ndarray, truth: np.ndarray) -> float:
    return float(np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(ids, truth, strict=True)]))


@pytest.mark.parametrize("metric", list(SPACES))
def test_hnswlib_searches_and_grows_what_was_written(base: np.ndarray, tmp_path: Path, metric: str) -> None:
    hnswlib = pytest.importorskip("hnswlib")
    index = kith.Index("Graph32", metric=metric)
    index.add(base[:-100])
    kith.write_hnswlib(index, tmp_path / "graph.bin")
    theirs = hnswlib.Index(space=SPACES[metric], dim=COLS)
    theirs.load_index(str(tmp_path / "graph.bin"), max_elements=ROWS)
    theirs.set_ef(64)
    queries = base[:200]
    truth = kith.knn(queries, base[:-100], k=10, metric=metric).ids
    ours = recall(index.search(queries, k=10, beam=64).ids, truth)
    assert recall(theirs.knn_query(queries, k=10)[0].astype(np.int64), truth) >= ours - 0.02
    theirs.add_items(base[-100:], np.arange(ROWS - 100, ROWS))
    found = theirs.knn_query(base[-100:], k=1)[0][:, 0]
    if metric != "inner_product":
        assert (found == np.arange(ROWS - 100, ROWS)).mean() > 0.95


@pytest.mark.parametrize("metric", list(SPACES))
def test_what_hnswlib_has_built_is_searched(base: np.ndarray, tmp_path: Path, metric: str) -> None:
    hnswlib = pytest.importorskip("hnswlib")
    theirs = hnswlib.Index(space=SPACES[metric], dim=COLS)
    theirs.init_index(max_elements=ROWS + 10, ef_construction=100, M=16)
    theirs.add_items(base, np.arange(ROWS) + 7)
    theirs.mark_deleted(12)
    theirs.save_index(str(tmp_path / "theirs.bin"))
    index = kith.read_hnswlib(tmp_path / "theirs.bin", metric)
    assert index.factory == "Graph32"
    assert len(index) == ROWS - 1
    queries = base[:200]
    kept = np.delete(np.arange(ROWS), 5)
    truth = kept[kith.knn(queries, base[kept], k=10, metric=metric).ids] + 7
    found = index.search(queries, k=10, beam=64).ids
    assert 12 not in found
    assert recall(found, truth) > (0.8 if metric == "inner_product" else 0.95)


@pytest.mark.parametrize("metric", ["sqeuclidean", "inner_product"])
def test_hnsw_of_faiss_is_searched(base: np.ndarray, tmp_path: Path, metric: str) -> None:
    faiss = pytest.importorskip("faiss")
    theirs = faiss.IndexHNSWFlat(COLS, 16, faiss.METRIC_L2 if metric == "sqeuclidean" else faiss.METRIC_INNER_PRODUCT)
    theirs.add(base)
    faiss.write_index(theirs, str(tmp_path / "hnsw.faiss"))
    index = kith.read_faiss(tmp_path / "hnsw.faiss")
    assert (index.factory, index.metric, len(index)) == ("Graph32", metric, ROWS)
    truth = kith.knn(base[:200], base, k=10, metric=metric).ids
    assert recall(index.search(base[:200], k=10, beam=64).ids, truth) > (0.8 if metric == "inner_product" else 0.95)


def test_edges_are_a_sparse_matrix(base: np.ndarray) -> None:
    index = kith.Index("Graph16")
    index.add(base)
    offsets, rows = index.edges()
    assert offsets.shape == (ROWS + 1,)
    assert offsets[-1] == len(rows)
    assert (np.diff(offsets) >= 1).all()
    assert rows.min() >= 0
    assert rows.max() < ROWS
    flat = kith.Index("Flat")
    flat.add(base)
    with pytest.raises(NotImplementedError, match="Graph32"):
        flat.edges()
    with pytest.raises(ValueError, match="read_hnswlib"):
        kith.Index("HNSW32,Flat")
