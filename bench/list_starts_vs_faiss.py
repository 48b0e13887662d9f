#!/usr/bin/env python3
"""How centres of inverted lists are started: recall, rows scanned and imbalance beside FAISS's centres.

    list_starts_vs_faiss.py --data DIR [--sets sift1m,glove100,manifold,mixture] [--rows 100000] [--lists 256]
                            [--train 20000] [--queries 10000] [--seeds 4] [--out FILE]

Codes play no part: a query finds its nearest row where that row's list is among the probed ones. Sets are those of
index_recall.py. For FAISS's k-means (10 iterations from random rows), Kith's from random rows and by k-means++, and from
random rows in two parts: recall at
each number of probes, its difference from FAISS's, the same at equal rows scanned (on the line through FAISS's points over
the logarithm of rows), rows scanned, imbalance of the lists and the mean of the objective, as means over some seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import faiss
import index_recall
import numpy as np
from report import parser_of, report_of

import kith

PROBES = (1, 2, 4, 8, 16, 32, 64, 128)


def measure(centres: np.ndarray, base: np.ndarray, queries: np.ndarray, truth: np.ndarray, spherical: bool) -> dict:
    index = (faiss.IndexFlatIP if spherical else faiss.IndexFlatL2)(centres.shape[1])
    index.add(np.ascontiguousarray(centres))
    distances, own = index.search(base, 1)
    _, ranked = index.search(queries, max(PROBES))
    sizes = np.bincount(own[:, 0], minlength=len(centres)).astype(float)
    hits = ranked == own[truth]
    place = np.where(hits.any(axis=1), hits.argmax(axis=1), len(centres))
    scanned = np.cumsum(sizes[ranked], axis=1).mean(axis=0)
    return {
        "recall": [100 * np.mean(place < probes) for probes in PROBES],
        "rows": [scanned[probes - 1] for probes in PROBES],
        "imbalance": len(centres) * np.sum(sizes**2) / len(base) ** 2,
        "objective": distances.mean(),
    }


def starts(learn: np.ndarray, lists: int, spherical: bool) -> dict[str, Callable[[int], np.ndarray]]:
    def of_faiss(seed: int) -> np.ndarray:
        kmeans = faiss.Kmeans(learn.shape[1], lists, niter=10, seed=seed + 1, spherical=spherical)
        kmeans.train(learn)
        return kmeans.centroids

    def of_kith(init: str, iterations: int) -> Callable[[int], np.ndarray]:
        def train(seed: int) -> np.ndarray:
            drawn = learn
            if len(learn) > 256 * lists:
                drawn = learn[np.random.default_rng(seed).permutation(len(learn))[: 256 * lists]]
            kmeans = kith.KMeans(lists, init=init, iterations=iterations, seed=seed, spherical=spherical)
            return np.asarray(kmeans.fit(drawn).cluster_centers_)

        return train

    def in_two_parts(seed: int) -> np.ndarray:
        """As indexes do: 10 iterations over a quarter of the rows, then 8 over all."""
        drawn = learn[np.random.default_rng(seed).permutation(len(learn))[: 256 * lists]]
        settings = {"seed": seed, "spherical": spherical}
        begun = kith.KMeans(lists, init="random", iterations=10, **settings).fit(drawn[: len(drawn) // 4])
        return np.asarray(kith.KMeans(lists, init=begun.cluster_centers_, iterations=8, **settings).fit(drawn).cluster_centers_)

    ways = {f"kith, {init}, {n}": of_kith(init, n) for init in ("random", "kmeans++") for n in (10, 20)}
    return {"faiss, random, 10": of_faiss} | ways | {"kith, in two parts": in_two_parts}


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", default="sift1m,glove100,manifold,mixture")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--lists", type=int, default=256)
    parser.add_argument("--train", type=int, default=20_000)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=4)
    options = parser.parse_args()
    report = report_of("list_starts_vs_faiss", options, faiss=faiss.__version__)
    for name in options.sets.split(","):
        base, learn, queries, metric = index_recall.load(name, options)
        truth = np.asarray(kith.knn(queries, base, 1, metric, device="cpu").ids)[:, 0]
        spherical = metric == "inner_product"
        shape = f"{name}: {len(base)} rows in {options.lists} lists trained on {len(learn)}, {len(queries)} queries"
        theirs: dict[str, np.ndarray] = {}
        for way, train in starts(learn, options.lists, spherical).items():
            runs = [measure(train(seed), base, queries, truth, spherical) for seed in range(options.seeds)]
            mean = {key: np.mean([run[key] for run in runs], axis=0) for key in runs[0]}
            spread = np.std([run["recall"] for run in runs], axis=0).mean()
            theirs = theirs or mean
            at_rows = np.interp(np.log(mean["rows"]), np.log(theirs["rows"]), theirs["recall"])
            figures = {"imbalance": float(mean["imbalance"]), "objective": float(mean["objective"]), "recall_deviation": float(spread)}
            for place, probes in enumerate(PROBES):
                figures[f"recall_{probes}"] = float(mean["recall"][place])
                figures[f"less_faiss_{probes}"] = float(mean["recall"][place] - theirs["recall"][place])
                figures[f"at_equal_rows_{probes}"] = float(mean["recall"][place] - at_rows[place])
                figures[f"rows_{probes}"] = float(mean["rows"][place])
            report.row(f"{name}, {way}", shape=shape, runs=options.seeds, figures=figures)


if __name__ == "__main__":
    main()
