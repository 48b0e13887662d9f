"""Local search quantization beside faiss-cpu, in turns on the same machine.

    PYTHONPATH=… python bench/lsq_vs_faiss.py learn.u8bin base.u8bin [--codebooks 7] [--train 100000] [--rows 20000]

Times are processor time of all threads, so that other work on the machine does not count, for each vector; errors are
mean squared distances of vectors and what their codes stand for.
"""

from __future__ import annotations

import argparse
import time

import faiss
import kith
import numpy as np


def timed(work):
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def error(x, decoded):
    return float(((x - decoded) ** 2).sum(axis=1, dtype=np.float64).mean())


def row(name, seconds, rows, err):
    print(f"| {name:44} | {1e6 * seconds / rows:9.2f} | {err:10.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("learn")
    parser.add_argument("base")
    parser.add_argument("--codebooks", type=int, default=7)
    parser.add_argument("--train", type=int, default=100000)
    parser.add_argument("--rows", type=int, default=20000)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--search-rounds", type=int, default=16)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--no-faiss-training", action="store_true")
    options = parser.parse_args()
    learn = kith.read_vectors(options.learn)[: options.train].astype(np.float32)
    base = kith.read_vectors(options.base)[: options.rows].astype(np.float32)
    m = options.codebooks

    print(f"| {m} codebooks, {options.search_rounds} rounds | us of processor / vector | error |\n|---|---|---|")
    ours, seconds = timed(lambda: kith.LocalSearchQuantizer(m, rounds=options.rounds).train(learn))
    row(f"kith: training, {options.rounds} rounds", seconds, len(learn), ours.history[-1] / len(learn))
    theirs = faiss.LocalSearchQuantizer(learn.shape[1], m, 8)
    theirs.train_iters = options.rounds
    theirs.encode_ils_iters = options.search_rounds
    if options.no_faiss_training:  # only its encoder, with Kith's codebooks
        theirs.is_trained = True
        faiss.copy_array_to_vector(ours.codebooks.reshape(-1), theirs.codebooks)
    else:
        _, seconds = timed(lambda: theirs.train(learn))
        some = learn[:2000]
        err = error(some, theirs.decode(theirs.compute_codes(some)))
        row(f"faiss: training, {options.rounds} rounds", seconds, len(learn), err)
    whose = "Kith's" if options.no_faiss_training else "faiss's"
    books = faiss.vector_to_array(theirs.codebooks).reshape(m, 256, -1)
    loaded = kith.LocalSearchQuantizer.of_codebooks(books)
    for _ in range(options.turns):
        codes, seconds = timed(lambda: loaded.encode(base, rounds=options.search_rounds))
        row(f"kith: encoding with {whose} codebooks", seconds, len(base), error(base, loaded.decode(codes)))
        codes, seconds = timed(lambda: theirs.compute_codes(base))
        row(f"faiss: encoding with {whose} codebooks", seconds, len(base), error(base, theirs.decode(codes)))
        if options.no_faiss_training:
            continue
        codes, seconds = timed(lambda: ours.encode(base, rounds=options.search_rounds))
        row("kith: encoding with its own codebooks", seconds, len(base), error(base, ours.decode(codes)))


if __name__ == "__main__":
    main()
