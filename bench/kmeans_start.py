"""Where k-means begins: the quality and the time of Kith's default start beside greedy k-means++ over all rows.

For each data set and seed: the inertia after the start alone and at the end of the fit, by the default start, by greedy
k-means++ over all rows (`init_points_per_centre=0`), and by scikit-learn's KMeans; all as ratios to the mean of greedy
k-means++ over all rows at the end. The data are small or hard on purpose: clusters of very different sizes, rows that
come many times, few and many columns, and rows without clusters.

    .venv/bin/python bench/kmeans_start.py [--threads 2] [--seeds 10] [--iterations 25] [--no-sklearn] [--out FILE]

Needs the package kith; installs scikit-learn beside it where it is missing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from report import parser_of, report_of
from turns import install_missing, timed

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
    parser = parser_of(__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--iterations", type=int, default=25)
    parser.add_argument("--no-sklearn", action="store_true")
    parser.add_argument("--only", help="the name of one data set")
    options = parser.parse_args()
    install_missing("scikit-learn", "threadpoolctl")
    import sklearn.cluster
    import threadpoolctl

    def ours(x: Vectors, k: int, seed: int, points: int | None) -> tuple[float, float, float]:
        model = kith.KMeans(k, iterations=options.iterations, seed=seed, init_points_per_centre=points, device="cpu")
        _, seconds, _ = timed(lambda: model.fit(x, threads=options.threads))
        return model.objective_history_[0], model.inertia_, seconds

    def theirs(x: Vectors, k: int, seed: int, _: int | None) -> tuple[float, float, float]:
        model = sklearn.cluster.KMeans(k, max_iter=options.iterations, n_init=1, random_state=seed)
        with threadpoolctl.threadpool_limits(options.threads):
            _, seconds, _ = timed(lambda: model.fit(x))
        return float("nan"), float(model.inertia_), seconds

    ways: dict[str, tuple[Any, int | None]] = {"default": (ours, None), "all rows": (ours, 0), "32 a centre": (ours, 32)}
    if not options.no_sklearn:
        ways["scikit-learn"] = (theirs, None)
    report = report_of("kmeans_start", options, scikit_learn=sklearn.__version__)
    for make in DATA:
        if options.only not in (None, make.__name__):
            continue
        made, k = make(np.random.default_rng(7))
        x = np.ascontiguousarray(made, dtype=np.float32)
        found = {name: np.array([run(x, k, seed, points) for seed in range(options.seeds)]) for name, (run, points) in ways.items()}
        best = found["all rows"][:, 1].mean()
        for name, runs in found.items():
            started, end, worst = runs[:, 0].mean() / best, runs[:, 1].mean() / best, runs[:, 1].max() / best
            figures = {"mean": end, "worst": worst} | ({} if np.isnan(started) else {"after_start": started})
            figures |= {f"inertia_{seed}": value for seed, value in enumerate(runs[:, 1].tolist())}
            report.row(
                f"{make.__name__}, {name}",
                shape=f"{x.shape[0]} x {x.shape[1]} to {k}",
                median_ms=1e3 * float(np.median(runs[:, 2])),
                runs=options.seeds,
                clock="wall",
                figures=figures,
            )


if __name__ == "__main__":
    main()
