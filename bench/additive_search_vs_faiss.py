"""Searching additive codes on the CPU beside faiss-cpu, in turns on the same machine.

    PYTHONPATH=… python bench/additive_search_vs_faiss.py learn.u8bin base.u8bin query.u8bin [--code LSQ7x8_Ncqint8]

Kith builds the index and writes it for FAISS: both search the same codes, with the same norms where the code has them, so
that their recall is the same. Times are medians of wall-clock time, with --threads threads each. --build cuda: the index
is built on a GPU and then searched on the CPU.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import faiss
import kith
import numpy as np


def main() -> None:
    parser = argparse.ArgumentParser()
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
    same = (found.ids == other_ids).mean()
    print(f"{options.code}, {len(base)} vectors, k = {options.k}, {options.threads} threads; {100 * same:.2f} % of the")
    print("neighbours are the same in both\n\n| queries | Kith, ms | FAISS, ms | ratio |\n|---|---|---|---|")
    for count in (int(one) for one in options.counts.split(",")):
        some = query[:count]
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(options.turns):
            start = time.perf_counter()
            ours.search(some, k=options.k, threads=options.threads)
            between = time.perf_counter()
            theirs.search(some, options.k)
            times[0].append(between - start)
            times[1].append(time.perf_counter() - between)
        kiths, faisss = (1000 * float(np.median(one)) for one in times)
        print(f"| {count} | {kiths:.2f} | {faisss:.2f} | {faisss / kiths:.2f} |", flush=True)


if __name__ == "__main__":
    main()
