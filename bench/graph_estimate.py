"""How far the recall that a graph tells of itself lies from the one that is measured on other rows, in standard errors.

    python bench/graph_estimate.py [--device cuda:0] [--data DIR] [--set sift] [--rows 400000] [--recalls 0.9 0.99]
        [--methods cells nn_descent] [--seeds 20] [--threads N] [--json FILE]

A graph for every seed, method and recall; k = 10. Measured on 10,000 rows that another seed draws. The error of a difference is
that of both estimates. Work stops when the estimate reaches the target, so that an estimate that ends it is a little high: the
mean of the differences shows by how much.
"""

from __future__ import annotations

import argparse
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from graph_data import load, on_device
from turns import write_results

import kith


def main() -> None:
    parser = argparse.ArgumentParser(description="estimated and measured recall of graphs")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--data", type=Path, default=Path("/tmp/data"))
    parser.add_argument("--set", default="sift")
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--recalls", type=float, nargs="*", default=[0.9, 0.99])
    parser.add_argument("--methods", nargs="*", default=["cells", "nn_descent"])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore", RuntimeWarning)
    threads = {} if options.threads is None else {"threads": options.threads}
    x = on_device(load(options.set, options.rows, options.data), options.device)
    metric = "cosine" if options.set == "glove" else "l2"
    print(f"{len(x):,} x {x.shape[1]} of {options.set}, {metric}, k = 10, {options.seeds} seeds")
    print(f"{'':12} {'asked':>6} {'estimated':>10} {'measured':>9} {'mean of differences':>20} {'largest, in errors':>19} above 3")
    results = []
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
            line = {
                "method": method,
                "asked": recall,
                "estimated": float(np.mean(told)),
                "measured": float(np.mean(found)),
                "difference": float(np.mean(differences)),
                "largest": float(np.max(errors)),
                "above_three": int(np.sum(np.array(errors) > 3)),
            }
            results.append(line)
            print(
                f"{method:12} {recall:6} {line['estimated']:10.5f} {line['measured']:9.5f} {line['difference']:20.5f} "
                f"{line['largest']:19.2f} {line['above_three']} of {options.seeds}",
                flush=True,
            )
    if options.json:
        given = {key: value.name if isinstance(value, Path) else value for key, value in vars(options).items()}
        write_results(options.json, given, results)


if __name__ == "__main__":
    main()
