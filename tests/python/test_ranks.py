"""comm=: several ranks, the result of one process. Threads stand for mpi4py's processes."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

import kith
import numpy as np
import pytest

TIMEOUT = 60


class ThreadComm:
    """What mpi4py's Comm offers for buffers, between threads."""

    def __init__(self, rank: int, boxes: list[list[queue.Queue[bytes]]]) -> None:
        self.rank, self.boxes = rank, boxes

    def Get_rank(self) -> int:
        return self.rank

    def Get_size(self) -> int:
        return len(self.boxes)

    def Send(self, buf: Any, dest: int, tag: int = 0) -> None:
        self.boxes[self.rank][dest].put(bytes(buf))

    def Recv(self, buf: Any, source: int, tag: int = 0) -> None:
        memoryview(buf)[:] = self.boxes[source][self.rank].get(timeout=TIMEOUT)

    def Bcast(self, buf: Any, root: int = 0) -> None:
        if self.rank != root:
            return self.Recv(buf, root)
        for other in range(self.Get_size()):
            if other != root:
                self.Send(buf, other)

    def Barrier(self) -> None:
        self.Bcast(bytearray(1))


def on_ranks(size: int, work: Callable[[ThreadComm], Any]) -> list[Any]:
    """What work(comm) returns, or raises, on every rank."""
    boxes: list[list[queue.Queue[bytes]]] = [[queue.Queue() for _ in range(size)] for _ in range(size)]
    results: list[Any] = [None] * size

    def run(rank: int) -> None:
        try:
            results[rank] = work(ThreadComm(rank, boxes))
        except BaseException as error:
            results[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
        assert not thread.is_alive()
    return results


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return np.random.default_rng(1).standard_normal((3000, 12), dtype=np.float32)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("queries", [2, 100])
def test_knn_of_arrays(rows: np.ndarray, size: int, queries: int) -> None:
    truth = kith.knn(rows[:queries], rows, k=5)
    for found in on_ranks(size, lambda comm: kith.knn(rows[:queries], rows, k=5, threads=1, comm=comm)):
        assert (found.ids == truth.ids).all() and found.distances.tobytes() == truth.distances.tobytes()


def test_knn_into_arrays_of_each_rank_with_a_filter(rows: np.ndarray) -> None:
    keep = np.arange(3000) % 3 == 0
    truth = kith.knn(rows[:50], rows, k=5, filter=keep)

    def work(comm: ThreadComm) -> Any:
        out = np.empty((50, 5), np.int64), np.empty((50, 5), np.float32)
        return kith.knn(rows[:50], rows, k=5, filter=keep, threads=1, out=out, comm=comm)

    for found in on_ranks(2, work):
        assert (found.ids == truth.ids).all() and (found.distances == truth.distances).all()


@pytest.mark.parametrize("size", [2, 3])
def test_knn_of_files(rows: np.ndarray, size: int, tmp_path: Any) -> None:
    np.save(tmp_path / "x.npy", rows)
    np.save(tmp_path / "q.npy", rows[:70])
    truth = kith.knn(rows[:70], rows, k=4, metric="cosine")
    for found in on_ranks(
        size,
        lambda comm: kith.knn(tmp_path / "q.npy", tmp_path / "x.npy", k=4, metric="cosine", threads=1, comm=comm),
    ):
        assert (found.ids == truth.ids).all() and found.distances.tobytes() == truth.distances.tobytes()


@pytest.mark.parametrize("size", [1, 2, 3])
def test_kmeans(rows: np.ndarray, size: int, tmp_path: Any) -> None:
    np.save(tmp_path / "x.npy", rows)
    weights = np.arange(3000, dtype=np.float32) % 5
    truth = kith.KMeans(7, iterations=5).fit(rows, weights)
    for x in (rows, tmp_path / "x.npy"):
        for model in on_ranks(size, lambda comm, x=x: kith.KMeans(7, iterations=5).fit(x, weights, threads=1, comm=comm)):
            assert model.cluster_centers_.tobytes() == truth.cluster_centers_.tobytes()
            assert (model.labels_ == truth.labels_).all()
            assert model.inertia_ == truth.inertia_ and model.n_iter_ == truth.n_iter_


def test_kmeans_of_float64(rows: np.ndarray) -> None:
    far = 1e6 + 0.01 * rows[:2000].astype(np.float64)
    truth = kith.KMeans(4, iterations=3).fit(far)
    for model in on_ranks(2, lambda comm: kith.KMeans(4, iterations=3).fit(far, threads=1, comm=comm)):
        assert model.cluster_centers_.tobytes() == truth.cluster_centers_.tobytes()


def test_an_error_of_one_rank_is_raised_by_all(rows: np.ndarray, tmp_path: Any) -> None:
    np.save(tmp_path / "x.npy", rows)
    bad = rows.copy()
    bad[2500, 3] = np.nan
    for error in on_ranks(3, lambda comm: kith.KMeans(5).fit(bad, threads=1, comm=comm)):
        assert isinstance(error, ValueError) and "rank 2 on " in str(error) and "2500" in str(error)
    for error in on_ranks(2, lambda comm: kith.knn(rows, rows, k=3 + comm.rank, threads=1, comm=comm)):
        assert isinstance(error, ValueError) and "rank 1 on " in str(error) and "the same" in str(error)

    def missing(comm: ThreadComm) -> Any:
        path = tmp_path / ("x.npy" if comm.rank == 0 else "nowhere.npy")
        return kith.knn(path, path, k=2, threads=1, comm=comm)

    for error in on_ranks(2, missing):
        assert isinstance(error, OSError) and "rank 1 on " in str(error) and "nowhere.npy" in str(error)


def test_searches_of_an_index(rows: np.ndarray) -> None:
    index = kith.Index("IVF30,SQ8")
    index.train(rows)
    index.add(rows)
    filters = [None if i % 2 else np.arange(i, 3000, 2) for i in range(70)]
    for given in (None, np.arange(0, 3000, 3), filters):
        truth = index.search(rows[:70], k=5, filter=given)
        for found in on_ranks(3, lambda comm, given=given: index.search(rows[:70], k=5, filter=given, threads=1, comm=comm)):
            np.testing.assert_array_equal(found.ids, truth.ids)
            np.testing.assert_array_equal(found.distances, truth.distances)
    for error in on_ranks(2, lambda comm: index.search(rows[:70], k=5 + comm.rank, threads=1, comm=comm)):
        assert isinstance(error, ValueError) and "the same" in str(error)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_adds_to_an_index(rows: np.ndarray, tmp_path: Any, size: int) -> None:
    np.save(tmp_path / "x.npy", rows[:400])
    for factory in ("Flat", "IVF30,PQ4x4"):
        truth = kith.Index(factory)
        truth.train(rows)
        empty = truth.clone()
        truth.add(rows[:2000])
        truth.add(tmp_path / "x.npy", ids=np.arange(5000, 5400))
        truth.save(tmp_path / "truth.kith")

        def add(comm: ThreadComm, empty: kith.Index = empty) -> bytes:
            index = empty.clone()
            index.add(rows[:2000], threads=1, comm=comm)
            index.add(tmp_path / "x.npy", ids=np.arange(5000, 5400), threads=1, comm=comm)
            index.save(tmp_path / f"{comm.rank}.kith")
            return (tmp_path / f"{comm.rank}.kith").read_bytes()

        assert on_ranks(size, add) == [(tmp_path / "truth.kith").read_bytes()] * size


def test_adds_that_are_refused(rows: np.ndarray, tmp_path: Any) -> None:
    index = kith.Index("IVF30,PQ4x4")
    index.train(rows)
    np.save(tmp_path / "x.npy", rows)

    def missing(comm: ThreadComm) -> None:
        index.clone().add(tmp_path / ("x.npy" if comm.rank else "nowhere.npy"), threads=1, comm=comm)

    for error in on_ranks(2, missing):
        assert isinstance(error, OSError) and "nowhere.npy" in str(error)
    for error in on_ranks(2, lambda comm: index.clone().add(rows, ids=np.arange(3000) + comm.rank, threads=1, comm=comm)):
        assert isinstance(error, ValueError) and "the same" in str(error)
    for given in ({"replace": True, "ids": np.arange(3000)}, {"copy": False}):
        with pytest.raises(ValueError, match="comm goes neither with replace=True"):
            index.add(rows, comm=object(), **given)
    assert len(index) == 0


def test_a_graph_with_a_limit_on_one_rank(rows: np.ndarray) -> None:
    truth = kith.knn_graph(rows, k=4, method="cells", device="cpu")

    def build(comm: ThreadComm) -> Any:
        limit = "1G" if comm.rank == 1 else None
        return kith.knn_graph(rows, k=4, method="cells", threads=1, memory_limit=limit, comm=comm)

    for graph in on_ranks(3, build):
        assert graph.ids.tobytes() == truth.ids.tobytes()


def test_a_graph_of_files(rows: np.ndarray, tmp_path: Any) -> None:
    np.save(tmp_path / "x.npy", rows)
    truth = kith.knn_graph(rows, k=4, method="cells", device="cpu")

    def build(comm: ThreadComm) -> Any:
        return kith.knn_graph(tmp_path / "x.npy", k=4, method="cells", out=tmp_path / "graph", threads=1, comm=comm)

    for graph in on_ranks(3, build):
        np.testing.assert_array_equal(graph.ids, truth.ids)
        np.testing.assert_array_equal(graph.distances, truth.distances)


@pytest.mark.parametrize("method", ["auto", "exact", "cells", "nn_descent", "ggm"])
def test_a_graph_in_memory(rows: np.ndarray, tmp_path: Any, method: str) -> None:
    np.save(tmp_path / "x.npy", rows)
    truth = kith.knn_graph(rows, k=4, method=method, device="cpu")
    for x in (rows, tmp_path / "x.npy"):
        for size in (1, 2, 4):
            for graph in on_ranks(size, lambda comm, x=x: kith.knn_graph(x, k=4, method=method, threads=1, comm=comm)):
                assert graph.ids.tobytes() == truth.ids.tobytes()
                assert graph.distances.tobytes() == truth.distances.tobytes()
                assert graph.report.recall == truth.report.recall
                assert [r.comparisons for r in graph.report.rounds] == [r.comparisons for r in truth.report.rounds]


def test_graphs_in_memory_that_are_refused(rows: np.ndarray, tmp_path: Any) -> None:
    np.save(tmp_path / "x.npy", rows)
    bad = rows.copy()
    bad[2500, 3] = np.nan
    for method in ("exact", "cells"):
        for error in on_ranks(3, lambda comm, method=method: kith.knn_graph(bad, k=4, method=method, threads=1, comm=comm)):
            assert isinstance(error, ValueError) and "2500" in str(error)
    for error in on_ranks(2, lambda comm: kith.knn_graph(rows, k=4 + comm.rank, method="cells", threads=1, comm=comm)):
        assert isinstance(error, ValueError) and "the same" in str(error)

    def missing(comm: ThreadComm) -> Any:
        return kith.knn_graph(tmp_path / ("nowhere.npy" if comm.rank else "x.npy"), k=4, threads=1, comm=comm)

    for error in on_ranks(2, missing):
        assert isinstance(error, OSError) and "nowhere.npy" in str(error)


def test_an_exception_of_the_communicator_is_raised_as_it_is(rows: np.ndarray) -> None:
    class Broken(ThreadComm):
        def Bcast(self, buf: Any, root: int = 0) -> None:
            raise ConnectionError("the cable is out")

    def work(comm: ThreadComm) -> Any:
        return kith.knn(rows, rows, k=2, threads=1, comm=Broken(comm.rank, comm.boxes))

    assert any(isinstance(error, ConnectionError) for error in on_ranks(2, work))


def test_what_is_no_communicator_is_refused(rows: np.ndarray) -> None:
    with pytest.raises(AttributeError, match="Get_rank"):
        kith.knn(rows, rows, k=2, comm=object())
