"""Training on a GPU by width: transforms, product codes and k-means of rows in the device's memory.

Rows are a mixture of 2,048 centres of rank 48 with noise, of length 1, made on the GPU. Times are medians of some runs; some
have goals.

    python bench/train_widths_cuda.py [--cols 128,768,1536] [--rows 1000000] [--runs 3] [--case TEXT] [--profile] [--write]

`--case` keeps the cases whose names contain the text. `--profile` adds, for each case, the kernels and copies that take
longest, and how long the GPU was idle. Needs the packages kith (with CUDA) and torch.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from typing import Any

import torch
from cuda_timing import milliseconds
from report import parser_of, report_of

import kith

_CENTRES = 2048
_RANK = 48
_BLOCK = 1 << 16
_GOALS = {
    ("OPQ64_256", 768): 1000,
    ("OPQ64_256", 1536): 1500,
    ("PQ of d/8", 768): 300,
    ("PQ of d/8", 1536): 500,
    ("k-means, given centres", 768): 90,
    ("k-means, given centres", 1536): 180,
    ("k-means", 768): 130,
    ("k-means", 1536): 260,
}


def rows_of_length_one(rows: int, cols: int) -> torch.Tensor:
    random = torch.Generator("cuda").manual_seed(1)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=random, device="cuda")

    basis = normal(_RANK, cols)
    centres = normal(_CENTRES, _RANK)
    out = torch.empty(rows, cols, device="cuda")
    for first in range(0, rows, _BLOCK):
        count = min(_BLOCK, rows - first)
        drawn = torch.randint(_CENTRES, (count,), generator=random, device="cuda")
        points = (centres[drawn] + 0.5 * normal(count, _RANK)) @ basis + 0.5 * normal(count, cols)
        out[first : first + count] = points / points.norm(dim=1, keepdim=True)
    return out


def cases(x: torch.Tensor) -> dict[str, Callable[[], object]]:
    cols = x.shape[1]
    half = min(256, cols // 2)
    some = x[:: len(x) // 1024][:1024].cpu().numpy()
    return {
        "Centre": lambda: kith.Transform("Centre").train(x),
        f"PCA{half}": lambda: kith.Transform(f"PCA{half}").train(x),
        f"OPQ{half // 4}_{half}": lambda: kith.Transform(f"OPQ{half // 4}_{half}").train(x),
        "PQ of d/8": lambda: kith.ProductQuantizer(cols // 8).train(x),
        "k-means, given centres": lambda: kith.KMeans(1024, iterations=20, tol=0, init=some).fit(x),
        "k-means, without history": lambda: kith.KMeans(1024, iterations=20, tol=0, init=some, history=False).fit(x),
        "k-means": lambda: kith.KMeans(1024, iterations=20, tol=0).fit(x),
    }


def print_profile(run: Callable[[], object]) -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        taken = milliseconds(run)
    entries = sorted(profile.key_averages(), key=lambda e: -e.self_device_time_total)
    busy = sum(e.self_device_time_total for e in entries) / 1e3
    print(f"    {taken:.1f} ms under the profiler, the GPU busy for {busy:.1f}")
    for e in entries[:9]:
        print(f"    {e.self_device_time_total / 1e3:9.2f} ms {e.count:6d} x {short_name(e.key)}")
    print_idle(profile.events())


def print_idle(events: Iterable[Any]) -> None:
    """The pairs of kernels and copies between which the GPU waited longest for the host."""
    waits: dict[tuple[str, str], list[float]] = {}
    reached, last = 0.0, ""
    on_device = (e for e in events if e.device_type == torch.autograd.DeviceType.CUDA)
    for e in sorted(on_device, key=lambda e: e.time_range.start):
        if last and e.time_range.start > reached:
            waits.setdefault((last, short_name(e.name)), []).append((e.time_range.start - reached) / 1e3)
        if e.time_range.end > reached:
            reached, last = e.time_range.end, short_name(e.name)
    for (before, after), each in sorted(waits.items(), key=lambda item: -sum(item[1]))[:5]:
        print(f"    {sum(each):9.2f} ms {len(each):6d} x idle from {before[:36]} to {after[:36]}")


def short_name(kernel: str) -> str:
    return kernel.replace("kith::", "").replace("(anonymous namespace)::", "").replace("void ", "")[:76]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--cols", default="128,768,1536")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--case", default="")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    report = report_of("train_widths_cuda", options)
    kith.KMeans(2).fit(torch.zeros(16, 4, device="cuda") + torch.arange(16, device="cuda")[:, None])  # loads kernels
    for cols in map(int, options.cols.split(",")):
        x = rows_of_length_one(options.rows, cols)
        for name, run in cases(x).items():
            if options.case not in name:
                continue
            first = milliseconds(run)  # alone where a run is long
            times = [first] if first > 2000 else [milliseconds(run) for _ in range(options.runs)]
            goal = _GOALS.get((name, cols))
            report.row(
                f"{name}, {cols} columns",
                shape=f"{options.rows} x {cols} f32",
                median_ms=statistics.median(times),
                runs=len(times),
                clock="wall",
                figures={"goal_ms": goal} if goal else None,
            )
            if options.profile:
                print_profile(run)
        del x


if __name__ == "__main__":
    main()
