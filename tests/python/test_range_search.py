"""kith.range_search and Index.range_search, beside all distances computed by numpy."""

from __future__ import annotations

import numpy as np
import pytest

import kith
from conftest import METRICS, distances_of


def check(found, queries, base, radius, metric, keep=None):
    """Every row that is surely within the radius, none that is surely not, in order, at the distance claimed."""
    true = distances_of(queries, base, metric)
    if keep is not None:
        true[:, ~keep] = -np.inf if metric == "inner_product" else np.inf
    assert found.offsets.dtype == found.ids.dtype == np.int64 and found.distances.dtype == np.float32
    assert found.offsets.shape == (len(queries) + 1,) and found.offsets[0] == 0
    assert found.offsets[-1] == found.ids.size == found.distances.size
    sign = -1 if metric == "inner_product" else 1
    slack = 1e-5 * max(1.0, abs(radius))
    for q, row in enumerate(true):
        part = slice(found.offsets[q], found.offsets[q + 1])
        ids, distances = found.ids[part], found.distances[part]
        assert len(set(ids.tolist())) == ids.size
        assert set(np.flatnonzero(sign * row < sign * radius - slack)) <= set(ids)
        assert set(ids) <= set(np.flatnonzero(sign * row <= sign * radius + slack))
        np.testing.assert_allclose(distances, row[ids], rtol=1e-5, atol=slack)
        assert (np.diff(sign * distances) >= 0).all() and (sign * distances <= sign * np.float32(radius)).all()


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
def test_the_rows_within(metric, share, vectors_for, rng):
    queries, base = vectors_for(metric, 17, 9), vectors_for(metric, 300, 9)
    true = np.sort(distances_of(queries, base, metric), axis=None)
    radius = float(np.quantile(true, 1 - share if metric == "inner_product" else share))
    keep = rng.random(300) < 0.4
    index = kith.Index(metric=metric)
    index.add(base)
    for search in (lambda **more: kith.range_search(queries, base, radius, metric, **more),
                   lambda **more: index.range_search(queries, radius, **more)):
        found = search()
        assert isinstance(found, kith.RangeNeighbors)
        check(found, queries, base, radius, metric)
        check(search(filter=keep), queries, base, radius, metric, keep)
        assert (search(filter=np.flatnonzero(keep)).ids == search(filter=np.packbits(keep, bitorder="little")).ids).all()


def test_the_same_distances_and_order_as_knn(vectors):
    base = vectors(200, 6)
    nearest = kith.knn(base[:4], base, k=200)
    found = kith.range_search(base[:4], base, np.inf)
    assert (found.ids.reshape(4, 200) == nearest.ids).all()
    assert (found.distances.reshape(4, 200) == nearest.distances).all()


def test_the_radius_is_included():
    base = np.array([[0], [3], [5]], np.float32)
    assert kith.range_search([[0]], base, 3).ids.tolist() == [0, 1]
    assert kith.range_search([[0]], base, np.nextafter(np.float32(3), np.float32(0))).ids.tolist() == [0]
    assert kith.range_search([[1]], base, 3, "inner_product").ids.tolist() == [2, 1]


def test_one_query_and_none(vectors):
    base = vectors(50, 4)
    alone = kith.range_search(base[3], base, 1.0)
    assert alone.offsets.tolist() == [0, alone.ids.size] and alone.ids[0] == 3
    none = kith.range_search(base[:0], base, 1.0)
    assert none.offsets.tolist() == [0] and none.ids.size == none.distances.size == 0
    nowhere = kith.range_search(base[:3], base[:0], 1.0)
    assert nowhere.offsets.tolist() == [0, 0, 0, 0]
    assert kith.range_search(base[:2], base, 1.0, filter=[]).offsets.tolist() == [0, 0, 0]


def test_results_outlive_everything_else(vectors):
    base = vectors(300, 4)
    distances = kith.range_search(base, base, 100.0).distances
    other = kith.range_search(base, base, 100.0)
    assert (distances == other.distances).all() and distances.flags.writeable


@pytest.mark.parametrize("memory_limit", [None, 4 << 20])
def test_files(memory_limit, tmp_path, vectors):
    queries, base = vectors(700, 8), vectors(900, 8)
    kith.write_vectors(tmp_path / "queries.fbin", queries)
    kith.write_vectors(tmp_path / "base.fbin", base)
    files = tmp_path / "queries.fbin", tmp_path / "base.fbin"
    for more in ({}, {"filter": np.arange(900) % 7 == 0}, {"filter": []}):
        found = kith.range_search(*files, 2.0, memory_limit=memory_limit, **more)
        true = kith.range_search(queries, base, 2.0, **more)
        assert all((a == b).all() for a, b in zip(found, true))
    with pytest.raises(TypeError, match="two paths"):
        kith.range_search(queries, files[1], 2.0)


def test_a_limit_without_room_for_the_result(vectors):
    base = vectors(2000, 4)
    with pytest.raises(MemoryError, match="bytes|iB"):
        kith.range_search(base, base, np.inf, memory_limit=1 << 20)


def test_progress(vectors):
    told = []
    base = vectors(3000, 16)
    kith.range_search(base, base, 1.0, progress=lambda *values: told.append(values))
    assert told and told[-1][1] == told[-1][2]


@pytest.mark.parametrize(
    "radius, error, says",
    [
        (float("nan"), ValueError, "radius"),
        (None, TypeError, "radius"),
        ("3", TypeError, "radius"),
        (True, TypeError, "radius"),
        ([1.0, 2.0], TypeError, "radius"),
        (1j, TypeError, "radius"),
        (10**400, ValueError, "radius is too large"),
    ],
)
def test_a_radius_that_is_refused(radius, error, says, vectors):
    base = vectors(20, 4)
    index = kith.Index()
    index.add(base)
    with pytest.raises(error, match=says):
        kith.range_search(base, base, radius)
    with pytest.raises(error, match=says):
        index.range_search(base, radius)


def test_refused(vectors):
    base = vectors(20, 4)
    with pytest.raises(ValueError, match="metric"):
        kith.range_search(base, base, 1.0, metric="euclid")
    with pytest.raises(ValueError, match="3"):
        kith.range_search(base[:, :3], base, 1.0)
    with pytest.raises(TypeError, match="check_finite"):
        kith.range_search(base, base, 1.0, check_finite=1)


def test_by_query(vectors):
    x, q = vectors(60, 4), vectors(7, 4)
    found = kith.range_search(q, x, radius=2.0)
    parts = list(found.by_query())
    assert len(parts) == 7 and all(isinstance(part, kith.Neighbors) for part in parts)
    assert np.concatenate([part.ids for part in parts]).tolist() == found.ids.tolist()
    assert all(np.shares_memory(part.distances, found.distances) for part in parts if part.ids.size)
    assert [part.ids.size for part in parts] == np.diff(found.offsets).tolist()
    assert list(kith.range_search(np.zeros((0, 4), np.float32), x, radius=1.0).by_query()) == []


def test_to_csr(vectors):
    pytest.importorskip("scipy")
    x, q = vectors(60, 4), vectors(7, 4)
    found = kith.range_search(q, x, radius=2.0)
    matrix = found.to_csr(columns=60)
    assert matrix.shape == (7, 60) and matrix.nnz == found.ids.size and matrix.has_sorted_indices
    for query, (ids, distances) in enumerate(found.by_query()):
        assert (matrix.toarray()[query, ids] == distances).all()
    same = kith.range_search(x, x, radius=2.0)
    assert same.to_csr().shape == (60, 60) and (same.to_csr() != same.to_csr().T).nnz == 0
    assert found.to_csr().shape == (7, max(7, found.ids.max() + 1))
    with pytest.raises(ValueError, match="columns is 3, but the id"):
        found.to_csr(columns=3)


@pytest.mark.parametrize("metric, radius", [("l2", 1.5), ("cosine", 0.2), ("inner_product", 1.0)])
@pytest.mark.parametrize("filtered", [False, True])
def test_without_self(metric, radius, filtered, vectors, rng, tmp_path):
    x = vectors(200, 4)
    x[50:60] = x[40:50]  # duplicates are found
    keep = rng.random(200) < 0.5 if filtered else None
    whole = kith.range_search(x, x, radius, metric, filter=keep)
    owners = np.repeat(np.arange(200), np.diff(whole.offsets))
    others = whole.ids != owners
    found = kith.range_search(x, x, radius, metric, filter=keep, without_self=True)
    assert (found.ids == whole.ids[others]).all() and (found.distances == whole.distances[others]).all()
    assert np.diff(found.offsets).tolist() == np.bincount(owners[others], minlength=200).tolist()
    kith.write_vectors(tmp_path / "x.fbin", x)
    path = tmp_path / "x.fbin"
    from_file = kith.range_search(path, path, radius, metric, filter=keep, without_self=True)
    for a, b in zip(found, from_file):
        assert a.tobytes() == b.tobytes()


def test_without_self_wants_the_same_rows(vectors):
    with pytest.raises(ValueError, match="3 queries and 5 rows"):
        kith.range_search(vectors(3, 2), vectors(5, 2), 1.0, without_self=True)
    with pytest.raises(TypeError, match="without_self"):
        kith.range_search(vectors(3, 2), vectors(3, 2), 1.0, without_self=1)


def test_without_self_in_other_libraries(vectors):
    """As libraries compute it whose arrays lie in a GPU's memory; numpy stands for cupy and jax."""
    from kith._libraries import Torch, _without_self

    x = vectors(50, 3)
    whole, wanted = kith.range_search(x, x, 1.0), kith.range_search(x, x, 1.0, without_self=True)
    for a, b in zip(_without_self(np, *whole), wanted):
        assert a.tolist() == b.tolist()
    torch = pytest.importorskip("torch")
    for a, b in zip(Torch().without_self(*map(torch.from_numpy, whole)), wanted):
        assert a.tolist() == b.tolist()
