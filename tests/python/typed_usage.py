"""A user's program, for the type checker: every public name, with the types that a user may rely on.

What comes back is an array of the caller's library, which only the caller knows: who wants it checked says what it is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

import kith
from kith.sklearn import KMeans, KNeighborsClassifier, KNeighborsRegressor, KNeighborsTransformer, NearestNeighbors


def neighbours_of(queries: npt.NDArray[np.float32], base: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    ids: npt.NDArray[np.int64]
    ids, distances = kith.knn(queries, base, k=10, metric="cosine", memory_limit=1 << 30, progress=True)
    nearest: np.float32 = distances[0, 0]
    print(nearest)
    return ids


class Tensor(Protocol):
    """What torch, cupy and jax have in common."""

    def __dlpack__(self, *, stream: int | None = None) -> object: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...

    def cpu(self) -> Tensor: ...


def tensors(x: Tensor, model: kith.KMeans) -> list[Tensor]:
    """Answered in kind: no cast is needed."""
    ids: Tensor
    ids, distances = kith.knn(x, x, k=3)
    graph = kith.knn_graph(x, k=3)
    found = kith.range_search(x, x, radius=1.0)
    labels: Tensor = model.predict(x)
    every: Tensor = kith.pairwise_distances(x, out=ids)
    print(distances.cpu(), found.offsets.cpu(), model.transform(x).cpu(), graph.to_host().ids.mean())
    return [ids, labels, every, graph.ids, graph.distances, *graph.to_umap(), kith.KnnGraph(ids, x).ids.cpu()]


def report(stage: str, done: int, total: int) -> None:
    print(stage, done / total)


def from_index(base: npt.NDArray[np.float32], folder: Path) -> kith.Neighbors:
    index = kith.Index("Flat", metric="l2", device="cpu", check_finite=False, prepare=True)
    index.add(base, copy=False, progress=report)
    size: int = len(index) * index.dimension
    name: str = index.metric + repr(index)
    print(size, name)
    out = np.empty((1, 5), np.int64), np.empty((1, 5), np.float32)
    found = index.search([[1.0, 2.0]], k=np.int64(5), out=out)
    kith.write_vectors(folder / "ids.ibin", found.ids)
    return found


def compressed(base: npt.NDArray[np.float32], folder: Path) -> list[int]:
    index = kith.Index("IVF16,PQ4", metric="cosine", expected_rows=1000, seed=np.int64(3))
    index.train(folder / "train.fbin", threads=2)
    index.add(base, ids=range(len(base)))
    index.add(str(folder / "more.fbin"), np.arange(5), memory_limit=1 << 30, device_memory_limit="1.5G")
    found: kith.Neighbors = index.search(base, k=3, probes=4, filter=[1, 2], filter_strict=True, memory_limit="16G")
    kept: npt.NDArray[np.float32] = index.reconstruct([1, 2])
    one: npt.NDArray[np.float32] = index.reconstruct(1)
    removed: int = index.remove(found.ids[0])
    index.save(folder / "x.kith")
    again: kith.Index = kith.load(folder / "x.kith", device="cpu").to("auto").clone()
    again.merge(index, shift_ids=True, progress=False)
    refined: kith.Neighbors = again.search(base, k=3, refine=2, refine_from=folder / "x.fbin")
    kith.write_faiss(again, folder / "x.faiss")
    info: kith.IndexInfo = kith.read_faiss(folder / "x.faiss").info()
    name: str = again.factory + str(again.dtype)
    print(kept, one, name, refined.ids, again.trained, info.imbalance, info.parts["lists"])
    return [removed, info.size, info.lists, info.host_bytes]


def films(base: npt.NDArray[np.float32], folder: Path) -> kith.Items:
    with kith.open(folder / "films", dimension=8, metric="cosine", columns={"year": int, "tags": "json"}, timeout=1) as films:
        with films.batch():
            films.add(base, ids=[1, 2], columns={"year": [1927, None]}, payloads=[b"a", b"b"])
            films.upsert(base, ids=np.arange(2))
        found: kith.Neighbors = films.search(base, k=3, where="year > ?", params=(1930,), ids=[1], threads=2)
        each: kith.Neighbors = films.search(base, where="year > ?", params=[(1,), (2,)], filter=np.ones(3, bool))
        removed: int = films.remove(where="year < ?", params=[1900.5]) + films.count() + len(films)
        view: kith.CollectionView = films.view()
        info: kith.CollectionInfo = films.info()
        report: kith.VerifyReport = films.verify()
        films.snapshot(folder / "copy")
        films.compact(device="cpu", progress=True)
        print(found.ids, each.distances, removed, 1 in view, list(films), info.segments[0].rows, report.sound, films.refresh())
        return films.get([1, 2])


def within(base: npt.NDArray[np.float16], keep: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    ids: npt.NDArray[np.int64]
    offsets, ids, distances = kith.range_search(base[:1], base, radius=0.5, metric="l1", filter=keep, threads=2)
    nearest: np.float32 = distances[int(offsets[0])]
    index = kith.Index(metric="linf")
    index.add(base)
    found: kith.RangeNeighbors = index.range_search(base, np.float32(2), filter=[1, 2, 3])
    index.search(base, filter=np.packbits(keep, bitorder="little"))
    print(nearest, found.offsets[-1], found.to_csr(columns=3), kith.recall(index.search(base), kith.knn(base, base)))
    for some, _ in kith.range_search(base, base, 1.0, metric="euclidean", without_self=True).by_query():
        ids = some
    return ids


def graph_of(base: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    graph: kith.KnnGraph = kith.knn_graph(base, k=15, metric="hamming", method="exact")
    indices, distances = graph.to_umap()
    print(len(graph), graph.k, graph.metric, graph.ids[0], indices[0], graph.to_csr())
    paths = kith.SmoothPaths(graph, threads=1)
    path: kith.SmoothPath = paths.path(0, 1, by="tree")
    print(path.rows.sum(), path.width + paths.width(0, 1), paths.widths([[0, 1]]).mean(), graph.smoothest_path(0, 1).width)
    tree = graph.spanning_tree("mutual_reachability", min_samples=3, unconnected="at_inf")
    print(tree.edges.sum(), tree.weights.sum(), tree.single_linkage().sum(), tree.labels(2).max())
    report: kith.GraphReport = graph.report
    print(report.method, report.recall, graph.components()[1].max(), graph.measure_recall(base).standard_error)
    graph.save("ids.npy", "distances.npy")
    print(kith.KnnGraph.load("ids.npy", "distances.npy", metric="hamming").in_degrees().max())
    every: npt.NDArray[np.float32] = kith.pairwise_distances(base, metric="cosine", out=np.empty((3, 3), np.float32))
    return every if len(graph) < 4 else distances


def with_scikit_learn(base: npt.NDArray[np.float32]) -> npt.NDArray[np.int32]:
    distances, ids = NearestNeighbors(n_neighbors=3, metric="manhattan", n_jobs=2).fit(base).kneighbors(base)
    print(distances, ids, KNeighborsTransformer(15, mode="distance").fit_transform(base))
    labels = KNeighborsClassifier(5, weights="distance").fit(base, ids[:, 0]).predict(base)
    print(labels, KNeighborsRegressor(5).fit(base, distances[:, 0]).predict(base))
    return KMeans(n_clusters=8, random_state=0).fit_predict(base)


def from_files(folder: Path) -> kith.Neighbors:
    try:
        vectors = kith.read_vectors(folder / "base.fbin", first=10, count=5)
        kith.write_vectors(str(folder / "part.fbin"), vectors)
        kith.write_vectors(folder / "part.f16bin", vectors, dtype=np.float16)
        print(kith.read_vectors(folder / "part.f16bin", dtype="f32", mmap=False).mean())
    except kith.CorruptFileError as error:
        print(error.filename, error.offset + 1)
    return kith.knn(folder / "queries.fbin", str(folder / "base.fbin"))


def clusters(base: npt.NDArray[np.uint8], folder: Path) -> npt.NDArray[np.int32]:
    model = kith.KMeans(16, iterations=5, init="random", seed=np.int64(3), tol=0.0)
    model.fit(base, sample_weight=np.ones(len(base)), threads=2, progress=report).partial_fit(base)
    kith.KMeans(2, init=[[0.0, 1.0], [1.0, 0.0]]).fit(folder / "base.fbin", memory_limit=1 << 20)
    distances: npt.NDArray[np.float32] = model.transform(base, threads=2)
    inertia: float = model.inertia_ + float(distances[0, 0]) + float(model.objective_history_[-1])
    print(inertia, model.n_iter_ + 1, model.cluster_centers_.shape)
    labels: npt.NDArray[np.int32]
    labels, nearest = model.assign(base)
    print(nearest[0] + model.counts_[0])
    return labels if labels.size else model.labels_


def on_a_gpu(queries: kith.DeviceArray, index: kith.Index) -> tuple[int, ...]:
    found = index.search(queries, k=3, out=(queries, queries))
    print(queries.dtype, queries.device, kith.knn(queries, queries).ids, found)
    return queries.shape


def metric_of(index: kith.Index, graph: kith.KnnGraph, x: npt.NDArray[np.float32]) -> kith.Metric:
    """What an index or a graph says of its metric can be given to the next."""
    print(kith.knn(x, x, metric=index.metric), kith.show(x, graph, rows=3, labels=["a", "b"]))
    return graph.metric


def about() -> str:
    info: kith.Info = kith.info()
    for device in info["cuda_devices"]:
        major, minor = device["compute_capability"]
        print(device["name"], major, minor)
    return kith.__version__ + info["cpu"]


def codes_of(x: npt.NDArray[np.float32], more: Tensor) -> npt.NDArray[np.float32]:
    product = kith.ProductQuantizer(4, bits=6, seed=1, device="cpu").train(x, threads=2, progress=report)
    scalar: kith.ScalarQuantizer = kith.ScalarQuantizer(bits=8).train("x.fvecs")
    codes: npt.NDArray[np.uint8] = product.encode(x)
    near: npt.NDArray[np.float32] = product.decode(codes)
    print(product.codewords.mean(), scalar.least + scalar.span, product.parts, scalar.bits, near.mean())
    print(scalar.encode(more).cpu(), kith.ProductQuantizer.of_codewords(product.codewords).trained)
    print(kith.ScalarQuantizer.of_ranges(scalar.least, scalar.span, bits=4).code_bytes, scalar.dimension)
    additive = kith.LocalSearchQuantizer(2, bits=4, order="random").train(x)
    print(additive.lookup_table(x, threads=1) + kith.ResidualQuantizer(2).lookup_table(x[0], "inner_product"))
    return product.lookup_table(x[0], "inner_product")
