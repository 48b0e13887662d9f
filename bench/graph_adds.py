#!/usr/bin/env python3
"""Single rows added to a graph index, one thread, beside hnswlib where it is installed, turn by turn.

    graph_adds.py [--folder DATA] [--rows 100000] [--adds 2048] [--rounds 3] [--factory Graph32] [--peer]

An index of the first rows gets others one by one; processor time of a row is printed for each round, and what of it the
adds that link rows into the graph took (those that last 20 times the median). Then recall@10 of some queries at a beam of 64
and the processor time of one query of the grown index, and of one that was saved and loaded, which lies together again.

DATA holds sift1m_base.u8bin and sift1m_query.u8bin; without it rows are made as graph_life.py makes them.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import kith
import numpy as np
from graph_life import data_of, microseconds, recall_of


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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--adds", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--factory", default="Graph32")
    parser.add_argument("--peer", action="store_true")
    options = parser.parse_args()
    x, queries = data_of(options.folder, False, options.rows + options.rounds * options.adds, 500)
    index = kith.Index(options.factory)
    index.add(x[: options.rows])
    peer = None
    if options.peer:
        import hnswlib

        peer = hnswlib.Index("l2", x.shape[1])
        peer.init_index(len(x), M=16, ef_construction=200)
        peer.add_items(x[: options.rows].astype(np.float32), num_threads=2)
    print(f"{options.factory}, {options.rows} rows x {x.shape[1]} {x.dtype}: us a row added alone, of them linking")
    for number in range(options.rounds):
        first = options.rows + number * options.adds
        some = x[first : first + options.adds]
        own, linking = add_singly(lambda row: index.add(row, threads=1), some)
        line = f"round {number}: kith {own:7.1f} ({linking:6.1f})"
        if peer is not None:
            theirs, _ = add_singly(lambda row: peer.add_items(row.astype(np.float32), num_threads=1), some)
            line += f"   hnswlib M 16, 200 {theirs:7.1f}   {theirs / own:.2f} x"
        print(line, flush=True)
    truth = kith.knn(queries, x[: len(index)], k=10)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "grown.kith")
        index.save(path)
        loaded = kith.load(path)
    for _ in range(2):
        for name, one in (("grown", index), ("loaded", loaded)):
            took = microseconds(lambda q, one=one: one.search(q, k=10, beam=64, threads=1), queries)
            found = one.search(queries, k=10, beam=64)
            print(f"{name:6}: recall {recall_of(found, truth):.4f}, {took:.1f} us a query", flush=True)


if __name__ == "__main__":
    main()
