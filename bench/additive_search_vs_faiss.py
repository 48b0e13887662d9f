"""Searching additive codes on the CPU beside faiss-cpu, in turns on the same machine.

    PYTHONPATH=… python bench/additive_search_vs_faiss.py learn.u8bin base.u8bin query.u8bin [--code LSQ7x8_Ncqint8]

Kith builds the index and writes it for FAISS: both search the same codes, with the same norms where the code has them, so
that their recall is the same. Times are medians of wall-clock time, with --threads threads each. --build cuda: the index
is built on a GPU and then searched on the CPU.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import faiss
import kith
import numpy as np
from report import parser_of, report_of
from turns import timed


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("learn")
    parser.add_argument("base")
    parser.add_argument("query")
    parser.add_argument("--code", default="LSQ7x8_Ncqint8")
    parser.add_argument("--train", type=int, default=20_000)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--counts", default="1,10,100,1000", help="of queries")
    parser.add_argument("--build", default="cpu")
    parser.add_argument("-k", type=int, default=100)
    options = parser.parse_args()
    report = report_of("additive_search_vs_faiss", options, faiss=faiss.__version__)
    learn = kith.read_vectors(options.learn)[: options.train].astype(np.float32)
    base = kith.read_vectors(options.base)[: options.rows].astype(np.float32)
    query = kith.read_vectors(options.query)[: options.queries].astype(np.float32)
    faiss.omp_set_num_threads(options.threads)

    ours = kith.Index(options.code, metric="sqeuclidean", device=options.build)
    ours.train(learn)
    ours.add(base)
    ours = ours.to("cpu")
    with tempfile.TemporaryDirectory() as folder:
        kith.write_faiss(ours, Path(folder) / "codes.faiss")
        theirs = faiss.read_index(str(Path(folder) / "codes.faiss"))
    found = ours.search(query[:100], k=options.k, threads=options.threads)
    other, other_ids = theirs.search(query[:100], options.k)
    same = float((found.ids == other_ids).mean())
    for count in (int(one) for one in options.counts.split(",")):
        some = query[:count]
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(options.turns):
            times[0].append(timed(lambda: ours.search(some, k=options.k, threads=options.threads))[1])
            times[1].append(timed(lambda: theirs.search(some, options.k))[1])
        mine, faisss = (1000 * float(np.median(one)) for one in times)
        report.row(
            f"{options.code}, {count} queries",
            shape=f"{len(base)} x {base.shape[1]}, k = {options.k}",
            median_ms=mine,
            runs=options.turns,
            clock="wall",
            peers_ms={"faiss": faisss},
            figures={"same_ids": same},
        )


if __name__ == "__main__":
    main()
