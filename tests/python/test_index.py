"""kith.Index: what it holds, what it borrows, and that many threads may search it."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import threading
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import kith
from conftest import METRICS


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
@pytest.mark.parametrize("prepare", [True, False])
def test_the_same_as_knn(metric, dtype, prepare, vectors_for, check_exact):
    queries, base = vectors_for(metric, 21, 17, dtype), vectors_for(metric, 400, 17, dtype)
    index = kith.Index("Flat", metric=metric, prepare=prepare)
    index.add(base)
    found = index.search(queries, k=9)
    check_exact(found, queries, base, 9, metric)
    true = kith.knn(queries, base, k=9, metric=metric)
    assert found.ids.tobytes() == true.ids.tobytes() and found.distances.tobytes() == true.distances.tobytes()


def test_added_in_parts(vectors):
    base = vectors(300, 8)
    index = kith.Index()
    for part in np.split(base, [10, 11, 200]):
        index.add(part)
    assert len(index) == 300 and index.dimension == 8
    assert (index.search(base[:50], k=5).ids == kith.knn(base[:50], base, k=5).ids).all()


def test_what_it_says_of_itself(vectors):
    index = kith.Index(metric="cosine", device="cpu")
    assert (len(index), index.dimension, index.metric, index.device) == (0, 0, "cosine", "cpu")
    index.add(vectors(5, 3))
    assert repr(index) == "kith.Index('Flat', metric='cosine', dimension=3, size=5)"


@pytest.mark.parametrize("name", [name for name in dir(kith.Index) if callable(getattr(kith.Index, name)) and name[0] != "_"])
def test_methods_are_the_class_own(name):
    """Wherever they are written: Python's own errors say Index, and pickle finds them."""
    method = getattr(kith.Index, name)
    assert method.__qualname__ == f"Index.{name}" and pickle.loads(pickle.dumps(method)) is method
    with pytest.raises(TypeError, match=rf"^Index\.{name}\(\) takes"):
        getattr(kith.Index(), name)(*range(20))


def test_search_takes_one_query(vectors):
    base = vectors(30, 6)
    index = kith.Index()
    index.add(base)
    alone = index.search(base[3], k=2)
    assert alone.ids.shape == (2,) and alone.ids[0] == 3 and alone.distances[0] == 0
    assert index.search(base[:0], k=2).ids.shape == (0, 2)


def test_a_copy_is_the_index_own(vectors):
    base = vectors(30, 6)
    index = kith.Index(prepare=False)
    index.add(base)
    kept = base.copy()
    base[:] = 0
    assert index.search(kept[3], k=1).ids[0] == 3


def test_borrowed_rows_are_read_where_they_lie(vectors):
    wide = vectors(30, 12)
    for base in (vectors(30, 6), wide[:, 3:9]):
        index = kith.Index(prepare=False)
        index.add(base, copy=False)
        base[7] = 1000
        assert index.search(np.full(6, 1000, np.float32), k=1).distances[0] == 0


def test_borrowed_rows_stay_alive(vectors):
    base = vectors(2000, 64)
    queries, true = base[:5].copy(), kith.knn(base[:5], base, k=3).ids
    alive = weakref.ref(base)
    index = kith.Index(prepare=False)
    index.add(base, copy=False)
    del base
    gc.collect()
    assert alive() is not None
    assert (index.search(queries, k=3).ids == true).all()
    del index
    gc.collect()
    assert alive() is None


class Named(np.ndarray):
    """An array that can have attributes."""


@pytest.mark.parametrize("collected", [True, False])
def test_a_borrowed_array_that_leads_back_to_its_index(collected, vectors):
    base = vectors(30, 6).view(Named)
    index = kith.Index(prepare=False)
    index.add(base, copy=False)
    base.index = index
    alive = weakref.ref(base)
    if collected:
        del base, index
    else:
        del base
    gc.collect()
    assert (alive() is None) == collected
    if not collected:
        assert index.search(np.asarray(alive())[3], k=1).ids[0] == 3


def test_a_copied_array_is_let_go(vectors):
    base = vectors(20, 6)
    alive = weakref.ref(base)
    index = kith.Index()
    index.add(base)
    del base
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("make", [lambda x: x.astype(np.float64), np.asfortranarray, lambda x: x[:, ::-1]])
def test_converted_rows(make, vectors):
    base = vectors(40, 6)
    index = kith.Index()
    with pytest.raises(ValueError, match="copy=False"):
        index.add(make(base), copy=False)
    assert len(index) == 0
    index.add(make(base))
    given = make(base).astype(np.float32)
    gc.collect()
    assert (index.search(given[:5], k=3).ids == kith.knn(given[:5], given, k=3).ids).all()


@pytest.mark.parametrize(
    "arguments, error, says",
    [
        ({"factory": "Flatt"}, ValueError, "Flatt"),
        ({"factory": None}, TypeError, "factory"),
        ({"factory": 768}, TypeError, "such as 'Flat' .*the dimension is that of the first vectors"),
        ({"metric": "L2"}, ValueError, "sqeuclidean"),
        ({"device": "gpu"}, ValueError, "cuda:N"),
        ({"prepare": 1}, TypeError, "prepare"),
    ],
)
def test_arguments_that_are_refused(arguments, error, says):
    with pytest.raises(error, match=says):
        kith.Index(**arguments)


def test_adds_that_are_refused(vectors):
    index = kith.Index()
    with pytest.raises(ValueError, match="axes"):
        index.add(vectors(1, 6)[np.newaxis])
    broken = vectors(30, 6)
    broken[12, 2] = np.nan
    with pytest.raises(ValueError, match="12"):
        index.add(broken)
    assert len(index) == 0
    index.add(vectors(5, 6))
    with pytest.raises(ValueError, match="7"):
        index.add(vectors(5, 7))
    with pytest.raises(TypeError, match="True or False"):
        index.add(vectors(5, 6), copy="no")
    assert len(index) == 5


def test_queries_that_are_refused(vectors):
    index = kith.Index()
    index.add(vectors(30, 6))
    with pytest.raises(ValueError, match="5"):
        index.search(vectors(2, 5))
    with pytest.raises(ValueError, match="k"):
        index.search(vectors(2, 6), k=0)


def test_many_threads_search_one_index(vectors):
    queries, base = vectors(64, 32), vectors(4000, 32)
    index = kith.Index()
    index.add(base)
    true = index.search(queries, k=10)

    def search(i):
        part = slice(i % 8 * 8, i % 8 * 8 + 8)
        found = index.search(queries[part], k=10, threads=i % 3)
        return (found.ids == true.ids[part]).all() and (found.distances == true.distances[part]).all()

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(search, range(200)))


def test_searches_go_on_while_rows_are_added(vectors):
    base = vectors(2000, 16)
    index = kith.Index()
    index.add(base[:100])
    adder = threading.Thread(target=lambda: [index.add(base[i : i + 100]) for i in range(100, 2000, 100)])
    adder.start()
    seen = []
    while adder.is_alive():
        found = index.search(base[:4], k=1)
        seen.append(len(index))
        assert (found.ids[:, 0] == np.arange(4)).all()
    adder.join()
    assert len(index) == 2000 and seen == sorted(seen)
    assert (index.search(base, k=1).ids[:, 0] == np.arange(2000)).all()


def test_rows_of_a_failed_add_are_let_go(vectors):
    index = kith.Index()
    broken = vectors(30, 6)
    broken[12, 2] = np.nan
    alive = weakref.ref(broken)
    with pytest.raises(ValueError) as caught:
        index.add(broken, copy=False)
    del broken, caught
    gc.collect()
    assert alive() is None and len(index) == 0


def test_texts_speak_of_what_was_added(vectors):
    with pytest.raises(ValueError, match="the added vectors are f32; hamming"):
        kith.Index(metric="hamming").add(vectors(5, 3))
    broken = vectors(5, 3)
    broken[2, 1] = np.nan
    with pytest.raises(ValueError, match="row 2.*check_finite=False"):
        kith.Index().add(broken)


def test_a_progress_callback_may_search_but_not_add(vectors):
    base = vectors(300, 8)
    index = kith.Index(device="cpu")
    index.add(base[:100])
    seen = []

    def tell(stage, done, total):
        if stage == "copy":
            seen.append((len(index), index.search(base[7], k=1).ids[0]))
            with pytest.raises(RuntimeError, match="search it only"):
                index.add(base[:5])

    index.add(base[100:], progress=tell)
    assert seen and set(seen) == {(100, 7)} and len(index) == 300


@pytest.mark.parametrize("copies", [True, False])
def test_a_sink_cannot_add(vectors, copies):
    x = vectors(60_000, 32)
    index = kith.Index()
    index.add(x[:10])
    outcomes = []

    def progress(*_):
        with pytest.raises(RuntimeError, match="a sink may search it only"):
            index.add(x[:7])
        outcomes.append(len(index.search(x[:2], 3).ids))

    index.add(x, copy=copies, progress=progress)
    assert outcomes and len(index) == 60_010


def test_a_sink_that_raises_in_its_last_report_adds_nothing(vectors):
    x = vectors(60_000, 32)
    stages = []
    kith.Index().add(x, progress=lambda stage, done, total: stages.append(stage))
    for wanted in set(stages):
        index = kith.Index()
        index.add(x[:100])

        def progress(stage, done, total, wanted=wanted):
            if stage == wanted and done == total:
                raise KeyError(stage)

        with pytest.raises(KeyError):
            index.add(x, progress=progress)
        assert len(index) == 100


def test_a_forked_child_may_add_while_its_parent_does(vectors):
    x = vectors(60_000, 32)
    index = kith.Index()
    index.add(x[:1000])
    begun, go_on = threading.Event(), threading.Event()

    def progress(*_):
        begun.set()
        go_on.wait(30)

    adding = threading.Thread(target=lambda: index.add(x, progress=progress))
    adding.start()
    assert begun.wait(30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of forks beside threads
        child = os.fork()
    if child == 0:
        signal.alarm(20)  # ends a child that waits for ever
        try:
            index.add(x[:10])
        finally:
            os._exit(0 if len(index) == 1010 else 1)
    _, status = os.waitpid(child, 0)
    go_on.set()
    adding.join()
    assert os.waitstatus_to_exitcode(status) == 0 and len(index) == 61_000


def test_knn_graph_refined_from_a_file(tmp_path):
    x = np.random.default_rng(3).standard_normal((700, 8), dtype=np.float32)
    kith.write_vectors(tmp_path / "x.fbin", x)
    codes = kith.Index("IVF8,PQ4x4")
    codes.train(x)
    codes.add(x)
    true = kith.knn_graph(x, k=5, method="exact")
    found = codes.knn_graph(x, k=5, probes=8, refine=200, refine_from=tmp_path / "x.fbin")
    assert (found.ids == true.ids).all() and found.report.recall == 1
    assert found.report.parameters["refine_from"] == str(tmp_path / "x.fbin")
    assert codes.knn_graph(x, k=5, probes=8).report.recall < 1
    with pytest.raises(TypeError, match="PathLike"):
        codes.knn_graph(x, k=5, refine_from=5)


def test_knn_graph_of_its_own_vectors():
    x = np.random.default_rng(3).standard_normal((700, 6), dtype=np.float32)
    x[100:110] = x[0]  # duplicates come before the row itself
    index = kith.Index("Flat", metric="cosine")
    index.add(x)
    graph, true = index.knn_graph(x, k=7), kith.knn_graph(x, k=7, metric="cosine", method="exact")
    assert (graph.ids == true.ids).all() and (graph.distances == true.distances).all()
    assert graph.report.method == "index" and graph.metric == "cosine"
    lists = kith.Index("IVF8,Flat")
    lists.train(x)
    lists.add(x)
    few, all_lists = lists.knn_graph(x, k=5, probes=1), lists.knn_graph(x, k=5, probes=8)
    few.validate()
    assert few.measure_recall(x).recall < all_lists.measure_recall(x).recall == 1
    with pytest.raises(ValueError, match="699 vectors and an index of 700"):
        index.knn_graph(x[:-1])
    other = kith.Index()
    other.add(x, ids=np.arange(700) + 50)
    with pytest.raises(ValueError, match="not row numbers"):
        other.knn_graph(x, k=3)
    with pytest.raises(TypeError, match="probes"):
        lists.knn_graph(x, k=3, nprobe=2)
    assert "probes" not in graph.report.parameters and few.report.parameters["probes"] == 1
    named = kith.Index()
    named.add(x, ids=np.arange(700))
    assert (named.knn_graph(x, k=3).ids == kith.knn_graph(x, k=3, method="exact").ids).all()


def test_a_plain_search_takes_a_short_way_to_the_same_result(vectors):
    x = vectors(300, 6)
    for factory in ("Flat", "PCA4,Flat"):
        index = kith.Index(factory, device="cpu")
        if factory != "Flat":
            index.train(x)
        index.add(x, ids=np.arange(300) * 7)
        found = index.search(x[:9], 5)
        long_way = index.search(x[:9], 5, memory_limit=2**30)
        assert type(found) is kith.Neighbors and (found.ids == long_way.ids).all()
        assert (found.distances == long_way.distances).all() and found.ids[0, 0] == 0 and found.ids[8, 0] == 56
        assert (index.search(x[8], 5).ids == found.ids[8]).all()
    shifted = kith.Index("Flat", device="cpu")
    shifted.add(x.astype(np.float64) + 1e7)  # an offset is subtracted, from queries too
    assert (shifted.search(x[:4].astype(np.float64) + 1e7, 1).ids[:, 0] == np.arange(4)).all()
    assert (shifted.search((x[:4] + np.float32(1e7)), 1).distances[:, 0] > 0).all()


def test_ids_are_told_and_asked_for(vectors):
    index = kith.Index()
    assert index.ids().tolist() == [] and 0 not in index
    index.add(vectors(4, 6))
    index.add(vectors(1, 6)[0], ids=70)
    assert index.ids().tolist() == [0, 1, 2, 3, 70] and index.ids().dtype == np.int64
    assert 70 in index and np.int64(3) in index
    assert not any(wrong in index for wrong in (4, -1, 2**70, "70", 3.0, True, None))
    index.remove([1])
    assert index.ids().tolist() == [0, 2, 3, 70] and 1 not in index
    np.testing.assert_array_equal(index.reconstruct(), index.reconstruct(index.ids()))


@pytest.mark.parametrize("factory", ["Flat", "IVF4,SQ8", "Graph16", "SQ8,RFlat"])
def test_replaced_vectors(factory, vectors):
    x, fresh = vectors(300, 8), vectors(200, 8)
    index = kith.Index(factory)
    index.train(x)
    index.add(x, ids=np.arange(300))
    index.add(fresh, ids=np.arange(200) + 200, replace=True)  # half of them are there
    assert len(index) == 400 and index.ids().tolist() == [*range(200), *range(200, 400)]
    index.add(fresh[0], ids=5, replace=True)
    assert index.ids().tolist()[-1] == 5 and len(index) == 400
    if factory == "Flat":
        np.testing.assert_array_equal(index.reconstruct(5), fresh[0])
        assert index.search(fresh[7], k=1).ids.tolist() == [207]
    with pytest.raises(ValueError, match="one for each vector"):
        index.add(fresh, replace=True)
    with pytest.raises(ValueError, match="given to two rows"):
        index.add(fresh[:2], ids=[1, 1], replace=True)
    with pytest.raises(ValueError, match="copy=False"):
        index.add(fresh[:1], ids=[1], replace=True, copy=False)
    with pytest.raises(ValueError, match="in the index already"):
        index.add(fresh[:1], ids=[1])
    assert len(index) == 400


def test_readers_find_the_old_vector_or_the_new_one(vectors):
    from concurrent.futures import ThreadPoolExecutor

    x = vectors(64, 8)
    index = kith.Index()
    index.add(x, ids=np.arange(64))
    seen = set()

    def read():
        for _ in range(300):
            found = index.search(x[9], k=64)
            seen.add(tuple(sorted(found.ids.tolist())))

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        for turn in range(200):
            index.add(x[turn % 64], ids=9, replace=True)
        for reader in readers:
            reader.result()
    assert seen == {tuple(range(64))}


def test_replaced_vectors_of_a_file(vectors, tmp_path):
    x, fresh = vectors(50, 4), vectors(20, 4)
    kith.write_vectors(tmp_path / "fresh.fbin", fresh)
    index = kith.Index()
    index.add(x)
    index.add(tmp_path / "fresh.fbin", ids=np.arange(40, 60), replace=True)
    assert len(index) == 60
    np.testing.assert_array_equal(index.reconstruct(np.arange(40, 60)), fresh)
