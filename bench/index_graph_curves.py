"""The k-NN graph of an index's own vectors by compressed codes: recall over time, as figure 5 of Johnson, Douze and Jégou,
"Billion-scale similarity search with GPUs" (section 6.5).

    python bench/index_graph_curves.py [--device cuda:0] [--data DIR] [--set sift] [--rows 1000000] [--lists 4096]
        [--codes 16 32 64] [--probes 1 2 4 ... 256] [--threads N] [--out FILE | --write]

IVF with product codes of m bytes; k = 10, l2. Seconds are report.seconds, the recall's search included: vectors and graph lie on
the device. Recall@10 is measured by the vectors, on 1,000 rows. plot_graphs.py draws it.
"""

from __future__ import annotations

from pathlib import Path

from graph_data import load, on_device
from report import parser_of, report_of

import kith


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--data", type=Path, default=Path("/tmp/data"))
    parser.add_argument("--set", default="sift")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--lists", type=int, default=4096)
    parser.add_argument("--codes", type=int, nargs="*", default=[16, 32, 64])
    parser.add_argument("--probes", type=int, nargs="*", default=[1, 2, 4, 8, 16, 32, 64, 128, 256])
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    report = report_of("index_graph_curves", options)
    threads = {} if options.threads is None else {"threads": options.threads}
    x = on_device(load(options.set, options.rows, options.data), options.device)
    for code in options.codes:
        index = kith.Index(f"IVF{options.lists},PQ{code}", device=options.device)
        index.train(x[: min(len(x), 50 * options.lists)], **threads)
        index.add(x, **threads)
        index.knn_graph(x, 10, probes=1, **threads)  # prepares what searches need
        for probes in options.probes:
            made = index.knn_graph(x, 10, probes=probes, **threads).report
            report.row(
                f"{code} bytes, {probes} probes",
                shape=f"{options.set}, {len(x)} x {x.shape[1]} in {options.lists} lists",
                ms=1e3 * made.seconds,
                clock="wall",
                figures={"recall@10": made.recall},
                labels={"code_bytes": str(code), "probes": str(probes)},
            )


if __name__ == "__main__":
    main()
