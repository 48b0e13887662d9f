"""Random shapes of everyday size: Kith beside what people use, turn by turn.

Each shape is drawn from the seed: a job, rows, columns, queries (a fifth of them one), k, a metric, a dtype (f32, u8, i8)
and a kind of data. The last lines are the median ratio (the other's time / Kith's), and the worst and the median of each job.

    .venv/bin/python bench/sweep.py [--shapes 200] [--threads 1] [--seed 1] [--only PART_OF_A_JOB] [--write]

Jobs and peers: search in an index and of arrays (faiss's Flat for l2, inner_product and cosine; scikit-learn's brute
force for l1; hamming by faiss's binary index), pairwise distances (SciPy for l1 and linf, scikit-learn else), k-means and
predict (scikit-learn, its own k-means++ for both sides to start from).

Needs the package kith; installs faiss-cpu, scikit-learn, scipy and threadpoolctl beside it where they are missing.
"""

from __future__ import annotations

import warnings

import numpy as np
from report import parser_of, report_of
from shapes import Shape, draw_for_cpu, note_ratios
from turns import Call, best_in_turn, clock_for, clock_name, install_missing

import kith



def make_data(shape: Shape, rows: int, centres: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """gaussian: independent values; mixture: points around 50 centres; skewed: values above 0 with a long tail."""
    data = rng.standard_normal((rows, shape.cols), dtype=np.float32)
    if shape.data == "mixture":
        data = centres[rng.integers(0, len(centres), rows)] + 0.5 * data
    elif shape.data == "skewed":
        data = np.exp(data)
    if shape.dtype == "f32":
        return data
    if shape.dtype == "i8":
        return np.clip(np.rint(40 * data), -128, 127).astype(np.int8)
    return np.clip(np.rint(40 * data + 100), 0, 255).astype(np.uint8)


def search_calls(shape: Shape, queries: np.ndarray, base: np.ndarray, threads: int) -> tuple[Call, Call]:
    import faiss
    from sklearn.neighbors import NearestNeighbors

    options = {"threads": threads}
    if shape.job == "index":
        index = kith.Index("Flat", metric=shape.metric, device="cpu")
        index.add(base)
        ours: Call = lambda: index.search(queries, shape.k, **options)
    else:
        ours = lambda: kith.knn(queries, base, shape.k, shape.metric, device="cpu", **options)

    if shape.metric == "hamming":
        bits = faiss.IndexBinaryFlat(8 * shape.cols)
        bits.add(base)
        return ours, lambda: bits.search(queries, shape.k)
    wide_queries, wide_base = np.asarray(queries, np.float32), np.asarray(base, np.float32)
    if shape.metric == "l1":
        brute = NearestNeighbors(n_neighbors=shape.k, algorithm="brute", metric="manhattan", n_jobs=threads).fit(wide_base)
        return ours, lambda: brute.kneighbors(wide_queries)
    if shape.metric == "cosine":  # as its users do it: rows of length 1, then inner products
        faiss.normalize_L2(wide_base)
        faiss.normalize_L2(wide_queries)
    kind = faiss.METRIC_L2 if shape.metric == "sqeuclidean" else faiss.METRIC_INNER_PRODUCT
    if shape.job == "arrays":
        return ours, lambda: faiss.knn(wide_queries, wide_base, shape.k, metric=kind)
    peer = faiss.IndexFlat(shape.cols, kind)
    peer.add(wide_base)
    return ours, lambda: peer.search(wide_queries, shape.k)


def pairwise_calls(shape: Shape, queries: np.ndarray, base: np.ndarray, threads: int) -> tuple[Call, Call]:
    from scipy.spatial.distance import cdist
    from sklearn.metrics import pairwise_distances

    ours: Call = lambda: kith.pairwise_distances(queries, base, shape.metric, device="cpu", threads=threads)
    if shape.metric in ("l1", "linf"):
        return ours, lambda: cdist(queries, base, "cityblock" if shape.metric == "l1" else "chebyshev")
    return ours, lambda: pairwise_distances(queries, base, metric=shape.metric, n_jobs=1)


def cluster_calls(shape: Shape, base: np.ndarray, threads: int) -> tuple[Call, Call]:
    from sklearn.cluster import KMeans, kmeans_plusplus

    sample = base[: min(len(base), 20 * shape.k)]
    start = kmeans_plusplus(sample, shape.k, random_state=0)[0].astype(np.float32)
    settings = {"init": start, "n_init": 1, "max_iter": 10, "tol": 0.0}
    mine = kith.sklearn.KMeans(shape.k, **settings, n_jobs=threads)
    theirs = KMeans(shape.k, **settings)
    if shape.job == "kmeans":
        return lambda: mine.fit(base), lambda: theirs.fit(base)
    mine.fit(base)
    theirs.fit(base)
    return lambda: mine.predict(base), lambda: theirs.predict(base)


def make_calls(shape: Shape, rng: np.random.Generator, threads: int) -> tuple[Call, Call]:
    centres = 4 * rng.standard_normal((50, shape.cols), dtype=np.float32)
    base = make_data(shape, shape.rows, centres, rng)
    if shape.job in ("kmeans", "predict"):
        return cluster_calls(shape, base, threads)
    queries = make_data(shape, shape.queries, centres, rng)
    make = pairwise_calls if shape.job == "pairwise" else search_calls
    return make(shape, queries, base, threads)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--shapes", type=int, default=200)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="jobs that have this in their name: index, arrays, pairwise, kmeans, predict")
    options = parser.parse_args()

    install_missing("faiss-cpu", "scikit-learn", "threadpoolctl")
    import faiss
    import sklearn
    import threadpoolctl

    import kith.sklearn

    warnings.filterwarnings("ignore", category=sklearn.exceptions.ConvergenceWarning)
    faiss.omp_set_num_threads(options.threads)
    rng = np.random.default_rng(options.seed)
    report = report_of("sweep", options, faiss=faiss.__version__, sklearn=sklearn.__version__)
    ratios: list[tuple[float, Shape]] = []
    with threadpoolctl.threadpool_limits(options.threads):
        for _ in range(options.shapes):
            shape, seed = draw_for_cpu(rng), int(rng.integers(2**31))
            if options.only not in shape.job:
                continue
            ours, theirs = make_calls(shape, np.random.default_rng(seed), options.threads)
            times = best_in_turn(options.rounds, {"kith": ours, "other": theirs}, clock_for(options.threads))
            ratios.append((times["other"] / times["kith"], shape))
            report.row(
                " ".join(str(shape).split()),
                ms=1e3 * times["kith"],
                runs=options.rounds,
                clock=clock_name(options.threads),
                peers_ms={"other": 1e3 * times["other"]},
            )
    note_ratios(report, ratios)


if __name__ == "__main__":
    main()
