"""Arrays of torch, cupy and jax in a GPU's memory: searched there, answered there, in the order of their streams."""

from __future__ import annotations

import gc
import os
from functools import partial

import numpy as np
import pytest
from conftest import probing

import kith

# jax would take most of the GPU's memory for itself.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

pytestmark = pytest.mark.skipif(not kith.info()["cuda_devices"], reason="no CUDA device, or a build without CUDA")


def torch_on_gpu():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this torch sees no GPU")
    return torch


class Torch:
    bfloat16 = True

    def __init__(self):
        self.library = torch_on_gpu()

    def give(self, array, dtype=None):
        given = self.library.from_numpy(np.array(array, order="C")).cuda()
        return given if dtype is None else given.to(getattr(self.library, dtype))

    def take(self, array):
        assert isinstance(array, self.library.Tensor) and array.is_cuda
        return array.cpu().numpy()


class Cupy:
    bfloat16 = False

    def __init__(self):
        self.library = pytest.importorskip("cupy")

    def give(self, array, dtype=None):
        return self.library.asarray(array, dtype=dtype)

    def take(self, array):
        assert isinstance(array, self.library.ndarray)
        return array.get()


class Jax:
    bfloat16 = True

    def __init__(self):
        self.library = pytest.importorskip("jax")
        if self.library.default_backend() != "gpu":
            pytest.skip("this jax sees no GPU")

    def give(self, array, dtype=None):
        return self.library.numpy.asarray(array, dtype=dtype)

    def take(self, array):
        assert isinstance(array, self.library.Array) and next(iter(array.devices())).platform in ("gpu", "cuda")
        return np.asarray(array)


@pytest.fixture(params=[Torch, Cupy, Jax], ids=lambda kind: kind.__name__.lower())
def kind(request):
    return request.param()


def same(kind, found, true):
    assert (kind.take(found.ids) == true.ids).all() and (kind.take(found.distances) == true.distances).all()


@pytest.mark.parametrize("rows", [300, 20000])
@pytest.mark.parametrize("metric", ["l2", "inner_product", "cosine", "l1"])
def test_the_same_bytes(kind, metric, rows, vectors):
    queries, base = vectors(50, 24), vectors(rows, 24)
    true = kith.knn(queries, base, k=7, metric=metric, device="cpu")
    given, searched = kind.give(queries), kind.give(base)
    same(kind, kith.knn(given, searched, k=7, metric=metric), true)
    same(kind, kith.knn(given, base, k=7, metric=metric), true)  # the base comes from the host
    on_host = kith.knn(queries, searched, k=7, metric=metric)  # and so do the queries, which take the result back
    assert isinstance(on_host.ids, np.ndarray) and (on_host.ids == true.ids).all()
    alone = kith.knn(given[3], searched, k=7, metric=metric)
    assert alone.ids.shape == (7,) and (kind.take(alone.ids) == true.ids[3]).all()
    nothing = kith.knn(given[:0], searched, k=7, metric=metric)
    assert tuple(nothing.ids.shape) == (0, 7)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "uint8", "int8"])
def test_dtypes(kind, dtype, rng):
    if dtype == "bfloat16" and not kind.bfloat16:
        pytest.skip("no bfloat16 there")
    x = rng.integers(0, 100, (9000, 24)).astype(np.float32)
    given = kind.give(x, dtype)
    same(kind, kith.knn(given[:30], given, k=5), kith.knn(x[:30], x, k=5, device="cpu"))


def test_copies(kind, rng):
    """float64, wide integers and columns apart are copied on the device; rows apart are not."""
    x = rng.integers(0, 100, (9000, 48)).astype(np.float32)
    true = kith.knn(x[:30, :24], x[:, :24], k=5, device="cpu")
    whole = kind.give(x)
    same(kind, kith.knn(whole[:30, :24], whole[:, :24], k=5), true)
    if kind.__class__ is not Jax:  # which has no float64 unless told so
        wide = kind.give(x[:, :24].astype(np.float64))
        same(kind, kith.knn(wide[:30], wide, k=5), true)
        whole_numbers = kind.give(x[:, :24].astype(np.int32))
        same(kind, kith.knn(whole_numbers[:30], whole_numbers, k=5), true)
    columns = kind.give(np.ascontiguousarray(x[:, :24].T)).T
    same(kind, kith.knn(columns[:30], columns, k=5), true)
    other = kind.give(np.repeat(x[:, :24], 2, axis=1))[:, ::2]
    same(kind, kith.knn(other[:30], other, k=5), true)


def test_float64_loses_its_offset(kind, rng):
    if kind.__class__ is Jax:
        pytest.skip("jax has no float64 unless told so")
    x = 1.7e9 + rng.uniform(0, 3600, (9000, 4))
    queries = x[:30] + 0.25
    true = kith.knn(queries, x, k=5, device="cpu")
    same(kind, kith.knn(kind.give(queries), kind.give(x), k=5), true)
    index = kith.Index()
    index.add(kind.give(x))
    same(kind, index.search(kind.give(queries), k=5), true)
    with pytest.warns(kith.PrecisionWarning):
        kith.knn(kind.give(queries), kind.give(x), k=5, metric="cosine")
    model = kith.KMeans(3, seed=1).fit(kind.give(x))
    assert model.cluster_centers_.dtype == np.float64 and abs(model.cluster_centers_ - 1.7e9).max() < 3700


def test_index(kind, vectors):
    queries, base = vectors(40, 16), vectors(12000, 16)
    true = kith.knn(queries, base, k=6, device="cpu")
    given = kind.give(queries)
    for copy in (True, False):
        for parts in ((0, 12000), (0, 9000, 9500, 12000)):
            index = kith.Index()
            for first, last in zip(parts, parts[1:]):
                index.add(kind.give(base[first:last]), copy=copy)
            gc.collect()
            assert len(index) == 12000
            same(kind, index.search(given, k=6), true)
            assert (index.search(queries, k=6).ids == true.ids).all()
    index.add(base[:10])
    assert len(index) == 12010 and index.search(base[3], k=2).ids.tolist() == [3, 12003]
    host = kith.Index()
    host.add(base)
    same(kind, host.search(given, k=6), true)
    found = kith.Index()
    found.add(kind.give(base))
    last = found.search(given, k=6)
    del found  # while the search may still be on its way
    same(kind, last, true)


@pytest.mark.parametrize("factory", ["IVF64,Flat", "IVF64,SQ8", "IVF64,PQ8", "PCA12,IVF64,SQ8", "IVF64,PQ8x4,RFlat"])
def test_compressed_index(kind, factory, vectors):
    """On the GPU as on the CPU, byte for byte, with ids, removal and filters."""
    queries, base = vectors(50, 16), vectors(12000, 16)
    index = kith.Index(factory, device="cpu")
    index.train(base)
    index.add(base, ids=np.arange(12000) * 2)
    index.remove(np.arange(0, 24000, 20))
    keep = np.arange(2, 24000, 20)
    true = index.search(queries, k=6, probes=8)
    filtered = index.search(queries, k=6, probes=8, filter=keep)
    within = index.range_search(queries, 3.0, probes=8)
    index = index.to("cuda")
    given = kind.give(queries)
    for _ in range(2):
        same(kind, index.search(given, k=6, probes=8), true)
        same(kind, index.search(given, k=6, probes=8, filter=keep), filtered)
        found = index.search(queries, k=6, probes=8)
        assert found.ids.tobytes() == true.ids.tobytes() and found.distances.tobytes() == true.distances.tobytes()
    found = index.range_search(queries, 3.0, probes=8)
    assert (found.ids == within.ids).all() and (found.offsets == within.offsets).all()


@pytest.mark.parametrize("factory", ["IVF32,Flat", "IVF32,PQ8", "PQ4", "OPQ4_8,IVF32,PQ4", "IVF32,PQ4,RFlat"])
def test_compressed_index_from_arrays(kind, factory, vectors, tmp_path):
    """Trained on and filled from arrays in a GPU's memory it holds what it holds from numpy's."""
    queries, base = vectors(30, 16), vectors(10000, 16)
    here = kith.Index(factory, device="cpu")
    here.train(base)
    here.add(base)
    made = kith.Index(factory)
    made.train(kind.give(base))
    made.add(kind.give(base[:7000]))
    made.add(base[7000:7500])
    made.add(kind.give(base[7500:]))
    assert len(made) == 10000 and made.info().device_bytes > 0
    true = here.search(queries, k=7, **probing(here, 4))
    same(kind, made.search(kind.give(queries), k=7, **probing(made, 4)), true)
    here.save(tmp_path / "here.kith")
    made.save(tmp_path / "made.kith")
    assert (tmp_path / "here.kith").read_bytes() == (tmp_path / "made.kith").read_bytes()
    within = here.range_search(queries, 3.0, **probing(here, 4))
    found = made.range_search(kind.give(queries), 3.0, **probing(made, 4))
    assert (kind.take(found.ids) == within.ids).all() and (kind.take(found.offsets) == within.offsets).all()


def test_a_compressed_index_refuses_what_is_not_finite(kind, vectors):
    base = vectors(2000, 8)
    index = kith.Index("IVF16,PQ4x4")
    index.train(kind.give(base))
    base[77, 3] = np.nan
    with pytest.raises(ValueError, match="row 77"):
        index.add(kind.give(base))
    with pytest.raises(ValueError, match="row 77"):
        kith.Index("IVF16,PQ4x4").train(kind.give(base))
    assert len(index) == 0


def test_refused(kind, vectors):
    base = vectors(9000, 8)
    given = kind.give(base)
    with pytest.raises(NotImplementedError, match="cuda:0"):
        kith.knn(given, given, device="cpu")
    with pytest.raises(TypeError, match="bool"):
        kith.knn(kind.give(base > 0), given)
    with pytest.raises(ValueError, match="k = 0"):
        kith.knn(given, given, k=0)
    with pytest.raises(ValueError, match="too large"):
        kith.knn(given, given, k=10**30)
    with pytest.raises(ValueError, match="columns"):
        kith.knn(given[:, :4], given)
    base[77, 3] = np.nan
    with pytest.raises(ValueError, match="row 77"):
        kith.knn(given[:5], kind.give(base))
    with pytest.raises(ValueError, match="row 77"):
        kith.Index().add(kind.give(base))
    with pytest.raises(MemoryError):
        kith.knn(given, given, device_memory_limit=1000)


def test_graph(kind, vectors):
    x = vectors(9000, 16)
    given = kind.give(x)
    for metric, method in (("l2", "exact"), ("l2", "cells"), ("l1", "nn_descent")):  # "auto" goes by the device too
        true = kith.knn_graph(x, k=5, metric=metric, method=method, device="cpu")
        found = kith.knn_graph(given, k=5, metric=metric, method=method)
        same(kind, found, true)
        assert (len(found), found.k, found.metric) == (9000, 5, metric)
        for mine, theirs in zip(found.to_umap(), true.to_umap()):
            assert (kind.take(mine) == theirs).all()
        host = found.to_host()
        assert isinstance(host.ids, np.ndarray) and host.ids.dtype == np.int64 and (host.ids == true.ids).all()
    few = kith.knn_graph(given[:3], k=5)
    assert (kind.take(few.ids)[:, 2:] == -1).all() and np.isinf(kind.take(few.distances)[:, 2:]).all()
    with pytest.raises(ValueError, match="row 0.*lower k"):
        few.to_umap()
    assert tuple(kith.knn_graph(given[:0], k=2).ids.shape) == (0, 2)


def test_graphs_of_graphs(kind, vectors):
    x = vectors(1500, 12)
    a, b = x[:700], x[700:]
    of_a, of_b = kith.knn_graph(a, k=6, device="cpu"), kith.knn_graph(b, k=6, device="cpu")
    asked = {"k": 6, "method": "nn_descent", "start": "random"}
    same(kind, kith.knn_graph(kind.give(x), **asked), kith.knn_graph(x, device="cpu", **asked))

    def on_host(found, true):
        assert isinstance(found.ids, np.ndarray)
        assert (found.ids == true.ids).all() and (found.distances == true.distances).all()

    merged = kith.merge_graphs(of_a, a, of_b, b, device="cpu")
    there = kith.merge_graphs(of_a, kind.give(a), of_b, kind.give(b))
    same(kind, there, merged)
    there.validate()
    on_host(kith.merge_graphs(of_a, a, of_b, b, device="cuda:0"), merged)
    on_host(kith.merge_graphs(of_a, kind.give(a), of_b, b), merged)
    of_a_there = kith.KnnGraph(kind.give(of_a.ids), kind.give(of_a.distances))
    same(kind, kith.merge_graphs(of_a_there, kind.give(a), of_b, kind.give(b)), merged)
    on_host(kith.merge_graphs(of_a_there, a, of_b, b, device="cuda:0"), merged)
    same(kind, kith.extend_graph(of_a, kind.give(a), kind.give(b)), kith.extend_graph(of_a, a, b, device="cpu"))
    refined = kith.refine_graph(merged, x, device="cpu")
    same(kind, kith.refine_graph(merged, kind.give(x)), refined)
    same(kind, kith.refine_graph(there, kind.give(x)), refined)


def test_the_graph_of_an_index(kind, vectors):
    x = vectors(900, 12)
    index = kith.Index("IVF8,PQ4x4")
    index.train(x)
    index.add(x)
    true = index.to("cpu").knn_graph(x, k=6, probes=3)
    found = index.to("cuda:0").knn_graph(kind.give(x), k=6, probes=3)
    same(kind, found, true)
    assert found.report.recall == true.report.recall


def test_a_graph_by_cells(kind, vectors):
    x = vectors(4000, 16)
    given = kind.give(x)
    for metric in ("l2", "inner_product"):
        asked = {"k": 7, "metric": metric, "method": "cells", "cells": 12, "recall": 0.9, "seed": 5}
        true, found = kith.knn_graph(x, **asked, device="cpu"), kith.knn_graph(given, **asked)
        same(kind, found, true)
        assert found.report.method == "cells" and found.report.recall == true.report.recall
        same(kind, kith.knn_graph(given, **asked, device_memory_limit=512 << 20), true)
    with pytest.raises(MemoryError, match="device memory limit of"):
        kith.knn_graph(given, **asked, device_memory_limit=1000)


def test_a_graph_as_a_sparse_matrix(kind, vectors):
    pytest.importorskip("scipy")
    x = vectors(500, 16)
    matrix = kith.knn_graph(kind.give(x), k=5).to_csr()
    assert (matrix != kith.knn_graph(x, k=5, device="cpu").to_csr()).nnz == 0


def test_smooth_paths(kind, vectors):
    x = vectors(3000, 6)
    graph, true = kith.knn_graph(kind.give(x), k=6), kith.SmoothPaths(kith.knn_graph(x, k=6, device="cpu"))
    pairs = np.random.default_rng(1).integers(0, 3000, (20_000, 2))
    for paths in (kith.SmoothPaths(graph), kith.SmoothPaths(graph, device="cpu"), kith.SmoothPaths(graph.to_host(), device="cuda:0")):
        assert paths.parts == true.parts and (paths.widths(pairs) == true.widths(pairs)).all()
        for a, b in pairs[:20]:
            for by in ("steps", "tree"):
                assert paths.path(a, b, by).rows.tolist() == true.path(a, b, by).rows.tolist()


def test_a_graph_on_a_stream_of_torch(vectors):
    """Made late on a stream of its own, and used on it without waiting."""
    kind, x = Torch(), vectors(9000, 16)
    torch = kind.library
    true, host = kith.knn_graph(x, k=5, method="exact", device="cpu"), torch.from_numpy(x).pin_memory()
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        late = torch.zeros(9000, 16, device="cuda")
        torch.cuda._sleep(100_000_000)  # tens of milliseconds
        late.copy_(host, non_blocking=True)
        graph = kith.knn_graph(late, k=5, method="exact")
        late.zero_()
        ids = graph.ids + 1
        torch.cuda.current_stream().synchronize()
    assert (ids.cpu().numpy() == true.ids + 1).all()


def test_ranges(kind, vectors):
    queries, base = vectors(20, 8), vectors(5000, 8)
    found = kith.range_search(kind.give(queries), kind.give(base), radius=2.0)
    true = kith.range_search(queries, base, radius=2.0, device="cpu")
    for mine, theirs in zip(found, true):
        assert (kind.take(mine) == theirs).all()
    for mine, theirs in zip(found.by_query(), true.by_query()):
        assert (kind.take(mine.ids) == theirs.ids).all()
    assert (found.to_csr(columns=5000) != true.to_csr(columns=5000)).nnz == 0


def test_ranges_without_self(kind, vectors):
    x = vectors(3000, 8)
    x[100:110] = x[90:100]
    found = kith.range_search(kind.give(x), kind.give(x), radius=1.5, without_self=True)
    true = kith.range_search(x, x, radius=1.5, without_self=True, device="cpu")
    for mine, theirs in zip(found, true):
        assert (kind.take(mine) == theirs).all()


def test_kmeans(kind, vectors):
    x = vectors(5000, 8)
    true = kith.KMeans(16, iterations=5, device="cpu").fit(x)
    model = kith.KMeans(16, iterations=5).fit(kind.give(x))
    labels = model.predict(kind.give(x))
    assert (model.cluster_centers_ == true.cluster_centers_).all()
    assert (kind.take(labels) == true.labels_).all()
    for mine, theirs in zip(model.assign(kind.give(x)), true.assign(x)):
        assert type(mine) is type(labels)
        assert (kind.take(mine) == theirs).all()
    assert (kind.take(model.transform(kind.give(x[:300]))) == true.transform(x[:300])).all()
    assert (kind.take(kith.KMeans(16, iterations=5).fit_predict(kind.give(x))) == true.labels_).all()


def test_quantizers(kind, rng):
    x = rng.standard_normal((3000, 16)).astype(np.float32)
    for make in (partial(kith.ProductQuantizer, 4, bits=5), kith.ScalarQuantizer):
        true = make(device="cpu").train(x)
        quantizer = make().train(kind.give(x))
        codes = quantizer.encode(kind.give(x))
        assert (kind.take(codes) == true.encode(x)).all()
        assert (kind.take(quantizer.decode(codes)) == true.decode(true.encode(x))).all()


def test_additive_quantizers(kind, rng):
    x = rng.standard_normal((1500, 16)).astype(np.float32)
    local = kith.LocalSearchQuantizer(3, bits=5, rounds=2).train(kind.give(x))
    residual = kith.ResidualQuantizer(3, bits=5).train(kind.give(x))
    for quantizer in (local, residual):
        true = type(quantizer).of_codebooks(quantizer.codebooks, device="cpu")
        codes = quantizer.encode(kind.give(x))
        assert (kind.take(codes) == true.encode(x)).all()
        assert (kind.take(quantizer.decode(codes)) == true.decode(true.encode(x))).all()
    for start in (local.encode(x), local.encode(kind.give(x))):
        more = local.encode(kind.give(x), rounds=4, from_round=16, start=start)
        assert (kind.take(more) == local.encode(x, rounds=20)).all()
    with pytest.raises(ValueError, match=r"start has the shape \(1499, 2\); codes of these rows have \(1500, 2\)"):
        local.encode(kind.give(x), start=local.encode(x)[1:])


def test_pairwise_distances(kind, vectors):
    x, y = vectors(70, 8), vectors(50, 8)
    true = kith.pairwise_distances(x, y, device="cpu")
    found = kith.pairwise_distances(kind.give(x), kind.give(y))
    assert (kind.take(found) == true).all()
    assert (kind.take(kith.pairwise_distances(kind.give(x), y)) == true).all()
    if kind.__class__ is not Jax:
        out = kind.give(np.zeros((70, 50), np.float32))
        assert kith.pairwise_distances(kind.give(x), kind.give(y), out=out) is out and (kind.take(out) == true).all()


@pytest.mark.parametrize("make", [Torch, Cupy])
def test_out(make, vectors):
    kind = make()
    queries, base = vectors(30, 8), vectors(9000, 8)
    true = kith.knn(queries, base, k=4, device="cpu")
    index = kith.Index()
    index.add(kind.give(base))
    for search in (lambda q, **given: kith.knn(q, kind.give(base), k=4, **given), lambda q, **given: index.search(q, k=4, **given)):
        for q in (queries, kind.give(queries)):
            out = kind.give(np.zeros((30, 4), np.int64)), kind.give(np.zeros((30, 4), np.float32))
            found = search(q, out=out)
            assert found.ids is out[0] and found.distances is out[1]
            same(kind, found, true)
        one = kind.give(np.zeros(4, np.int64)), kind.give(np.zeros(4, np.float32))
        assert (kind.take(search(kind.give(queries[5]), out=one).ids) == true.ids[5]).all()
        with pytest.raises(ValueError, match="share memory"):
            search(q := kind.give(base), out=(out[0], q.reshape(-1, 4)[:30]))


def test_jax_arrays_are_not_written_to(vectors):
    kind, x = Jax(), vectors(30, 8)
    out = kind.give(np.zeros((30, 4), np.int32)), kind.give(np.zeros((30, 4), np.float32))
    with pytest.raises(TypeError, match="nobody may write"):
        kith.knn(kind.give(x), kind.give(x), k=4, out=out)


def test_on_a_stream_of_torch(vectors):
    """Queries are made late on a stream of their own, and the result is used on it without waiting."""
    kind, queries, base = Torch(), vectors(200, 32), vectors(20000, 32)
    torch = kind.library
    true, searched = kith.knn(queries, base, k=5, device="cpu"), kind.give(base)
    host = torch.from_numpy(queries).pin_memory()
    torch.cuda.synchronize()
    for stream in (torch.cuda.Stream(), torch.cuda.default_stream()):
        with torch.cuda.stream(stream):
            late = torch.zeros(200, 32, device="cuda")
            torch.cuda._sleep(100_000_000)  # tens of milliseconds
            late.copy_(host, non_blocking=True)
            found = kith.knn(late, searched, k=5)
            late.zero_()
            ids = found.ids + 1
        stream.synchronize()
        assert (ids.cpu().numpy() == true.ids + 1).all()


def test_on_a_stream_of_cupy(vectors):
    kind, queries, base = Cupy(), vectors(200, 32), vectors(20000, 32)
    true, searched = kith.knn(queries, base, k=5, device="cpu"), kind.give(base)
    kind.library.cuda.Device().synchronize()
    stream = kind.library.cuda.Stream(non_blocking=True)
    with stream:
        late = kind.library.asarray(queries * 2) / 2
        found = kith.knn(late, searched, k=5)
        ids = found.ids + 1
    stream.synchronize()
    assert (ids.get() == true.ids + 1).all()


def test_libraries_together(vectors):
    torch, cupy, queries, base = Torch(), Cupy(), vectors(200, 32), vectors(20000, 32)
    true = kith.knn(queries, base, k=5, device="cpu")
    same(torch, kith.knn(torch.give(queries), cupy.give(base), k=5), true)
    same(cupy, kith.knn(cupy.give(queries), torch.give(base), k=5), true)


class InterfaceAlone:
    """What numba's arrays have."""

    def __init__(self, array):
        self.array = array
        self.__cuda_array_interface__ = array.__cuda_array_interface__


def test_a_library_without_dlpack(vectors):
    kind, queries, base = Cupy(), vectors(20, 8), vectors(9000, 8)
    true = kith.knn(queries, base, k=3, device="cpu")
    found = kith.knn(InterfaceAlone(kind.give(queries)), InterfaceAlone(kind.give(base)), k=3)
    assert isinstance(found.ids, kith.DeviceArray) and found.ids.shape == (20, 3) and found.ids.dtype == "int64"
    assert (kind.library.asarray(found.ids).get() == true.ids).all()
    assert (kind.library.from_dlpack(found.distances).get() == true.distances).all()
    graph = kith.knn_graph(InterfaceAlone(kind.give(base)), k=3, method="exact")
    alone = kith.knn_graph(base, k=3, method="exact", device="cpu")
    assert isinstance(graph.ids, kith.DeviceArray) and (graph.to_host().ids == alone.ids).all()
    for mine, theirs in zip(graph.to_umap(), alone.to_umap()):  # numpy's: nobody could compute with the others
        assert isinstance(mine, np.ndarray) and (mine == theirs).all()


def test_torch_refused(vectors):
    torch, x = Torch().library, vectors(9, 4)
    with pytest.raises(TypeError, match="detach"):
        kith.knn(torch.ones(2, 4, device="cuda", requires_grad=True), x)
    with pytest.raises(TypeError, match="to_dense"):
        kith.knn(torch.ones(2, 4, device="cuda").to_sparse(), x)
    with pytest.raises(TypeError, match="filter lies in a GPU's memory"):
        kith.knn(x, x, filter=torch.ones(9, dtype=torch.bool, device="cuda"))
