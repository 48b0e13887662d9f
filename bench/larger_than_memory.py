"""Graphs and indexes larger than memory on a CPU, each beside what memory takes and what kith.plan has said.

    larger_than_memory.py --folder /tmp/kith [--rows 10000000] [--cols 128] [--memory-limit 256M] [--threads 2]
                          [--factory IVF4096,PQ32] [--only graph index search first] [--out FILE]

    graph    of bytes, by cells, k = 10, recall 0.95, under the limit (goal for 10,000,000 rows on two cores: 8 min)
    index    of floats under the limit, and without one by turns (goal: 1.3 x); the files are compared
    search   10,000 queries, 32 probes, of that index in memory and with lists="disk" (goal: 1.5 x the larger of memory's
             time and bytes / rate of the disk, which is the page cache unless it is dropped before)
    first    kith.load(mmap=True) and one search, median of 12 (goal: 50 ms for 1 GB)

Every job is a process of its own, so that its peak resident memory is known. On a shared machine the processor's time
tells, not the clock's. Rows are those of graph_from_disk.py, kept in FOLDER.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import turns
from graph_from_disk import make_rows
from report import Report, parser_of, report_of

import kith


def peak_mib() -> float:
    """Of this program alone: getrusage() has the parent's too."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def timed(work: Any) -> dict[str, Any]:
    told, wall, processor = turns.timed(work)
    return {"wall": wall, "processor": processor, **(told or {})}


def rows_path(options: argparse.Namespace) -> Path:
    return Path(options.folder) / f"mixture_{options.rows}_{options.cols}.npy"


def floats_path(options: argparse.Namespace) -> Path:
    path = Path(options.folder) / f"mixture_{options.rows}_{options.cols}_f32.npy"
    if not path.exists():
        x = np.load(rows_path(options), mmap_mode="r")
        made = np.lib.format.open_memmap(path.with_suffix(".part"), "w+", np.float32, x.shape)
        for first in range(0, len(x), 1_000_000):
            made[first : first + 1_000_000] = x[first : first + 1_000_000]
        made.flush()
        path.with_suffix(".part").rename(path)
    return path


def build_graph(options: argparse.Namespace) -> dict[str, Any]:
    out = Path(options.folder) / "graph"
    shutil.rmtree(out, ignore_errors=True)

    def build() -> dict[str, Any]:
        graph = kith.knn_graph(str(rows_path(options)), k=10, method="cells", recall=0.95, device="cpu", out=out,
                               threads=options.threads, memory_limit=options.limit)
        report = graph.report
        assert report.recall is not None
        return {"recall": report.recall, "probes": report.parameters["probes"]}

    return timed(build)


def build_index(options: argparse.Namespace) -> dict[str, Any]:
    path = str(floats_path(options))
    out = Path(options.folder) / f"{'limited' if options.limit else 'free'}.kith"

    def build() -> None:
        index = kith.Index(options.factory, device="cpu")
        calls = {"threads": options.threads, "memory_limit": options.limit}
        index.train(path, **calls)
        index.save_added(str(out), path, **calls)

    return timed(build)


def search_index(options: argparse.Namespace) -> dict[str, Any]:
    lists = {"lists": "disk"} if options.limit else {}
    index = kith.load(str(Path(options.folder) / "free.kith"), device="cpu", **lists)
    x = np.load(rows_path(options), mmap_mode="r")
    queries = x[7 :: max(1, options.rows // 10_000)][:10_000].astype(np.float32) + 0.25

    def search() -> dict[str, Any]:
        found = index.search(queries, k=10, probes=32, threads=options.threads)
        return {"ids": int(found.ids.sum())}

    search()
    return min((timed(search) for _ in range(3)), key=lambda told: told["processor"])


def first_answer(options: argparse.Namespace) -> dict[str, Any]:
    path = Path(options.folder) / "first.kith"
    x = np.load(rows_path(options), mmap_mode="r")
    query = x[5].astype(np.float32)
    if not path.exists():
        index = kith.Index("IVF256,Flat", device="cpu")
        index.train(x[:: max(1, len(x) // 50_000)].astype(np.float32))
        for first in range(0, min(len(x), 2**30 // (4 * options.cols)), 500_000):
            index.add(x[first : first + 500_000].astype(np.float32))
        index.save(str(path))
        del index

    def answer() -> None:
        kith.load(str(path), mmap=True, device="cpu").search(query, k=10, threads=1)

    tries = [timed(answer) for _ in range(12)]
    return {name: statistics.median(told[name] for told in tries) for name in ("wall", "processor")} | {
        "bytes": path.stat().st_size
    }


_JOBS = {"graph": build_graph, "index": build_index, "search": search_index, "first": first_answer}


def run_apart(options: argparse.Namespace, report: Report, job: str, limit: str | None) -> dict[str, Any]:
    command = [sys.executable, __file__, "--folder", options.folder, "--rows", str(options.rows), "--cols", str(options.cols),
               "--threads", str(options.threads), "--factory", options.factory, "--job", job]
    if limit is not None:
        command += ["--limit", limit]
    told = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    figures = {name: value for name, value in told.items() if name not in ("wall", "processor", "ids")}
    report.row(
        f"{job}, {limit or 'no limit'}",
        shape=f"{options.rows} x {options.cols} u8",
        ms=1e3 * told["processor"],
        clock="processor",
        figures={"wall_ms": 1e3 * told["wall"], **figures},
    )
    return dict(told)


def planned(options: argparse.Namespace, asked: dict[str, Any]) -> float:
    return kith.plan(options.rows, options.cols, threads=options.threads, memory_limit=options.memory_limit, **asked).seconds


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--cols", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--memory-limit", default="256M")
    parser.add_argument("--factory", default="IVF4096,PQ32")
    parser.add_argument("--only", nargs="*", default=list(_JOBS))
    parser.add_argument("--job", choices=list(_JOBS), help=argparse.SUPPRESS)
    parser.add_argument("--limit", help=argparse.SUPPRESS)
    options = parser.parse_args()
    Path(options.folder).mkdir(parents=True, exist_ok=True)
    make_rows(rows_path(options), options.rows, options.cols)
    if options.job:
        told = _JOBS[options.job](options)
        told["peak_mib"] = peak_mib()
        print(json.dumps(told))
        return
    report = report_of("larger_than_memory", options)

    def compare(job: str, **figures: float) -> None:
        report.row(f"{job}, beside its plan and memory", figures=figures)

    if "graph" in options.only:
        told = run_apart(options, report, "graph", options.memory_limit)
        seconds = planned(options, {"dtype": "u8", "recall": 0.95, "probes": told["probes"]})
        compare("graph", planned_s=seconds, planned_processor_s=seconds * options.threads)
    if "index" in options.only:
        floats_path(options)
        free, limited = run_apart(options, report, "index", None), run_apart(options, report, "index", options.memory_limit)
        seconds = planned(options, {"factory": options.factory})
        files = [Path(options.folder) / name for name in ("free.kith", "limited.kith")]
        same = subprocess.run(["cmp", *files], check=False).returncode == 0
        ratio = limited["processor"] / free["processor"]
        compare("index", over_memory=ratio, same_bytes=same, planned_s=seconds, planned_processor_s=seconds * options.threads)
    if "search" in options.only:
        memory, disk = run_apart(options, report, "search", None), run_apart(options, report, "search", "disk")
        compare("search", over_memory=disk["processor"] / memory["processor"], same_ids=disk["ids"] == memory["ids"])
    if "first" in options.only:
        run_apart(options, report, "first", None)


if __name__ == "__main__":
    main()
