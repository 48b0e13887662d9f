"""The indexes that graph_index.py compares: `Graph32` and others' graphs, each with one way to build, to search and to read an effort."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

K = 10
Rows = Any  # arrays of numpy


class Peer(Protocol):
    """Built by its constructor, of vectors, by so many threads; searched by one."""

    def prepared(self, queries: Rows) -> Rows:
        """Queries as the index takes them, which the time of a search leaves out."""

    def search(self, queries: Rows, effort: int) -> Rows:
        """The ids of the K nearest."""


def unit(x: Rows) -> Rows:
    return x / np.linalg.norm(x, axis=1, keepdims=True)


class KithGraph:
    def __init__(self, x: Rows, metric: str, threads: int, factory: str) -> None:
        import kith

        self.index = kith.Index(factory, metric=metric)
        self.dtype = x.dtype
        self.index.add(x, threads=threads)

    def prepared(self, queries: Rows) -> Rows:
        return queries.astype(self.dtype)

    def search(self, queries: Rows, effort: int) -> Rows:
        return self.index.search(queries, k=K, beam=effort, threads=1).ids


class FaissHnsw:
    def __init__(self, x: Rows, metric: str, threads: int, effort: int) -> None:
        import faiss

        self.unit = metric == "cosine"
        faiss.omp_set_num_threads(threads)
        self.index = faiss.IndexHNSWFlat(x.shape[1], 32)
        self.index.hnsw.efConstruction = effort
        self.index.add(self.prepared(x))
        faiss.omp_set_num_threads(1)

    def prepared(self, queries: Rows) -> Rows:
        queries = queries.astype(np.float32)
        return unit(queries) if self.unit else queries

    def search(self, queries: Rows, effort: int) -> Rows:
        self.index.hnsw.efSearch = effort
        return self.index.search(queries, K)[1]


class Usearch:
    """Bytes: of cosine as usearch makes them, of u8 vectors moved by 128, which leaves l2 as it is."""

    def __init__(self, x: Rows, metric: str, threads: int, dtype: str, effort: int) -> None:
        from usearch.index import Index

        self.moved = dtype == "i8" and x.dtype == np.uint8
        by_cosine = metric == "cosine" or (dtype == "i8" and not self.moved)
        name = "cos" if by_cosine else "l2sq"
        self.index = Index(ndim=x.shape[1], metric=name, dtype=dtype, connectivity=16, expansion_add=effort)
        self.index.add(np.arange(len(x)), self.prepared(x), threads=threads)

    def prepared(self, queries: Rows) -> Rows:
        if self.moved:
            return (queries.astype(np.int16) - 128).astype(np.int8)
        return queries.astype(np.float32)

    def search(self, queries: Rows, effort: int) -> Rows:
        self.index.expansion_search = effort
        return self.index.search(queries, K, threads=1).keys


class Hnswlib:
    def __init__(self, x: Rows, metric: str, threads: int, connectivity: int, effort: int) -> None:
        import hnswlib

        self.index = hnswlib.Index(space="cosine" if metric == "cosine" else "l2", dim=x.shape[1])
        self.index.init_index(max_elements=len(x), ef_construction=effort, M=connectivity)
        self.index.add_items(self.prepared(x), num_threads=threads)
        self.index.set_num_threads(1)

    def prepared(self, queries: Rows) -> Rows:
        return queries.astype(np.float32)

    def search(self, queries: Rows, effort: int) -> Rows:
        self.index.set_ef(max(effort, K))
        return self.index.knn_query(queries, k=K)[0]


class Vsag:
    """Codes of one byte for the walk, vectors for the order of what it finds, as VSAG's documentation has it for speed."""

    def __init__(self, x: Rows, metric: str, threads: int, effort: int) -> None:
        import pyvsag

        pyvsag.set_logger_off()
        codes = {"base_quantization_type": "sq8_uniform", "use_reorder": True, "precise_quantization_type": "fp32"}
        graph = {"max_degree": 32, "ef_construction": effort, "build_thread_count": threads}
        cols = x.shape[1]
        settings = {"dtype": "float32", "metric_type": "cosine" if metric == "cosine" else "l2", "dim": cols, "index_param": codes | graph}
        self.index = pyvsag.Index("hgraph", json.dumps(settings))
        self.index.build(vectors=self.prepared(x), ids=np.arange(len(x)), num_elements=len(x), dim=cols)

    def prepared(self, queries: Rows) -> Rows:
        return queries.astype(np.float32)

    def search(self, queries: Rows, effort: int) -> Rows:
        settings = json.dumps({"hgraph": {"ef_search": effort}})
        return np.stack([self.index.knn_search(vector=q, k=K, parameters=settings)[0] for q in queries])


class Svs:
    """Codes of one byte, or of four bits and eight more for the second look."""

    def __init__(self, x: Rows, metric: str, threads: int, bits: int, more_bits: int, effort: int) -> None:
        import svs

        self.unit = metric == "cosine"
        x = self.prepared(x)
        distance = svs.DistanceType.MIP if self.unit else svs.DistanceType.L2
        settings = svs.VamanaBuildParameters(graph_max_degree=32, window_size=effort, alpha=0.95 if self.unit else 1.2)
        with tempfile.TemporaryDirectory() as folder:
            svs.write_vecs(x, f"{folder}/x.fvecs")
            vectors = svs.VectorDataLoader(f"{folder}/x.fvecs", svs.DataType.float32, x.shape[1])
            codes = svs.LVQLoader(vectors, primary=bits, residual=more_bits, padding=32)
            self.index = svs.Vamana.build(settings, codes, distance, num_threads=threads)
        self.index.num_threads = 1

    def prepared(self, queries: Rows) -> Rows:
        queries = queries.astype(np.float32)
        return unit(queries) if self.unit else queries

    def search(self, queries: Rows, effort: int) -> Rows:
        self.index.search_window_size = max(effort, K)
        return self.index.search(queries, K)[0]


# By name: vectors, metric, threads, effort of the build. Kith has no effort.
MAKERS: dict[str, Callable[[Rows, str, int, int], Peer]] = {
    "kith": lambda x, metric, threads, _: KithGraph(x.astype(np.float32), metric, threads, "Graph32"),
    "kith_bytes": lambda x, metric, threads, _: KithGraph(x, metric, threads, "Graph32"),
    "kith_4_bits": lambda x, metric, threads, _: KithGraph(x.astype(np.float32), metric, threads, "Graph32x4"),
    "hnswlib_16": lambda x, metric, threads, effort: Hnswlib(x, metric, threads, 16, effort),
    "hnswlib_32": lambda x, metric, threads, effort: Hnswlib(x, metric, threads, 32, effort),
    "faiss_hnsw32": lambda x, metric, threads, effort: FaissHnsw(x, metric, threads, effort),
    "usearch_f32": lambda x, metric, threads, effort: Usearch(x, metric, threads, "f32", effort),
    "usearch_f16": lambda x, metric, threads, effort: Usearch(x, metric, threads, "f16", effort),
    "usearch_i8": lambda x, metric, threads, effort: Usearch(x, metric, threads, "i8", effort),
    "vsag_sq8": lambda x, metric, threads, effort: Vsag(x, metric, threads, effort),
    "svs_lvq8": lambda x, metric, threads, effort: Svs(x, metric, threads, 8, 0, effort),
    "svs_lvq4x8": lambda x, metric, threads, effort: Svs(x, metric, threads, 4, 8, effort),
}


def read(path: Path, rows: int) -> Rows:
    import kith

    return np.asarray(kith.read_vectors(path, 0, rows))


def low_rank(rows: int, queries: int) -> tuple[Rows, Rows]:
    rng = np.random.default_rng(0)
    basis = rng.standard_normal((48, 768), dtype=np.float32)
    centres = rng.standard_normal((200, 48), dtype=np.float32)
    points = centres[rng.integers(200, size=rows + queries)] + rng.standard_normal((rows + queries, 48), dtype=np.float32)
    x = unit(points @ basis)
    return x[:rows], x[rows:]


def data_of(name: str, folder: Path, rows: int, queries: int) -> tuple[Rows, Rows, str]:
    """Vectors, queries and the metric."""
    if name == "mixture":
        return *low_rank(rows, queries), "l2"
    if name == "glove":
        return read(folder / "glove100_base.f16bin", rows), read(folder / "glove100_query.f16bin", queries), "cosine"
    return read(folder / "sift1m_base.u8bin", rows), read(folder / "sift1m_query.u8bin", queries), "l2"
