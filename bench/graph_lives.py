#!/usr/bin/env python3
"""Random lives of graph indexes on CPUs: adds, removals, compaction, files and copies, with searches between them.

    graph_lives.py [--lives 20] [--first 0] [--targets avx3_dl avx3 avx2 sse4] [--threads 1 2] [--only LIFE]

A life is drawn from its number alone: data of one kind (data_kinds.py), dtype, metric, factory, and what is done. After each
step queries are asked one by one and together, by the default beam and by others, with k from 1 to more than there are rows,
some with a filter, and answers are held against all rows: rows that are there and kept, each once, min(k, kept) of them, by
ascending distance, with the distances of these rows; and against each other, byte for byte. --targets and --threads: each life
is lived once by each instruction set and number of threads, in a process of its own, and all must give one hash. The share of
the true nearest that a beam of 24 finds is told for each life; below 0.6 it counts as a failure.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import data_kinds
import kith
import numpy as np

_METRICS = ("l2", "l2", "sqeuclidean", "cosine", "inner_product", "l1")
_FACTORIES = ("Graph16", "Graph32", "Graph32", "Graph48", "Graph64", "Graph32x4", "Graph32,SQ8", "Graph32,SQfp16")
_KINDS = tuple(data_kinds.NAMES)


def distances_of(queries: np.ndarray, rows: np.ndarray, metric: str) -> np.ndarray:
    q, x = queries.astype(np.float64), rows.astype(np.float64)
    if metric == "l1":
        return np.abs(q[:, None, :] - x[None, :, :]).sum(2)
    products = q @ x.T
    if metric == "inner_product":
        return products
    if metric == "cosine":
        lengths = np.linalg.norm(q, axis=1)[:, None] * np.linalg.norm(x, axis=1)[None, :]
        return 1 - np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
    squares = np.maximum((q * q).sum(1)[:, None] + (x * x).sum(1)[None, :] - 2 * products, 0)
    return squares if metric == "sqeuclidean" else np.sqrt(squares)


class Life:
    def __init__(self, number: int, threads: int):
        self.number = number
        self.threads = threads
        self.drawn = np.random.default_rng(number)
        self.kind = str(self.drawn.choice(_KINDS))
        self.metric = str(self.drawn.choice(_METRICS))
        self.factory = str(self.drawn.choice(_FACTORIES))
        if self.metric == "l1" and ("x4" in self.factory or "," in self.factory):
            self.factory = "Graph32"
        self.dtype = str(self.drawn.choice(["float32", "float32", "uint8", "int8", "float16"]))
        if "SQ" in self.factory:
            self.dtype = "float32"
        rows = data_kinds.make(self.kind, 12_000, number)[:, : int(self.drawn.choice([1, 2, 7, 16, 33, 64]))]
        rows = rows.astype(np.float32)
        if self.dtype != "float32":
            top = max(float(np.abs(rows).max()), 1e-30)
            scale = {"uint8": 255.0, "int8": 127.0, "float16": 100.0}[self.dtype]
            rows = np.abs(rows) / top * scale if self.dtype == "uint8" else rows / top * scale
            rows = (np.round(rows) if self.dtype != "float16" else rows).astype(self.dtype)
        self.pool = np.ascontiguousarray(rows)
        self.used = 0
        self.index = kith.Index(self.factory, metric=self.metric)
        if not self.index.trained:
            self.index.train(self.pool[:2000], threads=threads)
        self.rows: dict[int, np.ndarray] = {}
        self.next = 0
        self.hash = hashlib.sha256()
        self.found, self.wanted = 0, 0
        self.faults: list[str] = []

    def fault(self, text: str) -> None:
        self.faults.append(f"life {self.number} ({self.kind} {self.dtype} {self.pool.shape[1]} {self.metric} {self.factory}, "
                           f"{len(self.rows)} rows): {text}")

    def add(self, count: int) -> None:
        picks = np.arange(self.used, self.used + count) % len(self.pool)
        self.used += count
        if self.drawn.random() < 0.2:
            picks[: count // 2] = picks[0]  # many equal rows
        ids = np.arange(self.next, self.next + count, dtype=np.int64)
        self.next += count
        self.index.add(self.pool[picks], ids=ids, threads=self.threads)
        self.rows.update(zip(ids.tolist(), self.pool[picks]))

    def remove(self, share: float) -> None:
        ids = np.array(list(self.rows), dtype=np.int64)
        count = min(int(np.ceil(share * len(ids))), len(ids))
        if self.drawn.random() < 0.5:
            gone = self.drawn.choice(ids, count, replace=False)
        else:
            first = int(self.drawn.integers(0, len(ids) - count + 1))
            gone = ids[first : first + count]
        self.index.remove(gone, threads=self.threads)
        for one in gone.tolist():
            del self.rows[one]

    def step(self) -> None:
        what = self.drawn.random()
        if not self.rows or what < 0.35:
            self.add(int(self.drawn.choice([1, 3, 50, 400, 1500, 4500])))
        elif what < 0.6:
            self.remove(float(self.drawn.choice([0.0001, 0.01, 0.1, 0.3, 0.7, 1.0], p=[0.3, 0.3, 0.2, 0.1, 0.06, 0.04])))
        elif what < 0.7:
            self.index.compact(threads=self.threads)
        elif what < 0.85:
            with tempfile.TemporaryDirectory() as folder:
                path = str(Path(folder) / "life.kith")
                self.index.save(path)
                self.index = kith.load(path)
        else:
            self.index = self.index.clone()

    def look(self) -> None:
        if not self.rows:
            return
        ids = np.array(sorted(self.rows), dtype=np.int64)
        rows = np.stack([self.rows[i] for i in ids.tolist()])
        queries = np.concatenate([self.pool[self.drawn.integers(0, len(self.pool), 4)], rows[self.drawn.integers(0, len(rows), 3)]])
        k = int(self.drawn.choice([1, 10, 10, 40, min(len(ids), 300), len(ids) + 5]))
        k = min(k, 2000)
        options = {"beam": int(self.drawn.choice([1, 16, 24, 32, 64, 200, 700]))} if self.drawn.random() < 0.7 else {}
        if self.drawn.random() < 0.3:
            options["width"] = int(self.drawn.choice([1, 2, 4, 8]))
        kept = np.ones(len(ids), bool)
        if self.drawn.random() < 0.35:
            kept = self.drawn.random(len(ids)) < self.drawn.choice([0.9, 0.5, 0.1, 0.01])
            kept[0] = True
            options["filter"] = ids[kept]
        told = self.index.search(queries, k=k, threads=self.threads, **options)
        for i in range(len(queries)):
            one = self.index.search(queries[i : i + 1], k=k, threads=self.threads, **options)
            if one.ids.tobytes() != told.ids[i : i + 1].tobytes() or one.distances.tobytes() != told.distances[i : i + 1].tobytes():
                self.fault(f"query {i} alone differs from together, k {k}, {list(options)}")
        self.hash.update(told.ids.tobytes() + told.distances.tobytes())
        true = distances_of(queries, rows, self.metric)
        place = {one: i for i, one in enumerate(ids.tolist())}
        larger = self.metric == "inner_product"
        for i in range(len(queries)):
            got = told.ids[i][told.ids[i] >= 0]
            if len(got) != min(k, int(kept.sum())):
                self.fault(f"query {i}: {len(got)} results of k {k}, {int(kept.sum())} kept")
            if len(set(got.tolist())) != len(got) or any(one not in place for one in got.tolist()):
                self.fault(f"query {i}: a row twice, or none of the index's")
                continue
            at = np.array([place[one] for one in got.tolist()], dtype=np.int64)
            if not kept[at].all():
                self.fault(f"query {i}: a row that the filter does not keep")
            d = told.distances[i][: len(got)]
            if np.any(np.diff(d.astype(np.float64)) * (-1 if larger else 1) < 0):
                self.fault(f"query {i}: distances are not in order")
            scale = max(float(np.abs(true[i]).max()), 1e-4 * float(np.abs(rows.astype(np.float64)).max()), 1e-12)
            if "SQ" not in self.factory and np.any(np.abs(true[i][at] - d) > 2e-3 * scale):
                self.fault(f"query {i}: wrong distances")
        if "SQ" in self.factory:
            return  # whose distances are of what the codes stand for
        wide = self.index.search(queries, k=10, beam=24, threads=self.threads)
        self.hash.update(wide.ids.tobytes())
        for i in range(len(queries)):
            some = min(10, len(ids))
            order = np.sort(true[i])[::-1] if larger else np.sort(true[i])
            last, slack = order[some - 1], max(1e-5 * float(np.abs(true[i]).max()), 2e-6 if self.metric == "cosine" else 1e-12)
            at = np.array([place[one] for one in wide.ids[i][:some].tolist()], dtype=np.int64)
            self.found += int((true[i][at] >= last - slack).sum() if larger else (true[i][at] <= last + slack).sum())
            self.wanted += some

    def live(self, steps: int) -> None:
        self.add(int(self.drawn.choice([1, 40, 4200, 5000, 6500])))
        self.look()
        for _ in range(steps):
            self.step()
            self.look()


def run(lives: range, threads: int) -> int:
    failed = 0
    for number in lives:
        life = Life(number, threads)
        try:
            life.live(8)
        except Exception as error:
            life.fault(f"{type(error).__name__}: {error}")
        recall = life.found / max(life.wanted, 1)
        if life.wanted and recall < 0.6:
            life.fault(f"a beam of 24 finds {recall:.3f} of the nearest")
        for text in life.faults[:3]:
            print("FAULT", text)
        failed += len(life.faults) > 0
        print(f"life {number} {life.hash.hexdigest()[:16]} {life.factory} {life.metric} {life.kind} {life.dtype} x{life.pool.shape[1]} "
              + (f"recall {recall:.4f}" if life.wanted else ""), flush=True)
    return failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lives", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--targets", nargs="*", default=[])
    parser.add_argument("--threads", nargs="*", type=int, default=[2])
    parser.add_argument("--only", type=int)
    options = parser.parse_args()
    warnings.simplefilter("ignore", RuntimeWarning)
    lives = range(options.first, options.first + options.lives) if options.only is None else range(options.only, options.only + 1)
    if not options.targets and len(options.threads) == 1:
        sys.exit(1 if run(lives, options.threads[0]) else 0)
    told: dict[str, list[str]] = {}
    failed = 0
    for target in options.targets or [""]:
        for threads in options.threads:
            command = [sys.executable, __file__, "--first", str(lives.start), "--lives", str(len(lives)), "--threads", str(threads)]
            done = subprocess.run(command, env=os.environ | ({"KITH_CPU_TARGET": target} if target else {}), capture_output=True,
                                  text=True, check=False)
            failed += done.returncode
            told[f"{target} {threads}"] = done.stdout.splitlines()
            print(f"== {target or 'this machine'}, {threads} threads: rc {done.returncode}")
            print("\n".join(line for line in told[f"{target} {threads}"] if line.startswith("FAULT")), done.stderr[-500:], flush=True)
    first = next(iter(told.values()))
    for name, lines in told.items():
        differ = sum(a != b for a, b in zip(first, lines)) + abs(len(first) - len(lines))
        print(f"{name}: {len(lines)} lines, {differ} differ from the first's")
        failed += differ
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
