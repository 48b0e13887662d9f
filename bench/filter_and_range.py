"""k-NN and range search with filters that keep some of the rows, beside the same search of all rows.

A filter must never cost more than a tenth of the unfiltered search, and one that keeps few rows must make it shorter in
proportion. For each share of rows kept and each form of the filter: the best time, and beside it that of the unfiltered search.
The radius is such that a query finds about as many rows as k-NN does.

    .venv/bin/python bench/filter_and_range.py [--threads 2] [--rows 200000] [--cols 64] [--queries 500] [--write]

Needs the package kith.
"""

from __future__ import annotations

import numpy as np
from report import parser_of, report_of
from turns import best_in_turn

import kith

SHARES = (0.001, 0.01, 0.1, 0.5, 0.9, 1.0)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--cols", type=int, default=64)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--metric", default="l2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
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

    report = report_of("filter_and_range", options)
    shape = f"{options.rows} x {options.cols} f32, {options.metric}, k = {options.k}"
    worst = 0.0
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
                for form in list(filters)[1:]:
                    ratio = best[form] / best["all"]
                    worst = max(worst, ratio)
                    report.row(
                        f"{what}, {count} queries, {share} kept, {form}",
                        shape=shape,
                        ms=1e3 * best[form],
                        clock="wall",
                        peers_ms={"unfiltered": 1e3 * best["all"]},
                        figures={"over_unfiltered": ratio},
                    )
    report.note(f"the dearest filter takes {worst:.2f} of the unfiltered time")


if __name__ == "__main__":
    main()
