"""Where k-means begins: the quality and the time of Kith's default start beside greedy k-means++ over all rows.

For each data set and seed: the inertia after the start alone and at the end of the fit, by the default start, by greedy
k-means++ over all rows (`init_points_per_centre=0`), and by scikit-learn's KMeans; all as ratios to the mean of greedy
k-means++ over all rows at the end. The data are small or hard on purpose: clusters of very different sizes, rows that
come many times, few and many columns, and rows without clusters.

    .venv/bin/python bench/kmeans_start.py [--threads 2] [--seeds 10] [--iterations 25] [--no-sklearn] [--json FILE]

Needs the package kith; installs scikit-learn beside it where it is missing.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from turns import install_missing, write_results

import kith

Vectors = npt.NDArray[np.float32]


def imbalanced(rng: np.random.Generator) -> tuple[Vectors, int]:
    """One cluster of 20,000 rows and seven of 50."""
    middles = 40 * rng.standard_normal((8, 4))
    sizes = [20_000] + [50] * 7
    return np.repeat(middles, sizes, axis=0) + rng.standard_normal((sum(sizes), 4)), 8


def many_imbalanced(rng: np.random.Generator) -> tuple[Vectors, int]:
    """600 clusters whose sizes fall as 1 / rank: most are small."""
    sizes = np.maximum(30_000 / np.arange(1, 601), 8).astype(int)
    middles = 12 * rng.standard_normal((600, 24))
    return np.repeat(middles, sizes, axis=0) + rng.standard_normal((sizes.sum(), 24)), 600


def duplicates(rng: np.random.Generator) -> tuple[Vectors, int]:
    """2,000 rows that differ, each many times."""
    return rng.standard_normal((2_000, 16))[rng.integers(0, 2_000, 60_000)], 100


def few_columns(rng: np.random.Generator) -> tuple[Vectors, int]:
    return 10 * rng.integers(0, 12, (50_000, 2)) + rng.standard_normal((50_000, 2)), 144


def high_columns(rng: np.random.Generator) -> tuple[Vectors, int]:
    return 3 * rng.standard_normal((200, 784))[rng.integers(0, 200, 12_000)] + rng.standard_normal((12_000, 784)), 200


def uniform(rng: np.random.Generator) -> tuple[Vectors, int]:
    return rng.random((30_000, 32)), 1_000


DATA = (imbalanced, many_imbalanced, duplicates, few_columns, high_columns, uniform)


def main() -> None:
    parser = argparse.ArgumentParser(description="k-means: how good the start is")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--iterations", type=int, default=25)
    parser.add_argument("--no-sklearn", action="store_true")
    parser.add_argument("--only", help="the name of one data set")
    parser.add_argument("--json", metavar="FILE", help="write the numbers to FILE too")
    options = parser.parse_args()
    install_missing("sklearn", "scikit-learn")
    install_missing("threadpoolctl", "threadpoolctl")
    import sklearn.cluster
    import threadpoolctl

    def ours(x: Vectors, k: int, seed: int, points: int | None) -> tuple[float, float, float]:
        start = time.perf_counter()
        model = kith.KMeans(
            k, iterations=options.iterations, seed=seed, init_points_per_centre=points, device="cpu"
        ).fit(x, threads=options.threads)
        seconds = time.perf_counter() - start
        return model.objective_history_[0], model.inertia_, seconds

    def theirs(x: Vectors, k: int, seed: int, _: int | None) -> tuple[float, float, float]:
        start = time.perf_counter()
        with threadpoolctl.threadpool_limits(options.threads):
            model = sklearn.cluster.KMeans(k, max_iter=options.iterations, n_init=1, random_state=seed).fit(x)
        return float("nan"), float(model.inertia_), time.perf_counter() - start

    ways: dict[str, tuple[Any, int | None]] = {"default": (ours, None), "all rows": (ours, 0), "32 a centre": (ours, 32)}
    if not options.no_sklearn:
        ways["scikit-learn"] = (theirs, None)
    print(f"{kith.info()['cpu']}, {options.threads} threads, {options.seeds} seeds, up to {options.iterations} iterations")
    print("inertia / mean of greedy k-means++ over all rows: after the start; at the end, mean, worst; seconds of a fit\n")
    results = []
    for make in DATA:
        if options.only not in (None, make.__name__):
            continue
        made, k = make(np.random.default_rng(7))
        x = np.ascontiguousarray(made, dtype=np.float32)
        print(f"{make.__name__}: {x.shape[0]} x {x.shape[1]} to {k}")
        found = {name: np.array([run(x, k, seed, points) for seed in range(options.seeds)]) for name, (run, points) in ways.items()}
        best = found["all rows"][:, 1].mean()
        for name, runs in found.items():
            started, end, worst = runs[:, 0].mean() / best, runs[:, 1].mean() / best, runs[:, 1].max() / best
            print(f"  {name:13} {started:7.3f}  {end:7.4f}  {worst:7.4f}  {np.median(runs[:, 2]):7.3f} s", flush=True)
            row = {"data": make.__name__, "rows": len(x), "cols": x.shape[1], "clusters": k, "start": name}
            results.append({**row, "after_start": started, "mean": end, "worst": worst, "inertias": runs[:, 1].tolist()})
    if options.json:
        settings = {name: value for name, value in vars(options).items() if name != "json"}
        write_results(Path(options.json), settings, results, scikit_learn=sklearn.__version__)


if __name__ == "__main__":
    main()
