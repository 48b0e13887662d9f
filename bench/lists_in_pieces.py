"""Lists larger than a GPU's memory limit, searched in pieces: milliseconds beside bytes / rate of the bus.

    lists_in_pieces.py --folder /dev/shm/kith [--rows 100000000] [--cols 96] [--factory IVF4096,PQ32] [--times 4] [--queries 10000] [--out FILE]

Rows are those of graph_from_disk.py, made there once. The index lies on the host; the limit is the bytes of the lists divided
by --times. Floor: these bytes at 55 GB/s. What is found is compared with lists that lie on the GPU.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from graph_from_disk import make_rows
from report import parser_of, report_of
from turns import best_of, timed

import kith

_BUS = 55e9


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--cols", type=int, default=96)
    parser.add_argument("--factory", default="IVF4096,PQ32")
    parser.add_argument("--times", type=float, default=4)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--probes", type=int, default=32)
    parser.add_argument("-k", type=int, default=10)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    path = options.folder / f"mixture_{options.rows}_{options.cols}.npy"
    make_rows(path, options.rows, options.cols)
    x = np.load(path, mmap_mode="r")
    report = report_of("lists_in_pieces", options)
    shape = f"{options.factory} of {options.rows} x {options.cols}, {options.queries} queries"
    index = kith.Index(options.factory, device="cuda")

    def build() -> None:
        index.train(x[:: max(1, options.rows // 500_000)].copy())
        index.add(str(path))

    report.row("build", shape=shape, ms=1e3 * timed(build)[1], clock="wall")
    size = int(index.info().host_bytes)
    queries = x[7 :: options.rows // options.queries][: options.queries].astype(np.float32) + 0.25
    limit = int(size / options.times)

    def search(device_memory_limit: int | None = limit) -> kith.Neighbors:
        return index.search(
            queries, k=options.k, probes=options.probes, device_memory_limit=device_memory_limit
        )

    found, first, _ = timed(search)
    _, spent = best_of(5, search)
    truth = search(None)  # which brings the lists to the GPU, to stay
    _, resident = best_of(5, lambda: search(None))
    same = bool(np.array_equal(found.ids, truth.ids)) and bool(np.array_equal(found.distances, truth.distances))
    report.row(
        f"lists under 1 / {options.times:g} of their bytes",
        shape=shape,
        ms=1e3 * spent,
        runs=5,
        clock="wall",
        floor_ms=1e3 * size / _BUS,
        peers_ms={"resident": 1e3 * resident},
        figures={"first_ms": 1e3 * first, "lists_gb": size / 1e9, "limit_gb": limit / 1e9},
        labels={"results": "the same bytes" if same else "OTHER BYTES"},
    )


if __name__ == "__main__":
    main()
