#!/usr/bin/env python3
"""Resident memory of indexes beside FAISS's, each in a process of its own, in multiples of the vectors.

    index_memory.py [--rows 200000] [--cols 768] [--pieces 1,10] [--only Flat] [--out FILE]

For each kind and number of adds: what the process holds after the adds, after a batch of 1,000 queries and after single
ones, and the most it held while adding (VmHWM), all less what it held before and, for the peak, less the caller's rows. Beside it
what `info()` says. 1 is the bytes of the vectors.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import Any

import numpy as np
from report import parser_of, report_of

CASES = (
    ("kith", "Flat", True),
    ("kith", "Flat", False),
    ("faiss", "Flat", True),
    ("kith", "IVF447,Flat", True),
    ("kith", "IVF447,Flat", False),
    ("faiss", "IVF447,Flat", True),
)


def status(name: str) -> int:
    """A line of /proc/self/status, in bytes."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name + ":"))


def forget_peak() -> None:
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def made(rows: int, cols: int) -> np.ndarray:
    """Rows near a space of 64 dimensions, as embeddings are, made without memory that stays."""
    drawn = np.random.default_rng(1)
    directions = drawn.standard_normal((64, cols), np.float32)
    x = np.empty((rows, cols), np.float32)
    for first in range(0, rows, 10_000):
        part = x[first : first + 10_000]
        np.matmul(drawn.standard_normal((len(part), 64), np.float32), directions, out=part)
        part += drawn.standard_normal(part.shape, np.float32)
    return x


def kith_index(kind: str, prepare: bool) -> tuple[Any, Any]:
    import kith

    index = kith.Index(kind, device="cpu", prepare=prepare)
    return index, lambda queries: index.search(queries, 10, threads=1)


def faiss_index(kind: str, cols: int) -> tuple[Any, Any]:
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.index_factory(cols, kind)
    return index, lambda queries: index.search(queries, 10)


def measure(who: str, kind: str, prepare: bool, rows: int, cols: int, pieces: int) -> dict[str, Any]:
    index, search = kith_index(kind, prepare) if who == "kith" else faiss_index(kind, cols)
    x = made(rows, cols)
    queries = x[:1000].copy()
    if kind != "Flat":
        index.train(x[: rows // 10])
    vectors = x.nbytes
    before = status("VmRSS") - vectors
    forget_peak()
    for part in np.array_split(x, pieces):
        index.add(part)
    result = {"peak": status("VmHWM") - before - vectors}
    del x, part
    result["held"] = status("VmRSS") - before
    search(queries)
    result["batch"] = status("VmRSS") - before
    for query in queries[:100]:
        search(query[None])
    result["single"] = status("VmRSS") - before
    if who == "kith":
        result["info"] = index.info()["host_bytes"] if isinstance(index.info(), dict) else index.info().host_bytes
    return {name: value / vectors for name, value in result.items()}


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--cols", type=int, default=768)
    parser.add_argument("--pieces", default="1,10")
    parser.add_argument("--only", default="", help="kinds that are this")
    parser.add_argument("--case", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        print(json.dumps(measure(*json.loads(options.case))))
        return
    report = report_of("index_memory", options)
    for who, kind, prepare in CASES:
        if options.only not in ("", kind):
            continue
        for pieces in (int(piece) for piece in options.pieces.split(",")):
            case = json.dumps([who, kind, prepare, options.rows, options.cols, pieces])
            ran = subprocess.run([sys.executable, __file__, "--case", case], capture_output=True, text=True, check=True)
            name = f"{who} {kind}{'' if prepare else ', prepare=False'}, {pieces} adds"
            report.row(name, shape=f"{options.rows} x {options.cols} f32", figures=json.loads(ran.stdout))


if __name__ == "__main__":
    main()
