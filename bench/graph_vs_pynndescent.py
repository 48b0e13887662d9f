"""k-NN graphs against PyNNDescent, both measured in this run, turn by turn, at the recall that each reaches.

Kith builds for recalls of 0.95 and 0.99 by each method; PyNNDescent with more and more neighbours, of which the first k
count. Recall@k and @10 are those of 1,000 rows that are searched exactly. Beside the time by the clock stand the seconds of
all processors together over the threads, which a busy machine disturbs less.

    .venv/bin/python bench/graph_vs_pynndescent.py [--file base.u8bin] [--rows 100000] [--metric l2] [--threads 2]
                                                   [--dtype f32] [--turns 2] [--json FILE]

Needs the package kith; installs pynndescent beside it where it is missing. Without a file: the mixture of k-means' bench.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from kmeans_vs_faiss import mixture
from turns import install_missing, write_results

import kith

METRICS = {"l2": "euclidean", "cosine": "cosine", "l1": "manhattan"}


def chi_square() -> Any:
    import numba

    @numba.njit(fastmath=True)  # type: ignore[misc]
    def distance(x: Any, y: Any) -> float:
        total = 0.0
        for i in range(x.shape[0]):
            both = x[i] + y[i]
            if both > 0:
                total += (x[i] - y[i]) ** 2 / both
        return total

    return distance


def timed(run: Callable[[], Any], threads: int) -> tuple[float, float, Any]:
    start, cpu = time.perf_counter(), time.process_time()
    result = run()
    return time.perf_counter() - start, (time.process_time() - cpu) / threads, result


def recall_of(graph: kith.KnnGraph, x: npt.NDArray[Any], threads: int) -> tuple[float, float]:
    measured = graph.measure_recall(x, rows=1000, seed=17, threads=threads, device="cpu")
    return measured.recall, measured.recall_at_10


def first_others(index: Any, k: int, metric: str) -> kith.KnnGraph:
    """PyNNDescent's neighbours without the rows themselves, which stand first."""
    ids, distances = index.neighbor_graph
    ids = ids.astype(np.int64)
    keep = ids != np.arange(len(ids))[:, np.newaxis]
    order = np.argsort(~keep, axis=1, kind="stable")[:, :k]
    ids, distances = np.take_along_axis(ids, order, 1), np.take_along_axis(distances, order, 1)
    return kith.KnnGraph(ids, np.maximum.accumulate(distances.astype(np.float32), axis=1), metric)


def main() -> None:
    parser = argparse.ArgumentParser(description="k-NN graphs: kith against PyNNDescent")
    parser.add_argument("--file", type=Path)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("-k", type=int, default=15)
    parser.add_argument("--metric", default="l2", choices=[*METRICS, "chi_square"])
    parser.add_argument("--dtype", default="f32", choices=["f32", "u8"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--neighbors", type=int, nargs="*", default=[16, 20, 30])
    parser.add_argument("--recalls", type=float, nargs="*", default=[0.95, 0.99])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    install_missing("pynndescent", "pynndescent")
    import pynndescent

    data = kith.read_vectors(options.file) if options.file else mixture(options.rows, 128, 1).astype(np.uint8)
    x = np.ascontiguousarray(data[: options.rows])
    floats = np.ascontiguousarray(x, np.float32)
    ours = x.astype(np.uint8) if options.dtype == "u8" else floats
    metric: Any = chi_square() if options.metric == "chi_square" else METRICS[options.metric]
    pynndescent.NNDescent(floats[:3000], metric=metric, n_neighbors=16, n_jobs=options.threads)  # compiles

    runs: dict[str, Callable[[], kith.KnnGraph]] = {}
    methods = ["nn_descent"] if options.metric in ("l1", "chi_square") else ["cells", "nn_descent"]
    for recall in options.recalls:
        for method in methods:
            runs[f"kith {method} {recall}"] = lambda method=method, recall=recall: kith.knn_graph(  # type: ignore[misc]
                ours, options.k, options.metric, method, recall=recall, threads=options.threads, device="cpu"
            )
    for count in options.neighbors:
        runs[f"pynndescent {count}"] = lambda count=count: pynndescent.NNDescent(  # type: ignore[misc]
            floats, metric=metric, n_neighbors=count, n_jobs=options.threads, random_state=0
        )

    best: dict[str, dict[str, Any]] = {}
    for _ in range(options.turns):
        for name, run in runs.items():
            seconds, processors, made = timed(run, options.threads)
            told = best.setdefault(name, {"name": name, "seconds": float("inf"), "processor_seconds": float("inf")})
            told["seconds"] = min(told["seconds"], seconds)
            told["processor_seconds"] = min(told["processor_seconds"], processors)
            if "recall" not in told:
                graph = made if isinstance(made, kith.KnnGraph) else first_others(made, options.k, options.metric)
                told["recall"], told["recall_at_10"] = recall_of(graph, ours, options.threads)
    print(f"{len(x):,} x {x.shape[1]} {options.dtype}, k = {options.k}, {options.metric}, {options.threads} threads")
    print(f"{'':24} {'s':>8} {'cpu s':>8} {'recall':>8} {'@10':>8}")
    for told in best.values():
        print(
            f"{told['name']:24} {told['seconds']:8.2f} {told['processor_seconds']:8.2f} {told['recall']:8.4f} "
            f"{told['recall_at_10']:8.4f}"
        )
    if options.json:
        given = {name: value.name if isinstance(value, Path) else value for name, value in vars(options).items()}
        write_results(options.json, given, list(best.values()), pynndescent=pynndescent.__version__)


if __name__ == "__main__":
    main()
