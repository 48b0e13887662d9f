#!/usr/bin/env python3
"""Few queries on the CPU: processor time a query of every kind of index, by the size of the batch, beside FAISS's and
beside Kith's own `Flat` of the same rows, in one run on one thread.

    few_queries.py [--rows 60000] [--cols 128 384] [--batches 1 10 100 1000] [--k 10] [--probes 16] [--kinds IVF256,Flat ...]
                   [--metric l2] [--write]

FAISS's trained file is read by Kith, so that both search the same lists and codes, and training plays no part. Every
round takes other queries, so that no list stays in a cache because it was asked for just before. `same` is the share of
ids that are equal place by place; `alone` says whether one query's answer has the bytes of the same query's in a batch.
Kinds that FAISS does not have in that form stand beside `Flat` only.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import faiss
import kith
import numpy as np
import turns
from made_data import mixture

_KINDS = ("Flat", "SQ8", "SQfp16", "IVF256,Flat", "IVF256,SQ8", "IVF256,SQ4", "IVF256,SQ6", "IVF256,SQfp16", "IVF256,PQ{d8}",
          "IVF256,PQ{d4}x4", "PQ{d8}")
_METRICS = {"l2": faiss.METRIC_L2, "inner_product": faiss.METRIC_INNER_PRODUCT}


class Rounds:
    """Calls with the next queries of a pool, so many at a time."""

    def __init__(self, search, queries, batch, calls):
        self._search, self._queries, self._batch, self._calls, self._at = search, queries, batch, calls, 0

    def __call__(self):
        for _ in range(self._calls):
            if self._at + self._batch > len(self._queries):
                self._at = 0
            self._search(self._queries[self._at : self._at + self._batch])
            self._at += self._batch


def pair_of(kind, base, metric, folder):
    """FAISS's index and Kith's of the same lists and codes."""
    path = str(Path(folder) / "index")
    index = faiss.index_factory(base.shape[1], kind, _METRICS[metric])
    index.train(base)
    index.add(base)
    faiss.write_index(index, path)
    return index, kith.read_faiss(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--cols", type=int, nargs="+", default=[128, 384])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 10, 100, 1000])
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--probes", type=int, default=16)
    parser.add_argument("--kinds", nargs="+", default=_KINDS)
    parser.add_argument("--metric", choices=_METRICS, default="l2")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--write", action="store_true", help="to bench/results/cpu")
    options = parser.parse_args()
    faiss.omp_set_num_threads(1)
    print(f"kith {kith.__version__}, faiss {faiss.__version__}; {options.rows} rows, {options.metric}, k = {options.k}, "
          f"{options.probes} probes, one thread; processor ms a query")
    print(f"{'kind':>16} {'cols':>5} {'batch':>6} {'kith':>9} {'faiss':>9} {'Flat':>9} {'faiss/kith':>11} {'Flat/kith':>10} "
          f"{'same':>6} {'alone':>6}")
    results = []
    for cols in options.cols:
        base = mixture(options.rows, cols, 1, rounded=False)
        queries = mixture(4000, cols, 9, rounded=False)
        flat = kith.Index("Flat", metric=options.metric)
        flat.add(base)
        with tempfile.TemporaryDirectory() as folder:
            for name in options.kinds:
                kind = name.format(d8=cols // 8, d4=cols // 4)
                index, own = pair_of(kind, base, options.metric, folder)
                if "IVF" in kind:
                    index.nprobe = options.probes
                probes = {"probes": options.probes} if "IVF" in kind else {}

                def ours(some, own=own, probes=probes):
                    return own.search(some, options.k, threads=1, **probes)

                def theirs(some, index=index):
                    return index.search(some, options.k)

                def all_of(some):
                    return flat.search(some, options.k, threads=1)

                together = ours(queries[:100])
                alone = [ours(queries[i : i + 1]) for i in range(100)]
                equal = all(
                    alone[i][j][0].tobytes() == together[j][i].tobytes() for i in range(100) for j in range(2)
                )
                same = float(np.mean(together[0] == theirs(queries[:100])[1]))
                for batch in options.batches:
                    calls = max(1, 100 // batch)
                    best = turns.best_in_turn(
                        options.rounds,
                        {n: Rounds(s, queries, batch, calls) for n, s in (("kith", ours), ("faiss", theirs), ("Flat", all_of))},
                        turns.clock_for(1),
                    )
                    ms = {n: 1e3 * t / (batch * calls) for n, t in best.items()}
                    print(f"{kind:>16} {cols:5d} {batch:6d} {ms['kith']:9.4f} {ms['faiss']:9.4f} {ms['Flat']:9.4f} "
                          f"{ms['faiss'] / ms['kith']:11.2f} {ms['Flat'] / ms['kith']:10.2f} {same:6.3f} "
                          f"{'same' if equal else 'DIFFER':>6}", flush=True)
                    results.append({"kind": kind, "cols": cols, "batch": batch, **ms, "same": same, "alone": equal})
    if options.write:
        turns.write_results(turns.results_path("few_queries"), vars(options), results, faiss=faiss.__version__)


if __name__ == "__main__":
    main()
