"""A graph from disk: seconds of each phase, memory, bytes read and written, and the hash beside that of memory.

    graph_from_disk.py --rows 10000000 --folder /dev/shm/kith [--cols 96] [--recall 0.95] [-k 10] [--device cuda]
                       [--memory-limit 24G] [--device-memory-limit 16G] [--in-memory] [--method cells] [--shards 10]
                       [--threads 2] [--ids-only] [--computed]

Rows are the mixture of made_data.py's recipe as bytes, made by torch on a GPU where there is one, else by numpy; FOLDER
keeps them for the next run. --computed: where no disk holds them, rows are computed whenever they are read, each from its
number alone: a centre and two of 65,536 steps from it. Seconds of a phase are those between the first and the last report of it. --in-memory builds
the graph in memory first, on the same device without limits, and compares. Recall is that of the 1,000 control rows.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np

import kith

_CENTRES, _FACTORS, _BLOCK = 2000, 16, 1_000_000


def make_rows(path: Path, rows: int, cols: int) -> None:
    if path.exists():
        return
    made = np.lib.format.open_memmap(path.with_suffix(".part"), "w+", np.uint8, (rows, cols))
    try:
        import torch

        on_gpu = torch.cuda.is_available()
    except ImportError:
        on_gpu = False
    if on_gpu:
        fixed = torch.Generator("cuda").manual_seed(2)
        centres = 40 * torch.randn(_CENTRES, cols, device="cuda", generator=fixed).abs()
        factors = 6 * torch.randn(_FACTORS, cols, device="cuda", generator=fixed)
        drawn = torch.Generator("cuda").manual_seed(1)
        for first in range(0, rows, _BLOCK):
            count = min(_BLOCK, rows - first)
            points = centres[torch.randint(_CENTRES, (count,), device="cuda", generator=drawn)]
            points += 3 * torch.randn(count, cols, device="cuda", generator=drawn)
            points += torch.randn(count, _FACTORS, device="cuda", generator=drawn) @ factors
            made[first : first + count] = points.round_().clamp_(0, 255).to(torch.uint8).cpu().numpy()
        torch.cuda.empty_cache()
    else:
        from made_data import mixture

        for number, first in enumerate(range(0, rows, _BLOCK)):
            count = min(_BLOCK, rows - first)
            made[first : first + count] = mixture(count, cols, number + 1).astype(np.uint8)
    made.flush()
    path.with_suffix(".part").rename(path)


class ComputedRows:
    """Rows of a mixture that lie nowhere: anything with shape, dtype and slices is a source."""

    def __init__(self, rows: int, cols: int) -> None:
        draw = np.random.default_rng(5)
        self.shape, self.dtype = (rows, cols), np.dtype(np.uint8)
        self.centres = draw.integers(40, 200, (_CENTRES, cols), dtype=np.int16)
        self.steps = draw.normal(0, 6, (2, 1 << 16, cols)).round().astype(np.int16)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> np.ndarray:
        first, end, _ = rows.indices(self.shape[0])
        drawn = np.arange(first, end, dtype=np.uint64)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            drawn = (drawn ^ (drawn >> np.uint64(shift))) * np.uint64(factor)
        drawn ^= drawn >> np.uint64(31)
        made = self.centres[drawn % np.uint64(_CENTRES)]
        made += self.steps[0, drawn >> np.uint64(48)]
        made += self.steps[1, (drawn >> np.uint64(32)) & np.uint64(0xFFFF)]
        return made.clip(0, 255).astype(np.uint8)


class Phases:
    def __init__(self) -> None:
        self.began = self.last = time.perf_counter()
        self.seconds: dict[str, float] = {}
        self.stage = ""

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0) + now - self.last
        self.last = now

    def text(self) -> str:
        return ", ".join(f"{name} {spent:.2f}" for name, spent in self.seconds.items() if spent >= 0.01)


def bytes_moved() -> tuple[int, int]:
    counted = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(counted["rchar"]), int(counted["wchar"])


def main() -> None:
    parser = argparse.ArgumentParser()
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
    parser.add_argument("--computed", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    path = options.folder / f"mixture_{options.rows}_{options.cols}.npy"
    began = time.perf_counter()
    rows: Any = ComputedRows(options.rows, options.cols) if options.computed else str(path)
    if not options.computed:
        make_rows(path, options.rows, options.cols)
    print(f"{options.rows} x {options.cols} u8, made in {time.perf_counter() - began:.1f} s", flush=True)
    wish: dict[str, Any] = {"k": options.k, "method": options.method, "recall": options.recall, "device": options.device}
    wish |= {"threads": options.threads}
    if options.shards is not None:
        wish["shards"] = options.shards
    truth = None
    if options.in_memory:
        x = rows[:] if options.computed else np.load(path)
        for _ in range(2):
            began = time.perf_counter()
            truth = kith.knn_graph(x, **wish)
            print(f"in memory {time.perf_counter() - began:.2f} s, recall {truth.report.recall}", flush=True)
        del x
    out = options.folder / "graph"
    shutil.rmtree(out, ignore_errors=True)
    phases = Phases()
    moved = bytes_moved()
    spent = os.times()
    began = time.perf_counter()
    limits = {"memory_limit": options.memory_limit, "device_memory_limit": options.device_memory_limit}
    graph: kith.KnnGraph | kith.GraphIds
    if options.ids_only:
        graph = kith.knn_graph_ids(rows, out, int32_ids=True, progress=phases, **limits, **wish)
    else:
        graph = kith.knn_graph(rows, out=out, progress=phases, **limits, **wish)
    seconds = time.perf_counter() - began
    now, used = bytes_moved(), os.times()
    report = graph.report
    print(f"from disk {seconds:.2f} s, processor {used.user + used.system - spent.user - spent.system:.1f} s, "
          f"recall {report.recall}, method {report.method}, probes {report.parameters.get('probes')}, "
          f"cells {report.parameters.get('cells')}", flush=True)
    print(f"phases: {phases.text()}")
    print(f"read {(now[0] - moved[0]) / 1e9:.2f} GB, written {(now[1] - moved[1]) / 1e9:.2f} GB; counted peaks "
          f"{report.peak_bytes / 2**20:.0f} MiB host, {report.peak_device_bytes / 2**20:.0f} MiB device; largest resident "
          f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    if isinstance(graph, kith.KnnGraph) and truth is not None:
        same = bool(np.array_equal(truth.ids, graph.ids)) and bool(np.array_equal(truth.distances, graph.distances))
        print("the same bytes as in memory" if same else "OTHER BYTES than in memory")


if __name__ == "__main__":
    main()
