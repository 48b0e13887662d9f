#!/usr/bin/env python3
"""Single rows added to a graph index, one thread, beside hnswlib where it is installed, turn by turn.

    graph_adds.py [--folder DATA] [--rows 100000] [--adds 2048] [--rounds 3] [--factory Graph32] [--peer]

An index of the first rows gets others one by one: processor time of a row for each round, and what of it the adds that
link rows into the graph took (those that last 20 times the median). Then recall@10 of some queries at a beam of 64
and the processor time of one query of the grown index, and of one that was saved and loaded, which lies together again.

DATA holds sift1m_base.u8bin and sift1m_query.u8bin; without it rows are made as graph_life.py makes them.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import kith
import numpy as np
from graph_life import data_of, microseconds, recall_of
from report import parser_of, report_of


def add_singly(add, rows: np.ndarray) -> tuple[float, float]:
    """Microseconds of processor time a row, and those of adds that linked."""
    times = []
    for i in range(len(rows)):
        begin = time.process_time_ns()
        add(rows[i : i + 1])
        times.append((time.process_time_ns() - begin) / 1e3)
    times = np.array(times)
    return float(times.mean()), float(times[times > 20 * np.median(times)].sum() / len(rows))


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--adds", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--factory", default="Graph32")
    parser.add_argument("--peer", action="store_true")
    options = parser.parse_args()
    report = report_of("graph_adds", options)
    x, queries = data_of(options.folder, False, options.rows + options.rounds * options.adds, 500)
    index = kith.Index(options.factory)
    index.add(x[: options.rows])
    peer = None
    if options.peer:
        import hnswlib

        peer = hnswlib.Index("l2", x.shape[1])
        peer.init_index(len(x), M=16, ef_construction=200)
        peer.add_items(x[: options.rows].astype(np.float32), num_threads=2)
    shape = f"{options.factory} of {options.rows} x {x.shape[1]} {x.dtype}"
    for number in range(options.rounds):
        first = options.rows + number * options.adds
        some = x[first : first + options.adds]
        own, linking = add_singly(lambda row: index.add(row, threads=1), some)
        peers = {}
        if peer is not None:
            theirs, _ = add_singly(lambda row: peer.add_items(row.astype(np.float32), num_threads=1), some)
            peers["hnswlib"] = theirs / 1e3
        report.row(
            f"a row added alone, round {number}",
            shape=shape,
            ms=own / 1e3,
            runs=options.adds,
            clock="processor",
            peers_ms=peers,
            figures={"linking_us": linking},
        )
    truth = kith.knn(queries, x[: len(index)], k=10)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "grown.kith")
        index.save(path)
        loaded = kith.load(path)
    for _ in range(2):
        for name, one in (("grown", index), ("loaded", loaded)):
            took = microseconds(lambda q, one=one: one.search(q, k=10, beam=64, threads=1), queries)
            found = one.search(queries, k=10, beam=64)
            recall = recall_of(found, truth)
            report.row(f"one query, {name}", shape=shape, ms=took / 1e3, runs=3, clock="processor", figures={"recall": recall})


if __name__ == "__main__":
    main()
