"""What method="auto" takes beside each method that could have been named, on six shapes.

    python bench/graph_auto.py [--device cpu|cuda:0] [--data DIR] [--threads 2] [--turns 1] [--out FILE]

A case for each method: seconds by report.seconds on a GPU; on the CPU the seconds of all processors over the threads, which a
busy machine disturbs less, and report.seconds beside them. That of auto says what it chose, and its time over that of the
best method that reached the recall.
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

from graph_data import load, on_device
from report import parser_of, report_of

import kith

# set, rows, dtype, metric, k, recall
CPU_SHAPES = (
    ("mixture", 10_000, "f32", "l2", 15, 0.99),
    ("sift", 40_000, "f32", "l2", 15, 0.99),
    ("sift", 200_000, "u8", "l2", 10, 0.95),
    ("glove", 100_000, "f32", "cosine", 15, 0.9),
    ("manifold", 50_000, "f32", "l2", 30, 0.99),
    ("sift", 30_000, "f32", "chi_square", 15, 0.95),
)
GPU_SHAPES = (
    ("sift", 50_000, "f32", "l2", 15, 0.99),
    ("sift", 200_000, "u8", "l2", 10, 0.99),
    ("sift", 1_000_000, "f32", "l2", 15, 0.99),
    ("glove", 300_000, "f32", "cosine", 10, 0.95),
    ("manifold", 500_000, "f32", "l2", 10, 0.99),
    ("sift", 100_000, "f32", "chi_square", 15, 0.95),
)
METHODS = ("exact", "cells", "nn_descent", "auto")


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--data", type=Path, default=Path("/tmp/data"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--only", type=int, nargs="*", help="numbers of shapes, from 0")
    options = parser.parse_args()
    on_cpu = options.device == "cpu"
    shapes = CPU_SHAPES if on_cpu else GPU_SHAPES
    report = report_of("graph_auto", options)
    if not on_cpu:
        kith.knn_graph(on_device(load("mixture", 30_000, options.data), options.device), 10, device=options.device)
    for number, (name, rows, dtype, metric, k, recall) in enumerate(shapes):
        if options.only is not None and number not in options.only:
            continue
        x = on_device(load(name, rows, options.data, dtype), options.device)
        shape = f"{rows:,} x {x.shape[1]} {dtype} {name}, {metric}, k = {k}, recall {recall}"
        told: dict[str, dict[str, Any]] = {}
        for _ in range(options.turns):
            for method in METHODS:
                if method == "cells" and metric == "chi_square":
                    continue
                cpu = time.process_time()
                graph = kith.knn_graph(
                    x, k, metric, method, recall=recall, device=options.device, threads=options.threads
                )
                cpu = (time.process_time() - cpu) / options.threads
                here = told.setdefault(method, {"seconds": math.inf, "processor_seconds": math.inf})
                here["seconds"] = min(here["seconds"], graph.report.seconds)
                here["processor_seconds"] = min(here["processor_seconds"], cpu)
                here["recall"], here["reached"] = graph.report.recall, graph.report.reached
                here["method"] = graph.report.method
        what = "processor_seconds" if on_cpu else "seconds"
        best = min(told[m][what] for m in METHODS[:-1] if m in told and told[m]["reached"])
        for method, here in told.items():
            figures = {"recall": here["recall"]} | ({"wall_s": here["seconds"]} if on_cpu else {})
            if method == "auto":
                figures["over_best"] = here[what] / best
            labels = {"reached": "yes" if here["reached"] else "no"} | ({"took": here["method"]} if method == "auto" else {})
            clock = "processor" if on_cpu else "wall"
            report.row(f"{shape}, {method}", shape=shape, ms=1e3 * here[what], runs=options.turns, clock=clock, figures=figures, labels=labels)


if __name__ == "__main__":
    main()
