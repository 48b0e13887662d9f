"""Random shapes of everyday size: those of bench/sweep.py, on a CPU, and of bench/sweep_cuda.py."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from report import Report


@dataclass
class Shape:
    job: str
    rows: int
    cols: int
    queries: int
    k: int
    metric: str
    dtype: str
    data: str = "gaussian"

    def __str__(self) -> str:
        return (
            f"{self.job:9} {self.metric:13} {self.dtype:4} {self.data:9} {self.rows:7} x {self.cols:4}, "
            f"{self.queries:5} queries, k = {self.k}"
        )


def log_uniform(rng: np.random.Generator, least: float, most: float) -> int:
    return int(round(np.exp(rng.uniform(np.log(least), np.log(most)))))


def draw_for_cpu(rng: np.random.Generator) -> Shape:
    """A call takes a second or so of a core."""
    most_work, most_values = 4e9, 2e7  # multiplications; values of a base
    while True:
        job = str(rng.choice(["index", "index", "arrays", "arrays", "pairwise", "kmeans", "predict"]))
        rows, cols = log_uniform(rng, 500, 500_000), log_uniform(rng, 2, 2_000)
        queries = 1 if rng.random() < 0.2 else log_uniform(rng, 1, 5_000)  # many people search one at a time
        k = log_uniform(rng, 1, 200)
        metric, dtype = "sqeuclidean", "f32"
        if job in ("index", "arrays"):
            metric = str(rng.choice(["sqeuclidean", "sqeuclidean", "inner_product", "cosine", "l1", "hamming"]))
            dtype = "u8" if metric == "hamming" else str(rng.choice(["f32", "f32", "f32", "u8", "i8"]))
        elif job == "pairwise":
            metric = str(rng.choice(["sqeuclidean", "cosine", "l1", "linf"]))
            rows = min(rows, 20_000)
        else:
            k = log_uniform(rng, 2, 500)
            queries = 0
        steps = queries if queries > 0 else k * (12 if job == "kmeans" else 1)
        dearer = 8 if metric in ("l1", "linf") else 1
        if rows * cols <= most_values and rows * cols * steps * dearer <= most_work and k <= rows // 2:
            return Shape(job, rows, cols, queries, k, metric, dtype, str(rng.choice(["gaussian", "mixture", "skewed"])))


def draw_for_gpu(rng: np.random.Generator) -> Shape:
    """Torch has the memory for it, of which it wants a value for each pair."""
    most_work, most_values, most_pairs = 3e12, 3e8, 1e9
    while True:
        job = str(rng.choice(["knn", "knn", "knn", "pairwise", "range", "predict", "kmeans"]))
        rows, cols = log_uniform(rng, 500, 2_000_000), log_uniform(rng, 2, 2_000)
        queries, k = log_uniform(rng, 1, 20_000), log_uniform(rng, 1, 500)
        metric = str(rng.choice(["l2", "l2", "cosine"])) if job in ("knn", "pairwise") else "l2"
        dtype = str(rng.choice(["f32", "f32", "f16"])) if job == "knn" else "f32"
        if job in ("predict", "kmeans"):
            queries, k = 0, max(k, 2)
        if job == "pairwise":
            rows, k = min(rows, 20_000), 0
        if job == "range":
            k = 0
        steps = queries if queries > 0 else k * (10 if job == "kmeans" else 1)
        fits = rows * cols <= most_values and rows * max(queries, k) <= most_pairs and k <= rows // 4
        if fits and rows * cols * steps <= most_work:
            return Shape(job, rows, cols, queries, k, metric, dtype)


def note_ratios(report: Report, ratios: list[tuple[float, Shape]]) -> None:
    """How a sweep ended: the other's time / Kith's, over all shapes and by job."""
    values = np.array([ratio for ratio, _ in ratios])
    report.note(f"{len(values)} shapes: median {np.median(values):.2f}x, {np.mean(values < 0.9):.1%} below 0.9x")
    for job in sorted({shape.job for _, shape in ratios}):
        some = sorted((ratio, " ".join(str(shape).split())) for ratio, shape in ratios if shape.job == job)
        median = float(np.median([ratio for ratio, _ in some]))
        report.note(f"{job}, {len(some)} shapes: median {median:.2f}x, worst {some[0][0]:.2f}x, {some[0][1]}")
