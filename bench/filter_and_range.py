"""k-NN and range search with filters that keep some of the rows, beside the same search of all rows.

A filter must never cost more than a tenth of the unfiltered search, and one that keeps few rows must make it shorter in
proportion. Prints, for each share of rows kept, the best time of each form of the filter and what it is of the
unfiltered time; "ideal" is the share itself. The radius is such that a query finds about as many rows as k-NN does.

    .venv/bin/python bench/filter_and_range.py [--threads 2] [--rows 200000] [--cols 64] [--queries 500] [--write]

Needs the package kith. --write puts the numbers into bench/results/cpu/.
"""

from __future__ import annotations

import argparse

import numpy as np

import kith
from turns import best_in_turn, results_path, write_results

SHARES = (0.001, 0.01, 0.1, 0.5, 0.9, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description="searches with filters against the same ones without")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--cols", type=int, default=64)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--metric", default="l2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="keep the numbers in bench/results/cpu/")
    options = parser.parse_args()

    rng = np.random.default_rng(options.seed)
    base = rng.standard_normal((options.rows, options.cols), dtype=np.float32)
    queries = rng.standard_normal((options.queries, options.cols), dtype=np.float32)
    index = kith.Index("Flat", metric=options.metric, device="cpu")
    index.add(base)
    radius = float(np.median(index.search(queries, options.k).distances[:, -1]))
    searches = {
        "k-NN, index": lambda q, f: index.search(q, options.k, filter=f, threads=options.threads),
        "k-NN, arrays": lambda q, f: kith.knn(
            q, base, options.k, options.metric, filter=f, device="cpu", threads=options.threads
        ),
        "range, index": lambda q, f: index.range_search(q, radius, filter=f, threads=options.threads),
    }

    info = kith.info()
    print(f"{options.rows} x {options.cols} f32, {options.metric}, k = {options.k}, {options.threads} threads")
    print(f"{info['cpu']}, {info['instruction_set']}; kith {kith.__version__}\n")
    print(f"{'search':13} {'queries':>7} {'kept':>6} {'all rows':>11}  {'mask':>17}  {'bits':>17}  {'rows':>17}")
    results = []
    for what, search in searches.items():
        for count in (options.queries, 1):
            asked = queries[:count]
            for share in SHARES:
                keep = rng.random(options.rows) < share if share < 1 else np.ones(options.rows, bool)
                filters = {
                    "all": None,
                    "mask": keep,
                    "bits": np.packbits(keep, bitorder="little"),
                    "rows": np.flatnonzero(keep),
                }
                runs = {name: lambda f=f: search(asked, f) for name, f in filters.items()}
                best = best_in_turn(options.rounds if count > 1 else 10 * options.rounds, runs)
                parts = [f"{best[name] * 1e3:8.2f} ms {best[name] / best['all']:5.2f}x" for name in list(filters)[1:]]
                print(f"{what:13} {count:7} {share:6} {best['all'] * 1e3:8.2f} ms  {'  '.join(parts)}", flush=True)
                results.append({"search": what, "queries": count, "kept": share, **best})
    worst = max(max(row[form] for form in ("mask", "bits", "rows")) / row["all"] for row in results)
    print(f"\nthe dearest filter takes {worst:.2f} of the unfiltered time")
    if options.write:
        settings = {name: value for name, value in vars(options).items() if name != "write"}
        write_results(results_path("filter_and_range"), settings, results)


if __name__ == "__main__":
    main()
