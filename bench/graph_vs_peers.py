"""k-NN graphs against PyNNDescent and faiss's NNDescent, all measured in this run, turn by turn.

Kith builds for the recalls asked for by each method; the peers with more and more neighbours, of which the first k count.
Recall@k and @10 are those of 1,000 rows that are searched exactly. What a peer takes at Kith's recall lies on the line
between its two nearest points (logarithms of time and of what is missing), and stands beside Kith's. Beside the time by the
clock stand the seconds of all processors together over the threads, which a busy machine disturbs less.

    .venv/bin/python bench/graph_vs_peers.py [--file base.u8bin] [--rows 100000] [--metric l2] [--threads 2] [--dtype f32]
        [--methods cells nn_descent] [--starts auto random] [--neighbors 16 20 30] [--faiss 32 64] [--turns 2] [--out FILE]

Needs the package kith; installs pynndescent beside it where it is missing. faiss runs where --faiss names neighbours, and
only for l2. Without a file: the mixture of made_data.py.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from made_data import mixture
from report import Report, parser_of, report_of
from turns import install_missing, timed

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
            made, seconds, processors = timed(run)
            processors /= options.threads
            told = best.setdefault(name, {"name": name, "seconds": math.inf, "processor_seconds": math.inf})
            told["seconds"] = min(told["seconds"], seconds)
            told["processor_seconds"] = min(told["processor_seconds"], processors)
            if "recall" not in told:
                graph = made if isinstance(made, kith.KnnGraph) else first_others(made, options.k, options.metric)
                found = graph.measure_recall(x, rows=1000, seed=17, threads=options.threads, device="cpu")
                told["recall"], told["recall_at_10"] = found.recall, found.recall_at_10
    return list(best.values())


def add_rows(report: Report, results: list[dict[str, Any]], shape: str, turns: int) -> None:
    peers = {peer: [told for told in results if told["name"].startswith(peer)] for peer in ("pynndescent", "faiss")}
    for told in results:
        figures = {"processor_s": told["processor_seconds"], "recall": told["recall"], "recall@10": told["recall_at_10"]}
        at_recall_ms = {}
        for peer, points in peers.items():
            theirs = at_recall(points, told["recall"], "seconds")
            theirs_cpu = at_recall(points, told["recall"], "processor_seconds")
            if not told["name"].startswith("kith") or theirs is None or theirs_cpu is None:
                continue
            at_recall_ms[peer] = 1e3 * theirs
            figures[f"{peer}_processor_s"] = theirs_cpu
        report.row(
            told["name"],
            shape=shape,
            ms=1e3 * told["seconds"],
            runs=turns,
            clock="wall",
            peers_ms=at_recall_ms,
            figures=figures,
        )


def main() -> None:
    parser = parser_of(__doc__)
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
    options = parser.parse_args()

    data = kith.read_vectors(options.file) if options.file else mixture(options.rows, 128, 1).astype(np.uint8)
    x = np.ascontiguousarray(data[: options.rows])
    floats = np.ascontiguousarray(x, np.float32)
    ours = x.astype(np.uint8) if options.dtype == "u8" else floats
    runs = kith_runs(options, ours)
    versions = {}
    if options.neighbors:
        install_missing("pynndescent")
        runs |= pynndescent_runs(options, floats)
        import pynndescent

        versions["pynndescent"] = pynndescent.__version__
    if options.faiss:
        install_missing("faiss-cpu")
        runs |= faiss_runs(options, floats)
        import faiss

        versions["faiss"] = faiss.__version__
    report = report_of("graph_vs_peers", options, **versions)
    shape = f"{len(x):,} x {x.shape[1]} {options.dtype}, {options.metric}, k = {options.k}"
    add_rows(report, measure(options, runs, ours), shape, options.turns)


if __name__ == "__main__":
    main()
