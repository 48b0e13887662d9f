#!/usr/bin/env python3
"""`Graph32` beside faiss HNSW32, usearch, hnswlib, VSAG (HGraph) and SVS (Vamana over LVQ codes), as far as they are installed:
recall of the 10 nearest over processor time, one thread, one query at a time and in batches of 100. VSAG's Python package
takes queries one by one alone, so its batches are loops.

    graph_index.py [--data sift sift_u8 glove mixture] [--folder DATA] [--rows 100000] [--queries 1000] [--rounds 3]
                   [--factory Graph32] [--with kith faiss ... | --without faiss ...] [--efforts 16 24 ...] [--keep FOLDER] [--write | --out FILE]

DATA holds sift1m_base.u8bin, sift1m_query.u8bin, glove100_base.f16bin and glove100_query.f16bin; `mixture` is made: rank 48 in
768 columns, of length 1. Builds are timed by processor time on all threads. Each peer searches with its own effort (ef,
expansion), each effort in turn with all others, and the shortest of the rounds counts. --keep: indexes are kept there, each with
the time of its build, and a run that finds one does not build it; --efforts without a number: builds alone. SVS's are not kept.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

import kith
import numpy as np
import turns
from report import parser_of, report_of

_EFFORTS = (16, 24, 32, 48, 64, 96, 128, 192, 256, 384)
_K = 10
_FEW_ROWS = 1000


def read(path: Path, rows: int) -> np.ndarray:
    return np.asarray(kith.read_vectors(path, 0, rows))


def low_rank(rows: int, queries: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    basis = rng.standard_normal((48, 768), dtype=np.float32)
    centres = rng.standard_normal((200, 48), dtype=np.float32)
    points = centres[rng.integers(200, size=rows + queries)] + rng.standard_normal((rows + queries, 48), dtype=np.float32)
    x = points @ basis
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x[:rows], x[rows:]


def data_of(name: str, folder: Path, rows: int, queries: int) -> tuple[np.ndarray, np.ndarray, str]:
    if name == "mixture":
        return *low_rank(rows, queries), "l2"
    if name == "glove":
        base, query = read(folder / "glove100_base.f16bin", rows), read(folder / "glove100_query.f16bin", queries)
        return base.astype(np.float32), query.astype(np.float32), "cosine"
    base, query = read(folder / "sift1m_base.u8bin", rows), read(folder / "sift1m_query.u8bin", queries)
    if name == "sift":
        base, query = base.astype(np.float32), query.astype(np.float32)
    return base, query, "l2"


class KithGraph:
    def __init__(self, x, metric, factory):
        self.index = kith.Index(factory, metric=metric)
        self.index.add(x)

    def save(self, path):
        self.index.save(path)

    def load(self, path):
        self.index = kith.load(path)

    def search(self, queries, effort):
        return self.index.search(queries, k=_K, beam=effort, threads=1).ids


class FaissHnsw:
    def __init__(self, x, metric):
        import faiss

        x = x.astype(np.float32)
        self.unit = metric == "cosine"
        if self.unit:
            x = x / np.linalg.norm(x, axis=1, keepdims=True)
        self.index = faiss.IndexHNSWFlat(x.shape[1], 32)
        self.index.hnsw.efConstruction = 200
        self.index.add(x)
        faiss.omp_set_num_threads(1)

    def save(self, path):
        import faiss

        faiss.write_index(self.index, path)

    def load(self, path):
        import faiss

        self.index = faiss.read_index(path)
        faiss.omp_set_num_threads(1)

    def prepared(self, queries):
        queries = queries.astype(np.float32)
        return queries / np.linalg.norm(queries, axis=1, keepdims=True) if self.unit else queries

    def search(self, queries, effort):
        self.index.hnsw.efSearch = effort
        return self.index.search(queries, _K)[1]


class Usearch:
    def __init__(self, x, metric, dtype):
        from usearch.index import Index

        self.index = Index(ndim=x.shape[1], metric="cos" if metric == "cosine" else "l2sq", dtype=dtype, connectivity=16,
                           expansion_add=200)
        self.index.add(np.arange(len(x)), x.astype(np.float32))

    def save(self, path):
        self.index.save(path)

    def load(self, path):
        self.index.load(path)

    def prepared(self, queries):
        return queries.astype(np.float32)

    def search(self, queries, effort):
        self.index.expansion_search = effort
        return self.index.search(queries, _K, threads=1).keys


class Hnswlib:
    def __init__(self, x, metric, connectivity):
        import hnswlib

        self.index = hnswlib.Index(space="cosine" if metric == "cosine" else "l2", dim=x.shape[1])
        self.index.init_index(max_elements=len(x), ef_construction=200, M=connectivity)
        self.index.add_items(x.astype(np.float32))
        self.index.set_num_threads(1)

    def save(self, path):
        self.index.save_index(path)

    def load(self, path):
        self.index.load_index(path)
        self.index.set_num_threads(1)

    def prepared(self, queries):
        return queries.astype(np.float32)

    def search(self, queries, effort):
        self.index.set_ef(max(effort, _K))
        return self.index.knn_query(queries, k=_K)[0]


class Vsag:
    """Codes of one byte for the walk, vectors for the order of what it finds, as VSAG's documentation has it for speed."""

    def __init__(self, x, metric):
        import pyvsag

        codes = {"base_quantization_type": "sq8_uniform", "use_reorder": True, "precise_quantization_type": "fp32"}
        pyvsag.set_logger_off()
        cols = x.shape[1]
        settings = {"dtype": "float32", "metric_type": "cosine" if metric == "cosine" else "l2", "dim": cols}
        settings["index_param"] = codes | {"max_degree": 32, "ef_construction": 200}
        self.index = pyvsag.Index("hgraph", json.dumps(settings))
        self.index.build(vectors=x.astype(np.float32), ids=np.arange(len(x)), num_elements=len(x), dim=cols)

    def save(self, path):
        self.index.save(path)

    def load(self, path):
        self.index.load(path)

    def prepared(self, queries):
        return queries.astype(np.float32)

    def search(self, queries, effort):
        settings = json.dumps({"hgraph": {"ef_search": effort}})
        return np.stack([self.index.knn_search(vector=q, k=_K, parameters=settings)[0] for q in queries])


class Svs:
    """Codes of one byte, or of four bits and eight more for the second look."""

    def __init__(self, x, metric, bits, more_bits):
        import svs

        self.unit = metric == "cosine"
        x = self.prepared(x)
        distance = svs.DistanceType.MIP if self.unit else svs.DistanceType.L2
        settings = svs.VamanaBuildParameters(graph_max_degree=32, window_size=200, alpha=0.95 if self.unit else 1.2)
        with tempfile.TemporaryDirectory() as folder:
            svs.write_vecs(x, f"{folder}/x.fvecs")
            vectors = svs.VectorDataLoader(f"{folder}/x.fvecs", svs.DataType.float32, x.shape[1])
            codes = svs.LVQLoader(vectors, primary=bits, residual=more_bits, padding=32)
            self.index = svs.Vamana.build(settings, codes, distance, num_threads=2)
        self.index.num_threads = 1

    def prepared(self, queries):
        queries = queries.astype(np.float32)
        return queries / np.linalg.norm(queries, axis=1, keepdims=True) if self.unit else queries

    def search(self, queries, effort):
        self.index.search_window_size = max(effort, _K)
        return self.index.search(queries, _K)[0]


def built(name, make, kept: Path | None):
    """An index, and the processor seconds of its build; from a file where it was kept, which then is loaded into one of few rows."""
    seconds = kept.with_suffix(".seconds") if kept else None
    try:
        if kept and seconds.exists():
            index = make(_FEW_ROWS)
            index.load(str(kept))
            return index, float(seconds.read_text())
        start = time.process_time()
        index = make(None)
    except ImportError:
        print(f"{name}: not installed")
        return None, 0.0
    taken = time.process_time() - start
    if kept and hasattr(index, "save"):
        kept.parent.mkdir(parents=True, exist_ok=True)
        index.save(str(kept))
        seconds.write_text(f"{taken:.2f}")
    return index, taken


def recall_of(ids, truth) -> float:
    return float(np.mean([len(np.intersect1d(a, b)) / _K for a, b in zip(ids, truth)]))


def measure(report, shape, indexes, queries, truth, rounds, efforts):
    """For each index and effort: recall, and microseconds of processor time a query, alone and in batches."""
    rows = []
    for effort in efforts:
        runs, recalls = {}, {}
        for name, index in indexes.items():
            own = index.prepared(queries) if hasattr(index, "prepared") else queries

            def alone(index=index, own=own):
                for i in range(len(own)):
                    index.search(own[i : i + 1], effort)

            def batches(index=index, own=own):
                for i in range(0, len(own), 100):
                    index.search(own[i : i + 100], effort)

            runs[name, "one"], runs[name, "batch"] = alone, batches
            recalls[name] = recall_of(np.asarray(index.search(own, effort)).astype(np.int64), truth)
        best = turns.best_in_turn(rounds, runs, time.process_time)
        for name in indexes:
            one, batch = (best[name, kind] / len(queries) * 1e6 for kind in ("one", "batch"))
            rows.append({"index": name, "effort": effort, "recall": recalls[name], "one_us": one, "batch_us": batch})
            figures = {"recall": recalls[name], "batch_us": batch}
            case = f"{shape}, {name}, effort {effort}"
            report.row(case, shape=shape, ms=one / 1e3, runs=rounds, clock="processor", figures=figures)
    return rows


def at_recall(rows, name, wanted, kind):
    """The time at a recall, between the two efforts around it."""
    points = sorted((r["recall"], r[kind]) for r in rows if r["index"] == name)
    for (r0, t0), (r1, t1) in zip(points, points[1:]):
        if r0 <= wanted <= r1 and r1 > r0:
            return t0 + (t1 - t0) * (wanted - r0) / (r1 - r0)
    return None


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--data", nargs="+", default=["sift", "sift_u8", "glove", "mixture"])
    parser.add_argument("--folder", type=Path, default=Path("data"))
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--factory", default="Graph32")
    parser.add_argument("--with", nargs="*", dest="chosen")
    parser.add_argument("--without", nargs="*", default=[])
    parser.add_argument("--efforts", nargs="*", type=int, default=list(_EFFORTS))
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    report = report_of("graph_index", options)
    for name in options.data:
        x, queries, metric = data_of(name, options.folder, options.rows, options.queries)
        shape = f"{name}: {x.shape[0]} x {x.shape[1]} {x.dtype}, {metric}"
        makers = {
            "kith": lambda some: KithGraph(x[:some], metric, options.factory),
            "faiss": lambda some: FaissHnsw(x[:some], metric),
            "usearch_f32": lambda some: Usearch(x[:some], metric, "f32"),
            "usearch_i8": lambda some: Usearch(x[:some], "cosine", "i8"),
            "hnswlib_16": lambda some: Hnswlib(x[:some], metric, 16),
            "hnswlib_32": lambda some: Hnswlib(x[:some], metric, 32),
            "vsag_sq8": lambda some: Vsag(x[:some], metric),
            "svs_lvq8": lambda _: Svs(x, metric, 8, 0),
            "svs_lvq4x8": lambda _: Svs(x, metric, 4, 8),
        }
        indexes = {}
        for peer, make in makers.items():
            if peer in options.without or (options.chosen is not None and peer not in options.chosen):
                continue
            if peer == "usearch_i8" and metric != "cosine" and name != "mixture":
                continue  # usearch scales to bytes for cosine alone, which is l2 for vectors of length 1
            kept = options.keep / f"{name}_{len(x)}_{peer}.kith" if options.keep else None
            index, taken = built(peer, make, kept)
            if index is not None:
                indexes[peer] = index
                report.row(f"{shape}, {peer}, build", shape=shape, ms=1e3 * taken, clock="processor")
        if not options.efforts:
            continue
        truth = np.asarray(kith.knn(queries, x, k=_K, metric=metric).ids)
        rows = measure(report, shape, indexes, queries, truth, options.rounds, options.efforts)
        for wanted in (0.90, 0.95, 0.98, 0.99):
            times = {peer: at_recall(rows, peer, wanted, "one_us") for peer in indexes}
            reached = {f"{peer}_us": us for peer, us in times.items() if us}
            report.row(f"{shape}, one query at a recall of {wanted}", shape=shape, figures=reached)


if __name__ == "__main__":
    main()
