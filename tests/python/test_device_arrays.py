"""Arrays in a GPU's memory, as far as they can be told where there is none: by producers that only claim to be there.

Nothing here may reach a real device, so all is skipped where there is one; test_on_gpu.py is for that.
"""

from __future__ import annotations

import gc
import pickle
import weakref

import numpy as np
import pytest
from made_up_arrays import NO_DEVICE, OnGpu, WithInterface

import kith
from kith import _kith
from kith._arrays import as_queries, as_vectors, share_memory
from kith._device_arrays import on_device, stream_of
from kith._libraries import LEGACY_STREAM

pytestmark = pytest.mark.skipif(bool(kith.info()["cuda_devices"]), reason="made-up arrays would reach a real GPU")


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
