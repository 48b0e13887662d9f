"""How near codes of 64 or 128 bits come to the vectors, and how often the true nearest is among the first R found.

    PYTHONPATH=… python bench/lsq_accuracy.py learn.u8bin base.u8bin query.u8bin [--bytes 8] [--rows 200000]

R@N is 1-recall@N: whether the true nearest neighbour is among the first N. Times are processor time of all threads.
"""

from __future__ import annotations

import argparse
import time

import kith
import numpy as np


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("learn")
    parser.add_argument("base")
    parser.add_argument("query")
    parser.add_argument("--bytes", type=int, default=8)
    parser.add_argument("--train", type=int, default=100_000)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--skip-rq", action="store_true")
    options = parser.parse_args()
    learn = kith.read_vectors(options.learn)[: options.train].astype(np.float32)
    base = kith.read_vectors(options.base)[: options.rows].astype(np.float32)
    query = kith.read_vectors(options.query)[: options.queries].astype(np.float32)
    truth = kith.knn(query, base, k=1).ids
    ranks = (1, 10, 100) if options.bytes <= 8 else (1, 2, 5)
    print(f"{len(learn)} training vectors, {len(base)} base vectors, {len(query)} queries, {options.bytes} bytes\n")
    print("| code | training s | encoding us | error | " + " | ".join(f"R@{n}" for n in ranks) + " |")
    print("|" + "---|" * (4 + len(ranks)))

    def report(name: str, training: float, encoding: float, decoded: np.ndarray) -> None:
        error = ((base - decoded) ** 2).sum(axis=1, dtype=np.float64).mean()
        found = kith.knn(query, decoded, k=max(ranks)).ids
        recall = [100 * (found[:, :n] == truth).any(axis=1).mean() for n in ranks]
        print(
            f"| {name} | {training:.1f} | {1e6 * encoding / len(base):.1f} | {error:.0f} | "
            + " | ".join(f"{r:.2f}" for r in recall)
            + " |",
            flush=True,
        )

    def timed(work):
        start = time.process_time()
        result = work()
        return result, time.process_time() - start

    m = options.bytes
    product, training = timed(lambda: kith.ProductQuantizer(m).train(learn))
    codes, encoding = timed(lambda: product.encode(base))
    report("PQ", training, encoding, product.decode(codes))

    rotation, training = timed(lambda: kith.OPQ(m).train(learn))
    product, more = timed(lambda: kith.ProductQuantizer(m).train(rotation.apply(learn)))
    codes, encoding = timed(lambda: product.encode(rotation.apply(base)))
    report("OPQ", training + more, encoding, rotation.reverse(product.decode(codes)))

    local, training = timed(lambda: kith.LocalSearchQuantizer(m, rounds=options.rounds).train(learn))
    for rounds in (16, 32):
        codes, encoding = timed(lambda: local.encode(base, rounds=rounds))
        report(f"LSQ-{rounds}", training, encoding, local.decode(codes))

    if not options.skip_rq:
        residual, training = timed(lambda: kith.ResidualQuantizer(m).train(learn))
        codes, encoding = timed(lambda: residual.encode(base))
        report("RQ", training, encoding, residual.decode(codes))


if __name__ == "__main__":
    main()
