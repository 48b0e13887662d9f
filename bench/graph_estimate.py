"""How far the recall that a graph tells of itself lies from the one that is measured on other rows, in standard errors.

    python bench/graph_estimate.py [--device cuda:0] [--data DIR] [--set sift] [--rows 400000] [--recalls 0.9 0.99]
        [--methods cells nn_descent] [--seeds 20] [--threads N] [--out FILE]

A graph for every seed, method and recall; k = 10. Measured on 10,000 rows that another seed draws. The error of a difference is
that of both estimates. Work stops when the estimate reaches the target, so that an estimate that ends it is a little high: the
mean of the differences shows by how much.
"""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from graph_data import load, on_device
from report import parser_of, report_of

import kith


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--data", type=Path, default=Path("/tmp/data"))
    parser.add_argument("--set", default="sift")
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--recalls", type=float, nargs="*", default=[0.9, 0.99])
    parser.add_argument("--methods", nargs="*", default=["cells", "nn_descent"])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    warnings.simplefilter("ignore", RuntimeWarning)
    threads = {} if options.threads is None else {"threads": options.threads}
    x = on_device(load(options.set, options.rows, options.data), options.device)
    metric = "cosine" if options.set == "glove" else "l2"
    report = report_of("graph_estimate", options)
    for method in options.methods:
        start: dict[str, Any] = {"start": "random"} if method == "nn_descent" else {}
        for recall in options.recalls:
            differences, errors, told, found = [], [], [], []
            for seed in range(options.seeds):
                graph = kith.knn_graph(
                    x, 10, metric, method, recall=recall, seed=seed, device=options.device, **start, **threads
                )
                measured = graph.measure_recall(x, rows=10_000, seed=seed + 1000, device=options.device, **threads)
                told.append(graph.report.recall)
                found.append(measured.recall)
                differences.append(told[-1] - found[-1])
                errors.append(abs(differences[-1]) / math.hypot(graph.report.standard_error, measured.standard_error))
            figures = {
                "estimated": float(np.mean(told)),
                "measured": float(np.mean(found)),
                "difference": float(np.mean(differences)),
                "largest_in_errors": float(np.max(errors)),
                "above_three_errors": int(np.sum(np.array(errors) > 3)),
            }
            shape = f"{len(x):,} x {x.shape[1]} of {options.set}, {metric}, k = 10"
            report.row(f"{method}, {recall} asked", shape=shape, runs=options.seeds, figures=figures)


if __name__ == "__main__":
    main()
