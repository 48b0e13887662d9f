"""filter=: the rows that a search may return, in each of its forms."""

from __future__ import annotations

import numpy as np
import pytest

import kith
from conftest import METRICS


def forms(keep):
    """One filter in all the ways it can be said."""
    ids = np.flatnonzero(keep)
    yield "mask", keep
    yield "mask, strided", np.repeat(keep, 2)[::2]
    yield "mask, list", keep.tolist()
    yield "bits", np.packbits(keep, bitorder="little")
    yield "int64", ids
    yield "int32, backwards and twice", np.concatenate([ids, ids])[::-1].astype(np.int32)
    yield "uint64", ids.astype(np.uint64)
    yield "int16", ids.astype(np.int16)
    yield "ids, list", ids.tolist()


def searches(base, metric="l2"):
    index = kith.Index(metric=metric)
    index.add(base[:100])
    index.add(base[100:])
    yield lambda q, k, **more: kith.knn(q, base, k, metric, **more)
    yield lambda q, k, **more: index.search(q, k, filter_strict=True, **more)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("share", [0.0, 0.005, 0.3, 0.95, 1.0])
def test_only_kept_rows_are_found(metric, share, vectors_for, check_exact, rng):
    queries, base = vectors_for(metric, 9, 11), vectors_for(metric, 403, 11)
    keep = rng.random(403) < share
    for search in searches(base, metric):
        check_exact(search(queries, 8, filter=keep), queries, base, 8, metric, keep)
        check_exact(search(queries[:1], 8, filter=keep), queries[:1], base, 8, metric, keep)


def test_all_forms_say_the_same(vectors, rng):
    queries, base = vectors(5, 6), vectors(203, 6)
    keep = rng.random(203) < 0.4
    for search in searches(base):
        true = search(queries, 7, filter=keep)
        for name, filter in forms(keep):
            found = search(queries, 7, filter=filter)
            assert (found.ids == true.ids).all() and (found.distances == true.distances).all(), name


def test_files(tmp_path, vectors):
    queries, base = vectors(5, 6), vectors(203, 6)
    kith.write_vectors(tmp_path / "queries.fbin", queries)
    kith.write_vectors(tmp_path / "base.fbin", base)
    files = tmp_path / "queries.fbin", tmp_path / "base.fbin"
    keep = np.arange(203) % 3 == 1
    for name, filter in forms(keep):
        assert (kith.knn(*files, k=4, filter=filter).ids == kith.knn(queries, base, k=4, filter=keep).ids).all(), name
    with pytest.raises(ValueError, match="203"):
        kith.knn(*files, filter=keep[:-1])


def test_nothing_is_kept(vectors):
    base = vectors(30, 6)
    for search in searches(np.vstack([base] * 5)):
        for filter in ([], (), np.empty(0, np.int64), np.zeros(150, bool), np.zeros(19, np.uint8)):
            found = search(base[:2], 3, filter=filter)
            assert (found.ids == -1).all() and np.isinf(found.distances).all()


def test_out(vectors):
    base = vectors(150, 6)
    out = np.empty((2, 3), np.int64), np.empty((2, 3), np.float32)
    for search in searches(base):
        assert search(base[:2], 3, filter=[7, 9, 11], out=out).ids is out[0]
        assert (np.sort(out[0], axis=1) == [7, 9, 11]).all()


def test_rows_left_out_are_not_checked(vectors):
    base = vectors(50, 6)
    base[7] = np.nan
    assert 7 not in kith.knn(base[:3], base, k=49, filter=np.arange(50) != 7).ids
    with pytest.raises(ValueError, match="NaN"):
        kith.knn(base[:3], base, filter=[6, 7])


@pytest.mark.parametrize(
    "filter, error, says",
    [
        (np.ones(149, bool), ValueError, "149.*150"),
        (np.ones(151, bool), ValueError, "151.*150"),
        (np.ones(150, np.uint8), ValueError, "packed bits.*must be bool: x.astype\\(bool\\)"),
        (np.ones(18, np.uint8), ValueError, "19"),
        ([3, 150], ValueError, "150"),
        ([3, -1], ValueError, "-1"),
        (np.array([2**64 - 1], np.uint64), ValueError, "18446744073709551615"),
        (np.ones((150, 1, 1), bool), ValueError, "1-D"),
        (np.array(True), ValueError, "1-D"),
        (np.ones(150), TypeError, "float64"),
        (["a"], TypeError, "U1"),
        ({3, 4}, TypeError, r"a set; .*sorted\(filter\) is one"),
        ({"lang": "en"}, TypeError, "a dict; .*where="),
        (lambda row: True, TypeError, "a function; .*where="),
        ("1010", TypeError, "str"),
        ("mask.npy", TypeError, "numpy.load\\(path\\)"),
        (np.ma.ones(150, bool), TypeError, "masked"),
    ],
)
def test_refused(filter, error, says, vectors):
    base = vectors(150, 6)
    for search in searches(base):
        with pytest.raises(error, match=says):
            search(base[:2], 3, filter=filter)
    with pytest.raises(error, match=says):
        kith.range_search(base[:2], base, 1.0, filter=filter)


def each_filter(rows):
    """A filter for each of six queries, in several forms, two of them equal."""
    mask = np.arange(rows) % 3 == 0
    return [[5, 9, 100], None, mask, np.packbits(~mask, bitorder="little"), mask.copy(), []]


@pytest.mark.parametrize("factory", ["Flat", "IVF8,SQ8", "IVF8,SQ8,RFlat", "Graph16"])
def test_a_filter_for_each_query(factory, vectors):
    base, queries = vectors(700, 8), vectors(6, 8)
    index = kith.Index(factory)
    index.train(base)
    index.add(base)
    filters = each_filter(700)
    found = index.search(queries, 4, filter=filters)
    for i, filter in enumerate(filters):
        alone = index.search(queries[i], 4, filter=filter)
        assert (found.ids[i] == alone.ids).all() and (found.distances[i] == alone.distances).all(), i
    out = np.empty((6, 4), np.int64), np.empty((6, 4), np.float32)
    assert (index.search(queries, 4, filter=tuple(filters), out=out).ids == found.ids).all()


def test_a_filter_for_each_query_of_exact_search(vectors):
    base, queries = vectors(700, 8), vectors(6, 8)
    filters = each_filter(700)
    for dtype in (np.float32, np.float64):
        found = kith.knn(queries.astype(dtype), base.astype(dtype), 4, filter=filters)
        for i, filter in enumerate(filters):
            alone = kith.knn(queries[i].astype(dtype), base.astype(dtype), 4, filter=filter)
            assert (found.ids[i] == alone.ids).all() and (found.distances[i] == alone.distances).all(), i
    masks = np.random.default_rng(1).random((6, 700)) < 0.1
    assert (kith.knn(queries, base, 4, filter=masks).ids == kith.knn(queries, base, 4, filter=list(masks)).ids).all()


def test_errors_of_filters_for_each_query(vectors, tmp_path):
    base, queries = vectors(150, 8), vectors(2, 8)
    for search in searches(base):
        with pytest.raises(ValueError, match="query 1: filter is a mask of 149 values"):
            search(queries, 3, filter=[None, np.ones(149, bool)])
        with pytest.raises(TypeError, match="query 1: filter is float64"):
            search(queries, 3, filter=[[1], [0.5]])
        with pytest.raises(ValueError, match="query 0: .*150"):
            search(queries, 3, filter=[[150], None])
        with pytest.raises(ValueError, match="1 filters and 2 queries"):
            search(queries, 3, filter=[None])
    kith.write_vectors(tmp_path / "base.fbin", base)
    with pytest.raises(ValueError, match="one filter for all queries"):
        kith.knn(tmp_path / "base.fbin", tmp_path / "base.fbin", filter=[[1], [2]])
    with pytest.raises(ValueError, match="one filter for all queries"):
        kith.range_search(queries, base, 1.0, filter=[[1], [2]])
