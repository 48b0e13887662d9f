#!/usr/bin/env python3
"""Queries per second and recall of inverted files beside FAISS, in one run, with FAISS's own centres and codes put in.

    ivf_vs_faiss.py --bench build/release/kith_bench --data DIR [--code PQ16] [--lists 1024] [--threads 1]
                    [--probes 1,8,32,128] [--k 100] [--batch 10000] [--count 10000] [--repeat 3] [--target NAME] [--out FILE]

DIR holds sift1m_{base,learn,query}.u8bin and sift1m_gt_l2.ibin. What FAISS trains is kept there. FAISS and Kith take
turns, so that a busy machine is busy for both. --batch 1 asks for one query at a time; --target is KITH_CPU_TARGET.
"""

import json
import os
import subprocess
import time
from pathlib import Path

import faiss
import numpy as np
from report import parser_of, report_of
from vector_files import first_recalls, read_bin, sift, write_fbin


def trained(data, name, code, lists, learn, base):
    path = data / f"faiss_{name}.index"
    if path.exists():
        return faiss.read_index(str(path))
    index = faiss.index_factory(learn.shape[1], name)
    index.train(learn)
    index.add(base)
    faiss.write_index(index, str(path))
    return index


def put_in(data, index, name, code):
    """The files with FAISS's centres and code values, as options of the benchmark program."""
    options = []
    if "IVF" in name:
        write_fbin(data / "centres.fbin", index.quantizer.reconstruct_n(0, index.nlist))
        options += ["--centres", data / "centres.fbin"]
    if code.startswith("PQ"):
        values = faiss.vector_to_array(index.pq.centroids)
        write_fbin(data / "values.fbin", values.reshape(-1, index.pq.dsub))
        options += ["--values", data / "values.fbin"]
    if code.startswith("SQ"):
        write_fbin(data / "values.fbin", faiss.vector_to_array(index.sq.trained).reshape(2, -1))
        options += ["--values", data / "values.fbin"]
    return options


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--bench", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--code", default="PQ16")
    parser.add_argument("--lists", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--probes", default="1,8,32,128")
    parser.add_argument("--k", type=int, default=100)
    parser.add_argument("--batch", type=int, default=10000)
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--target", default="")
    args = parser.parse_args()

    report = report_of("ivf_vs_faiss", args, faiss=faiss.__version__)
    base, learn, queries = sift(args.data)
    queries = queries[: args.count]
    truth = read_bin(args.data / "sift1m_gt_l2.ibin", np.int32)[: args.count]
    name = f"IVF{args.lists},{args.code}" if args.lists > 0 else args.code
    index = trained(args.data, name, args.code, args.lists, learn, base)
    faiss.omp_set_num_threads(args.threads)
    probes = [int(p) for p in args.probes.split(",")]

    peer = {}
    for probe in probes:
        if args.lists > 0:
            index.nprobe = probe
        best = busy = float("inf")
        for _ in range(args.repeat):
            start, before = time.perf_counter(), time.process_time()
            parts = [index.search(queries[i : i + args.batch], args.k)[1] for i in range(0, len(queries), args.batch)]
            best = min(best, time.perf_counter() - start)
            busy = min(busy, time.process_time() - before)
        peer[probe] = (len(queries) / best, len(queries) / busy, np.concatenate(parts))

    ids = args.data / "kith_ids.i32"
    out = args.data / "kith_ivf.jsonl"
    command = [args.bench, "ivf", "--out", out, "--base", args.data / "sift1m_base.u8bin", "--queries", args.data / "sift1m_query.u8bin"]
    command += ["--code", args.code.replace("fs", ""), "--k", args.k, "--probes", args.probes]
    command += ["--threads", args.threads, "--batch", args.batch, "--count", args.count]
    command += ["--keep", args.data / f"kith_{name}.lists", "--repeat", args.repeat, "--ids", ids, *put_in(args.data, index, name, args.code)]
    environment = dict(os.environ, **({"KITH_CPU_TARGET": args.target} if args.target else {}))
    subprocess.run([str(c) for c in command], check=True, capture_output=True, env=environment)
    figures = {line["case"]: line["figures"] for line in map(json.loads, out.read_text().splitlines()) if "figures" in line}
    rates = {probe: tuple(figures[f"probes {probe}"].values()) for probe in probes}
    found = np.fromfile(ids, np.int32).reshape(len(probes), len(queries), args.k)

    depths = [depth for depth in (1, 10, 100) if depth <= args.k]
    for i, probe in enumerate(probes):
        wall, busy, neighbors = peer[probe]
        figures = {"queries_per_second": rates[probe][0], "faiss_queries_per_second": wall}
        figures |= {"by_processor": rates[probe][1], "faiss_by_processor": busy}
        for who, ids in (("", found[i]), ("faiss_", neighbors)):
            figures |= {f"{who}recall@{d}": share for d, share in zip(depths, first_recalls(ids, truth, depths), strict=True)}
        figures["common_ids"] = float(np.mean([len(np.intersect1d(a, b)) for a, b in zip(neighbors, found[i], strict=True)]) / args.k)
        report.row(
            f"{name}, {probe} probes, batches of {args.batch}",
            shape=f"{len(base)} x {base.shape[1]}, {len(queries)} queries, k = {args.k}, {args.threads} threads",
            ms=1e3 * len(queries) / rates[probe][0],
            runs=args.repeat,
            clock="wall",
            peers_ms={"faiss": 1e3 * len(queries) / wall},
            figures=figures,
        )


if __name__ == "__main__":
    main()
