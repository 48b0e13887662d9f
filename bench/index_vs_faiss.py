#!/usr/bin/env python3
"""Compressed indexes beside FAISS through Python, in one run: FAISS's trained file is read by Kith, so that training plays
no part, and both answer the same queries.

    index_vs_faiss.py --data DIR [--threads 2] [--k 100] [--keep FOLDER] [--only IVF1024,PQ16] [--out FILE]

DIR holds sift1m_{base,learn,query}.u8bin and sift1m_gt_l2.ibin. Reports the time of all queries (the best of three
runs), how many ids are equal place by place, and 1-recall@1/10/100 of both; then one query at a time. FAISS's trained
files are kept in FOLDER, where a run with another KITH_CPU_TARGET finds them.
"""

import tempfile
from pathlib import Path

import faiss
import kith
import numpy as np
from report import parser_of, report_of
from turns import best_of
from vector_files import first_recalls, read_bin, sift


def compare(report, name, index, own, queries, truth, probes, options):
    for number in probes:
        if number:
            index.nprobe = number
        (_, found), theirs = best_of(2, lambda: index.search(queries, options.k))
        answer, ours = best_of(3, lambda n=number: own.search(queries, options.k, probes=n or None, threads=options.threads))
        recall = [first_recalls(ids, truth) for ids in (answer[0], found)]
        figures = {"same_ids": float(np.mean(answer[0] == found))}
        for who, shares in zip(("", "_faiss"), recall, strict=True):
            figures.update({f"recall@{r}{who}": round(share, 4) for r, share in zip((1, 10, 100), shares, strict=True)})
        report.row(
            f"{name}, {number or 'no'} probes, {len(queries)} queries",
            ms=1e3 * ours,
            runs=3,
            clock="wall",
            peers_ms={"faiss": 1e3 * theirs},
            figures=figures,
        )


def compare_alone(report, name, index, own, queries, probes, options):
    """One query a call."""
    for number in probes:
        if number:
            index.nprobe = number
        _, theirs = best_of(3, lambda: [index.search(queries[i : i + 1], options.k) for i in range(len(queries))])
        _, ours = best_of(
            3,
            lambda n=number: [
                own.search(queries[i : i + 1], options.k, probes=n or None, threads=options.threads) for i in range(len(queries))
            ],
        )
        one, other = (1e3 * took / len(queries) for took in (ours, theirs))
        report.row(f"{name}, {number or 'no'} probes, one query", ms=one, runs=3, clock="wall", peers_ms={"faiss": other})


def faiss_index(name, learn, base, keep):
    """FAISS's index, and Kith's of its file."""
    path = keep / f"faiss_{name}.index"
    if path.exists():
        index = faiss.read_index(str(path))
    else:
        index = faiss.index_factory(base.shape[1], name)
        index.train(learn)
        index.add(base)
        faiss.write_index(index, str(path))
    return index, kith.read_faiss(str(path))


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--k", type=int, default=100)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--only", default="", help="only this string")
    options = parser.parse_args()
    report = report_of("index_vs_faiss", options, faiss=faiss.__version__)
    faiss.omp_set_num_threads(options.threads)
    base, learn, queries = sift(options.data)
    truth = read_bin(options.data / "sift1m_gt_l2.ibin", np.int32)
    with tempfile.TemporaryDirectory() as folder:
        for name, count, probes, alone in (
            ("IVF1024,PQ16", 10000, (1, 8, 32, 128), 500),
            ("IVF1024,Flat", 5000, (8, 32), 0),
            ("IVF1024,SQ8", 5000, (8, 32), 0),
            ("PQ16", 300, (0,), 0),
            ("PQ32x4fs", 1000, (0,), 50),
        ):
            if options.only in ("", name):
                index, own = faiss_index(name, learn, base, options.keep or Path(folder))
                compare(report, name, index, own, queries[:count], truth, probes, options)
                compare_alone(report, name, index, own, queries[:alone], probes if alone else (), options)


if __name__ == "__main__":
    main()
