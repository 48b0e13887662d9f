#!/usr/bin/env python3
"""Recall of compressed indexes beside FAISS's for the same string, and a drawing of recall over time for all kinds.

    index_recall.py --data DIR [--sets sift1m,glove100,manifold,mixture] [--rows 100000] [--queries 500] [--lists 256] [--train 20000]
                    [--strings PQ16] [--threads 1] [--alone] [--device cuda:0] [--write]
    index_recall.py --data DIR --paired 5 [--sets sift1m] [--lists 1024] [--train 100000] [--rows 1000000] [--queries 10000]
                    [--probes 1,8,32] [--strings OPQ] [--first-seed 3]
    index_recall.py --draw [--results FILE] [--picture docs/images/recall_over_time.png]

DIR holds sift1m_{base,learn,query}.u8bin and glove100_{base,query}.f16bin. The first rows of each set are searched (l2; for
glove100 cosine, as inner products of rows of length 1); the truth is Kith's exact search of them. manifold and mixture are
made here, of 128 columns: 30 tanh(z W / 5) V of 24 numbers z, which partitions find hard, and 2,000 clusters. For each string and number
of probes: 1-recall@1/10/100 of FAISS, of Kith with FAISS's trained file, and of Kith's own training from the same rows, and
the processor time of a query in batches. --device: Kith's time there, on the wall, queries and results in host memory.
--draw draws what --write has kept.

--paired N trains both with N seeds, each time on the same rows in another order; a case is the difference of recall over
the same queries, in points: its mean over the seeds and that mean's standard error. FAISS's file is filled and searched by
Kith, so that training alone makes the difference (that of the first seed is searched by FAISS too, to compare).
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from made_data import manifold, mixture
from report import RESULTS, Report, parser_of, report_of
from turns import best_in_turn, clock_for, clock_name
from vector_files import first_recalls, read_bin

import kith

NAME = "index_recall"
DEPTHS = (1, 10, 100)
PROBES = (1, 2, 4, 8, 16, 32, 64)
STRINGS = {
    "sift1m": ("IVF256,Flat", "IVF256,SQ8", "IVF256,PQ16", "OPQ16,IVF256,PQ16", "IVF256,PQ32x4"),
    "glove100": ("IVF256,Flat", "IVF256,SQ8", "IVF256,PQ20", "OPQ20,IVF256,PQ20", "IVF256,PQ50x4"),
}
STRINGS["manifold"] = STRINGS["mixture"] = ("IVF256,Flat", "IVF256,PQ16", "OPQ16,IVF256,PQ16", "IVF256,PQ32x4")


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


MADE = {"manifold": manifold, "mixture": mixture}


def load(name: str, options: argparse.Namespace) -> tuple[np.ndarray, np.ndarray, np.ndarray, str]:
    """Rows, training rows and queries as f32, and the metric."""
    rows, queries, train = options.rows, options.queries, options.train
    if name in MADE:
        make = MADE[name]
        return make(rows, seed=3), make(train, seed=4), make(queries, seed=5), "sqeuclidean"
    if name == "sift1m":
        base, learn, asked = (read_bin(options.data / f"sift1m_{part}.u8bin", np.uint8) for part in ("base", "learn", "query"))
        return (*(part.astype(np.float32) for part in (base[:rows], learn[:train], asked[:queries])), "sqeuclidean")
    base, asked = (unit(read_bin(options.data / f"{name}_{part}.f16bin", np.float16).astype(np.float32)) for part in ("base", "query"))
    return base[:rows], base[:train], asked[:queries], "inner_product"


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


def measure(name: str, string: str, options: argparse.Namespace, report: Report) -> float:
    """How much its own training loses beside FAISS's, at worst; 0 where FAISS was not asked."""
    base, learn, queries, metric = load(name, options)
    truth = kith.knn(queries, base, 1, metric, device="cpu").ids
    own = kith.Index(string, metric=metric, device=options.device)
    own.train(learn)
    own.add(base)
    theirs, loaded = (None, None) if options.alone else train_faiss(string, metric, learn, base)
    worst = 0.0
    for probes in PROBES:
        runs = {"kith": lambda p=probes: own.search(queries, 100, probes=p, threads=options.threads).ids}
        if theirs is not None:
            import faiss

            faiss.extract_index_ivf(theirs).nprobe = probes
            runs["faiss"] = lambda: theirs.search(queries, 100)[1]
        on_cpu = options.device == "cpu"
        times = best_in_turn(1 if on_cpu else 5, runs, clock_for(options.threads if on_cpu else 0))
        found = {who: run() for who, run in runs.items()}
        if loaded is not None:
            found["kith, FAISS's file"] = loaded.search(queries, 100, probes=probes).ids
        figures: dict[str, float] = {}
        recalls = {who: first_recalls(np.asarray(ids), truth, DEPTHS) for who, ids in found.items()}
        for who, shares in recalls.items():
            prefix = "" if who == "kith" else f"{who} "
            figures |= {f"{prefix}recall@{depth}": share for depth, share in zip(DEPTHS, shares, strict=True)}
        if "faiss" in recalls:
            worst = min(worst, *(mine - other for mine, other in zip(recalls["kith"], recalls["faiss"], strict=True)))
        ms = {who: 1e3 * seconds / len(queries) for who, seconds in times.items()}
        report.row(
            f"{name}, {string}, {probes} probes",
            shape=f"{len(base)} x {base.shape[1]}, {metric}, {len(queries)} queries together",
            ms=ms.pop("kith"),
            runs=1 if on_cpu else 5,
            clock=clock_name(options.threads if on_cpu else 0),
            peers_ms=ms,
            figures=figures,
            labels={"set": name, "string": string, "probes": str(probes)},
        )
    return worst


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


def paired(name: str, string: str, options: argparse.Namespace, report: Report) -> None:
    base, learn, queries, metric = load(name, options)
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
            found.append([first_recalls(some, truth, DEPTHS) for some in ids])
        runs.append(found)
        if seed == options.first_seed:
            theirs = first_recalls(searched_by_faiss(loaded, queries[:1000], asked[-1]), truth[:1000], DEPTHS)
            same_file = first_recalls(ids[1][:1000], truth[:1000], DEPTHS)
            figures = {f"recall@{depth}": share for depth, share in zip(DEPTHS, same_file, strict=True)}
            figures |= {f"faiss recall@{depth}": share for depth, share in zip(DEPTHS, theirs, strict=True)}
            report.row(f"{name}, {string}, FAISS's file, {asked[-1]} probes, 1,000 queries", figures=figures)
        for probes, both in zip(asked, found, strict=True):
            figures = {}
            for prefix, shares in zip(("", "faiss "), both, strict=True):
                figures |= {f"{prefix}recall@{depth}": share for depth, share in zip(DEPTHS, shares, strict=True)}
            report.row(f"{name}, {string}, seed {seed}, {probes} probes", figures=figures)
    points = 100 * np.asarray(runs)  # seeds x probes x who x depths
    apart = points[:, :, 0] - points[:, :, 1]
    mean, error = apart.mean(axis=0), apart.std(axis=0, ddof=1) / np.sqrt(len(runs))
    for place, probes in enumerate(asked):
        figures = {}
        for i, depth in enumerate(DEPTHS):
            figures[f"less_faiss@{depth}_points"] = float(mean[place, i])
            figures[f"standard_error@{depth}"] = float(error[place, i])
            figures[f"faiss@{depth}_points"] = float(points[:, place, 1, i].mean())
        report.row(f"{name}, {string}, {probes} probes, {options.paired} seeds", runs=options.paired, figures=figures)


def draw(results: Path, picture: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    lines = [json.loads(line) for line in results.read_text("utf-8").splitlines()]
    run = json.loads(lines[0]["note"])
    cases = [line for line in lines if "probes" in line.get("labels", {})]
    sets = list(dict.fromkeys(line["labels"]["set"] for line in cases))
    across = min(2, len(sets))
    down = (len(sets) + across - 1) // across
    figure, panes = plt.subplots(down, across, figsize=(5.2 * across, 3.9 * down), squeeze=False)
    for pane, name in zip(panes.flat, sets, strict=False):
        of_set = [line for line in cases if line["labels"]["set"] == name]
        for number, string in enumerate(dict.fromkeys(line["labels"]["string"] for line in of_set)):
            points = [line for line in of_set if line["labels"]["string"] == string]
            for who, style in (("kith", "-o"), ("faiss", ":")):
                if who == "faiss" and "peers_ms" not in points[0]:
                    continue
                pane.plot(
                    [1e3 * (point["ms"] if who == "kith" else point["peers_ms"]["faiss"]) for point in points],
                    [point["figures"]["recall@10" if who == "kith" else "faiss recall@10"] for point in points],
                    style,
                    color=f"C{number}",
                    markersize=3,
                    linewidth=1.2,
                    label=string if who == "kith" else None,
                )
        pane.set_xscale("log")
        pane.set_xlabel("µs a query, one thread" + (" (dotted: FAISS)" if "peers_ms" in of_set[0] else ""))
        pane.set_ylabel("1-recall@10")
        pane.set_title(f"{name}, {run['options']['rows']:,} rows", fontsize=10)
        pane.grid(alpha=0.3)
        pane.legend(fontsize=7)
    figure.tight_layout()
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=100)
    print(f"drawn to {picture}")


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sets", default="sift1m,glove100,manifold,mixture")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--paired", type=int, default=0, metavar="SEEDS")
    parser.add_argument("--first-seed", type=int, default=0, help="of paired runs: goes on with a run that was ended")
    parser.add_argument("--lists", type=int, default=256, help="in place of the strings' 256")
    parser.add_argument("--probes", default=",".join(map(str, PROBES)), help="of paired runs")
    parser.add_argument("--train", type=int, default=20_000, help="rows to train with")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--alone", action="store_true", help="without FAISS, whose training takes most of the time")
    parser.add_argument("--strings", default="", help="only those that hold this")
    parser.add_argument("--draw", action="store_true")
    parser.add_argument("--results", type=Path, default=RESULTS / "cpu" / f"{NAME}_{platform.machine()}.jsonl", help="what is drawn")
    parser.add_argument("--picture", type=Path, default=Path(__file__).parent.parent / "docs/images/recall_over_time.png")
    options = parser.parse_args()
    if options.data is not None:
        versions = {}
        if not options.alone:
            import faiss

            faiss.omp_set_num_threads(options.threads)
            versions["faiss"] = faiss.__version__
        report = report_of(NAME if options.paired == 0 else f"{NAME}_paired", options, **versions)
        worst = 0.0
        for name in options.sets.split(","):
            for string in (of_lists(one, options.lists) for one in STRINGS[name] if options.strings in one):
                if options.paired > 0:
                    paired(name, string, options, report)
                else:
                    worst = min(worst, measure(name, string, options, report))
        if not options.alone and options.paired == 0:
            report.note(f"own training: at worst {100 * worst:+.2f} points beside FAISS's")
    if options.draw:
        draw(options.results, options.picture)


if __name__ == "__main__":
    main()
