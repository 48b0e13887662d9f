#!/usr/bin/env python3
"""Recall of compressed indexes beside FAISS's for the same string, and a drawing of recall over time for all kinds.

    index_recall.py --data DIR [--sets sift1m,glove100,manifold,mixture] [--rows 100000] [--queries 500] [--threads 1] [--alone] [--write]
    index_recall.py --data DIR --paired 5 [--sets sift1m] [--lists 1024] [--train 100000] [--rows 1000000] [--queries 10000]
                    [--probes 1,8,32] [--strings OPQ] [--first-seed 3]
    index_recall.py --draw [--picture docs/images/recall_over_time.png]

DIR holds sift1m_{base,learn,query}.u8bin and glove100_{base,query}.f16bin. The first rows of each set are searched (l2; for
glove100 cosine, as inner products of rows of length 1); the truth is Kith's exact search of them. manifold and mixture are
made here, of 128 columns: 30 tanh(z W / 5) V of 24 numbers z, which partitions find hard, and 2,000 clusters. For each string and number
of probes: 1-recall@1/10/100 of FAISS, of Kith with FAISS's trained file, and of Kith's own training from the same rows, and
the processor time of a query in batches. --write keeps the numbers in bench/results/cpu/, from which --draw draws.

--paired N trains both with N seeds, each time on the same rows in another order, and prints the difference of recall over
the same queries, in points: its mean over the seeds and that mean's standard error. FAISS's file is filled and searched by
Kith, so that training alone makes the difference (that of the first seed is searched by FAISS too, to compare).
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from made_data import manifold, mixture
from turns import best_in_turn, clock_for, results_path, write_document

import kith

NAME = "index_recall"
DEPTHS = (1, 10, 100)
PROBES = (1, 2, 4, 8, 16, 32, 64)
STRINGS = {
    "sift1m": ("IVF256,Flat", "IVF256,SQ8", "IVF256,PQ16", "OPQ16,IVF256,PQ16", "IVF256,PQ32x4"),
    "glove100": ("IVF256,Flat", "IVF256,SQ8", "IVF256,PQ20", "OPQ20,IVF256,PQ20", "IVF256,PQ50x4"),
}
STRINGS["manifold"] = STRINGS["mixture"] = ("IVF256,Flat", "IVF256,PQ16", "OPQ16,IVF256,PQ16", "IVF256,PQ32x4")
TRAINED_ON = 20_000


def read_bin(path: Path, dtype: Any) -> np.ndarray:
    with open(path, "rb") as file:
        rows, cols = np.fromfile(file, np.uint32, 2)
        return np.fromfile(file, dtype, int(rows) * int(cols)).reshape(rows, cols)


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


MADE = {"manifold": manifold, "mixture": mixture}


def load(data: Path, name: str, rows: int, queries: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, str]:
    """Rows, training rows and queries as f32, and the metric."""
    if name in MADE:
        make = MADE[name]
        return make(rows, seed=3), make(TRAINED_ON, seed=4), make(queries, seed=5), "sqeuclidean"
    if name == "sift1m":
        base, learn, asked = (read_bin(data / f"sift1m_{part}.u8bin", np.uint8) for part in ("base", "learn", "query"))
        return (*(part.astype(np.float32) for part in (base[:rows], learn[:TRAINED_ON], asked[:queries])), "sqeuclidean")
    base, asked = (unit(read_bin(data / f"{name}_{part}.f16bin", np.float16).astype(np.float32)) for part in ("base", "query"))
    return base[:rows], base[:TRAINED_ON], asked[:queries], "inner_product"


def recalls(ids: np.ndarray, truth: np.ndarray) -> list[float]:
    return [float(np.mean((ids[:, :depth] == truth[:, :1]).any(axis=1))) for depth in DEPTHS]


def train_faiss(string: str, metric: str, learn: np.ndarray, base: np.ndarray) -> tuple[Any, Any]:
    """FAISS's index, and Kith's of its file."""
    import faiss

    kind = faiss.METRIC_L2 if metric == "sqeuclidean" else faiss.METRIC_INNER_PRODUCT
    index = faiss.index_factory(base.shape[1], string, kind)
    index.train(learn)
    index.add(base)
    with tempfile.NamedTemporaryFile(suffix=".index") as file:
        faiss.write_index(index, file.name)
        return index, kith.read_faiss(file.name)


def measure(name: str, string: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    base, learn, queries, metric = load(options.data, name, options.rows, options.queries)
    truth = kith.knn(queries, base, 1, metric, device="cpu").ids
    own = kith.Index(string, metric=metric, device="cpu")
    own.train(learn)
    own.add(base)
    theirs, loaded = (None, None) if options.alone else train_faiss(string, metric, learn, base)
    results = []
    for probes in PROBES:
        runs = {"kith": lambda p=probes: own.search(queries, 100, probes=p, threads=options.threads).ids}
        if theirs is not None:
            import faiss

            faiss.extract_index_ivf(theirs).nprobe = probes
            runs["faiss"] = lambda: theirs.search(queries, 100)[1]
        times = best_in_turn(1, runs, clock_for(options.threads))
        found = {who: run() for who, run in runs.items()}
        if loaded is not None:
            found["kith, FAISS's file"] = loaded.search(queries, 100, probes=probes).ids
        result: dict[str, Any] = {"set": name, "string": string, "probes": probes}
        result |= {f"{who} us": time / len(queries) * 1e6 for who, time in times.items()}
        result |= {who: recalls(np.asarray(ids), truth) for who, ids in found.items()}
        results.append(result)
        values = "   ".join(f"{who} " + "/".join(f"{r:.4f}" for r in result[who]) for who in found)
        spent = ", ".join(f"{who} {result[f'{who} us']:.1f} us" for who in times)
        print(f"{name:9} {string:18} probes {probes:3}: {spent}   {values}", flush=True)
    return results


def of_lists(string: str, lists: int) -> str:
    return string.replace("IVF256", f"IVF{lists}")


def seeded_faiss(string: str, metric: str, learn: np.ndarray, seed: int) -> Any:
    """Kith's index of what FAISS trained with a seed, without rows."""
    import faiss

    kind = faiss.METRIC_L2 if metric == "sqeuclidean" else faiss.METRIC_INNER_PRODUCT
    index = faiss.index_factory(learn.shape[1], string, kind)
    lists = faiss.extract_index_ivf(index)
    lists.cp.seed = 1234 + seed
    if hasattr(lists, "pq"):
        lists.pq.cp.seed = 1234 + seed
    index.train(learn)
    with tempfile.NamedTemporaryFile(suffix=".index") as file:
        faiss.write_index(index, file.name)
        return kith.read_faiss(file.name)


def searched_by_faiss(index: Any, queries: np.ndarray, probes: int) -> Any:
    import faiss

    with tempfile.NamedTemporaryFile(suffix=".index") as file:
        kith.write_faiss(index, file.name)
        theirs = faiss.read_index(file.name)
    faiss.extract_index_ivf(theirs).nprobe = probes
    return theirs.search(queries, 100)[1]


def paired(name: str, string: str, options: argparse.Namespace) -> dict[str, Any]:
    base, learn, queries, metric = load(options.data, name, options.rows, options.queries)
    truth = kith.knn(queries, base, 1, metric, device="cpu", threads=options.threads).ids
    asked = tuple(int(probes) for probes in options.probes.split(","))
    runs = []
    for seed in range(options.first_seed, options.first_seed + options.paired):
        drawn = learn[np.random.default_rng(seed).permutation(len(learn))]
        own = kith.Index(string, metric=metric, device="cpu", seed=seed)
        own.train(drawn, threads=options.threads)
        loaded = seeded_faiss(string, metric, drawn, seed)
        for index in (own, loaded):
            index.add(base, threads=options.threads)
        found = []
        for probes in asked:
            ids = [i.search(queries, 100, probes=probes, threads=options.threads).ids for i in (own, loaded)]
            found.append([recalls(some, truth) for some in ids])
        runs.append(found)
        if seed == options.first_seed:
            values = "/".join(f"{r:.4f}" for r in recalls(searched_by_faiss(loaded, queries[:1000], asked[-1]), truth[:1000]))
            print(f"{string}: {asked[-1]} probes, 1,000 queries: FAISS {values}, ", end="")
            print("Kith with its file " + "/".join(f"{r:.4f}" for r in recalls(ids[1][:1000], truth[:1000])))
        for probes, (ours, theirs) in zip(asked, found, strict=True):
            print(f"  {string} seed {seed}, {probes} probes: kith {ours}, faiss {theirs}", flush=True)
    points = 100 * np.asarray(runs)  # seeds x probes x who x depths
    apart = points[:, :, 0] - points[:, :, 1]
    mean, error = apart.mean(axis=0), apart.std(axis=0, ddof=1) / np.sqrt(len(runs))
    print(f"{name} {string}, {options.paired} seeds: recall of Kith's training less FAISS's, in points (FAISS's recall)")
    for place, probes in enumerate(asked):
        values = "   ".join(
            f"R@{depth} {mean[place, i]:+.2f} ± {error[place, i]:.2f} ({points[:, place, 1, i].mean():.2f})"
            for i, depth in enumerate(DEPTHS)
        )
        print(f"  probes {probes:3}: {values}", flush=True)
    return {"set": name, "string": string, "probes": asked, "mean": mean.tolist(), "error": error.tolist()}


def draw(picture: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with open(results_path(NAME).with_suffix(".json"), encoding="utf-8") as file:
        kept = json.load(file)
    sets = list(dict.fromkeys(result["set"] for result in kept["results"]))
    across = min(2, len(sets))
    down = (len(sets) + across - 1) // across
    figure, panes = plt.subplots(down, across, figsize=(5.2 * across, 3.9 * down), squeeze=False)
    for pane, name in zip(panes.flat, sets, strict=False):
        of_set = [result for result in kept["results"] if result["set"] == name]
        for number, string in enumerate(dict.fromkeys(result["string"] for result in of_set)):
            line = [result for result in of_set if result["string"] == string]
            for who, style in (("kith", "-o"), ("faiss", ":")):
                if who not in line[0]:
                    continue
                pane.plot(
                    [result[f"{who} us"] for result in line],
                    [result[who][1] for result in line],
                    style,
                    color=f"C{number}",
                    markersize=3,
                    linewidth=1.2,
                    label=string if who == "kith" else None,
                )
        pane.set_xscale("log")
        pane.set_xlabel("µs a query, one thread" + (" (dotted: FAISS)" if "faiss" in of_set[0] else ""))
        pane.set_ylabel("1-recall@10")
        pane.set_title(f"{name}, {kept['options']['rows']:,} rows", fontsize=10)
        pane.grid(alpha=0.3)
        pane.legend(fontsize=7)
    figure.tight_layout()
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=100)
    print(f"drawn to {picture}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sets", default="sift1m,glove100,manifold,mixture")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--paired", type=int, default=0, metavar="SEEDS")
    parser.add_argument("--first-seed", type=int, default=0, help="of paired runs: goes on with a run that was ended")
    parser.add_argument("--lists", type=int, default=256)
    parser.add_argument("--probes", default=",".join(map(str, PROBES)), help="of paired runs")
    parser.add_argument("--train", type=int, default=TRAINED_ON)
    parser.add_argument("--alone", action="store_true", help="without FAISS, whose training takes most of the time")
    parser.add_argument("--strings", default="", help="only those that hold this")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--draw", action="store_true")
    parser.add_argument("--picture", type=Path, default=Path(__file__).parent.parent / "docs/images/recall_over_time.png")
    options = parser.parse_args()
    if options.data is not None and options.paired > 0:
        import faiss

        globals()["TRAINED_ON"] = options.train
        faiss.omp_set_num_threads(options.threads)
        for name in options.sets.split(","):
            for string in STRINGS[name]:
                if options.strings in string:
                    paired(name, of_lists(string, options.lists), options)
    elif options.data is not None:
        versions = {}
        if not options.alone:
            import faiss

            faiss.omp_set_num_threads(options.threads)
            versions["faiss"] = faiss.__version__
        results = []
        for name in options.sets.split(","):
            for string in STRINGS[name]:
                if options.strings in string:
                    results += measure(name, string, options)
        if not options.alone:
            pairs = [pair for result in results for pair in zip(result["kith"], result["faiss"], strict=True)]
            print(f"own training: at worst {100 * min(ours - theirs for ours, theirs in pairs):+.2f} points beside FAISS's")
        if options.write:
            settings = {"sets": options.sets, "rows": options.rows, "queries": options.queries, "threads": options.threads}
            write_document(results_path(NAME).with_suffix(".json"), settings, results, **versions)
    if options.draw:
        draw(options.picture)


if __name__ == "__main__":
    main()
