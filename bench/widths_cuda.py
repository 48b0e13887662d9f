"""A GPU's searches by the number of columns: what wide vectors take, beside narrow ones.

    python bench/widths_cuda.py [SECTION...] [--cols 768,1536] [--codes PQ96,Flat] [--rows 1000000] [--queries 10000]
                                [--runs 7] [--metric l2] [--lists 2048] [--probes 32] [--k 10] [--profile]
                                [--profile-one] [--kinds decades,equal,zipf] [--counts 8,256,4096] [--tasks exact,graphs]
                                [--write]

Rows are a mixture of rank 48 with noise, of length 1, made on the device; queries are others of it. Sections:

  lists   inverted lists, all queries with results in the device's memory, and one query on the host; with goals at 768 and
          1,536 columns, where there are any

  odd     lists that are far from equally long, IVF,Flat, beside exact search of all rows: norms over four decades, half
          of all rows equal, clusters of Zipf's sizes; 1, 100 and all queries and k of 10 and 100; by numbers of lists
          (--counts), beginning with --lists

  exact   exact search of all queries, of f32 and of f16

  graphs  k-NN graphs of all rows by every method and merging those of two halves, beside what 128 columns took, times
          columns / 128

  sweep   many tasks (--tasks), of 200,000 rows and less, over 15 widths from 1 to 4,096 and three metrics. `high` says what
          is above 1.3 times the line between its neighbours, or by this metric above 1.2 times l2

Times are medians of the runs, the wait for results included. --profile prints the kernels of one call and their times,
--profile-one those of a call with one query. Chained kernels begin while the one before still runs.
Needs the packages kith (with CUDA) and torch.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
from cuda_timing import median_milliseconds
from report import Report, parser_of, report_of

import kith

Rows = torch.Tensor

# Microseconds a query of many, and milliseconds for one alone.
LIST_GOALS: dict[tuple[str, int], tuple[float, float]] = {
    ("PQ96", 768): (0.4, 0.12),
    ("PQ192", 1536): (0.8, 0.15),
    ("PQ64", 768): (0.4, 0.12),
    ("PQ64", 1536): (0.8, 0.15),
    ("SQ8", 768): (0.3, 0.12),
    ("SQ8", 1536): (0.6, 0.15),
    ("Flat", 768): (0.35, 0.12),
    ("Flat", 1536): (0.7, 0.15),
}
EXACT_GOALS: dict[int, float] = {768: 26, 1536: 52}


def mixture(rows: int, cols: int, seed: int) -> Rows:
    """2,000 centres in a space of 48 dimensions, spread around them there, and noise in all columns; of length 1."""
    rank = min(48, cols)
    model = torch.Generator(device="cuda").manual_seed(1234)
    basis = torch.randn((rank, cols), device="cuda", generator=model) / rank**0.5
    centres = torch.randn((2000, rank), device="cuda", generator=model)
    drawn = torch.Generator(device="cuda").manual_seed(seed)
    x = torch.empty((rows, cols), device="cuda")
    for first in range(0, rows, 100_000):
        some = min(100_000, rows - first)
        near = centres[torch.randint(2000, (some,), device="cuda", generator=drawn)]
        near = near + 0.5 * torch.randn((some, rank), device="cuda", generator=drawn)
        noise = torch.randn((some, cols), device="cuda", generator=drawn)
        x[first : first + some] = torch.nn.functional.normalize(near @ basis + 0.1 * noise)
    return x


def print_kernels(call: Callable[[], object], most: int = 8) -> None:
    """What one call runs on the device, the longest first."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as recorded:
        call()
        torch.cuda.synchronize()
    spent: dict[str, list[float]] = {}
    for event in recorded.events():
        spent.setdefault(event.name, []).append(event.device_time / 1000)
    longest = sorted(spent.items(), key=lambda each: -sum(each[1]))
    for name, times in longest[:most]:
        short = name.replace("void ", "").replace("kith::", "").replace("(anonymous namespace)::", "").split("(")[0]
        print(f"      {sum(times):8.3f} ms  {len(times):3} x  {short[:88]}", flush=True)
    print(f"      {sum(map(sum, spent.values())):8.3f} ms  in all", flush=True)


def default_codes(cols: int) -> list[str]:
    return [*dict.fromkeys(f"PQ{parts}" for parts in (cols // 8, 64) if parts > 0 and cols % parts == 0), "SQ8", "Flat"]


def lists(options: argparse.Namespace, report: Report, cols: int) -> None:
    rows = mixture(options.rows, cols, 1)
    queries = mixture(options.queries, cols, 2)
    one = queries[0].cpu().numpy()
    for code in options.codes or default_codes(cols):
        index = kith.Index(f"IVF{options.lists},{code}", metric=options.metric, device="cuda")
        index.train(rows[: min(options.rows, 64 * options.lists)])
        index.add(rows)

        def many() -> object:
            return index.search(queries, options.k, probes=options.probes)  # noqa: B023

        spent = median_milliseconds(many, options.runs)

        def single() -> object:
            return index.search(one, options.k, probes=options.probes)  # noqa: B023

        alone = median_milliseconds(single, 8 * options.runs)
        goals = LIST_GOALS.get((code, cols))
        shape = f"{options.rows} x {cols}, {options.lists} lists, {options.probes} probes, k = {options.k}, {options.metric}"
        case = f"lists, {cols} columns, {code}"
        figures = {"us_a_query": 1000 * spent / options.queries} | ({"goal_us_a_query": goals[0]} if goals else {})
        report.row(f"{case}, {options.queries} queries", shape=shape, median_ms=spent, runs=options.runs, clock="wall", figures=figures)
        figures = {"goal_ms": goals[1]} if goals else {}
        report.row(f"{case}, one query", shape=shape, median_ms=alone, runs=8 * options.runs, clock="wall", figures=figures)
        if options.profile:
            print_kernels(many)
        if options.profile_one:
            print_kernels(single, 24)
        del index
        torch.cuda.empty_cache()


def four_decades(rows: int, cols: int, seed: int) -> Rows:
    drawn = torch.Generator(device="cuda").manual_seed(seed + 7)
    return mixture(rows, cols, seed) * 10 ** (4 * torch.rand((rows, 1), device="cuda", generator=drawn) - 2)


def half_equal(rows: int, cols: int, seed: int) -> Rows:
    x = mixture(rows, cols, seed)
    x[::2] = x[0]
    return x


def zipf_clusters(rows: int, cols: int, seed: int) -> Rows:
    """5,000 tight clusters, of which the i-th has 1 / i of the rows of the first."""
    model = torch.Generator(device="cuda").manual_seed(1234)
    centres = torch.randn((5000, cols), device="cuda", generator=model)
    drawn = torch.Generator(device="cuda").manual_seed(seed)
    shares = 1 / torch.arange(1, 5001, device="cuda", dtype=torch.float32)
    of = torch.multinomial(shares, rows, replacement=True, generator=drawn)
    return centres[of] + 0.05 * torch.randn((rows, cols), device="cuda", generator=drawn)


KINDS: dict[str, Callable[[int, int, int], Rows]] = {
    "plain": mixture,
    "decades": four_decades,
    "equal": half_equal,
    "zipf": zipf_clusters,
}


def odd(options: argparse.Namespace, report: Report, cols: int) -> None:
    for name in options.kinds:
        rows = KINDS[name](options.rows, cols, 1)
        queries = KINDS[name](options.queries, cols, 2)
        shapes = [(count, k) for count in dict.fromkeys((options.queries, 100, 1)) for k in (10, 100)]

        def spent(call: Callable[[Rows, int], object], count: int, k: int) -> float:
            return median_milliseconds(lambda: call(queries[:count], k), options.runs)  # noqa: B023

        exact = [spent(lambda x, k: kith.knn(x, rows, k, options.metric), *shape) for shape in shapes]  # noqa: B023
        for lists in dict.fromkeys([options.lists, *options.counts]):
            index = kith.Index(f"IVF{lists},Flat", metric=options.metric, device="cuda")
            index.train(rows[: min(options.rows, 64 * lists)])
            index.add(rows)

            def search(x: Rows, k: int) -> object:
                return index.search(x, k, probes=options.probes)  # noqa: B023

            found = [spent(search, *shape) for shape in shapes]
            for (count, k), of_lists, of_all in zip(shapes, found, exact, strict=True):
                report.row(
                    f"odd, {cols} columns, {name}, {lists} lists, {count} queries, k = {k}",
                    shape=f"{options.rows} x {cols}, {options.probes} probes, {options.metric}",
                    median_ms=of_lists,
                    runs=options.runs,
                    clock="wall",
                    peers_ms={"exact": of_all},
                )
            if options.profile:
                print_kernels(lambda: search(queries, options.k))  # noqa: B023
            del index
            torch.cuda.empty_cache()


def exact(options: argparse.Namespace, report: Report, cols: int) -> None:
    rows = mixture(options.rows, cols, 1)
    queries = mixture(options.queries, cols, 2)
    for name, base, of in (("f32", rows, queries), ("f16", rows.half(), queries.half())):

        def call() -> object:
            return kith.knn(of, base, options.k, options.metric)  # noqa: B023

        goal = EXACT_GOALS.get(cols)
        report.row(
            f"exact, {cols} columns, {name}",
            shape=f"{options.queries} queries in {options.rows} x {cols}, k = {options.k}, {options.metric}",
            median_ms=median_milliseconds(call, options.runs),
            runs=options.runs,
            clock="wall",
            figures={"goal_ms": goal} if goal else None,
        )
        if options.profile:
            print_kernels(call, 9)


def seconds_once(call: Callable[[], object]) -> float:
    torch.cuda.synchronize()
    began = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return time.perf_counter() - began


def graph_calls(rows: Rows, k: int, metric: str, methods: tuple[str, ...]) -> dict[str, Callable[[], object]]:
    calls: dict[str, Callable[[], object]] = {}
    for method in methods:
        calls[method] = lambda method=method: kith.knn_graph(rows, k, metric=metric, method=method)  # type: ignore[misc]
    halves = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    parts: list[object] = []
    for half in halves:
        parts += [kith.knn_graph(half, k, metric=metric), half]
    calls["merge"] = lambda: kith.merge_graphs(*parts)
    return calls


GRAPHS_AT_128: dict[str, float] = {}


def graphs(options: argparse.Namespace, report: Report, cols: int) -> None:
    kith.knn_graph(mixture(20_000, cols, 3), options.k, metric=options.metric)  # loads kernels
    rows = mixture(options.rows, cols, 1)
    for name, call in graph_calls(rows, options.k, options.metric, ("exact", "cells", "nn_descent")).items():
        spent = min(seconds_once(call) for _ in range(2 if cols <= 128 else 1))
        if cols == 128:
            GRAPHS_AT_128[name] = spent
        at_128 = GRAPHS_AT_128.get(name)
        figures = {"over_128_columns": spent / (at_128 * cols / 128)} if at_128 else None
        shape = f"{options.rows} x {cols}, k = {options.k}, {options.metric}"
        report.row(f"graph, {cols} columns, {name}", shape=shape, ms=1e3 * spent, clock="wall", figures=figures)


SWEEP_WIDTHS = (1, 2, 3, 8, 16, 64, 96, 100, 200, 384, 768, 1024, 1536, 3072, 4096)
METRICS = ("l2", "inner_product", "cosine")


def sweep_rows(rows: int, cols: int, seed: int) -> Rows:
    """The mixture; of so few columns that length 1 would leave two points or a circle, normal values instead."""
    if cols >= 8:
        return mixture(rows, cols, seed)
    return torch.randn((rows, cols), device="cuda", generator=torch.Generator(device="cuda").manual_seed(seed))


def sweep_calls(tasks: list[str], cols: int, metric: str) -> dict[str, Callable[[], object]]:
    """The tasks at one width, each ready to be called again and again."""
    rows = sweep_rows(200_000, cols, 1)
    queries = sweep_rows(10_000, cols, 2)
    calls: dict[str, Callable[[], object]] = {}
    if "exact" in tasks:
        calls["exact"] = lambda: kith.knn(queries, rows, 10, metric)
    if "lists" in tasks:
        index = kith.Index("IVF512,Flat", metric=metric, device="cuda")
        index.train(rows[: 64 * 512])
        index.add(rows)
        calls["lists"] = lambda: index.search(queries, 10, probes=16)
    if "kmeans" in tasks and metric == "l2":
        some = rows[:512].cpu().numpy()
        calls["k-means"] = lambda: kith.KMeans(512, iterations=10, tol=0, init=some).fit(rows)
    if "pq" in tasks and metric == "l2":
        parts = cols // 4 if cols % 4 == 0 else 1
        calls["PQ training"] = lambda: kith.ProductQuantizer(parts).train(rows)
    if "graphs" in tasks:
        calls.update(graph_calls(rows[:40_000], 10, metric, ("cells", "nn_descent")))
    return calls


def sweep(options: argparse.Namespace, report: Report) -> None:
    found: dict[tuple[str, str], dict[int, float]] = {}
    began = time.perf_counter()
    for cols in map(int, options.cols.split(",")) if options.cols else SWEEP_WIDTHS:
        if time.perf_counter() - began > options.seconds:
            report.note(f"sweep: no time was left for {cols} columns and more")
            break
        for metric in METRICS:
            for task, call in sweep_calls(options.tasks, cols, metric).items():
                found.setdefault((task, metric), {})[cols] = median_milliseconds(call, options.runs)
        torch.cuda.empty_cache()
    for (task, metric), times in found.items():
        widths = list(times)
        for i, cols in enumerate(widths):
            line = between(times, widths[i - 1 : i + 2]) if 0 < i < len(widths) - 1 else float("inf")
            of_l2 = found.get((task, "l2"), {}).get(cols, float("inf"))
            high = ["widths"] * (times[cols] > 1.3 * line) + ["l2"] * (times[cols] > 1.2 * of_l2)
            report.row(
                f"sweep, {task}, {metric}, {cols} columns",
                median_ms=times[cols],
                runs=options.runs,
                clock="wall",
                labels={"high": " and ".join(high)} if high else None,
            )


def between(times: dict[int, float], widths: list[int]) -> float:
    """The line from the first to the last of three widths, at the second."""
    first, here, last = widths
    return times[first] + (times[last] - times[first]) * (here - first) / (last - first)


SECTIONS: dict[str, Callable[[argparse.Namespace, Report, int], None]] = {
    "lists": lists,
    "odd": odd,
    "exact": exact,
    "graphs": graphs,
}


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("sections", nargs="*", default=[])
    parser.add_argument("--cols", default="")
    parser.add_argument("--seconds", type=float, default=600, help="after which the sweep begins no width")
    parser.add_argument("--tasks", default="exact,lists,kmeans,pq,graphs")
    parser.add_argument("--codes", default="")
    parser.add_argument("--kinds", default="decades,equal,zipf")
    parser.add_argument("--counts", default="")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--metric", default="l2")
    parser.add_argument("--lists", type=int, default=2048)
    parser.add_argument("--probes", type=int, default=32)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--profile-one", action="store_true")
    options = parser.parse_args()
    options.tasks = options.tasks.split(",")
    options.codes = [code for code in options.codes.split(",") if code]
    options.kinds = options.kinds.split(",")
    options.counts = [int(count) for count in options.counts.split(",") if count]
    report = report_of("widths_cuda", options)
    for name in options.sections or [*SECTIONS, "sweep"]:
        if name == "sweep":
            sweep(options, report)
            continue
        for cols in map(int, (options.cols or "128,768,1536").split(",")):
            SECTIONS[name](options, report, cols)


if __name__ == "__main__":
    main()
