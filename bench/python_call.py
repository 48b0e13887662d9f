"""What one call of `Index.search` costs in Python, beside the same call in C++: a single query, k = 10.

A small index on the CPU shows the fixed cost of a call, lists of 60,000 x 128 vectors what it is where the search has taken
the caches. On a machine with a GPU a large one follows, with arrays of every library that is there: numpy on the host; torch,
cupy and jax in the GPU's memory, with fresh results and with `out=`. Times are medians, the wait for the results included.
Beside them stands the call in C++ with its arrays in the same place, and what Python adds to it; "search alone" is the compiled
half, called with arrays and options that are ready.

    .venv/bin/python bench/python_call.py [--program build/release/kith_bench] [--rows 1000000] [--cols 128] [--calls 1000]
                                          [--out FILE]

Needs the package kith, and for the C++ column the program kith_bench of the same build (-DKITH_BUILD_BENCH=ON).
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # jax would take most of the GPU's memory

import numpy as np
from exact_vs_faiss import make_data
from report import Report, parser_of, report_of

import kith
from kith._device_arrays import stream_of
from kith._libraries import library_of

K = 10


def median_us(calls: int, call: Callable[[], object]) -> float:
    """Of so many calls, after some that do not count."""
    times = []
    for turn in range(-(calls // 10) - 1, calls):
        start = time.perf_counter()
        call()
        if turn >= 0:
            times.append(time.perf_counter() - start)
    return float(np.median(times)) * 1e6


class Table:
    """Cases of one index, each beside the same call in C++, where that was measured."""

    def __init__(self, report: Report, title: str, calls: int, in_cpp: dict[str, float]) -> None:
        self.report, self.title, self.calls, self.in_cpp = report, title, calls, in_cpp
        for place, cpp in in_cpp.items():
            report.row(f"C++, arrays on the {place}", shape=title, median_ms=cpp / 1e3, runs=calls, clock="wall")

    def row(self, name: str, place: str, call: Callable[[], object], *, whole: bool = True) -> None:
        taken = median_us(self.calls, call)
        cpp = self.in_cpp.get(place) if whole else None
        self.report.row(
            name,
            shape=self.title,
            median_ms=taken / 1e3,
            runs=self.calls,
            clock="wall",
            peers_ms=None if cpp is None else {"C++": cpp / 1e3},
            figures=None if cpp is None else {"over_cpp_us": taken - cpp},
        )


def run_program(program: Path | None, device: str, calls: int, base: Any, queries: Any, *more: str) -> dict[str, float]:
    """What kith_bench measures of a call with these vectors, or with this index: microseconds by place."""
    if program is None:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        kith.write_vectors(f"{folder}/queries.fbin", queries)
        if isinstance(base, kith.Index):
            base.save(f"{folder}/index.kith")
            searched = ["--index", f"{folder}/index.kith"]
        else:
            kith.write_vectors(f"{folder}/base.fbin", base)
            searched = ["--base", f"{folder}/base.fbin"]
        files = [*searched, "--queries", f"{folder}/queries.fbin"]
        out = Path(folder) / "call.jsonl"
        command = [str(program), "call", *files, "--device", device, "--calls", str(calls), "--out", str(out), *more]
        subprocess.run(command, check=True, capture_output=True)
        lines = [json.loads(line) for line in out.read_text().splitlines()]
    return {line["case"]: 1e3 * line["median_ms"] for line in lines if "case" in line}


def list_rows(report: Report, program: Path | None, calls: int, rng: np.random.Generator) -> None:
    """Lists of codes on the CPU, one thread, 16 of 256 lists; each call has another query."""
    base, queries = (make_data("mixture", rows, 128, rng) for rows in (60_000, 256))
    for factory in ("IVF256,SQfp16", "IVF256,PQ16"):
        index = kith.Index(factory, device="cpu")
        index.train(base)
        index.add(base)
        in_cpp = run_program(program, "cpu", calls, index, queries, "--probes", "16", "--threads", "1")
        table = Table(report, f"{factory} of 60,000 x 128 on the CPU, one query, k = 10, 16 probes, one thread", calls, in_cpp)
        several = itertools.cycle([row[None].copy() for row in queries])
        table.row("numpy", "host", lambda given=several, at=index: at.search(next(given), K, probes=16, threads=1))


def host_rows(table: Table, index: kith.Index, device: str, query: Any) -> None:
    """numpy's arrays, or torch's on the host."""
    out = np.empty((1, K), np.int64), np.empty((1, K), np.float32)
    inner = index._index  # what is below Python's half
    table.row("numpy", "host", lambda: index.search(query, K))
    table.row("numpy, 1-D", "host", lambda: index.search(query[0], K))
    table.row("numpy, out=", "host", lambda: index.search(query, K, out=out))
    table.row("numpy, search alone", "host", lambda: inner.search_plain(query, K, device, 0, None, None, None, out))
    try:
        import torch
    except ImportError:
        return
    given = torch.from_numpy(query)
    table.row("torch on the host", "host", lambda: index.search(given, K))


def device_rows(table: Table, name: str, index: kith.Index, given: Any, wait: Callable[[], object], out: Any) -> None:
    """Arrays of one library in the GPU's memory, and what the steps of a call take."""
    library = library_of(given)

    def call_and_wait(**more: Any) -> None:
        index.search(given, K, **more)
        wait()

    table.row(f"{name}", "device", call_and_wait)
    if out is not None:
        table.row(f"{name}, out=", "device", lambda: call_and_wait(out=out))
    stream = stream_of((given,))
    shape = (1, K)
    table.row(f"{name}: the wait alone", "device", wait, whole=False)
    table.row(f"{name}: its stream", "device", lambda: stream_of((given,)), whole=False)
    table.row(f"{name}: one array exported", "device", lambda: library.export(given, stream, "x"), whole=False)
    table.row(f"{name}: one result made", "device", lambda: library.empty(shape, "int64", 0), whole=False)


def gpu_rows(table: Table, base: Any, query: Any) -> None:
    index = kith.Index("Flat", device="cuda:0")
    index.add(base)
    host_rows(table, index, "cuda:0", query)
    try:
        import torch
    except ImportError:
        torch = None
    if torch is not None and torch.cuda.is_available():
        given = torch.from_numpy(query).cuda()
        out = (torch.empty((1, K), dtype=torch.int64, device="cuda"), torch.empty((1, K), device="cuda"))
        device_rows(table, "torch", index, given, lambda: torch.cuda.current_stream().synchronize(), out)
        table.row("torch: cudaMemGetInfo", "device", torch.cuda.mem_get_info, whole=False)
        with torch.cuda.stream(torch.cuda.Stream()):
            there = torch.cuda.current_stream()
            device_rows(table, "torch, a stream of its own", index, given, there.synchronize, out)
    try:
        import cupy
    except ImportError:
        pass
    else:
        out = cupy.empty((1, K), np.int64), cupy.empty((1, K), np.float32)
        device_rows(table, "cupy", index, cupy.asarray(query), cupy.cuda.get_current_stream().synchronize, out)
    try:
        import jax
    except ImportError:
        return
    if jax.default_backend() == "gpu":
        device_rows(table, "jax", index, jax.numpy.asarray(query), lambda: None, None)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--program", type=Path, help="kith_bench of the same build; without it no C++ column")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the index on the GPU")
    parser.add_argument("--cols", type=int, default=128)
    parser.add_argument("--calls", type=int, default=1000)
    options = parser.parse_args()
    report = report_of("python_call", options)

    rng = np.random.default_rng(1)
    base, queries = (make_data("mixture", rows, 16, rng) for rows in (1000, 1))
    in_cpp = run_program(options.program, "cpu", options.calls, base, queries)
    table = Table(report, "Flat index of 1,000 x 16 on the CPU, one query, k = 10", options.calls, in_cpp)
    index = kith.Index("Flat", device="cpu")
    index.add(base)
    host_rows(table, index, "cpu", queries)

    list_rows(report, options.program, options.calls, rng)

    devices: Any = kith.info()["cuda_devices"]
    if not devices:
        report.note("no CUDA device here, or a build without CUDA: nothing more to measure")
        return
    base, queries = (make_data("mixture", rows, options.cols, rng) for rows in (options.rows, 1))
    in_cpp = run_program(options.program, "cuda:0", options.calls, base, queries)
    title = f"Flat index of {options.rows:,} x {options.cols} on {devices[0]['name']}, one query, k = 10"
    gpu_rows(Table(report, title, options.calls, in_cpp), base, queries)


if __name__ == "__main__":
    main()
