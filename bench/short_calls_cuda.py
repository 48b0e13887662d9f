"""What a call with one query takes on a GPU, from Python. short_calls_cuda_bench.cu measures the same calls in C++.

    python bench/short_calls_cuda.py [--cols 128,768,1536] [--only knn,Flat,lists] [--rows 1000000] [--calls 200]
                                     [--trace FILE] [--write]

Rows are those of widths_cuda.py; k = 10, 2,048 lists of which 32 are looked at. Times are medians in milliseconds, the
wait for results included. --trace writes what one call does: its runtime calls on the host (H) and its work on the
device (D) with their beginnings and lengths in microseconds; the cases then say how many of each there are.
Needs the packages kith (with CUDA) and torch.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

import torch
from report import Report, parser_of, report_of
from widths_cuda import mixture

import kith

# Milliseconds: those of short_calls_cuda_bench and 0.02 for Python.
GOALS: dict[tuple[str, int], float] = {
    ("Flat, host", 128): 0.11,
    ("knn, device", 128): 0.17,
    ("IVF2048,Flat, host", 128): 0.09,
    ("IVF2048,SQ8, host", 128): 0.09,
    ("IVF2048,PQ16, host", 128): 0.09,
    ("Flat, host", 768): 0.32,
    ("Flat, host", 1536): 0.62,
    ("IVF2048,Flat, host", 768): 0.14,
    ("IVF2048,PQ96, host", 768): 0.14,
    ("IVF2048,Flat, host", 1536): 0.17,
    ("IVF2048,PQ192, host", 1536): 0.17,
}
TRACED_CALLS = 3


def milliseconds(call: Callable[[], object], calls: int, *, waits: bool) -> tuple[float, float]:
    """The median, and what one call in twenty stays below. `waits`: for torch's stream, where results lie there."""
    stream = torch.cuda.current_stream()
    for _ in range(calls // 10 + 2):
        call()
    torch.cuda.synchronize()
    times = []
    for _ in range(calls):
        began = time.perf_counter()
        call()
        if waits:
            stream.synchronize()
        times.append(1000 * (time.perf_counter() - began))
    times.sort()
    return times[len(times) // 2], times[len(times) // 20]


def short_name(name: str) -> str:
    return name.replace("void ", "").replace("kith::", "").replace("(anonymous namespace)::", "").split("(")[0][:80]


def trace(name: str, call: Callable[[], object], to: TextIO) -> dict[str, float]:
    """Writes the steps of some calls, and returns their numbers."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as recorded:
        for _ in range(TRACED_CALLS):
            call()
            torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        recorded.export_chrome_trace(str(path))
        events = [event for event in json.loads(path.read_text())["traceEvents"] if event.get("ph") == "X"]
    kinds = {"cuda_runtime": "H", "cuda_driver": "H", "kernel": "D", "gpu_memcpy": "D", "gpu_memset": "D"}
    steps = sorted((event for event in events if event.get("cat") in kinds), key=lambda event: event["ts"])
    print(f"== {name}", file=to)
    for event in steps:
        kind = kinds[event["cat"]]
        what = ("        " if kind == "D" else "") + short_name(event["name"])
        print(f"  {kind} {event['ts'] - steps[0]['ts']:9.1f} {event['dur']:8.1f}  {what}", file=to)
    device = [event for event in steps if kinds[event["cat"]] == "D"]
    busy = sum(event["dur"] for event in device) / TRACED_CALLS / 1000
    return {"host_steps": (len(steps) - len(device)) / TRACED_CALLS, "device_steps": len(device) / TRACED_CALLS, "busy_ms": busy}


def calls_of(options: argparse.Namespace, report: Report, cols: int) -> None:
    rows = mixture(options.rows, cols, 1)
    there = mixture(16, cols, 2)[:1].contiguous()
    here = there.cpu().numpy()

    def show(name: str, call: Callable[[], object]) -> None:
        median, low = milliseconds(call, options.calls, waits=name.endswith("device"))
        goal = GOALS.get((name, cols))
        figures = {"one_in_twenty_ms": low} | ({"goal_ms": goal} if goal else {})
        if options.trace:
            figures |= trace(f"{name}, {cols} columns", call, options.trace)
        shape = f"one query of {options.rows:,} x {cols}"
        report.row(f"{name}, {cols} columns", shape=shape, median_ms=median, runs=options.calls, clock="wall", figures=figures)

    if "knn" in options.only:
        show("knn, device", lambda: kith.knn(there, rows, 10))
    if "Flat" in options.only:
        index = kith.Index("Flat", device="cuda")
        index.add(rows)
        show("Flat, host", lambda: index.search(here, 10))
        show("Flat, device", lambda: index.search(there, 10))
        del index
    if "lists" in options.only:
        for code in ("Flat", "SQ8", f"PQ{cols // 8}"):
            index = kith.Index(f"IVF2048,{code}", device="cuda")
            index.train(rows[: min(options.rows, 131072)])
            index.add(rows)
            show(f"IVF2048,{code}, host", lambda: index.search(here, 10, probes=32))  # noqa: B023
            show(f"IVF2048,{code}, device", lambda: index.search(there, 10, probes=32))  # noqa: B023
            del index
    torch.cuda.empty_cache()


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--cols", default="128,768,1536")
    parser.add_argument("--only", default="knn,Flat,lists")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--trace", type=argparse.FileType("w"))
    options = parser.parse_args()
    options.only = options.only.split(",")
    report = report_of("short_calls_cuda", options)
    for cols in map(int, options.cols.split(",")):
        calls_of(options, report, cols)


if __name__ == "__main__":
    main()
