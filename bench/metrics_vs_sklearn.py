"""k-NN by l1, linf, cosine and hamming against scikit-learn's brute force and faiss-cpu, turn by turn.

The best time of each over some rounds: all queries at once, and one query alone, of which a turn asks 20 one after the
other. Hamming distances are those of rows of as many bits as the others have columns: packed for Kith and FAISS, one bool
each for scikit-learn, which knows no other.

    .venv/bin/python bench/metrics_vs_sklearn.py [--threads 2] [--rows 20000] [--cols 128] [--queries 500] [--write]

Needs the package kith; installs scikit-learn, faiss-cpu and threadpoolctl beside it where they are missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from report import parser_of, report_of
from turns import best_in_turn, install_missing

import kith

METRICS = {"l1": "manhattan", "linf": "chebyshev", "cosine": "cosine", "hamming": "hamming"}
ONE_BY_ONE = 20  # single queries of a turn
Search = Callable[[Any, int], np.ndarray]  # (queries, k) -> distances in Kith's unit


def kith_search(metric: str, base: np.ndarray, threads: int) -> Search:
    index = kith.Index("Flat", metric=metric, device="cpu")
    index.add(base)
    return lambda queries, k: index.search(queries, k, threads=threads).distances


def sklearn_search(metric: str, base: np.ndarray, threads: int) -> Search:
    from sklearn.neighbors import NearestNeighbors

    model = NearestNeighbors(algorithm="brute", metric=METRICS[metric], n_jobs=threads).fit(base)
    unit = base.shape[1] if metric == "hamming" else 1
    return lambda queries, k: model.kneighbors(queries, k)[0] * unit


def faiss_search(metric: str, base: np.ndarray) -> Search:
    import faiss

    if metric == "hamming":
        index = faiss.IndexBinaryFlat(8 * base.shape[1])
        index.add(base)
        return lambda queries, k: index.search(queries, k)[0]
    if metric == "cosine":
        index = faiss.IndexFlatIP(base.shape[1])
        index.add(normalised(base))
        return lambda queries, k: 1 - index.search(normalised(queries), k)[0]
    index = faiss.IndexFlat(base.shape[1], {"l1": faiss.METRIC_L1, "linf": faiss.METRIC_Linf}[metric])
    index.add(base)
    return lambda queries, k: index.search(queries, k)[0]


def ask(search: Search, queries: Any, count: int, calls: int, k: int) -> None:
    for i in range(calls):
        search(queries[i * count : (i + 1) * count], k)


def normalised(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--cols", type=int, default=128)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--metrics", default=",".join(METRICS), help="some of them, with commas between")
    options = parser.parse_args()

    install_missing("scikit-learn", "faiss-cpu", "threadpoolctl")
    import faiss
    import sklearn
    import threadpoolctl

    faiss.omp_set_num_threads(options.threads)
    report = report_of("metrics_vs_sklearn", options, sklearn=sklearn.__version__, faiss=faiss.__version__)
    rng = np.random.default_rng(options.seed)
    with threadpoolctl.threadpool_limits(options.threads):
        for metric in options.metrics.split(","):
            if metric == "hamming":
                bits = rng.random((options.rows + options.queries, options.cols)) < 0.5
                plain, packed = bits, np.packbits(bits, axis=1)
            else:
                plain = packed = rng.standard_normal((options.rows + options.queries, options.cols), dtype=np.float32)
            searches = {
                "kith": (kith_search(metric, packed[: options.rows], options.threads), packed[options.rows :]),
                "sklearn": (sklearn_search(metric, plain[: options.rows], options.threads), plain[options.rows :]),
                "faiss": (faiss_search(metric, packed[: options.rows]), packed[options.rows :]),
            }
            for count in (options.queries, 1):
                found = {name: search(queries[:count], options.k) for name, (search, queries) in searches.items()}
                for name in ("sklearn", "faiss"):  # times of different answers would say nothing
                    np.testing.assert_allclose(found["kith"], found[name], rtol=1e-4, atol=1e-4)
                calls = 1 if count > 1 else ONE_BY_ONE
                best = best_in_turn(
                    options.rounds,
                    {name: lambda s=s, q=q: ask(s, q, count, calls, options.k) for name, (s, q) in searches.items()},
                )
                ms = {name: 1e3 * seconds / calls for name, seconds in best.items()}
                report.row(
                    f"{metric}, {count} queries",
                    shape=f"{options.rows} x {options.cols}, k = {options.k}",
                    ms=ms.pop("kith"),
                    runs=options.rounds,
                    clock="wall",
                    peers_ms=ms,
                )


if __name__ == "__main__":
    main()
