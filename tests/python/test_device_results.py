"""What a library's arrays on a GPU are answered with, and become, told by a library that is made up."""

from __future__ import annotations

import ctypes
import weakref

import numpy as np
import pytest
from made_up_arrays import NO_DEVICE, MadeUp, OnGpu

import kith
from kith import _device_arrays, _kith, _libraries
from kith._arrays import as_queries, as_vectors

pytestmark = pytest.mark.skipif(bool(kith.info()["cuda_devices"]), reason="made-up arrays would reach a real GPU")


@pytest.mark.parametrize("base", [lambda x: x, OnGpu], ids=["base on the host", "base on the GPU"])
def test_answered_in_kind(base, made_up, vectors):
    x = vectors(9, 3)
    queries = OnGpu(x[:4], device=2)
    found = kith.knn(queries, base(x), k=6)
    assert isinstance(found.ids, OnGpu) and found.ids.array.shape == (4, 6) and (found.ids.array == 5).all()
    assert found.distances.array.dtype == np.float32 and (found.distances.array == 0.5).all()
    assert found.ids.device == found.distances.device == 2
    assert made_up[0][2].stream == 7 and queries.streams == found.ids.streams == found.distances.streams == [7]
    alone = kith.knn(OnGpu(x[0]), base(x), k=6)
    assert alone.ids.array.shape == alone.distances.array.shape == (6,)
    out = OnGpu(np.zeros((4, 6), np.int64)), OnGpu(np.zeros((4, 6), np.float32))
    assert kith.knn(queries, base(x), k=6, out=out).ids is out[0] and (out[1].array == 0.5).all()
    assert isinstance(kith.knn(x, OnGpu(x), k=6).ids, np.ndarray)
    assert (kith.pairwise_distances(queries, base(x)).array == np.full((4, 9), 0.25, np.float32)).all()
    with pytest.raises(ValueError, match="k = 0"):
        kith.knn(queries, base(x), k=0)


def test_a_graph_in_kind(made_up, vectors):
    x = OnGpu(vectors(9, 3), device=2)
    graph = kith.knn_graph(x, k=4, metric="l1")
    assert graph.ids.array.shape == (9, 4) and (graph.ids.array == 5).all() and (graph.distances.array == 0.5).all()
    assert graph.ids.device == graph.distances.device == 2 and len(graph) == 9 and graph.k == 4
    assert made_up[0][2].stream == 7 and x.streams == graph.ids.streams == graph.distances.streams == [7]
    assert repr(graph) == "kith.KnnGraph(rows=9, k=4, metric='l1')" and graph.report.method == "made up"
    with pytest.raises(ValueError, match="k = 0"):
        kith.knn_graph(x, k=0)


def test_a_graph_of_your_own():
    ids, distances = np.zeros((4, 2), np.int64), np.zeros((4, 2), np.float32)
    of_device = [_kith.import_dlpack(OnGpu(array).__dlpack__()) for array in (ids, distances)]
    graph = kith.KnnGraph(*of_device)
    assert isinstance(graph.ids, kith.DeviceArray) and len(graph) == 4 and graph.k == 2
    for call in (graph.to_host, graph.to_csr, graph.to_umap):
        with pytest.raises(NO_DEVICE):  # it is not here to be copied
            call()
    with pytest.raises(TypeError, match="one lies in a GPU's memory"):
        kith.KnnGraph(of_device[0], distances)
    with pytest.raises(TypeError, match="distances are int64"):
        kith.KnnGraph(of_device[0], of_device[0])
    elsewhere = _kith.import_dlpack(OnGpu(distances, device=1).__dlpack__())
    with pytest.raises(ValueError, match="cuda:0 and distances in that of cuda:1"):
        kith.KnnGraph(of_device[0], elsewhere)


def test_a_graph_on_one_gpu(made_up):
    ids, distances = np.zeros((4, 2), np.int64), np.zeros((4, 2), np.float32)
    assert kith.KnnGraph(OnGpu(ids, 2), OnGpu(distances, 2)).distances.device == 2
    with pytest.raises(ValueError, match="cuda:2 and distances in that of cuda:0"):
        kith.KnnGraph(OnGpu(ids, 2), OnGpu(distances, 0))


def test_several_libraries_are_waited_for(made_up, vectors, monkeypatch):
    class Stranger(OnGpu):
        pass

    Stranger.__module__ = "elsewhere"
    monkeypatch.setitem(_libraries._KNOWN, "elsewhere", MadeUp())
    waited = []
    monkeypatch.setattr(_device_arrays, "wait_for_device", waited.append)
    x = vectors(9, 3)
    kith.knn(OnGpu(x), OnGpu(x))
    kith.knn(OnGpu(x), x)
    assert waited == []
    kith.knn(OnGpu(x), Stranger(x))
    assert waited == [0]


class Numbers(OnGpu):
    """With the operations that conversions ask of a library's arrays."""

    def min(self):
        return self.array.min()

    def max(self):
        return self.array.max()


class Computing(MadeUp):
    float64 = True

    def has_float64(self):
        return self.float64

    def to_float32(self, x, name):
        return Numbers(np.ascontiguousarray(x.array, np.float32))

    def to_float64(self, x, name):
        assert self.float64
        return Numbers(x.array.astype(np.float64))


@pytest.fixture
def computing(monkeypatch):
    library = Computing()
    monkeypatch.setitem(_libraries._KNOWN, OnGpu.__module__, library)
    monkeypatch.setattr(_libraries, "_SEEN", weakref.WeakKeyDictionary())
    return library


def values_of(array, dtype="float32"):
    assert array.dtype == dtype
    pointer, count = array.__cuda_array_interface__["data"][0], int(np.prod(array.shape))
    size = np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * (size * count)).from_address(pointer), dtype).reshape(array.shape)


def test_wide_integers_become_float64_on_the_device(computing, rng):
    x = rng.integers(0, 10**12, (50, 3))
    on_gpu, copied = as_vectors(Numbers(x), "base")
    assert copied and (values_of(on_gpu, "float64") == x).all()
    alone, single = as_queries(Numbers(x[0]))
    assert single and (values_of(alone, "float64") == x[0]).all()
    with pytest.raises(ValueError, match="holds the integer"):
        as_vectors(Numbers(np.array([[2**60]])), "base")


def test_a_library_without_float64(computing, rng):
    computing.float64 = False
    x = rng.integers(0, 100, (50, 3)).astype(np.int32)
    assert (values_of(as_vectors(Numbers(x), "base")[0]) == x).all()
    with pytest.raises(ValueError, match="float32 holds those up to 2"):
        as_vectors(Numbers(x + 2**25), "base")
