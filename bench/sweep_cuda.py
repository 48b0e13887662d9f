"""Random shapes of everyday size on a GPU: Kith beside plain torch, data and results in the device's memory.

Each shape is drawn from the seed: a job, rows, columns, queries, k, a metric and a dtype. Torch does what a user would write
(as in bench/cliffs_cuda.py). Prints every shape with both times, the median ratio (torch's time / Kith's), and those below 1.

    python bench/sweep_cuda.py [--shapes 60] [--seed 1] [--only PART_OF_A_JOB] [--runs 5]

Needs the packages kith (with CUDA) and torch.
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections.abc import Callable
from math import exp, log
from typing import NamedTuple

import torch
from cliffs_cuda import milliseconds, randn, torch_labels, torch_lloyd, torch_nearest

import kith

MOST_VALUES = 3e8  # of a base
MOST_PAIRS = 1e9  # torch keeps a value of each
MOST_WORK = 3e12  # multiplications of one call
DTYPES = {"f32": torch.float32, "f16": torch.float16}


class Shape(NamedTuple):
    job: str
    rows: int
    cols: int
    queries: int
    k: int
    metric: str
    dtype: str

    def __str__(self) -> str:
        return (
            f"{self.job:8} {self.metric:7} {self.dtype} {self.rows:7} x {self.cols:4}, "
            f"{self.queries:5} queries, k = {self.k}"
        )


def log_uniform(rng: random.Random, least: float, most: float) -> int:
    return round(exp(rng.uniform(log(least), log(most))))


def draw(rng: random.Random) -> Shape:
    """A shape that torch has the memory for and a benchmark the time."""
    while True:
        job = rng.choice(["knn", "knn", "knn", "pairwise", "range", "predict", "kmeans"])
        rows, cols = log_uniform(rng, 500, 2_000_000), log_uniform(rng, 2, 2000)
        queries, k = log_uniform(rng, 1, 20_000), log_uniform(rng, 1, 500)
        metric = rng.choice(["l2", "l2", "cosine"]) if job in ("knn", "pairwise") else "l2"
        dtype = rng.choice(["f32", "f32", "f16"]) if job == "knn" else "f32"
        if job in ("predict", "kmeans"):
            queries, k = 0, max(k, 2)
        if job == "pairwise":
            rows, k = min(rows, 20_000), 0
        if job == "range":
            k = 0
        steps = queries if queries > 0 else k * (10 if job == "kmeans" else 1)
        pairs = rows * max(queries, k)
        if rows * cols <= MOST_VALUES and pairs <= MOST_PAIRS and rows * cols * steps <= MOST_WORK and k <= rows // 4:
            return Shape(job, rows, cols, queries, k, metric, dtype)


Call = Callable[[], object]


def calls_of(shape: Shape, seed: int) -> tuple[Call, Call]:
    """Kith's and torch's."""
    base = randn(shape.rows, shape.cols, seed).to(DTYPES[shape.dtype])
    queries = randn(max(shape.queries, 1), shape.cols, seed + 1).to(DTYPES[shape.dtype])
    if shape.job == "knn":
        return (
            lambda: kith.knn(queries, base, shape.k, shape.metric),
            lambda: torch_nearest(queries, base, shape.k, shape.metric),
        )
    if shape.job == "pairwise":

        def torch_pairwise() -> object:
            if shape.metric == "l2":
                return torch.cdist(queries, base)
            return 1 - torch.nn.functional.normalize(queries) @ torch.nn.functional.normalize(base).T

        return lambda: kith.pairwise_distances(queries, base, metric=shape.metric), torch_pairwise
    if shape.job == "range":  # about one row in a thousand
        some = torch.cdist(queries[:64], base)
        radius = float(torch.quantile(some.flatten()[:1_000_000], 0.001))
        return (
            lambda: kith.range_search(queries, base, radius),
            lambda: (torch.cdist(queries, base) <= radius).nonzero(),
        )
    generator = torch.Generator(device="cuda").manual_seed(seed)
    first = base[torch.randperm(shape.rows, device="cuda", generator=generator)[: shape.k]].contiguous()
    if shape.job == "predict":
        model = kith.KMeans.of_centres(first.cpu().numpy())
        return lambda: model.predict(base), lambda: torch_labels(base, first)
    init = first.cpu().numpy()
    return (
        lambda: kith.KMeans(shape.k, init=init, iterations=10, tol=0).fit(base),
        lambda: torch_lloyd(base, first, 10),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="random shapes, Kith beside torch on a GPU")
    parser.add_argument("--shapes", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="only jobs whose names contain this")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    print(f"{torch.cuda.get_device_name()}; kith {kith.__version__}, torch {torch.__version__}; milliseconds")
    rng = random.Random(options.seed)
    ratios: list[tuple[float, Shape]] = []
    for number in range(options.shapes):
        shape = draw(rng)
        if options.only not in shape.job:
            continue
        ours, theirs = (milliseconds(call, options.runs) for call in calls_of(shape, 100 + number))
        ratios.append((theirs / ours, shape))
        print(f"{ours:9.3f} {theirs:9.3f} {theirs / ours:7.2f}  {shape}", flush=True)
    values = [ratio for ratio, _ in ratios]
    below = sorted((ratio, shape) for ratio, shape in ratios if ratio < 1)
    print(f"{len(values)} shapes: median ratio {statistics.median(values):.2f}, {len(below)} below 1")
    for ratio, shape in below:
        print(f"{ratio:7.2f}  {shape}")


if __name__ == "__main__":
    main()
