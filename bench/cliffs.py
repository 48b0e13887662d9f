"""Shapes and data for which fast paths do not fit: Kith beside what people use, turn by turn.

Each case is one that was once much slower than its neighbours: the best time of both over some rounds (of one thread its
processor time, which a busy machine disturbs less), how many times longer the other takes, and the ratio that is wanted.

    .venv/bin/python bench/cliffs.py [--threads 1] [--rounds 5] [--case PART_OF_A_NAME] [--write]

A case is a function with the decorator `case`: it takes a random generator and gives two calls, Kith's and the other's.

Needs the package kith; installs faiss-cpu, scikit-learn, scipy and threadpoolctl beside it where they are missing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from cases import Cases
from made_data import mixture
from report import parser_of, report_of
from turns import Call, best_in_turn, clock_for, clock_name, install_missing

import kith

THREADS = {"threads": 1}  # what Kith is called with; main() sets it
CASES = Cases()


def case(name: str, other: str, goal: float = 1.0) -> Callable[[Callable[..., tuple[Call, Call]]], None]:
    """Registers a function that makes Kith's call and the other library's."""

    def add(make: Callable[[np.random.Generator], tuple[Call, Call]]) -> None:
        CASES.add(name, goal=goal)(lambda random: dict(zip(("kith", other), make(random), strict=True)))

    return add


def gaussian(rng: np.random.Generator, rows: int, cols: int) -> np.ndarray:
    return rng.standard_normal((rows, cols), dtype=np.float32)


def flat_index(base: np.ndarray, metric: str = "sqeuclidean") -> Any:
    index = kith.Index("Flat", metric=metric, device="cpu")
    index.add(base)
    return index


def faiss_index(base: np.ndarray) -> Any:
    import faiss

    index = faiss.IndexFlatL2(base.shape[1])
    index.add(base)
    return index


def searches(queries: np.ndarray, base: np.ndarray, metric: str = "sqeuclidean", k: int = 10) -> tuple[Call, Call]:
    """Kith's index beside faiss's, which is asked for L2 whatever the metric."""
    ours, theirs = flat_index(base, metric), faiss_index(base)
    return lambda: ours.search(queries, k, **THREADS), lambda: theirs.search(queries, k)


def array_searches(queries: np.ndarray, base: np.ndarray, k: int = 10) -> tuple[Call, Call]:
    import faiss

    return (
        lambda: kith.knn(queries, base, k, "sqeuclidean", device="cpu", **THREADS),
        lambda: faiss.knn(queries, base, k),
    )


# All distances.


def scipy_pairs(metric: str, peer_metric: str, rows: int, cols: int) -> Callable[..., tuple[Call, Call]]:
    def make(rng: np.random.Generator) -> tuple[Call, Call]:
        from scipy.spatial.distance import cdist

        x, y = gaussian(rng, rows, cols), gaussian(rng, rows, cols)
        return (
            lambda: kith.pairwise_distances(x, y, metric, device="cpu", **THREADS),
            lambda: cdist(x, y, peer_metric),
        )

    return make


def sklearn_pairs(metric: str, rows: int, cols: int) -> Callable[..., tuple[Call, Call]]:
    def make(rng: np.random.Generator) -> tuple[Call, Call]:
        from sklearn.metrics import pairwise_distances

        x, y = gaussian(rng, rows, cols), gaussian(rng, rows, cols)
        name = "euclidean" if metric == "l2" else metric
        return (
            lambda: kith.pairwise_distances(x, y, metric, device="cpu", **THREADS),
            lambda: pairwise_distances(x, y, name),
        )

    return make


case("pairwise l1, 2,000 x 3", "scipy")(scipy_pairs("l1", "cityblock", 2000, 3))
case("pairwise l2, 2,000 x 3", "scipy")(scipy_pairs("l2", "euclidean", 2000, 3))
case("pairwise linf, 1,000 x 17", "scipy")(scipy_pairs("linf", "chebyshev", 1000, 17))
case("pairwise l1, 1,000 x 100", "scipy")(scipy_pairs("l1", "cityblock", 1000, 100))
case("pairwise cosine, 1,000 x 784", "sklearn", 0.5)(sklearn_pairs("cosine", 1000, 784))
case("pairwise cosine, 1,200 x 300", "sklearn", 0.5)(sklearn_pairs("cosine", 1200, 300))
case("pairwise l2, 1,000 x 64", "sklearn", 0.5)(sklearn_pairs("l2", 1000, 64))
case("pairwise l2, 300 x 20,000", "sklearn", 0.5)(sklearn_pairs("l2", 300, 20000))


# Ranges.


def range_searches(queries: int, rows: int, cols: int) -> Callable[..., tuple[Call, Call]]:
    def make(rng: np.random.Generator) -> tuple[Call, Call]:
        base, asked = gaussian(rng, rows, cols), gaussian(rng, queries, cols)
        ours, theirs = flat_index(base), faiss_index(base)
        return (
            lambda: ours.range_search(asked, 1e9, **THREADS),
            lambda: theirs.range_search(asked, 1e9),
        )

    return make


case("range, all of 20K x 64 for 200 queries", "faiss")(range_searches(200, 20_000, 64))
case("range, all of 100K x 16 for 20 queries", "faiss")(range_searches(20, 100_000, 16))


# Many columns.


@case("50 queries in 1,000 x 40,000", "faiss")
def _(rng: np.random.Generator) -> tuple[Call, Call]:
    return searches(gaussian(rng, 50, 40_000), gaussian(rng, 1000, 40_000))


@case("100 queries in 1,000 x 30,000", "faiss")
def _(rng: np.random.Generator) -> tuple[Call, Call]:
    return searches(gaussian(rng, 100, 30_000), gaussian(rng, 1000, 30_000))


@case("50 queries in 500 x 70,000", "faiss")
def _(rng: np.random.Generator) -> tuple[Call, Call]:
    return searches(gaussian(rng, 50, 70_000), gaussian(rng, 500, 70_000))


# Data for which bounds cannot tell rows apart.

HARD = (500, 20_000, 64)


@case("random rows, to compare with those below", "faiss")
def _(rng: np.random.Generator) -> tuple[Call, Call]:
    return searches(gaussian(rng, HARD[0], HARD[2]), gaussian(rng, *HARD[1:]))


@case("all rows equal", "faiss")
def _(rng: np.random.Generator) -> tuple[Call, Call]:
    return searches(gaussian(rng, HARD[0], HARD[2]), np.tile(gaussian(rng, 1, HARD[2]), (HARD[1], 1)))


@case("20 different rows", "faiss")
def _(rng: np.random.Generator) -> tuple[Call, Call]:
    return searches(gaussian(rng, HARD[0], HARD[2]), gaussian(rng, 20, HARD[2])[rng.integers(0, 20, HARD[1])])


@case("5 queries, a third of 100K x 24 equal the nearest", "faiss")
def _(rng: np.random.Generator) -> tuple[Call, Call]:
    base = gaussian(rng, 100_000, 24)
    base[rng.random(len(base)) < 1 / 3] = 1
    return searches(gaussian(rng, 5, 24) / 10 + 1, base)


@case("norms over six decades", "faiss")
def _(rng: np.random.Generator) -> tuple[Call, Call]:
    def decades(rows: int) -> np.ndarray:
        return gaussian(rng, rows, HARD[2]) * (10 ** rng.uniform(-3, 3, (rows, 1))).astype(np.float32)

    return searches(decades(HARD[0]), decades(HARD[1]))


@case("values x 1e18", "faiss")
def _(rng: np.random.Generator) -> tuple[Call, Call]:
    scale = np.float32(1e18)
    return searches(gaussian(rng, HARD[0], HARD[2]) * scale, gaussian(rng, *HARD[1:]) * scale)


@case("values x 1e-21", "faiss")
def _(rng: np.random.Generator) -> tuple[Call, Call]:
    scale = np.float32(1e-21)
    return searches(gaussian(rng, HARD[0], HARD[2]) * scale, gaussian(rng, *HARD[1:]) * scale)


@case("cosine, a tenth of rows and queries zero", "faiss L2")
def _(rng: np.random.Generator) -> tuple[Call, Call]:
    queries, base = gaussian(rng, HARD[0], HARD[2]), gaussian(rng, *HARD[1:])
    queries[::10] = 0
    base[::10] = 0
    return searches(queries, base, "cosine")


@case("cosine, all queries zero", "faiss L2")
def _(rng: np.random.Generator) -> tuple[Call, Call]:
    return searches(np.zeros((HARD[0], HARD[2]), np.float32), gaussian(rng, *HARD[1:]), "cosine")


# The same for more queries and rows, of which faiss multiplies matrices at the processor's rate: arrays and an index.

WIDE = (1000, 50_000, 128)


def decades_of(rng: np.random.Generator, rows: int, cols: int) -> np.ndarray:
    return gaussian(rng, rows, cols) * (10 ** rng.uniform(-3, 3, (rows, 1))).astype(np.float32)


def equal_rows(rng: np.random.Generator, rows: int, cols: int) -> np.ndarray:
    return np.tile(np.random.default_rng(5).standard_normal((1, cols), np.float32), (rows, 1))


def times(scale: float) -> Callable[..., np.ndarray]:
    return lambda rng, rows, cols: gaussian(rng, rows, cols) * np.float32(scale)


def tight_clusters(count: int, spread: float) -> Callable[..., np.ndarray]:
    def make(rng: np.random.Generator, rows: int, cols: int) -> np.ndarray:
        centres = np.random.default_rng(5).standard_normal((count, cols), np.float32)
        return centres[rng.integers(0, count, rows)] + np.float32(spread) * gaussian(rng, rows, cols)

    return make


def hard(rows_of: Callable[..., np.ndarray], call: Callable[..., tuple[Call, Call]]) -> Callable[..., tuple[Call, Call]]:
    return lambda rng: call(rows_of(rng, WIDE[0], WIDE[2]), rows_of(rng, *WIDE[1:]))


for name, rows_of in (
    ("random rows", gaussian),
    ("norms over six decades", decades_of),
    ("equal rows", equal_rows),
    ("rows x 1e17", times(1e17)),
    ("rows x 1e-21", times(1e-21)),
    ("10 clusters, spread 1/100", tight_clusters(10, 0.01)),
    ("10 clusters, spread 1/1,000", tight_clusters(10, 0.001)),
):
    case(f"1,000 in 50K x 128, {name}, arrays", "faiss")(hard(rows_of, array_searches))
    case(f"1,000 in 50K x 128, {name}, index", "faiss")(hard(rows_of, searches))


# Lists of wide rows, trained and filled.


@case("IVF256,Flat of 60K x 768, trained and filled", "faiss", 2)
def _(rng: np.random.Generator) -> tuple[Call, Call]:
    import faiss

    x = mixture(60_000, 768, rounded=False)

    def ours() -> None:
        index = kith.Index("IVF256,Flat", device="cpu")
        index.train(x, **THREADS)
        index.add(x, **THREADS)

    def theirs() -> None:
        index = faiss.index_factory(768, "IVF256,Flat")
        index.train(x)
        index.add(x)

    return ours, theirs


# Few queries: never slower than more of them.


def few(make: Callable[..., tuple[Call, Call]], queries: int, rows: int, cols: int) -> Callable[..., tuple[Call, Call]]:
    return lambda rng: make(gaussian(rng, queries, cols), gaussian(rng, rows, cols))


for count in (1, 3, 5, 6):
    case(f"{count} queries, index of 300K x 8", "faiss")(few(searches, count, 300_000, 8))
for count in (1, 5, 6, 16, 32):
    case(f"{count} queries, arrays of 100K x 128", "faiss")(few(array_searches, count, 100_000, 128))
for count in (1, 6):
    case(f"{count} queries, arrays of 300K x 3", "faiss")(few(array_searches, count, 300_000, 3))


# Few clusters, few columns.


def clusterings(rows: int, cols: int, k: int, predicts: bool = False) -> Callable[..., tuple[Call, Call]]:
    """Ten iterations from the same first centres, or labels for the rows."""

    def make(rng: np.random.Generator) -> tuple[Call, Call]:
        from sklearn.cluster import KMeans

        import kith.sklearn

        x = gaussian(rng, rows, cols)
        settings = {"init": x[:k].copy(), "n_init": 1, "max_iter": 10, "tol": 0.0}
        mine, theirs = kith.sklearn.KMeans(k, **settings, n_jobs=THREADS["threads"]), KMeans(k, **settings)
        if not predicts:
            return lambda: mine.fit(x), lambda: theirs.fit(x)
        mine.fit(x)
        theirs.fit(x)
        return lambda: mine.predict(x), lambda: theirs.predict(x)

    return make


case("k-means 200K x 8, k = 8", "sklearn", 2)(clusterings(200_000, 8, 8))
case("k-means 100K x 16, k = 16", "sklearn", 2)(clusterings(100_000, 16, 16))
case("k-means 50K x 64, k = 128", "sklearn", 2)(clusterings(50_000, 64, 128))
case("k-means 80K x 20, k = 24", "sklearn")(clusterings(80_000, 20, 24))
case("k-means 15K x 500, k = 64", "sklearn")(clusterings(15_000, 500, 64))
case("k-means 20K x 784, k = 100", "sklearn", 1.5)(clusterings(20_000, 784, 100))
case("predict 100K x 64, k = 16", "sklearn", 2)(clusterings(100_000, 64, 16, predicts=True))


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", default="", help="only those whose names hold this")
    options = parser.parse_args()

    install_missing("faiss-cpu", "scikit-learn", "scipy", "threadpoolctl")
    import faiss
    import threadpoolctl
    from sklearn.exceptions import ConvergenceWarning

    warnings.filterwarnings("ignore", category=ConvergenceWarning)
    THREADS["threads"] = options.threads
    clock = clock_for(options.threads)
    faiss.omp_set_num_threads(options.threads)
    report = report_of("cliffs", options, faiss=faiss.__version__)
    with threadpoolctl.threadpool_limits(options.threads):
        done = CASES.run(
            report,
            options.case,
            lambda calls: best_in_turn(options.rounds, calls, clock),
            clock=clock_name(options.threads),
            runs=options.rounds,
            seed=options.seed,
        )
    if done == 0:
        parser.error(f"no case has {options.case!r} in its name")


if __name__ == "__main__":
    main()
