"""Recall over time of the ways to build a graph, as figure 6 of GNND ("Large-scale approximate k-NN graph construction on GPU").

    python bench/graph_curves.py [--device cuda:0] [--data DIR] [--sets sift:1000000,glove:300000,fashion:60000]
        [--turns 2] [--threads N] [--out FILE.csv]

NN-Descent from random rows with lists of 64 to 128 and 10 to 42 samples, until hardly anything changes; cells for recalls from
0.8 to 0.999; exact search. k = 10, l2, for GloVe cosine. Each line is the best of the turns by report.seconds, vectors on the device;
recall@10 is that of 10,000 rows which are searched exactly. plot_graphs.py draws it.
"""

from __future__ import annotations

import argparse
import csv
import sys
import warnings
from pathlib import Path
from typing import Any

from graph_data import load, on_device

import kith

LENGTHS = (64, 96, 128)
SAMPLES = (10, 16, 24, 32, 42)
RECALLS = (0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
COLUMNS = ("set", "rows", "cols", "method", "list_length", "samples", "asked", "seconds", "recall_at_10", "error", "rounds")


def ways() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{"method": "exact"}]
    found += [{"method": "cells", "recall": recall} for recall in RECALLS]
    for length in LENGTHS:
        for samples in SAMPLES:
            found.append(
                {"method": "nn_descent", "start": "random", "list_length": length, "samples": samples, "recall": 0.9999}
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="recall over time of graph methods")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--data", type=Path, default=Path("/tmp/data"))
    parser.add_argument("--sets", default="sift:1000000,glove:300000,fashion:60000")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore", RuntimeWarning)  # that a recall was missed, which is the point
    threads = {} if options.threads is None else {"threads": options.threads}
    lines = []
    for part in options.sets.split(","):
        name, rows = part.split(":")
        x = on_device(load(name, int(rows), options.data), options.device)
        metric = "cosine" if name == "glove" else "l2"
        kith.knn_graph(x[:20_000], 10, metric, "cells", device=options.device, **threads)  # wakes the device
        for way in ways():
            seconds, graph = float("inf"), None
            for _ in range(options.turns):
                graph = kith.knn_graph(x, 10, metric, device=options.device, **way, **threads)
                seconds = min(seconds, graph.report.seconds)
            assert graph is not None
            recall, error = 1.0, 0.0
            if way["method"] != "exact":
                measured = graph.measure_recall(x, rows=10_000, seed=17, device=options.device, **threads)
                recall, error = measured.recall_at_10, measured.standard_error
            line = [name, len(x), x.shape[1], way["method"], way.get("list_length", ""), way.get("samples", "")]
            line += [way.get("recall", ""), f"{seconds:.4f}", f"{recall:.5f}", f"{error:.5f}", len(graph.report.rounds)]
            lines.append(line)
            print(*line, sep=",", flush=True)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        with open(options.out, "w", encoding="utf-8", newline="") as file:
            file.write(f"# bench/graph_curves.py {' '.join(sys.argv[1:])}\n")
            csv.writer(file).writerows([COLUMNS, *lines])


if __name__ == "__main__":
    main()
