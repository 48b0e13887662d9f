"""A graph from disk: seconds of each phase, memory, bytes read and written, and the hash beside that of memory.

    graph_from_disk.py --rows 10000000 --folder /dev/shm/kith [--cols 96] [--recall 0.95] [-k 10] [--device cuda]
                       [--memory-limit 24G] [--device-memory-limit 16G] [--in-memory] [--method cells] [--shards 10]
                       [--threads 2] [--ids-only] [--files 3] [--data /disk]

Rows are the mixture of made_data.py's recipe as bytes, made by torch on a GPU where there is one, else by numpy; FOLDER,
or --data, keeps them for the next run, in --files files of equal size. (kith_bench computed_graph: rows that no disk holds.)
Each phase is a case, with its seconds, those of the processors in user and system code, and the share of samples in which the
GPU worked (nvidia-smi).
--in-memory builds the graph in memory first, on the same device without limits, and compares. Recall is that of the 1,000
control rows.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import threading
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from report import Report, parser_of, report_of
from turns import timed

import kith

_CENTRES, _FACTORS, _BLOCK = 2000, 16, 1_000_000


def make_rows(path: Path, rows: int, cols: int, seed: int = 1) -> None:
    """Other seeds give other rows around the same centres."""
    if path.exists():
        return
    part = path.with_suffix(".part")
    made = np.lib.format.open_memmap(part, "w+", np.uint8, (rows, cols))
    begin = made.offset
    try:
        import torch

        on_gpu = torch.cuda.is_available()
    except ImportError:
        on_gpu = False
    if on_gpu:
        del made
        fixed = torch.Generator("cuda").manual_seed(2)
        centres = 40 * torch.randn(_CENTRES, cols, device="cuda", generator=fixed).abs()
        factors = 6 * torch.randn(_FACTORS, cols, device="cuda", generator=fixed)
        drawn = torch.Generator("cuda").manual_seed(seed)
        written: deque[Future[int]] = deque()
        file = os.open(part, os.O_WRONLY)
        with ThreadPoolExecutor(8) as pool:
            for first in range(0, rows, _BLOCK):
                count = min(_BLOCK, rows - first)
                points = centres[torch.randint(_CENTRES, (count,), device="cuda", generator=drawn)]
                points += 3 * torch.randn(count, cols, device="cuda", generator=drawn)
                points += torch.randn(count, _FACTORS, device="cuda", generator=drawn) @ factors
                block = points.round_().clamp_(0, 255).to(torch.uint8).cpu().numpy()
                written.append(pool.submit(os.pwrite, file, block.data, begin + first * cols))
                if len(written) > 16:
                    written.popleft().result()
            for waiting in written:
                waiting.result()
        os.close(file)
        torch.cuda.empty_cache()
    else:
        from made_data import mixture

        for number, first in enumerate(range(0, rows, _BLOCK)):
            count = min(_BLOCK, rows - first)
            made[first : first + count] = mixture(count, cols, 1000 * (seed - 1) + number + 1).astype(np.uint8)
        made.flush()
    part.rename(path)


class Phases:
    """What a phase takes, from the report before its first to its last."""

    def __init__(self, on_gpu: bool) -> None:
        self.last = time.perf_counter()
        self.used = os.times()
        self.stage = ""
        self.told: dict[str, list[float]] = {}  # seconds, of the processors in user and system code, samples, those at work
        self.watch = None
        if on_gpu and shutil.which("nvidia-smi"):
            command = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "-lms", "100"]
            self.watch = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            threading.Thread(target=self._sample, daemon=True).start()

    def _of(self, stage: str) -> list[float]:
        return self.told.setdefault(stage, [0.0] * 5)

    def _sample(self) -> None:
        assert self.watch is not None and self.watch.stdout is not None
        for line in self.watch.stdout:
            if self.stage and line.strip().isdigit():
                self._of(self.stage)[3] += 1
                self._of(self.stage)[4] += int(line) / 100

    def __call__(self, stage: str, done: int, total: int) -> None:
        now, used = time.perf_counter(), os.times()
        phase = self._of(stage)
        phase[0] += now - self.last
        phase[1] += used.user - self.used.user
        phase[2] += used.system - self.used.system
        self.last, self.used, self.stage = now, used, stage

    def add_rows(self, report: Report, shape: str) -> None:
        if self.watch is not None:
            self.watch.terminate()
        for name, (spent, user, system, samples, worked) in self.told.items():
            if spent < 0.01:
                continue
            figures = {"user_s": user, "system_s": system} | ({"gpu_share": worked / samples} if samples else {})
            report.row(f"phase {name}", shape=shape, ms=1e3 * spent, clock="wall", figures=figures)


def bytes_moved() -> tuple[int, int]:
    counted = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(counted["rchar"]), int(counted["wchar"])


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--cols", type=int, default=96)
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--recall", type=float, default=0.95)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--method", default="cells")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--memory-limit")
    parser.add_argument("--device-memory-limit")
    parser.add_argument("--in-memory", action="store_true")
    parser.add_argument("--ids-only", action="store_true")
    parser.add_argument("--shards", type=int)
    parser.add_argument("--files", type=int, default=1)
    parser.add_argument("--data", type=Path)
    options = parser.parse_args()
    report = report_of("graph_from_disk", options)
    options.folder.mkdir(parents=True, exist_ok=True)
    data = options.data or options.folder
    each = options.rows // options.files
    paths = [data / f"mixture_{each}_{options.cols}{f'_{number}' if number else ''}.npy" for number in range(options.files)]
    began = time.perf_counter()
    rows = [str(path) for path in paths]
    for number, path in enumerate(paths):
        make_rows(path, each, options.cols, number + 1)
    shape = f"{each * options.files} x {options.cols} u8, k = {options.k}"
    report.row("rows made", shape=shape, ms=1e3 * (time.perf_counter() - began), clock="wall")
    asked: dict[str, Any] = {"k": options.k, "method": options.method, "recall": options.recall, "device": options.device}
    asked |= {"threads": options.threads}
    if options.shards is not None:
        asked["shards"] = options.shards
    truth = None
    if options.in_memory:
        x = np.concatenate([np.load(path) for path in paths])
        for _ in range(2):
            truth, seconds, processor = timed(lambda: kith.knn_graph(x, **asked))  # noqa: B023
            figures = {"recall": truth.report.recall, "processor_s": processor}
            report.row("in memory", shape=shape, ms=1e3 * seconds, clock="wall", figures=figures)
        del x
    out = options.folder / "graph"
    shutil.rmtree(out, ignore_errors=True)
    phases = Phases(options.device != "cpu")
    moved = bytes_moved()
    spent = os.times()
    began = time.perf_counter()
    limits = {"memory_limit": options.memory_limit, "device_memory_limit": options.device_memory_limit}
    graph: kith.KnnGraph | kith.GraphIds
    if options.ids_only:
        graph = kith.knn_graph_ids(rows, out, int32_ids=True, progress=phases, **limits, **asked)
    else:
        graph = kith.knn_graph(rows, out=out, progress=phases, **limits, **asked)
    seconds = time.perf_counter() - began
    now, used = bytes_moved(), os.times()
    made = graph.report
    phases.add_rows(report, shape)
    hashes = json.loads((out / "report.json").read_text())
    figures = {
        "processor_s": used.user + used.system - spent.user - spent.system,
        "recall": made.recall,
        **{name: made.parameters[name] for name in ("probes", "cells") if made.parameters.get(name) is not None},
        "read_gb": (now[0] - moved[0]) / 1e9,
        "written_gb": (now[1] - moved[1]) / 1e9,
        "counted_host_mib": made.peak_bytes / 2**20,
        "counted_device_mib": made.peak_device_bytes / 2**20,
        "resident_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    labels = {"method": made.method} | {name: hashes[name] for name in ("ids_xxh3", "distances_xxh3") if name in hashes}
    if isinstance(graph, kith.KnnGraph) and truth is not None:
        same = bool(np.array_equal(truth.ids, graph.ids)) and bool(np.array_equal(truth.distances, graph.distances))
        labels["beside_memory"] = "the same bytes" if same else "OTHER BYTES"
    figures = {name: float(value) for name, value in figures.items() if value is not None}
    report.row("from disk", shape=shape, ms=1e3 * seconds, clock="wall", figures=figures, labels=labels)


if __name__ == "__main__":
    main()
