"""Exact search on a GPU, whatever the values: milliseconds on data that is hard for its bounds, beside plain data.

    python bench/exact_kinds_cuda.py [--only TEXT] [--runs 5]

10,000 queries in 1,000,000 x 128, k = 10, and the exact graph of 500,000 x 64; data and results in the device's memory. Each line:
the time, over that of plain data, and the goal. Needs the packages kith (with CUDA) and torch.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch

import kith

Rows = torch.Tensor


def randn(rows: int, cols: int, seed: int) -> Rows:
    generator = torch.Generator(device="cuda").manual_seed(seed)
    return torch.randn((rows, cols), device="cuda", generator=generator)


def far(x: Rows, count: int, factor: float) -> Rows:
    """Some rows, spread over all, are so many times as long."""
    x = x.clone()
    x[torch.arange(count, device="cuda") * (len(x) // count) + len(x) // count // 2] *= factor
    return x


def clusters(rows: int, cols: int, count: int, spread: float, seed: int) -> Rows:
    generator = torch.Generator(device="cuda").manual_seed(seed)
    chosen = torch.randint(count, (rows,), device="cuda", generator=generator)
    return randn(count, cols, 99)[chosen] + spread * randn(rows, cols, seed + 1)


def four_decades(x: Rows) -> Rows:
    generator = torch.Generator(device="cuda").manual_seed(7)
    return x * 10 ** (4 * torch.rand((len(x), 1), device="cuda", generator=generator) - 2)


def half_equal(x: Rows) -> Rows:
    x = x.clone()
    x[::2] = x[0]
    return x


def searches() -> dict[str, tuple[Callable[[], tuple[Rows, Rows]], float]]:
    def plain() -> tuple[Rows, Rows]:
        return randn(10_000, 128, 1), randn(1_000_000, 128, 2)

    def with_far(count: int, factor: float) -> Callable[[], tuple[Rows, Rows]]:
        return lambda: (plain()[0], far(plain()[1], count, factor))

    def in_clusters(spread: float) -> Callable[[], tuple[Rows, Rows]]:
        return lambda: (clusters(10_000, 128, 100, spread, 3), clusters(1_000_000, 128, 100, spread, 5))

    return {
        "plain": (plain, 5.8),
        "1 row x 100": (with_far(1, 100), 8),
        "1 row x 1,000": (with_far(1, 1000), 8),
        "1,000 rows x 100": (with_far(1000, 100), 8),
        "10,000 rows x 10": (with_far(10_000, 10), 8),
        "100 clusters, spread 1/100": (in_clusters(0.01), 12),
    }


def graphs() -> dict[str, tuple[Callable[[], Rows], float]]:
    def plain() -> Rows:
        return randn(500_000, 64, 2)

    return {
        "plain": (plain, 100),
        "50 rows x 10,000": (lambda: far(plain(), 50, 10_000), 150),
        "norms over four decades": (lambda: four_decades(plain()), 300),
        "half of all rows equal": (lambda: half_equal(plain()), 200),
    }


def milliseconds(call: Callable[[], object], runs: int) -> float:
    call()
    torch.cuda.synchronize()
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description="exact search on hard data")
    parser.add_argument("--only", default="")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}; kith {kith.__version__}; milliseconds, over plain data, goal")
    base = None
    for name, (make, goal) in searches().items():
        if options.only not in name and name != "plain":
            continue
        queries, rows = make()
        spent = milliseconds(lambda: kith.knn(queries, rows, 10), options.runs)  # noqa: B023
        base = base or spent
        print(f"10,000 queries in 1,000,000 x 128, {name:<28} {spent:9.2f} {spent / base:7.2f} {goal:7.1f}", flush=True)
    base = None
    for name, (make_rows, goal) in graphs().items():
        if options.only not in name and name != "plain":
            continue
        x = make_rows()
        spent = milliseconds(lambda: kith.knn_graph(x, 10, method="exact"), options.runs)  # noqa: B023
        base = base or spent
        print(f"graph of 500,000 x 64,             {name:<28} {spent:9.2f} {spent / base:7.2f} {goal:7.1f}", flush=True)


if __name__ == "__main__":
    main()
