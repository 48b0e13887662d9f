"""Several devices, or parts of one, that share a call: the words for them, and the bytes of one device."""

from __future__ import annotations

import os
import re
import signal
import threading

import numpy as np
import pytest

import kith

RNG = np.random.default_rng(5)
X = RNG.standard_normal((1500, 12), dtype=np.float32)
QUERIES = RNG.standard_normal((37, 12), dtype=np.float32)


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("device", ["cpu/3", "cpu/5", ["cpu/3"], ("cpu/2",)])
def test_calls_have_the_bytes_of_one_device(device):
    assert same(kith.knn(QUERIES, X, k=5, device=device), kith.knn(QUERIES, X, k=5, device="cpu"))
    assert same(kith.knn(QUERIES[:1], X, k=5, device=device), kith.knn(QUERIES[:1], X, k=5, device="cpu"))
    assert np.array_equal(kith.pairwise_distances(QUERIES, X, device=device), kith.pairwise_distances(QUERIES, X, device="cpu"))
    fits = [kith.KMeans(20, iterations=3, device=where).fit(X) for where in (device, "cpu")]
    assert np.array_equal(fits[0].cluster_centers_, fits[1].cluster_centers_)
    graphs = [kith.knn_graph(X, k=4, method="exact", device=where) for where in (device, "cpu")]
    assert np.array_equal(graphs[0].ids, graphs[1].ids)
    codes = [kith.ProductQuantizer(4, bits=4, device=where).train(X).encode(X) for where in (device, "cpu")]
    assert np.array_equal(codes[0], codes[1])


@pytest.mark.parametrize("copies", [1, 2, 4, "auto"])
@pytest.mark.parametrize("factory", ["Flat", "IVF16,PQ4x4", "OPQ4,IVF16,PQ4x4,RFlat"])
def test_indexes(factory, copies, tmp_path):
    plain = kith.Index(factory, device="cpu")
    plain.train(X)
    index = plain.to("cpu/4", copies=copies)
    assert index.device == "cpu/4"
    for rows in (X[:900], X[900:]):
        plain.add(rows)
        index.add(rows)
    for k in (3, 40):
        assert same(index.search(QUERIES, k=k), plain.search(QUERIES, k=k))
        keep = np.arange(0, 1500, 3)
        assert same(index.search(QUERIES, k=k, filter=keep), plain.search(QUERIES, k=k, filter=keep))
    other = index.clone()
    assert other.remove([7, 8]) == 2
    plain.remove([7, 8])
    assert same(other.search(QUERIES, k=3), plain.search(QUERIES, k=3))
    assert len(index) == 1500
    other.save(tmp_path / "several.kith")
    plain.save(tmp_path / "one.kith")
    assert (tmp_path / "several.kith").read_bytes() == (tmp_path / "one.kith").read_bytes()


@pytest.mark.parametrize(
    ("device", "told"),
    [
        ("cpu,cpu", "device cpu is named twice in 'cpu,cpu'; for 2 parts of it write cpu/2"),
        (["cuda:0", "cuda:0"], "write cuda:0/2"),
        ("cpu/0", "'0' is no number of parts"),
        ("auto/2", "auto has no parts"),
        ("auto,cpu", "auto stands alone"),
        ("cpu/2,gpu", "unknown device 'gpu'.* did you mean cuda?"),
        ([], "device is an empty list"),
    ],
)
def test_wrong_devices(device, told):
    with pytest.raises(ValueError, match=told.replace("(", "\\(")):
        kith.knn(QUERIES, X, device=device)


def test_wrong_types():
    with pytest.raises(TypeError, match="device is an int"):
        kith.knn(QUERIES, X, device=[1])
    with pytest.raises(ValueError, match="2 device memory limits for 1 devices"):
        kith.knn(QUERIES, X, device="cpu/2", device_memory_limit=["1G", "2G"])
    with pytest.raises(ValueError, match=r"device_memory_limit\[1\] 'much' is not a byte size"):
        kith.knn(QUERIES, X, device="cpu/2", device_memory_limit=["1G", "much"])
    index = kith.Index("Flat")
    with pytest.raises(ValueError, match="copies = 2 on cpu/3"):
        index.to("cpu/3", copies=2)
    with pytest.raises(ValueError, match="copies = 0"):
        index.to("cpu/3", copies=0)
    with pytest.raises(NotImplementedError, match="give copies = 3"):
        kith.Index("Graph16").to("cpu/3", copies=1)


def test_a_limit_for_each_device():
    assert same(
        kith.knn(QUERIES, X, k=3, device="cpu/2", device_memory_limit=["1G"], memory_limit="64M"),
        kith.knn(QUERIES, X, k=3, device="cpu"),
    )


def test_a_limit_names_one_for_the_whole_call():
    limit = 1000
    for tries in range(4):
        try:
            found = kith.knn(QUERIES, X, k=3, device="cpu/3", threads=3, memory_limit=limit)
        except MemoryError as refused:
            limit = int(re.search(r"memory limit of (\d+) bytes", str(refused))[1])
        else:
            assert tries > 0
            assert same(found, kith.knn(QUERIES, X, k=3, device="cpu"))
            return
    raise AssertionError(f"limits that errors name do not do: {limit}")


def test_ctrl_c_stops_all_parts():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background inherits that it is ignored
    x = RNG.standard_normal((120_000, 64), dtype=np.float32)
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(100):
            kith.knn(x, x, k=5, device="cpu/2")
