"""k-NN graphs against PyNNDescent and faiss's NNDescent, all measured in this run, turn by turn.

Kith builds for the recalls asked for by each method; the peers with more and more neighbours, of which the first k count.
Recall@k and @10 are those of 1,000 rows that are searched exactly. What a peer takes at Kith's recall lies on the line
between its two nearest points (logarithms of time and of what is missing). Beside the time by the clock stand the seconds of
all processors together over the threads, which a busy machine disturbs less.

    .venv/bin/python bench/graph_vs_peers.py [--file base.u8bin] [--rows 100000] [--metric l2] [--threads 2] [--dtype f32]
        [--methods cells nn_descent] [--starts auto random] [--neighbors 16 20 30] [--faiss 32 64] [--turns 2] [--json FILE]

Needs the package kith; installs pynndescent beside it where it is missing. faiss runs where --faiss names neighbours, and
only for l2. Without a file: the mixture of made_data.py.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from made_data import mixture
from turns import install_missing, write_results

import kith

METRICS = {"l2": "euclidean", "cosine": "cosine", "l1": "manhattan"}
Run = Callable[[], kith.KnnGraph]


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


def first_others(ids: npt.NDArray[Any], k: int, metric: str) -> kith.KnnGraph:
    """The first k of a peer's neighbours without the rows themselves. Recall goes by the vectors: distances are not told."""
    ids = ids.astype(np.int64)
    keep = ids != np.arange(len(ids))[:, np.newaxis]
    order = np.argsort(~keep, axis=1, kind="stable")[:, :k]
    return kith.KnnGraph(np.take_along_axis(ids, order, 1), np.zeros((len(ids), k), np.float32), metric)


def kith_runs(options: argparse.Namespace, x: npt.NDArray[Any]) -> dict[str, Run]:
    runs: dict[str, Run] = {}
    for recall in options.recalls:
        for method in options.methods:
            if method == "cells" and options.metric in ("l1", "chi_square"):
                continue
            for start in options.starts if method == "nn_descent" else ["auto"]:
                name = f"kith {method}{'' if start == 'auto' else ' ' + start} {recall}"
                given = {} if start == "auto" else {"start": start}

                def run(method: Any = method, recall: float = recall, given: Any = given) -> kith.KnnGraph:
                    return kith.knn_graph(
                        x,
                        options.k,
                        options.metric,
                        method,
                        recall=recall,
                        threads=options.threads,
                        device="cpu",
                        **given,
                    )

                runs[name] = run
    return runs


def pynndescent_runs(options: argparse.Namespace, x: npt.NDArray[Any]) -> dict[str, Run]:
    import pynndescent

    metric: Any = chi_square() if options.metric == "chi_square" else METRICS[options.metric]
    pynndescent.NNDescent(x[:3000], metric=metric, n_neighbors=16, n_jobs=options.threads)  # compiles
    runs: dict[str, Run] = {}
    for count in options.neighbors:

        def run(count: int = count) -> kith.KnnGraph:
            index = pynndescent.NNDescent(
                x, metric=metric, n_neighbors=count, n_jobs=options.threads, random_state=0
            )
            return index.neighbor_graph[0]  # type: ignore[no-any-return]

        runs[f"pynndescent {count}"] = run
    return runs


def faiss_runs(options: argparse.Namespace, x: npt.NDArray[Any]) -> dict[str, Run]:
    import faiss

    faiss.omp_set_num_threads(options.threads)
    runs: dict[str, Run] = {}
    for count in options.faiss if options.metric == "l2" else []:

        def run(count: int = count) -> kith.KnnGraph:
            index = faiss.IndexNNDescentFlat(x.shape[1], count, faiss.METRIC_L2)
            index.add(x)
            found = faiss.vector_to_array(index.nndescent.final_graph)
            return found.reshape(len(x), count)  # type: ignore[no-any-return]

        runs[f"faiss {count}"] = run
    return runs


def at_recall(points: list[dict[str, Any]], recall: float, what: str) -> float | None:
    """What a peer takes for a recall, or None where its points do not enclose it."""
    points = sorted(points, key=lambda told: told["recall"])
    for before, after in zip(points, points[1:], strict=False):
        if before["recall"] <= recall <= after["recall"] and before["recall"] < after["recall"] < 1:
            logs = [math.log(1 - told) for told in (before["recall"], recall, after["recall"])]
            share = (logs[0] - logs[1]) / (logs[0] - logs[2])
            return math.exp((1 - share) * math.log(before[what]) + share * math.log(after[what]))
    return None


def measure(options: argparse.Namespace, runs: dict[str, Run], x: npt.NDArray[Any]) -> list[dict[str, Any]]:
    best: dict[str, dict[str, Any]] = {}
    for _ in range(options.turns):
        for name, run in runs.items():
            start, cpu = time.perf_counter(), time.process_time()
            made = run()
            seconds, processors = time.perf_counter() - start, (time.process_time() - cpu) / options.threads
            told = best.setdefault(name, {"name": name, "seconds": math.inf, "processor_seconds": math.inf})
            told["seconds"] = min(told["seconds"], seconds)
            told["processor_seconds"] = min(told["processor_seconds"], processors)
            if "recall" not in told:
                graph = made if isinstance(made, kith.KnnGraph) else first_others(made, options.k, options.metric)
                found = graph.measure_recall(x, rows=1000, seed=17, threads=options.threads, device="cpu")
                told["recall"], told["recall_at_10"] = found.recall, found.recall_at_10
                print(f"  {name}: {seconds:.2f} s, recall {found.recall:.4f}", flush=True)
    return list(best.values())


def show(results: list[dict[str, Any]]) -> None:
    peers = {
        peer: [told for told in results if told["name"].startswith(peer)] for peer in ("pynndescent", "faiss")
    }
    print(f"{'':28} {'s':>8} {'cpu s':>8} {'recall':>8} {'@10':>8}   times as long at that recall, by clock (processors)")
    for told in results:
        line = f"{told['name']:28} {told['seconds']:8.2f} {told['processor_seconds']:8.2f} {told['recall']:8.4f} "
        line += f"{told['recall_at_10']:8.4f}"
        for peer, points in peers.items():
            theirs = at_recall(points, told["recall"], "seconds")
            theirs_cpu = at_recall(points, told["recall"], "processor_seconds")
            if not told["name"].startswith("kith") or theirs is None or theirs_cpu is None:
                continue
            told[peer], told[f"{peer}_processors"] = theirs / told["seconds"], theirs_cpu / told["processor_seconds"]
            line += f"   {peer} {told[peer]:.2f} ({told[peer + '_processors']:.2f})"
        print(line)


def main() -> None:
    parser = argparse.ArgumentParser(description="k-NN graphs: kith against PyNNDescent and faiss")
    parser.add_argument("--file", type=Path)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("-k", type=int, default=15)
    parser.add_argument("--metric", default="l2", choices=[*METRICS, "chi_square"])
    parser.add_argument("--dtype", default="f32", choices=["f32", "u8"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--methods", nargs="*", default=["cells", "nn_descent"])
    parser.add_argument("--starts", nargs="*", default=["auto"])
    parser.add_argument("--neighbors", type=int, nargs="*", default=[16, 20, 30])
    parser.add_argument("--faiss", type=int, nargs="*", default=[])
    parser.add_argument("--recalls", type=float, nargs="*", default=[0.95, 0.99])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()

    data = kith.read_vectors(options.file) if options.file else mixture(options.rows, 128, 1).astype(np.uint8)
    x = np.ascontiguousarray(data[: options.rows])
    floats = np.ascontiguousarray(x, np.float32)
    ours = x.astype(np.uint8) if options.dtype == "u8" else floats
    runs = kith_runs(options, ours)
    versions = {}
    if options.neighbors:
        install_missing("pynndescent", "pynndescent")
        runs |= pynndescent_runs(options, floats)
        import pynndescent

        versions["pynndescent"] = pynndescent.__version__
    if options.faiss:
        install_missing("faiss", "faiss-cpu")
        runs |= faiss_runs(options, floats)
        import faiss

        versions["faiss"] = faiss.__version__
    print(f"{len(x):,} x {x.shape[1]} {options.dtype}, k = {options.k}, {options.metric}, {options.threads} threads")
    results = measure(options, runs, ours)
    show(results)
    if options.json:
        given = {name: value.name if isinstance(value, Path) else value for name, value in vars(options).items()}
        write_results(options.json, given, results, **versions)


if __name__ == "__main__":
    main()
