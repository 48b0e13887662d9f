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
