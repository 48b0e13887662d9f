#!/usr/bin/env python3
"""Where a graph index goes over to exact search: the time of a query by a walk over the graph and by exact search of the same
vectors, alone and among 1,000, by the bytes of a vector.

    graph_or_exact.py --folder DATA [--rows 40000] [--sets glove mixture] [--dtypes u8 f16 f32] [--single 100] [--rounds 3] [--out FILE]

DATA holds glove100_base.f16bin and glove100_query.f16bin; `mixture` is made: rank 48 in 768 columns, of length 1. Bytes are the
values moved and scaled, 40 to a standard deviation. For each set and dtype walks of a few beams are timed, the last of them
the widest that is walked (src/index/graph_plan.hpp): there `exact_over_walk` tells how long exact search takes beside the walk.
Times are of the processor, one thread, the least of the rounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from graph_life import data_of as made_data
from report import Report, parser_of, report_of

import kith

_QUERIES = 1000
_BEAMS = (32, 128)


def data_of(name: str, folder: Path, rows: int) -> tuple[np.ndarray, np.ndarray]:
    if name == "glove":
        base = np.asarray(kith.read_vectors(folder / "glove100_base.f16bin", 0, rows))
        return base, np.asarray(kith.read_vectors(folder / "glove100_query.f16bin", 0, _QUERIES))
    return made_data(None, True, rows, _QUERIES)


def as_dtype(x: np.ndarray, dtype: str, scale: float) -> np.ndarray:
    if dtype == "u8":
        return np.clip(np.rint(x.astype(np.float32) * scale + 128), 0, 255).astype(np.uint8)
    return x.astype(np.float16 if dtype == "f16" else np.float32)


def widest_walked(rows: int, row_bytes: int) -> int:
    """As the plan of a search has it, for Graph32."""
    return (rows * (row_bytes + 128) - 1) // (1024 * 32)


def measure(name: str, x: np.ndarray, queries: np.ndarray, singles: int, rounds: int, report: Report) -> None:
    index = kith.Index("Graph32")
    index.add(x)
    shape = f"Graph32 of {len(x)} x {x.shape[1]} {x.dtype} ({name}), k = 10"

    def least(call: Callable[[], object], queries: int) -> float:
        best = np.inf
        for _ in range(rounds):
            begin = time.process_time()
            call()
            best = min(best, (time.process_time() - begin) / queries)
        return float(best) * 1e3

    def both(**asked: float) -> tuple[float, float]:
        def one_by_one() -> None:
            for query in queries[:singles]:
                index.search(query, threads=1, **asked)

        return least(one_by_one, singles), least(lambda: index.search(queries, threads=1, **asked), len(queries))

    exact = both(recall=1.0)
    report.row("exact", shape=shape, ms=exact[0], runs=rounds, clock="processor", figures={"of_1000_ms": exact[1]})
    truth = index.search(queries, recall=1.0)
    for beam in (*_BEAMS, widest_walked(len(x), x.shape[1] * x.itemsize)):
        walk = both(beam=beam)
        found = index.search(queries, beam=beam)
        figures = {
            "recall": float((found.distances <= truth.distances[:, -1:] * (1 + 1e-6)).mean()),
            "of_1000_ms": walk[1],
            "exact_over_walk": exact[0] / walk[0],
            "exact_over_walk_of_1000": exact[1] / walk[1],
        }
        report.row(f"beam {beam}", shape=shape, ms=walk[0], runs=rounds, clock="processor", figures=figures)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--sets", nargs="+", default=["glove", "mixture"], choices=["glove", "mixture"])
    parser.add_argument("--dtypes", nargs="+", default=["u8", "f16", "f32"], choices=["u8", "f16", "f32"])
    parser.add_argument("--single", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    report = report_of("graph_or_exact", options)
    for name in options.sets:
        base, queries = data_of(name, options.folder, options.rows)
        scale = 40 / float(np.std(base.astype(np.float32)))
        for dtype in options.dtypes:
            x, q = (as_dtype(part, dtype, scale) for part in (base, queries))
            measure(name, x, q, options.single, options.rounds, report)


if __name__ == "__main__":
    main()
