"""Exact search against faiss-cpu, both measured in this run, turn by turn.

For each metric and k, the best time of each over some rounds: 1,000 queries at once, and one query at a time. The floor is the
matrix product alone at the rate that numpy reaches here.

    .venv/bin/python bench/exact_vs_faiss.py [--threads 2] [--rows 100000] [--cols 128] [--data mixture] [--dtype u8] [--out FILE]

faiss searches bytes as the same numbers in f32: its flat indexes take nothing else.

Needs the package kith; installs faiss-cpu and threadpoolctl beside it where they are missing.
"""

from __future__ import annotations

import numpy as np
from made_data import mixture
from report import parser_of, report_of
from turns import best_in_turn, clock_for, clock_name, install_missing

import kith


def make_data(kind: str, rows: int, cols: int, rng: np.random.Generator) -> np.ndarray:
    """gaussian: independent values. mixture: that of made_data.py."""
    if kind == "gaussian":
        return rng.standard_normal((rows, cols), dtype=np.float32)
    return mixture(rows, cols, int(rng.integers(1 << 30)), rounded=False)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--cols", type=int, default=128)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", choices=("gaussian", "mixture"), default="gaussian")
    parser.add_argument("--dtype", choices=("f32", "u8"), default="f32", help="u8: the mixture, rounded")
    options = parser.parse_args()

    install_missing("faiss-cpu", "threadpoolctl")
    import faiss
    import threadpoolctl

    faiss.omp_set_num_threads(options.threads)
    report = report_of("exact_vs_faiss", options, faiss=faiss.__version__)
    rng = np.random.default_rng(options.seed)
    if options.dtype == "u8":
        options.data = "mixture"
    base = make_data(options.data, options.rows, options.cols, rng)
    queries = make_data(options.data, options.queries, options.cols, rng)
    if options.dtype == "u8":
        base, queries = np.rint(base), np.rint(queries)
    own_base, own_queries = (base.astype(np.uint8), queries.astype(np.uint8)) if options.dtype == "u8" else (base, queries)

    with threadpoolctl.threadpool_limits(options.threads):
        product = min(
            best_in_turn(
                3, {"queries first": lambda: np.matmul(queries, base.T), "base first": lambda: np.matmul(base, queries.T)}
            ).values()
        )
    shape = f"{options.queries} queries in {options.rows} x {options.cols} {options.dtype}, {options.data}"
    for metric, peer_type in (("sqeuclidean", faiss.IndexFlatL2), ("inner_product", faiss.IndexFlatIP)):
        ours = kith.Index("Flat", metric=metric, device="cpu")
        ours.add(own_base)
        peer = peer_type(options.cols)
        peer.add(base)
        for k in (10, 100):
            threads = {"threads": options.threads}
            found, expected = ours.search(own_queries, k, **threads).ids, peer.search(queries, k)[1]
            common = float(np.mean([len(np.intersect1d(a, b)) for a, b in zip(found, expected, strict=True)]) / k)
            cases = (
                ("all at once", options.rounds, lambda: ours.search(own_queries, k, **threads), lambda: peer.search(queries, k)),
                (
                    "all, from arrays",
                    options.rounds,
                    lambda: kith.knn(own_queries, own_base, k, metric, device="cpu", **threads),
                    lambda: faiss.knn(queries, base, k, metric=peer.metric_type),
                ),
                (
                    "one at a time",
                    50,
                    lambda: ours.search(own_queries[0], k, **threads),
                    lambda: peer.search(queries[:1], k),
                ),
            )
            for what, rounds, run_ours, run_theirs in cases:
                mine, theirs = best_in_turn(rounds, {"kith": run_ours, "faiss": run_theirs}, clock_for(options.threads)).values()
                alone = what == "one at a time"
                report.row(
                    f"{metric}, k = {k}, {what}",
                    shape=shape,
                    ms=1e3 * mine,
                    runs=rounds,
                    clock=clock_name(options.threads),
                    floor_ms=None if alone else 1e3 * product,
                    peers_ms={"faiss": 1e3 * theirs},
                    figures={} if alone else {"common_ids": common},
                )


if __name__ == "__main__":
    main()
