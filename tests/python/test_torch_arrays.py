"""Tensors of torch and arrays of cupy on a GPU, where there are none: streams, and the tensors' short ways."""

from __future__ import annotations

import ctypes
import sys
import types

import numpy as np
import pytest
from made_up_arrays import OnGpu

import kith
from kith import _kith, _libraries
from kith._arrays import as_vectors
from kith._device_arrays import stream_of
from kith._libraries import LEGACY_STREAM

pytestmark = pytest.mark.skipif(bool(kith.info()["cuda_devices"]), reason="made-up arrays would reach a real GPU")


class Tensor(OnGpu):
    """As much of torch's class as is asked of an array in a GPU's memory."""

    is_cuda, layout, requires_grad = True, "strided", False

    def resolve_neg(self):
        return self

    def get_device(self):
        return self.device

    def dim(self):
        return self.array.ndim

    def is_neg(self):
        return False

    def is_contiguous(self):
        return self.array.flags.c_contiguous

    def data_ptr(self):
        return self.array.ctypes.data

    def new_empty(self, shape, dtype):
        return Tensor(np.zeros(shape, dtype), self.device)

    def _to_dlpack(self):
        return super().__dlpack__(stream="none told")


class TensorOfAUser(Tensor):
    pass


Tensor.__module__ = "torch"


@pytest.fixture
def torch(monkeypatch):
    """A stand-in for the library, whose current stream is `torch.current`."""
    library = types.SimpleNamespace(current=7, Tensor=Tensor, strided="strided")
    library._C = types.SimpleNamespace(_cuda_getCurrentRawStream=lambda device: library.current)
    current_stream = lambda device: types.SimpleNamespace(cuda_stream=library.current)  # noqa: E731
    library.cuda = types.SimpleNamespace(current_stream=current_stream)
    library.utils = types.SimpleNamespace(dlpack=types.SimpleNamespace(to_dlpack=Tensor._to_dlpack))
    library.float32, library.int64, library.int32 = np.dtype(np.float32), np.dtype(np.int64), np.dtype(np.int32)
    library.float16, library.bfloat16 = np.dtype(np.float16), "bfloat16"
    library.uint8, library.int8 = np.dtype(np.uint8), np.dtype(np.int8)
    library.empty = lambda shape, dtype, device: Tensor(np.zeros(shape, dtype), int(device.removeprefix("cuda:")))
    monkeypatch.setitem(sys.modules, "torch", library)
    monkeypatch.setattr(_libraries, "_OWN", {})
    monkeypatch.setattr(_libraries.TORCH, "_dtypes", {})
    return library


@pytest.mark.parametrize("current, stream", [(7, 7), (0, LEGACY_STREAM)])
@pytest.mark.parametrize("documented", [False, True])
def test_the_stream_of_torch(torch, current, stream, documented, vectors):
    torch.current = current
    if documented:
        del torch._C._cuda_getCurrentRawStream
    assert stream_of((vectors(2, 3), Tensor(vectors(2, 3)))) == stream


def test_torch_waits_for_another_stream_alone(torch, vectors):
    for kind, on_its_own in ((Tensor, "none told"), (TensorOfAUser, _libraries.NO_WAIT)):
        x = kind(vectors(2, 3))
        for stream, told in ((7, on_its_own), (9, 9), (0, LEGACY_STREAM)):
            taken, copied = as_vectors(x, "x", stream)
            assert x.streams.pop() == told and taken.shape == (2, 3) and not copied
    del torch.utils.dlpack.to_dlpack  # should torch give it up
    x = Tensor(vectors(2, 3))
    assert as_vectors(x, "x", 7)[0].shape == (2, 3) and x.streams == [_libraries.NO_WAIT]


def test_torch_in_a_search(torch, made_up, vectors):
    x = vectors(9, 3)
    queries, base = Tensor(x[:4], device=2), Tensor(x, device=2)
    found = kith.knn(queries, base, k=6, device="cuda:2")
    assert type(found.ids) is Tensor and found.ids.array.shape == (4, 6) and (found.ids.array == 5).all()
    assert found.distances.device == 2 and (found.distances.array == 0.5).all()
    assert made_up[0][2].stream == 7 and queries.streams == found.ids.streams == ["none told"]


def test_plain_tensors_take_a_short_way(torch, made_up, monkeypatch, vectors):
    calls = []

    def knn_tensors(queries, base, k, metric, device, threads, stream, ids, distances):
        calls.append((queries, base, k, metric, device, threads, stream))
        (ctypes.c_int64 * (queries[1] * k)).from_address(ids)[:] = [7] * (queries[1] * k)
        (ctypes.c_float * (queries[1] * k)).from_address(distances)[:] = [0.25] * (queries[1] * k)

    monkeypatch.setattr(_kith, "knn_tensors", knn_tensors)
    x = vectors(9, 3)
    queries, base = Tensor(x[:4], device=2), Tensor(x, device=2)
    found = kith.knn(queries, base, 6, "cosine")
    assert type(found) is kith.Neighbors and type(found.ids) is Tensor and (found.ids.array == 7).all()
    assert found.ids.array.dtype == np.int64 and found.distances.array.dtype == np.float32
    assert found.distances.device == 2 and (found.distances.array == 0.25).all()
    assert calls == [((x.ctypes.data, 4, 3, "f32"), (x.ctypes.data, 9, 3, "f32"), 6, "cosine", 2, 0, 7)]
    assert made_up == [] and queries.streams == []
    with pytest.raises(ValueError, match="k = 0"):
        kith.knn(queries, base, 0)

    # All else goes the way of any array.
    wants_grad = Tensor(x, device=2)
    wants_grad.requires_grad = True
    others = (TensorOfAUser(x, device=2), Tensor(vectors(9, 6)[:, :3], device=2), Tensor(x[:0], device=2))
    for i, other in enumerate(others):
        kith.knn(queries, other, 6)
        assert len(made_up) == i + 1
    with pytest.raises(TypeError, match="requires grad"):
        kith.knn(queries, wants_grad, 6)
    kith.knn(queries, base, 6, out=(Tensor(np.zeros((4, 6), np.int64), 2), Tensor(np.zeros((4, 6), np.float32), 2)))
    kith.knn(Tensor(x[0], device=2), base, 6)
    assert len(calls) == 1


def test_plain_tensors_take_a_short_way_through_an_index(torch, vectors):
    x = vectors(9, 3)
    index = kith.Index("Flat")
    index.add(x)
    calls = []

    class Inner:
        def search_plain(self, *given):
            return None

        def search_tensors(self, queries, k, device, threads, stream, ids, distances, probes, refine):
            calls.append((queries, k, device, threads, stream, probes, refine))
            (ctypes.c_int64 * (queries[1] * k)).from_address(ids)[:] = [7] * (queries[1] * k)

    index._index = Inner()
    found = index.search(Tensor(x[:4], device=2), 6, threads=3)
    assert type(found) is kith.Neighbors and (found.ids.array == 7).all() and found.distances.array.shape == (4, 6)
    assert calls == [((x.ctypes.data, 4, 3, "f32"), 6, 2, 3, 7, 0, 0)]
    for strange in (TensorOfAUser(x, device=2), Tensor(vectors(9, 6)[:, :3], device=2), x):
        with pytest.raises(AttributeError, match="search"):  # the way of any array
            index.search(strange, 6)
    assert len(calls) == 1
    index._device = "cuda:2"
    index.search(Tensor(x[:4], device=2), 6, probes=5, refine=3)
    assert calls[1][5:] == (5, 3)
    for settings in ({"probes": 0}, {"probes": True}, {"refine": 1.5}, {"refine": -1}):
        with pytest.raises((AttributeError, TypeError, ValueError)):  # the way of any array, or its words
            index.search(Tensor(x[:4], device=2), 6, **settings)
    index._device = "cuda"  # the first
    with pytest.raises((AttributeError, TypeError, ValueError)):
        index.search(Tensor(x[:4], device=2), 6)
    assert len(calls) == 2


def test_plain_tensors_take_a_short_way_to_their_distances(torch, monkeypatch, vectors):
    calls = []

    def of_tensors(x, y, metric, device, threads, stream, distances):
        calls.append((x, y, metric, device, threads, stream))
        (ctypes.c_float * (x[1] * y[1])).from_address(distances)[:] = [0.25] * (x[1] * y[1])

    monkeypatch.setattr(_kith, "pairwise_distances_of_tensors", of_tensors)
    monkeypatch.setattr(_kith, "pairwise_distances", None)
    x = vectors(9, 3)
    some, all_rows = Tensor(x[:4], device=2), Tensor(x, device=2)
    places = (x.ctypes.data, 4, 3, "f32"), (x.ctypes.data, 9, 3, "f32")
    found = kith.pairwise_distances(some, all_rows, "cosine", threads=3)
    assert found.array.shape == (4, 9) and found.array.dtype == np.float32 and (found.array == 0.25).all()
    assert kith.pairwise_distances(some).array.shape == (4, 4)
    assert calls == [(*places, "cosine", 2, 3, 7), (places[0], places[0], "l2", 2, 0, 7)]
    for other, settings in (
        (TensorOfAUser(x, device=2), {}),
        (Tensor(vectors(9, 6)[:, :3], device=2), {}),
        (Tensor(x, device=1), {}),
        (all_rows, {"check_finite": False}),
        (all_rows, {"device": "cuda:2"}),
    ):
        with pytest.raises(Exception, match="callable|device"):  # the way of any array
            kith.pairwise_distances(some, other, **settings)
    assert len(calls) == 2


def test_plain_tensors_take_a_short_way_to_their_labels(torch, vectors):
    x = vectors(9, 3)
    model = kith.KMeans.of_centres(x[:2])
    calls = []

    class Inner:
        def predict_tensor(self, rows, device, threads, stream, labels):
            calls.append((rows, device, threads, stream))
            (ctypes.c_int32 * rows[1]).from_address(labels)[:] = [1] * rows[1]

    model._model = Inner()
    found = model.predict(Tensor(x[:4], device=2), threads=3)
    assert (found.array == 1).all() and found.array.shape == (4,) and found.array.dtype == np.int32
    assert calls == [((x.ctypes.data, 4, 3, "f32"), 2, 3, 7)]
    tensor = Tensor(x, device=2)
    for other, settings in (
        (TensorOfAUser(x, device=2), {}),
        (Tensor(vectors(9, 6)[:, :3], device=2), {}),
        (x, {}),
        (tensor, {"memory_limit": 1 << 20}),
        (tensor, {"progress": lambda *told: None}),
    ):
        with pytest.raises(AttributeError, match="predict"):  # the way of any array
            model.predict(other, **settings)
    assert len(calls) == 1


class CupyArray(OnGpu):
    """The same of cupy's, where a device is made the current one."""

    def __init__(self, array):
        super().__init__(array)
        self.device = self

    def __enter__(self):
        self.entered = True

    def __exit__(self, *_):
        self.entered = False

    def __dlpack__(self, *, stream=None):
        self.device = 0
        capsule = super().__dlpack__(stream=stream)
        self.device = self
        return capsule


CupyArray.__module__ = "cupy"


def test_cupy_waits_for_another_stream_alone(monkeypatch, vectors):
    x = CupyArray(vectors(2, 3))

    def current():
        assert x.entered  # the current stream is one of the current device
        return types.SimpleNamespace(ptr=0)

    monkeypatch.setitem(sys.modules, "cupy", types.SimpleNamespace(cuda=types.SimpleNamespace(get_current_stream=current)))
    monkeypatch.setattr(_libraries, "_OWN", {})
    assert stream_of((x,)) == LEGACY_STREAM
    for stream, told in ((LEGACY_STREAM, _libraries.NO_WAIT), (9, 9)):
        as_vectors(x, "x", stream)
        assert x.streams.pop() == told
