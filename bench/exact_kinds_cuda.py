"""Exact search on a GPU, whatever the values: milliseconds on data that is hard for its bounds, beside plain data.

    python bench/exact_kinds_cuda.py [--only TEXT] [--runs 5] [--write]

10,000 queries in 1,000,000 x 128, k = 10, the exact graph of 500,000 x 64, and some other shapes; data and results in
the device's memory. Each case: the time, over that of plain data of the same shape, and the goal. Needs the packages kith
(with CUDA) and torch.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from cuda_timing import median_milliseconds
from report import parser_of, report_of

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


def distinct(x: Rows, count: int) -> Rows:
    return x[torch.arange(len(x), device="cuda") * 7919 % count].contiguous()


def line(x: Rows, cols: int) -> Rows:
    return (x[:, :1] * randn(1, cols, 9)).contiguous()


def searches() -> dict[str, tuple[Callable[[], tuple[Rows, Rows]], float]]:
    def plain() -> tuple[Rows, Rows]:
        return randn(10_000, 128, 1), randn(1_000_000, 128, 2)

    def with_far(count: int, factor: float) -> Callable[[], tuple[Rows, Rows]]:
        return lambda: (plain()[0], far(plain()[1], count, factor))

    def in_clusters(spread: float, count: int = 100) -> Callable[[], tuple[Rows, Rows]]:
        return lambda: (clusters(10_000, 128, count, spread, 3), clusters(1_000_000, 128, count, spread, 5))

    return {
        "plain": (plain, 5.8),
        "1 row x 100": (with_far(1, 100), 8),
        "1 row x 1,000": (with_far(1, 1000), 8),
        "1,000 rows x 100": (with_far(1000, 100), 8),
        "10,000 rows x 10": (with_far(10_000, 10), 8),
        "100 clusters, spread 1/100": (in_clusters(0.01), 12),
        "100 clusters, spread 1/1,000": (in_clusters(0.001), 12),
        "3 clusters, spread 1/100": (in_clusters(0.01, 3), 17.4),
        "1,000 clusters, spread 1/100": (in_clusters(0.01, 1000), 17.4),
        "10,000 clusters, spread 1/1,000": (in_clusters(0.001, 10_000), 17.4),
        "norms over four decades": (lambda: (four_decades(plain()[0]), four_decades(plain()[1])), 17.4),
        "half of all rows equal": (lambda: (half_equal(plain()[1])[:10_000], half_equal(plain()[1])), 17.4),
        "queries far from the data": (lambda: (plain()[0] + 1000, plain()[1]), 17.4),
    }


def graphs() -> dict[str, tuple[Callable[[], Rows], float]]:
    def plain() -> Rows:
        return randn(500_000, 64, 2)

    return {
        "plain": (plain, 100),
        "50 rows x 10,000": (lambda: far(plain(), 50, 10_000), 150),
        "norms over four decades": (lambda: four_decades(plain()), 300),
        "half of all rows equal": (lambda: half_equal(plain()), 200),
        "1,000 distinct rows": (lambda: distinct(plain(), 1000), 200),
        "100 clusters, spread 1/100": (lambda: clusters(500_000, 64, 100, 0.01, 5), 250),
        "100 clusters, spread 1/1,000": (lambda: clusters(500_000, 64, 100, 0.001, 5), 250),
        "10 clusters, spread 1/100": (lambda: clusters(500_000, 64, 10, 0.01, 5), 250),
        "one column": (lambda: plain()[:, :1].contiguous(), 120),
        "a line in 8 columns": (lambda: line(plain(), 8), 120),
    }


def others() -> dict[str, tuple[Callable[[], tuple[Rows, Rows]], float]]:
    def equal() -> tuple[Rows, Rows]:
        row = randn(1, 64, 1)
        return row.repeat(500, 1), row.repeat(100_000, 1)

    return {
        "500 queries in 100,000 x 64, plain": (lambda: (randn(500, 64, 1), randn(100_000, 64, 2)), 1),
        "500 queries in 100,000 x 64, equal rows": (equal, 1),
        "100 queries in 20,000 x 8,192": (lambda: (randn(100, 8192, 1), randn(20_000, 8192, 2)), 0.5),
    }


def by_metric() -> dict[str, tuple[Callable[[], tuple[Rows, Rows]], str]]:
    """Of 10,000 queries in 1,000,000 x 128; the goal is three times plain data."""

    def in_clusters(kind: torch.dtype) -> Callable[[], tuple[Rows, Rows]]:
        return lambda: (clusters(10_000, 128, 100, 0.01, 3).to(kind), clusters(1_000_000, 128, 100, 0.01, 5).to(kind))

    def far_rows() -> tuple[Rows, Rows]:
        return randn(10_000, 128, 1), far(randn(1_000_000, 128, 2), 1000, 100)

    return {
        "plain, cosine": (lambda: (randn(10_000, 128, 1), randn(1_000_000, 128, 2)), "cosine"),
        "100 clusters, cosine": (in_clusters(torch.float32), "cosine"),
        "plain, inner_product": (lambda: (randn(10_000, 128, 1), randn(1_000_000, 128, 2)), "inner_product"),
        "100 clusters, inner_product": (in_clusters(torch.float32), "inner_product"),
        "1,000 rows x 100, inner_product": (far_rows, "inner_product"),
        "plain, f16": (lambda: (randn(10_000, 128, 1).half(), randn(1_000_000, 128, 2).half()), "l2"),
        "100 clusters, f16": (in_clusters(torch.float16), "l2"),
    }


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    report = report_of("exact_kinds_cuda", options)

    def row(case: str, call: Callable[[], object], plain_ms: float | None, goal_ms: float | None) -> float:
        """The median, kept beside that of plain data."""
        spent = median_milliseconds(call, options.runs)
        plain = plain_ms or spent
        figures = {"over_plain": spent / plain, "goal_ms": goal_ms if goal_ms is not None else 3 * plain}
        report.row(case, median_ms=spent, runs=options.runs, clock="wall", figures=figures)
        return spent

    for shape, cases in (("10,000 queries in 1,000,000 x 128, ", searches()), ("", others())):
        plain = None
        for name, (make, goal) in cases.items():
            if options.only not in name and name != "plain":
                continue
            queries, rows = make()
            spent = row(shape + name, lambda: kith.knn(queries, rows, 10), plain, goal)  # noqa: B023
            plain = plain or spent
            del queries, rows
    plain = None
    for name, (make, metric) in by_metric().items():
        if options.only not in name and "plain" not in name:
            continue
        queries, rows = make()
        if "plain" in name:
            plain = None
        call = lambda: kith.knn(queries, rows, 10, metric=metric)  # noqa: B023, E731
        spent = row("10,000 queries in 1,000,000 x 128, " + name, call, plain, None)
        plain = plain or spent
        del queries, rows
    plain = None
    for name, (make_rows, goal) in graphs().items():
        if options.only not in name and name != "plain":
            continue
        x = make_rows()
        spent = row("graph of 500,000 x 64, " + name, lambda: kith.knn_graph(x, 10, method="exact"), plain, goal)  # noqa: B023
        plain = plain or spent


if __name__ == "__main__":
    main()
