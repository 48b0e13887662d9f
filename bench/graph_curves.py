"""Recall over time of the ways to build a graph, as figure 6 of GNND ("Large-scale approximate k-NN graph construction on GPU").

    python bench/graph_curves.py [--device cuda:0] [--data DIR] [--sets sift:1000000,glove:300000,fashion:60000]
        [--turns 2] [--threads N] [--out FILE | --write]

NN-Descent from random rows with lists of 64 to 128 and 10 to 42 samples, until hardly anything changes; cells for recalls from
0.8 to 0.999; exact search. k = 10, l2, for GloVe cosine. Each case is the best of the turns by report.seconds, vectors on the device;
recall@10 is that of 10,000 rows which are searched exactly. plot_graphs.py draws it.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from graph_data import load, on_device
from report import parser_of, report_of

import kith

LENGTHS = (64, 96, 128)
SAMPLES = (10, 16, 24, 32, 42)
RECALLS = (0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)

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
    parser = parser_of(__doc__)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--data", type=Path, default=Path("/tmp/data"))
    parser.add_argument("--sets", default="sift:1000000,glove:300000,fashion:60000")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    report = report_of("graph_curves", options)
    warnings.simplefilter("ignore", RuntimeWarning)  # that a recall was missed, which is the point
    threads = {} if options.threads is None else {"threads": options.threads}
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
            labels = {"set": name} | {key: str(way[key]) for key in ("method", "list_length", "samples") if key in way}
            if "recall" in way:
                labels["asked"] = str(way["recall"])
            report.row(
                ", ".join(f"{key} {value}" for key, value in labels.items()),
                shape=f"{len(x)} x {x.shape[1]}",
                ms=1e3 * seconds,
                runs=options.turns,
                clock="wall",
                figures={"recall@10": recall, "error": error, "rounds": len(graph.report.rounds)},
                labels=labels,
            )


if __name__ == "__main__":
    main()
