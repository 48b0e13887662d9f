"""kith.knn: exact results over metrics, dtypes and shapes, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

import kith
from conftest import METRICS

from kith import _kith

DTYPES = [np.float32, np.float16, np.uint8, np.int8]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("query_dtype", DTYPES)
@pytest.mark.parametrize("base_dtype", DTYPES)
def test_exact(metric, query_dtype, base_dtype, vectors_for, check_exact):
    if metric == "chi_square" and np.int8 in (query_dtype, base_dtype):
        pytest.skip("int8 holds negative values")
    queries, base = vectors_for(metric, 37, 19, query_dtype), vectors_for(metric, 501, 19, base_dtype)
    check_exact(kith.knn(queries, base, k=7, metric=metric), queries, base, 7, metric)


@pytest.mark.filterwarnings("ignore:k = 9, but the base has 5 rows")
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("rows, cols, queries, k", [(1, 1, 1, 1), (5, 3, 2, 9), (300, 130, 1, 300), (1000, 2, 65, 33)])
def test_shapes(metric, rows, cols, queries, k, vectors_for, check_exact):
    q, base = vectors_for(metric, queries, cols), vectors_for(metric, rows, cols)
    check_exact(kith.knn(q, base, k, metric), q, base, k, metric)


def test_names_of_other_libraries(vectors):
    x, q = vectors(50, 6), vectors(4, 6)
    for name, own in {"euclidean": "l2", "manhattan": "l1", "cityblock": "l1", "chebyshev": "linf", "ip": "inner_product",
                      "dot": "inner_product", "l2sq": "sqeuclidean"}.items():
        index, same = kith.Index(metric=name), kith.knn(q, x, k=3, metric=own)
        index.add(x)
        assert index.metric == own and kith.knn_graph(x, metric=name).metric == own
        for found in (kith.knn(q, x, k=3, metric=name), index.search(q, k=3)):
            assert (found.ids == same.ids).all() and (found.distances == same.distances).all()
    wide = x.astype(np.float64) + 1e6  # from which an offset is subtracted, by the metric's own name
    assert (kith.knn(wide[:4], wide, k=3, metric="euclidean").ids == kith.knn(wide[:4], wide, k=3).ids).all()


@pytest.mark.parametrize(
    "name, says", [("L2", "FAISS's L2 is sqeuclidean"), ("euclidian", "did you mean euclidean?"), ("angular", "cosine")]
)
def test_names_that_are_refused(name, says, vectors):
    for call in (lambda: kith.knn(vectors(2, 3), vectors(9, 3), metric=name), lambda: kith.Index(metric=name),
                 lambda: kith.range_search(vectors(2, 3), vectors(9, 3), 1.0, metric=name),
                 lambda: kith.pairwise_distances(vectors(2, 3), metric=name)):
        with pytest.raises(ValueError, match=says):
            call()


def test_a_short_base_gets_one_warning(vectors):
    base, queries = vectors(30, 4), vectors(5, 4)
    index = kith.Index()
    index.add(queries)
    for search in (lambda: kith.knn(base, queries, k=10), lambda: index.search(base, k=10)):
        with pytest.warns(RuntimeWarning, match="k = 10, but the base has 5 rows.*swapped") as caught:
            search()
        assert len(caught) == 1 and caught[0].filename == __file__
    kith.knn(queries, base, k=30)  # just enough


def test_result_is_a_named_tuple(vectors):
    found = kith.knn(vectors(3, 4), vectors(20, 4))
    ids, distances = found
    assert isinstance(found, kith.Neighbors) and found.ids is ids and found.distances is distances
    assert ids.shape == (3, 10)
    assert ids.flags.writeable and ids.flags.c_contiguous and distances.flags.writeable
    ids += 1  # the arrays are the caller's own


def test_results_outlive_everything_else(vectors):
    ids = kith.knn(vectors(1000, 4), vectors(50, 4), k=50).ids
    assert (np.sort(ids, axis=1) == np.arange(50)).all()


def test_ties_go_to_the_smaller_row():
    base = np.ones((40, 3), np.float32)
    assert kith.knn(base[0], base, k=12).ids.tolist() == list(range(12))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_and_limits_change_nothing(threads, vectors):
    queries, base = vectors(50, 24), vectors(3000, 24)
    one = kith.knn(queries, base, k=20)
    other = kith.knn(queries, base, k=20, threads=threads, memory_limit=64 << 20)
    assert one.ids.tobytes() == other.ids.tobytes() and one.distances.tobytes() == other.distances.tobytes()


def test_one_query_gives_one_row(vectors):
    queries, base = vectors(4, 6), vectors(30, 6)
    alone = kith.knn(queries[2], base, k=5)
    assert alone.ids.shape == alone.distances.shape == (5,)
    assert (alone.ids == kith.knn(queries, base, k=5).ids[2]).all()


def test_no_queries(vectors):
    found = kith.knn(np.empty((0, 6), np.float32), vectors(30, 6), k=4)
    assert found.ids.shape == found.distances.shape == (0, 4)


@pytest.mark.parametrize("metric, nothing", [("l2", np.inf), ("inner_product", -np.inf)])
def test_empty_base(metric, nothing, vectors):
    found = kith.knn(vectors(2, 6), np.empty((0, 6), np.float32), k=3, metric=metric)
    assert (found.ids == -1).all() and (found.distances == nothing).all() and found.ids.shape == (2, 3)


@pytest.mark.parametrize(
    "queries, base",
    [
        (np.float32(1), np.ones((2, 2), np.float32)),
        (np.ones((1, 2, 2), np.float32), np.ones((2, 2), np.float32)),
        (np.ones((1, 2), np.float32), np.ones(2, np.float32)),
        (np.ones((1, 2), np.float32), np.ones((2, 2, 2), np.float32)),
    ],
)
def test_wrong_number_of_axes(queries, base):
    with pytest.raises(ValueError, match="axes"):
        kith.knn(queries, base)


def test_dimensions_must_agree(vectors):
    with pytest.raises(ValueError, match="3"):
        kith.knn(vectors(2, 3), vectors(5, 4))


@pytest.mark.parametrize(
    "arguments, error, says",
    [
        ({"k": 0}, ValueError, "k"),
        ({"k": -1}, ValueError, "k"),
        ({"k": 10**30}, ValueError, "too large"),
        ({"k": 2**62}, MemoryError, "k = 4611686018427387904 give more results than memory can hold"),
        ({"k": 2.0}, TypeError, "whole number"),
        ({"k": True}, TypeError, "whole number"),
        ({"metric": "euclid"}, ValueError, "sqeuclidean"),
        ({"metric": None}, TypeError, "metric"),
        ({"device": "tpu"}, ValueError, "cuda:N"),
        ({"device": 0}, TypeError, "device"),
        ({"threads": -1}, ValueError, "threads"),
        ({"threads": 10**12}, ValueError, "threads"),
        ({"threads": "2"}, TypeError, "threads"),
        ({"memory_limit": 0}, ValueError, "positive"),
        ({"memory_limit": 1}, MemoryError, "limit"),
        ({"memory_limit": "much"}, ValueError, "is not a byte size"),
        ({"memory_limit": 1.5}, TypeError, "memory_limit"),
        ({"check_finite": "no"}, TypeError, "True or False"),
        ({"progress": 3}, TypeError, "progress"),
    ],
)
def test_arguments_that_are_refused(arguments, error, says, vectors):
    with pytest.raises(error, match=says):
        kith.knn(vectors(2, 3), vectors(5, 3), **arguments)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite(bad, vectors):
    base = vectors(50, 3)
    base[17, 1] = bad
    with pytest.raises(ValueError, match="17"):
        kith.knn(vectors(2, 3), base)
    with pytest.raises(ValueError, match="17"):
        kith.knn(base, vectors(9, 3))
    found = kith.knn(vectors(2, 3), base, k=49, check_finite=False)
    if np.isnan(bad):
        assert not (found.ids == 17).any()


def test_an_absent_gpu_is_told(vectors):
    if kith.info()["cuda_devices"]:
        pytest.skip("this machine has a GPU")
    with pytest.raises((ValueError, RuntimeError), match="(?i)cuda"):
        kith.knn(vectors(2, 3), vectors(5, 3), device="cuda:0")


def test_small_memory_limit_gives_the_same(vectors):
    queries, base = vectors(200, 16), vectors(5000, 16)
    free = kith.knn(queries, base)
    tight = kith.knn(queries, base, memory_limit=2 << 20, threads=1)
    assert (free.ids == tight.ids).all() and (free.distances == tight.distances).all()


def test_numpy_scalars_are_whole_numbers(vectors):
    assert kith.knn(vectors(2, 3), vectors(9, 3), k=np.int32(4), threads=np.int64(1)).ids.shape == (2, 4)


def test_from_two_files(tmp_path, vectors):
    queries, base = vectors(40, 8), vectors(700, 8)
    kith.write_vectors(tmp_path / "q.fbin", queries)
    kith.write_vectors(tmp_path / "b.npy", base)
    from_files = kith.knn(tmp_path / "q.fbin", str(tmp_path / "b.npy"), k=6, memory_limit=8 << 20)
    from_arrays = kith.knn(queries, base, k=6)
    assert (from_files.ids == from_arrays.ids).all() and (from_files.distances == from_arrays.distances).all()

    out = np.empty((40, 6), np.int64), np.empty((40, 6), np.float32)
    filled = kith.knn(tmp_path / "q.fbin", tmp_path / "b.npy", k=6, out=out)
    assert filled.ids is out[0] and (filled.ids == from_arrays.ids).all()
    with pytest.raises(ValueError, match="40"):
        kith.knn(tmp_path / "q.fbin", tmp_path / "b.npy", k=5, out=out)


def test_a_file_and_an_array_do_not_meet(tmp_path, vectors):
    kith.write_vectors(tmp_path / "b.fbin", vectors(5, 3))
    with pytest.raises(TypeError, match="read_vectors"):
        kith.knn(vectors(2, 3), tmp_path / "b.fbin")
    with pytest.raises(TypeError, match="read_vectors"):
        kith.knn(str(tmp_path / "b.fbin"), vectors(2, 3))


@pytest.mark.parametrize(
    "metric, dtype, says",
    [("hamming", np.float32, "u8"), ("hamming", np.int8, "u8"), ("chi_square", np.float32, "below zero")],
)
def test_vectors_that_a_metric_refuses(metric, dtype, says, vectors):
    with pytest.raises(ValueError, match=says):
        kith.knn(vectors(3, 5, dtype), vectors(30, 5, dtype), metric=metric)


def test_plain_arrays_take_a_short_way_to_the_same_result(vectors, monkeypatch):
    x = vectors(60, 7)
    others = {
        "f32": (x[:5], x),
        "f16": (x[:5].astype(np.float16), x.astype(np.float16)),
        "bytes": (vectors(5, 7, np.uint8), vectors(60, 7, np.uint8)),
        "mixed": (vectors(5, 7, np.int8), x),
        "rows apart": (x[:10:2], vectors(60, 20)[:, 3:10]),
        "one row": (x[3:4], x[:4]),
        "none": (x[:0], x),
    }
    for name, (queries, base) in others.items():
        taken = _kith.knn_plain(queries, base, 4, "l2", "cpu", 1)
        assert taken is not None, name
        found = kith.knn(queries, base, 4, device="cpu")
        assert type(found) is kith.Neighbors
        with monkeypatch.context() as patch:
            patch.setattr(_kith, "knn_plain", lambda *_: None)
            long_way = kith.knn(queries, base, 4, device="cpu")
        for short, long in zip(found, long_way):
            assert short.dtype == long.dtype and short.shape == long.shape and (short == long).all(), name
    alone = kith.knn(x[3], x, 4, device="cpu")
    assert alone.ids.shape == (4,) and alone.ids[0] == 3 and (alone.ids == kith.knn(x[3:4], x, 4, device="cpu").ids[0]).all()


def test_of_two_wrong_names_both_ways_say_the_same(vectors):
    x = vectors(5, 3)
    for given in (x, x.astype(np.float64)):  # the short way and the long one
        for call in (kith.knn, kith.pairwise_distances):
            with pytest.raises(ValueError, match="unknown metric"):
                call(given, given, metric="nearness", device="tpu")


def test_more_results_than_the_machine_can_hold(vectors):
    x = vectors(3, 2)
    with pytest.raises(MemoryError, match="free on this machine"):
        kith.knn(np.zeros((300, 2), np.float32), x, 2**31 - 1)
    with pytest.raises(MemoryError, match="more results than memory can hold"):
        kith.knn(np.zeros((2000, 2), np.float32), x, 2**31 - 1)


def test_what_is_not_plain_takes_the_long_way(vectors):
    x = vectors(60, 8)
    unaligned = np.frombuffer(b"0" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(60, 8)
    strange = (
        x.astype(np.int32),
        x.astype(">f4"),
        x[:, ::2],
        x[:, ::-1],
        x[::-1],
        np.lib.stride_tricks.as_strided(x, (50, 8), (4, 4)),
        np.broadcast_to(x[:1], (60, 8)),
        unaligned,
        x.tolist(),
        x.reshape(1, 60, 8),
        x.view(np.recarray),
    )
    for other in strange:
        assert _kith.knn_plain(other, x, 3, "l2", "cpu", 1) is None
        assert _kith.knn_plain(x, other, 3, "l2", "cpu", 1) is None
    assert _kith.knn_plain(x, x[0], 3, "l2", "cpu", 1) is None  # a base has two axes
    for k, metric, device, threads in (
        (np.int64(3), "l2", "cpu", 1),
        (True, "l2", "cpu", 1),
        (2**70, "l2", "cpu", 1),
        (3, b"l2", "cpu", 1),
        (3, "l2", None, 1),
        (3, "l2", "cpu", 1.0),
        (3, "l2", "cpu", -1),
        (2**40, "l2", "cpu", 1),
    ):
        assert _kith.knn_plain(x, x, k, metric, device, threads) is None
    assert _kith.knn_plain(vectors(3000, 8), x, 1000, "l2", "cpu", 1) is None  # much to write: Kith's own memory
