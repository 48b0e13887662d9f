#!/usr/bin/env python3
"""How a graph index ages, what filters cost it, and whether it finds what nothing joins.

    graph_life.py [--folder DATA | --wide] [--rows 100000] [--queries 1000] [--steps 10] [--beam 64] [--factory Graph32]
                  [--filter-queries 200] [--clusters 2000] [--sizes 10 100 1000] [--without life filters clusters]
                  [--out FILE]

Life: half of the rows are replaced in some steps of remove and add; after each, recall of the 10 nearest and processor time of a
query stand beside those of a graph built afresh of the same rows, at equal beam, one thread, turn by turn; at the end recall
and the vectors compared of all beams that Index.tune looks at.

Filters keep a share of the rows: at random, those nearest to a point, or those farthest from it; queries are near that
point. Recall is that of what is kept, and time is told as a multiple of the unfiltered search's.

Clusters: Gaussian in 16 columns, around centres that are 30 times as far apart as rows of a cluster, so many rows each. Recall
is that of new queries, at the default beam and where the search asks for 0.99; "own" is the share of the first 20,000 rows that
find themselves with a beam of 16. Time is that of the default beam.

DATA holds sift1m_base.u8bin and sift1m_query.u8bin; without it rows are made: rank 24 in 64 columns, in clusters; --wide: rank
48 in 768 columns, of length 1.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import kith
import numpy as np
from report import Report, parser_of, report_of

_K = 10
_SHARES = (1.0, 0.5, 0.1, 0.05, 0.01, 0.001)


def data_of(folder: Path | None, wide: bool, rows: int, queries: int) -> tuple[np.ndarray, np.ndarray]:
    if folder is not None:
        base = np.asarray(kith.read_vectors(folder / "sift1m_base.u8bin", 0, rows))
        return base, np.asarray(kith.read_vectors(folder / "sift1m_query.u8bin", 0, queries))
    rng = np.random.default_rng(0)
    rank, cols = (48, 768) if wide else (24, 64)
    centres = rng.standard_normal((200, rank), dtype=np.float32)
    points = centres[rng.integers(200, size=rows + queries)] + rng.standard_normal((rows + queries, rank), dtype=np.float32)
    x = points @ rng.standard_normal((rank, cols), dtype=np.float32)
    if wide:
        x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x[:rows], x[rows:]


def recall_of(found, truth) -> float:
    """Of distances: rows as near as the last true one are right."""
    return float((found.distances <= truth.distances[:, -1:] * (1 + 1e-6)).mean())


def microseconds(search, queries: np.ndarray, rounds: int = 3) -> float:
    best = np.inf
    for _ in range(rounds):
        start = time.process_time()
        for query in queries:
            search(query)
        best = min(best, (time.process_time() - start) / len(queries))
    return best * 1e6


def both_by_beam(aged: kith.Index, fresh: kith.Index, queries: np.ndarray) -> dict:
    """What Index.tune has measured of both, by beam, at the default width and refine."""
    tables = [{one.parameters["beam"]: one for one in index.tune(queries, k=_K, recall=0.9).searches
               if one.parameters.get("width") == 2 and one.parameters.get("refine") == 4} for index in (aged, fresh)]
    return {beam: (tables[0][beam], tables[1][beam]) for beam in sorted(tables[0].keys() & tables[1].keys())}


def life(x: np.ndarray, queries: np.ndarray, options: argparse.Namespace, report: Report) -> None:
    half = len(x) * 2 // 3  # what is there at first; a half of it is replaced by the others
    piece = half // 2 // options.steps
    rng = np.random.default_rng(1)
    index = kith.Index(options.factory)
    index.add(x[:half])
    alive = np.arange(half)
    shape = f"{options.factory} of {half} x {x.shape[1]} {x.dtype}, {piece} replaced a step, k = {_K}"
    for step in range(options.steps + 1):
        took = 0.0
        if step > 0:
            begin = time.process_time()
            gone = rng.choice(alive[alive < half], piece, replace=False)
            new = np.arange(half + (step - 1) * piece, half + step * piece)
            index.remove(gone)
            index.add(x[new], ids=new)
            took = time.process_time() - begin
            alive = np.concatenate([np.setdiff1d(alive, gone), new])
        begin = time.process_time()
        fresh = kith.Index(options.factory)
        fresh.add(x[alive], ids=alive)
        build = time.process_time() - begin
        truth = kith.knn(queries, x[alive], k=_K)
        one = [lambda q, i=i: i.search(q, k=_K, beam=options.beam, threads=1) for i in (index, fresh)]
        recalls = [recall_of(i.search(queries, k=_K, beam=options.beam), truth) for i in (index, fresh)]
        times = [microseconds(search, queries[:300]) for search in one]
        report.row(
            f"life, {step * piece} replaced, beam {options.beam}",
            shape=shape,
            ms=times[0] / 1e3,
            runs=3,
            clock="processor",
            peers_ms={"fresh": times[1] / 1e3},
            figures={"recall": recalls[0], "fresh_recall": recalls[1], "lost": index.info().lost, "step_s": took, "build_s": build},
        )
    for beam, (aged, new) in both_by_beam(index, fresh, queries).items():
        figures = {"recall": aged.recall, "fresh_recall": new.recall, "compared": aged.compared, "fresh_compared": new.compared}
        report.row(f"life, at the end, beam {beam}", shape=shape, figures=figures)


def filters(x: np.ndarray, queries: np.ndarray, options: argparse.Namespace, report: Report) -> None:
    index = kith.Index(options.factory)
    index.add(x)
    rng = np.random.default_rng(2)
    point = x[rng.integers(len(x))].astype(np.float32)
    order = np.argsort(((x.astype(np.float32) - point) ** 2).sum(axis=1), kind="stable")
    near_point = queries[np.argsort(((queries.astype(np.float32) - point) ** 2).sum(axis=1))[: options.filter_queries]]
    plain = microseconds(lambda q: index.search(q, k=_K, beam=options.beam, threads=1), near_point, 1)
    recall = recall_of(index.search(near_point, k=_K, beam=options.beam), kith.knn(near_point, x, k=_K))
    shape = f"{options.factory} of {len(x)} x {x.shape[1]} {x.dtype}, beam {options.beam}, k = {_K}"
    report.row("unfiltered", shape=shape, ms=plain / 1e3, clock="processor", figures={"recall": recall})
    for share in _SHARES:
        count = max(int(len(x) * share), _K)
        for which, rows in (("random", rng.choice(len(x), count, replace=False)), ("near", order[:count]),
                            ("far", order[len(x) - count:])):
            mask = np.zeros(len(x), dtype=bool)
            mask[rows] = True
            truth = kith.knn(near_point, x, k=_K, filter=mask)
            found = index.search(near_point, k=_K, beam=options.beam, filter=mask)
            # All at once, so that the filter, a pass over its mask, is made once.
            begin = time.process_time()
            index.search(near_point, k=_K, beam=options.beam, filter=mask, threads=1)
            took = (time.process_time() - begin) / len(near_point) * 1e6
            figures = {"recall": recall_of(found, truth), "over_unfiltered": took / plain}
            report.row(f"filter that keeps {share:g}, {which}", shape=shape, ms=took / 1e3, clock="processor", figures=figures)


def clusters(count: int, size: int, options: argparse.Namespace, report: Report) -> None:
    rng = np.random.default_rng(3)
    centres = 30 * rng.standard_normal((count, 16), dtype=np.float32)
    x = np.repeat(centres, size, axis=0) + rng.standard_normal((count * size, 16), dtype=np.float32)
    queries = centres[rng.integers(count, size=options.queries)] + rng.standard_normal((options.queries, 16), dtype=np.float32)
    index = kith.Index(options.factory)
    begin = time.process_time()
    index.add(x)
    build = time.process_time() - begin
    truth = kith.knn(queries, x, k=_K)
    recalls = [recall_of(index.search(queries, k=_K, **asked), truth) for asked in ({}, {"recall": 0.99})]
    wide = next((beam for beam, recall in index.info().recalls.items() if recall >= 0.99), 0)
    some = x[:20_000]
    own = float((index.search(some, k=1, beam=16).ids[:, 0] == np.arange(len(some))).mean())
    took = microseconds(lambda q: index.search(q, k=_K, threads=1), queries[:300])
    report.row(
        f"{count} clusters of {size} rows",
        shape=f"{options.factory} of {len(x)} x 16 f32, k = {_K}",
        ms=took / 1e3,
        runs=3,
        clock="processor",
        figures={
            "recall": recalls[0],
            "recall_asked_0.99": recalls[1],
            "own": own,
            "beam": index.info().beam,
            "beam_of_0.99": wide,
            "lost": index.info().lost,
            "build_s": build,
        },
    )


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--wide", action="store_true")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--beam", type=int, default=64)
    parser.add_argument("--factory", default="Graph32")
    parser.add_argument("--filter-queries", type=int, default=200)
    parser.add_argument("--clusters", type=int, default=2000)
    parser.add_argument("--sizes", type=int, nargs="+", default=(10, 100, 1000))
    parser.add_argument("--without", nargs="*", default=(), choices=("life", "filters", "clusters"))
    options = parser.parse_args()
    report = report_of("graph_life", options)
    x, queries = data_of(options.folder, options.wide, options.rows, options.queries)
    if "life" not in options.without:
        life(x, queries, options, report)
    if "filters" not in options.without:
        filters(x, queries, options, report)
    if "clusters" not in options.without:
        for size in options.sizes:
            clusters(options.clusters, size, options, report)


if __name__ == "__main__":
    main()
