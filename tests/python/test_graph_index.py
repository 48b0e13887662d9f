"""`Index("Graph32")` from Python: its parameters by name, what it tells, copies and files, and what is refused."""

from __future__ import annotations

import pickle
from pathlib import Path

import kith
import numpy as np
import pytest

ROWS = 7_000


@pytest.fixture(scope="module")
def base() -> np.ndarray:
    rng = np.random.default_rng(0)
    points = rng.standard_normal((ROWS, 6), dtype=np.float32)
    return points @ rng.standard_normal((6, 20), dtype=np.float32)


@pytest.fixture(scope="module")
def index(base: np.ndarray) -> kith.Index:
    made = kith.Index("Graph16")
    made.add(base)
    return made


def test_searches_take_beam_width_and_recall(index: kith.Index, base: np.ndarray) -> None:
    queries = base[:50]
    truth = kith.knn(queries, base, k=10)
    plain = index.search(queries, k=10)
    assert kith.recall(plain, truth) > 0.9
    default = index.search(queries, k=10, beam=index.info().beam)
    assert (plain.ids == default.ids).all()
    assert (index.search(queries, k=10, beam=index.info().beam, width=2).ids == plain.ids).all()
    assert kith.recall(index.search(queries, k=10, recall=1), truth) == 1
    one = np.stack([index.search(query, k=10).ids for query in queries])
    assert (one == plain.ids).all()


def test_info_tells_of_the_graph(index: kith.Index) -> None:
    info = index.info()
    assert (info.degree, info.unlinked, info.lists, info.walk_bits) == (16, 0, 0, 8)
    assert info.recalls[info.beam] >= 0.95
    assert list(info.recalls) == sorted(info.recalls)
    assert sum(info.parts.values()) <= info.host_bytes
    flat = kith.Index("Flat")
    assert (flat.info().degree, flat.info().recalls) == (0, {})


def test_codes_of_four_bits(base: np.ndarray, tmp_path: Path) -> None:
    wide = np.concatenate([base, base[:, ::-1] ** 2 / 4, np.abs(base)], axis=1)
    made = kith.Index("Graph16x4")
    made.add(wide)
    info = made.info()
    assert (info.walk_bits, info.degree) == (4, 16)
    assert info.clipped > 0
    assert info.parts["codes of the walk"] == ROWS * 32
    found = made.search(wide[:50], k=10, beam=64)
    assert kith.recall(found, kith.knn(wide[:50], wide, k=10)) > 0.9
    made.save(tmp_path / "four.kith")
    loaded = kith.load(tmp_path / "four.kith")
    assert (loaded.search(wide[:50], k=10, beam=64).ids == found.ids).all()
    assert loaded.info().walk_bits == 4
    with pytest.raises(ValueError, match="use Graph32"):
        kith.Index("Graph32x4", metric="l1")


def test_filters_and_removal(base: np.ndarray) -> None:
    index = kith.Index("Graph16")
    index.add(base, ids=np.arange(ROWS) + 10)
    mask = np.zeros(ROWS, bool)
    mask[::2] = True
    found = index.search(base[:20], k=10, filter=mask)
    assert (found.ids % 2 == 0).all()
    index.remove(np.arange(10, 500))
    assert (index.search(base[:20], k=10).ids >= 500).all()
    assert len(index) == ROWS - 490


def test_copies_and_files_answer_alike(index: kith.Index, base: np.ndarray, tmp_path: Path) -> None:
    expected = index.search(base[:20], k=5).ids
    index.save(tmp_path / "graph.kith")
    for other in (kith.load(tmp_path / "graph.kith"), pickle.loads(pickle.dumps(index)), index.to("cpu")):
        assert (other.search(base[:20], k=5).ids == expected).all()
        assert other.info().recalls == index.info().recalls


def test_mapped_files_and_vectors_elsewhere_answer_alike(index: kith.Index, base: np.ndarray, tmp_path: Path) -> None:
    expected = index.search(base[:20], k=5)
    index.save(tmp_path / "graph.kith")
    mapped = kith.load(tmp_path / "graph.kith", mmap=True).search(base[:20], k=5)
    kith.write_vectors(tmp_path / "base.fbin", base)
    refined = index.search(base[:20], k=5, refine_from=tmp_path / "base.fbin")
    for found in (mapped, refined):
        assert (found.ids == expected.ids).all()
        assert (found.distances == expected.distances).all()


def test_graphs_are_merged(index: kith.Index, base: np.ndarray) -> None:
    both = kith.Index("Graph16")
    both.add(base + 1)
    both.merge(index.clone(), shift_ids=True)
    assert len(both) == 2 * ROWS
    assert (both.search(base[:50], k=1, beam=40).ids[:, 0] == np.arange(50) + ROWS).all()
    assert (both.reconstruct(np.arange(ROWS, ROWS + 5)) == base[:5]).all()
    with pytest.raises(ValueError, match="cosine"):
        kith.Index("Graph16", metric="cosine").merge(index.clone())


def test_other_vectors_are_refused(index: kith.Index, base: np.ndarray) -> None:
    with pytest.raises(ValueError, match="7 columns"):
        index.search(base[:2, :7])
    own = index.clone()
    for wrong, text in ((base[:2, :7], "7 columns"), (base[:2].astype(np.uint8), "u8"),
                        (np.full((1, 20), np.nan, np.float32), "NaN")):
        with pytest.raises(ValueError, match=text):
            own.add(wrong)
    assert len(own) == ROWS


def test_small_clusters_far_apart_are_walked_by_distances() -> None:
    rng = np.random.default_rng(3)
    centres = 30 * rng.standard_normal((40, 4), dtype=np.float32)
    x = np.repeat(centres, 1000, axis=0) + rng.standard_normal((40_000, 4), dtype=np.float32)
    queries = centres[rng.integers(40, size=100)] + rng.standard_normal((100, 4), dtype=np.float32)
    index = kith.Index("Graph32")
    index.add(x)
    assert index.info().walk_bits == 0
    assert index.info().lost == 0
    assert kith.recall(index.search(queries, k=10, recall=0.99), kith.knn(queries, x, k=10)) > 0.98


@pytest.mark.parametrize("dtype", ["float64", "float16", "uint8", "int8"])
def test_every_dtype(base: np.ndarray, dtype: str) -> None:
    scaled = (np.abs(base) * 8).clip(0, 120)
    x = scaled.astype(dtype)
    index = kith.Index("Graph16")
    index.add(x)
    found = index.search(x[:20], k=5, beam=40)
    assert kith.recall(found, kith.knn(x[:20], x, k=5)) > 0.8


def test_what_is_refused_says_what_is_allowed(index: kith.Index, base: np.ndarray) -> None:
    for wrong, text in (({"beam": 0}, "at least 1"), ({"width": 100}, "64"), ({"recall": 2}, "at most 1"),
                        ({"beam": 5, "recall": 0.9}, "one of them")):
        with pytest.raises(ValueError, match=text):
            index.search(base[:2], **wrong)
    flat = kith.Index("Flat")
    flat.add(base)
    with pytest.raises(ValueError, match="Graph32"):
        flat.search(base[:2], beam=20)
    for factory in ("Graph20", "Graph256", "Graph32,PQ4", "HNSW32"):
        with pytest.raises(ValueError, match="Graph"):
            kith.Index(factory)


def test_a_graph_of_the_vectors_starts_a_build(base: np.ndarray) -> None:
    graph = kith.knn_graph(base, k=32, metric="sqeuclidean")
    started = kith.Index("Graph16")
    started.add(base, np.arange(ROWS) * 2, start=kith.knn_graph(base, k=96))
    queries = base[:50]
    truth = kith.knn(queries, base, k=10)
    found = started.search(queries, k=10, beam=48)
    assert np.mean(found.distances <= truth.distances[:, -1:] * (1 + 1e-5)) > 0.9
    assert (found.ids % 2 == 0).all()
    with pytest.warns(RuntimeWarning, match="start has 32 neighbours"):
        kith.Index("Graph32").add(base, start=graph)


def test_graphs_of_other_vectors_start_nothing(base: np.ndarray, index: kith.Index, tmp_path: Path) -> None:
    graph = kith.knn_graph(base, k=8)
    made = kith.Index("Graph16")
    with pytest.raises(ValueError, match="a graph of other rows"):
        made.add(base[::-1], start=graph)
    with pytest.raises(ValueError, match="6000 are added"):
        made.add(base[:6000], start=graph)
    with pytest.raises(ValueError, match="by cosine"):
        made.add(base, start=kith.knn_graph(base, k=8, metric="cosine"))
    with pytest.raises(TypeError, match="KnnGraph"):
        made.add(base, start=graph.ids)  # type: ignore[arg-type]
    path = tmp_path / "base.npy"
    np.save(path, base)
    with pytest.raises(ValueError, match="read the vectors first"):
        made.add(path, start=graph)
    with pytest.raises(NotImplementedError, match="Graph32"):
        kith.Index("Flat").add(base, start=graph)
    with pytest.raises(RuntimeError, match="holds 7000 vectors"):
        index.add(base, start=graph)
    assert len(made) == 0
