"""Arrays in a GPU's memory, as far as they can be told where there is none: by producers that only claim to be there.

Nothing here may reach a real device, so all is skipped where there is one; test_on_gpu.py is for that.
"""

from __future__ import annotations

import ctypes
import gc
import pickle
import sys
import types
import weakref

import numpy as np
import pytest

import kith
from kith import _device_arrays, _kith, _libraries
from kith._arrays import as_queries, as_vectors, share_memory
from kith._device_arrays import on_device, stream_of
from kith._libraries import LEGACY_STREAM

pytestmark = pytest.mark.skipif(bool(kith.info()["cuda_devices"]), reason="made-up arrays would reach a real GPU")

# Without CUDA, or with it but without a GPU.
NO_DEVICE = (RuntimeError, ValueError)


class OnGpu:
    """Host memory that says it is a GPU's, and notes the streams that it is asked for."""

    def __init__(self, array, device=0):
        self.array, self.device, self.streams = array, device, []
        self.shape, self.dtype = array.shape, array.dtype

    def __dlpack_device__(self):
        return (2, self.device)

    def __dlpack__(self, *, stream=None):
        self.streams.append(stream)
        capsule = self.array.__dlpack__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        tensor = pointer(capsule, b"dltensor")
        # DLTensor: data (8 bytes), then the device's type and number.
        ctypes.c_int32.from_address(tensor + 8).value = 2
        ctypes.c_int32.from_address(tensor + 12).value = self.device
        return capsule


class WithInterface:
    """An array without DLPack."""

    def __init__(self, array, **changes):
        self.array = array
        self.__cuda_array_interface__ = {**array.__array_interface__, "version": 3, **changes}


def test_told_apart(vectors):
    x = vectors(4, 3)
    assert on_device(OnGpu(x)) and on_device(WithInterface(x))
    assert not on_device(x) and not on_device([1.0]) and not on_device("path") and not on_device(None)


def test_taken_where_it_lies(vectors):
    for x in (vectors(4, 3), vectors(4, 9)[:, 3:6], vectors(8, 3)[::2]):
        taken, copied = as_vectors(OnGpu(x, device=3), "x")
        assert isinstance(taken, _kith.DeviceArray) and not copied
        assert taken.shape == x.shape and taken.dtype == "float32" and taken.device == 3
        assert taken.__cuda_array_interface__["data"][0] == x.ctypes.data
        assert taken.__cuda_array_interface__["strides"] == x.strides
        assert taken.__dlpack_device__() == (2, 3)
        again = _kith.import_dlpack(taken)  # through its own __dlpack__
        assert again.shape == x.shape and _kith.overlap(again, taken)


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8", "int8", "int16", "int64", "float64", "bool"])
def test_dtypes_have_names(dtype):
    assert _kith.import_dlpack(OnGpu(np.zeros((2, 2), dtype)).__dlpack__()).dtype == dtype


def test_axes(vectors):
    x = vectors(4, 3)
    assert as_queries(OnGpu(x[0]))[1] and not as_queries(OnGpu(x))[1]
    for wrong in (np.zeros((2, 2, 2), np.float32), np.zeros((), np.float32)):
        with pytest.raises(ValueError, match="axes"):
            as_queries(OnGpu(wrong))
    with pytest.raises(ValueError, match="axes"):
        as_vectors(OnGpu(x[0]), "x")


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "bool", "complex64"])
def test_refused_dtypes(dtype):
    x = OnGpu(np.zeros((4, 3), dtype))
    for call in (lambda: kith.knn(x, x), lambda: kith.Index().add(x), lambda: kith.KMeans(2).fit(x)):
        with pytest.raises(TypeError, match=dtype):
            call()


def test_what_an_unknown_library_must_convert_itself(vectors):
    with pytest.raises(TypeError, match="OnGpu"):
        as_vectors(OnGpu(vectors(4, 3).astype(np.int16)), "x")
    for x in (vectors(3, 4).T, vectors(4, 6)[:, ::2], vectors(4, 3)[::-1]):
        with pytest.raises(ValueError, match="contiguous"):
            as_vectors(OnGpu(x), "x")


def test_float64_is_read_where_it_lies(vectors):
    taken, copied = as_vectors(OnGpu(vectors(4, 3).astype(np.float64)), "x")
    assert not copied and taken.dtype == "float64"


def test_the_stream_is_told(vectors):
    """One stream for all arrays of a call: a library that has none to tell is waited for."""
    queries, base = OnGpu(vectors(2, 3)), OnGpu(vectors(9, 3))
    with pytest.raises(NO_DEVICE):
        kith.knn(queries, base)
    assert queries.streams == [LEGACY_STREAM] and base.streams == [LEGACY_STREAM]
    as_vectors(base, "base", 77)
    assert base.streams[-1] == 77
    assert stream_of(("path", vectors(2, 3), WithInterface(vectors(2, 3), stream=5), queries)) == 0
    assert stream_of((vectors(2, 3),)) == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda x, host: kith.knn(x, x),
        lambda x, host: kith.knn(x, host),
        lambda x, host: kith.knn(host, x),
        lambda x, host: kith.knn(x, x, device="cpu"),
        lambda x, host: kith.range_search(x, x, radius=1.0),
        lambda x, host: kith.knn_graph(x, k=2),
        lambda x, host: kith.pairwise_distances(x),
        lambda x, host: kith.KMeans(2).fit(x),
        lambda x, host: kith.KMeans(2).fit(host).predict(x),
        lambda x, host: kith.ScalarQuantizer().train(x),
        lambda x, host: kith.ScalarQuantizer().train(host).encode(x),
        lambda x, host: kith.Index().add(x),
        lambda x, host: kith.Index().search(x),
    ],
)
def test_nothing_goes_to_the_host_behind_ones_back(call, vectors):
    """Every function hands the array to the library as it is, which says that it has no device to work on."""
    host = vectors(9, 3)
    with pytest.raises(NO_DEVICE, match="CUDA|cuda|GPU"):
        call(OnGpu(host), host)


def test_host_only_arguments(vectors):
    x = vectors(9, 3)
    with pytest.raises(TypeError, match="filter lies in a GPU's memory"):
        kith.knn(x, x, filter=OnGpu(np.ones(9, np.uint8)))
    with pytest.raises(TypeError, match="sample_weight lies in a GPU's memory"):
        kith.KMeans(2).fit(x, sample_weight=OnGpu(np.ones(9, np.float32)))
    with pytest.raises(TypeError, match="array lies in a GPU's memory"):
        kith.write_vectors("never.fbin", OnGpu(x))


def test_out(vectors):
    x = vectors(4, 3)
    ids, distances = np.empty((4, 2), np.int64), np.empty((4, 2), np.float32)
    for out, error, says in (
        ((OnGpu(ids), distances), ValueError, "one place"),
        ((OnGpu(ids.astype(np.int32)), OnGpu(distances)), TypeError, "int64"),
        ((OnGpu(ids), OnGpu(distances[0])), ValueError, "shape"),
        ((OnGpu(ids), OnGpu(distances[:, ::-1])), ValueError, "contiguous"),
        ((OnGpu(ids), OnGpu(ids.view(np.float32)[:2].reshape(4, 2))), ValueError, "share"),
    ):
        with pytest.raises(error, match=says):
            kith.knn(x, x, k=2, out=out)
    with pytest.raises(ValueError, match="share"):
        kith.knn(OnGpu(x), x, k=2, out=(OnGpu(ids), OnGpu(x.reshape(-1)[:8].reshape(4, 2))))
    with pytest.raises(ValueError, match="3 x 2"):
        kith.knn(x[:3], x, k=2, out=(OnGpu(ids), OnGpu(distances)))


def test_memory_that_is_shared(vectors):
    x = vectors(6, 4)
    whole, part = as_vectors(OnGpu(x), "x")[0], as_vectors(OnGpu(x[2:4]), "x")[0]
    apart, elsewhere = as_vectors(OnGpu(x[4:]), "x")[0], as_vectors(OnGpu(x, device=1), "x")[0]
    assert share_memory(whole, part) and share_memory(whole, apart)
    assert not share_memory(part, apart) and not share_memory(whole, elsewhere) and not share_memory(whole, x)


def test_kept_alive(vectors):
    x = vectors(4, 3)
    taken, alive = as_vectors(OnGpu(x), "x")[0], weakref.ref(x)
    del x
    gc.collect()
    assert alive() is not None
    del taken
    gc.collect()
    assert alive() is None


def test_interface_needs_a_device(vectors):
    """Without DLPack the driver is asked where the pointer lies."""
    with pytest.raises(NO_DEVICE):
        kith.knn(WithInterface(vectors(4, 3)), vectors(4, 3))
    with pytest.raises(TypeError, match="mask"):
        as_vectors(WithInterface(vectors(4, 3), mask=np.ones((4, 3), bool)), "x")
    with pytest.raises(ValueError, match=">f4"):
        as_vectors(WithInterface(vectors(4, 3), typestr=">f4"), "x")


@pytest.mark.parametrize(
    "changes, error, says",
    [
        ({"data": (-1, False)}, ValueError, "data"),
        ({"data": (2**70, False)}, ValueError, "data"),
        ({"data": (0, False)}, ValueError, "data is 0"),
        ({"data": 123}, TypeError, "data"),
        ({"data": (1.5, False)}, TypeError, "data"),
        ({"data": (64,)}, TypeError, "data"),
        ({"shape": (2**70, 8)}, ValueError, "shape"),
        ({"shape": (2**62, 8)}, ValueError, "shape"),
        ({"shape": (-4, 3)}, ValueError, "shape"),
        ({"shape": (5.0, 8)}, TypeError, "shape"),
        ({"shape": "ab"}, TypeError, "shape"),
        ({"strides": "xy"}, TypeError, "strides"),
        ({"strides": (12,)}, ValueError, "1 strides for 2 axes"),
        ({"strides": (2**70, 4)}, ValueError, "stride"),
        ({"strides": (2**62, 4)}, ValueError, "no memory"),
        ({"strides": (13, 4)}, ValueError, "broken"),
        ({"typestr": b"<f4"}, TypeError, "typestr"),
        ({"typestr": "<f999"}, ValueError, "<f999"),
    ],
)
def test_a_broken_interface(changes, error, says, vectors):
    x = vectors(4, 3)
    with pytest.raises(error, match=f"queries: __cuda_array_interface__.*{says}"):
        kith.knn(WithInterface(x, **changes), x)
    with pytest.raises(error, match=f"base: __cuda_array_interface__.*{says}"):
        kith.knn(x, WithInterface(x, **changes))


@pytest.mark.parametrize(
    "told, says", [(None, "NoneType"), ([1], "list"), ({"shape": (1, 1), "typestr": "<f4"}, "no 'data'")]
)
def test_no_interface_at_all(told, says, vectors):
    x = WithInterface(vectors(4, 3))
    x.__cuda_array_interface__ = told
    for call in (lambda: kith.Index().add(x), lambda: kith.KMeans(2).fit(x)):
        with pytest.raises(TypeError, match=f"x: __cuda_array_interface__.*{says}"):
            call()


def test_a_capsule_that_is_none(vectors):
    class Told(OnGpu):
        def __dlpack__(self, *, stream=None):
            return self.given

    x, used = Told(vectors(4, 3)), OnGpu(vectors(4, 3)).__dlpack__()
    _kith.import_dlpack(used)
    for x.given in (5, None, "capsule", used):
        with pytest.raises(TypeError, match="queries: __dlpack__ gives a .* no DLPack capsule"):
            kith.knn(x, vectors(4, 3))
    x.given = vectors(4, 3).__dlpack__()
    with pytest.raises(TypeError, match="base lies on a device of DLPack's type 1"):
        kith.knn(vectors(4, 3), x)


def test_more_neighbours_than_memory(vectors):
    for queries in (OnGpu(vectors(4, 3)), OnGpu(vectors(1, 3)[0])):
        with pytest.raises(MemoryError, match="k = 4611686018427387904 give more"):
            kith.knn(queries, vectors(4, 3), k=2**62)


def test_centres_on_a_gpu_are_not_pickled(vectors):
    with pytest.raises(TypeError, match="init lies in a GPU's memory"):
        pickle.dumps(kith.KMeans(4, init=OnGpu(vectors(4, 3))))


def test_shown(vectors):
    assert repr(as_vectors(OnGpu(vectors(4, 3)), "x")[0]) == "kith.DeviceArray(shape=(4, 3), dtype=float32, device=cuda:0)"


class MadeUp(_libraries.Other):
    """A library with a stream, whose arrays are OnGpu."""

    computes = True

    def stream(self, x):
        return 7

    def empty(self, shape, dtype, device):
        return OnGpu(np.zeros(shape, dtype), device)


@pytest.fixture
def made_up(monkeypatch):
    """Has OnGpu belong to that library, and the search itself done by a stand-in that notes what it was given."""
    monkeypatch.setitem(_libraries._KNOWN, OnGpu.__module__, MadeUp())
    monkeypatch.setattr(_libraries, "_SEEN", weakref.WeakKeyDictionary())  # where it has another
    calls = []

    def filled(out, dtype, value):
        assert isinstance(out, _kith.DeviceArray) and out.dtype == np.dtype(dtype).name
        count = int(np.prod(out.shape))
        pointer = out.__cuda_array_interface__["data"][0]
        np.frombuffer((ctypes.c_char * (count * np.dtype(dtype).itemsize)).from_address(pointer), dtype)[:] = value

    def knn(queries, base, k, metric, finite, rows, options, out):
        calls.append((queries, base, options, out))
        if out is not None:
            filled(out[0], np.int64, 5)
            filled(out[1], np.float32, 0.5)
            return None
        return np.full((len(queries), k), 5), np.full((len(queries), k), 0.5, np.float32)

    def knn_graph(x, k, metric, method, finite, wish, options, out):
        return knn(x, x, k, metric, finite, None, options, out), {"method": "made up"}

    def pairwise_distances(x, y, metric, finite, options, out):
        calls.append((x, y, options, out))
        filled(out, np.float32, 0.25)

    monkeypatch.setattr(_kith, "knn", knn)
    monkeypatch.setattr(_kith, "knn_graph", knn_graph)
    monkeypatch.setattr(_kith, "pairwise_distances", pairwise_distances)
    return calls


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

        def search_tensors(self, queries, k, device, threads, stream, ids, distances):
            calls.append((queries, k, device, threads, stream))
            (ctypes.c_int64 * (queries[1] * k)).from_address(ids)[:] = [7] * (queries[1] * k)

    index._index = Inner()
    found = index.search(Tensor(x[:4], device=2), 6, threads=3)
    assert type(found) is kith.Neighbors and (found.ids.array == 7).all() and found.distances.array.shape == (4, 6)
    assert calls == [((x.ctypes.data, 4, 3, "f32"), 6, 2, 3, 7)]
    for strange in (TensorOfAUser(x, device=2), Tensor(vectors(9, 6)[:, :3], device=2), x):
        with pytest.raises(AttributeError, match="search"):  # the way of any array
            index.search(strange, 6)
    assert len(calls) == 1


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
