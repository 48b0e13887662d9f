"""The k-NN graph of an index's own vectors by compressed codes: recall over time, as figure 5 of Johnson, Douze and Jégou,
"Billion-scale similarity search with GPUs" (section 6.5).

    python bench/index_graph_curves.py [--device cuda:0] [--data DIR] [--set sift] [--rows 1000000] [--lists 4096]
        [--codes 16 32 64] [--probes 1 2 4 ... 256] [--threads N] [--out FILE.csv]

IVF with product codes of m bytes; k = 10, l2. Seconds are report.seconds, the recall's search included: vectors and graph lie on
the device. Recall@10 is measured by the vectors, on 1,000 rows. plot_graphs.py draws it.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

from graph_data import load, on_device

import kith


def main() -> None:
    parser = argparse.ArgumentParser(description="graphs by compressed indexes")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--data", type=Path, default=Path("/tmp/data"))
    parser.add_argument("--set", default="sift")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--lists", type=int, default=4096)
    parser.add_argument("--codes", type=int, nargs="*", default=[16, 32, 64])
    parser.add_argument("--probes", type=int, nargs="*", default=[1, 2, 4, 8, 16, 32, 64, 128, 256])
    parser.add_argument("--threads", type=int)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    threads = {} if options.threads is None else {"threads": options.threads}
    x = on_device(load(options.set, options.rows, options.data), options.device)
    lines = []
    for code in options.codes:
        index = kith.Index(f"IVF{options.lists},PQ{code}", device=options.device)
        index.train(x[: min(len(x), 50 * options.lists)], **threads)
        index.add(x, **threads)
        index.knn_graph(x, 10, probes=1, **threads)  # prepares what searches need
        for probes in options.probes:
            report = index.knn_graph(x, 10, probes=probes, **threads).report
            lines.append([options.set, len(x), options.lists, code, probes, f"{report.seconds:.4f}", f"{report.recall:.4f}"])
            print(*lines[-1], sep=",", flush=True)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        with open(options.out, "w", encoding="utf-8", newline="") as file:
            file.write(f"# bench/index_graph_curves.py {' '.join(sys.argv[1:])}\n")
            csv.writer(file).writerows([("set", "rows", "lists", "code_bytes", "probes", "seconds", "recall@10"), *lines])


if __name__ == "__main__":
    main()
