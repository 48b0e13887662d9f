#!/usr/bin/env python3
"""`Graph32` beside faiss HNSW32, usearch, hnswlib, VSAG (HGraph) and SVS (Vamana over LVQ codes), as far as they are installed:
builds, and the time of one query at a recall of the 10 nearest, one thread, one query at a time.

    graph_index.py [--data sift glove mixture] [--folder DATA] [--rows 100000] [--queries 500] [--rounds 3] [--efforts 10 12 16 ...]
                   [--with kith hnswlib_16 ... | --without faiss_hnsw32 ...] [--threads N] [--build-effort 200] [--own-effort NAME=N ...]
                   [--alone kith hnswlib_16 ...] [--cores 0 3 6 9] [--build-seconds S] [--seconds S] [--write | --out FILE]

DATA holds sift1m_base.u8bin, sift1m_query.u8bin, glove100_base.f16bin and glove100_query.f16bin; `mixture` is made: rank 48 in
768 columns, of length 1. `kith_bytes` has the bytes of SIFT as they are, all others its vectors as f32 (usearch_i8: moved by 128).

Each index lives in a process of its own, none of which sees the others' threads. They are built in the order of `--with`, by so many
threads: those of `--alone` one after the other, the others two at a time. No build begins after --build-seconds, and one that is not
done then is ended. Then all measure their recall by effort, each on one core. At last the efforts on both sides of the wanted
recalls are timed: one round with as many processes at once as there are --cores, then rounds in which one process works
alone, turn by turn, as long as --seconds from the start allow. The shortest round alone counts. Times are of the processor, with
Python's call; a build's are those of all its threads, and beside them the time on the wall. --efforts without a number: builds alone.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import tempfile
import time
import traceback
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from graph_peers import K, MAKERS, data_of
from report import Report, parser_of, report_of

_EFFORTS = (10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256, 320, 384, 512, 768, 1024)
_WANTED = (0.90, 0.95, 0.98, 0.99)
_ENOUGH = 0.992  # higher efforts are not tried
_DEFAULT = ["kith", "kith_bytes", "hnswlib_16", "faiss_hnsw32", "usearch_f32", "usearch_i8", "vsag_sq8", "svs_lvq8", "hnswlib_32"]


def recall_of(ids: Any, truth: Any) -> float:
    return float(np.mean([len(np.intersect1d(a, b)) / K for a, b in zip(np.asarray(ids).astype(np.int64), truth)]))


def work(pipe: Connection, name: str, folder: str, metric: str) -> None:
    """The life of one index: what comes through the pipe is a word and its arguments."""
    try:
        threads, effort = pipe.recv()
        x, queries, truth = (np.load(Path(folder) / f"{part}.npy", mmap_mode="r") for part in ("x", "queries", "truth"))
        wall, processor = time.perf_counter(), time.process_time()
        index = MAKERS[name](np.ascontiguousarray(x), metric, threads, effort)
        pipe.send({"wall": time.perf_counter() - wall, "processor": time.process_time() - processor})
        own = np.ascontiguousarray(index.prepared(np.asarray(queries)))
        while True:
            word, effort, core = pipe.recv()
            if core is not None:
                os.sched_setaffinity(0, {core})
            if word == "recall":
                pipe.send(recall_of(index.search(own, effort), truth))
            else:
                begin = time.process_time()
                for i in range(len(own)):
                    index.search(own[i : i + 1], effort)
                pipe.send((time.process_time() - begin) / len(own) * 1e6)
    except EOFError:
        pass
    except BaseException as error:  # a peer's fault is its own
        traceback.print_exc()
        pipe.send({"error": f"{type(error).__name__}: {error}"})


class Worker:
    def __init__(self, name: str, folder: str, metric: str) -> None:
        context = multiprocessing.get_context("spawn")
        self.name = name
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, name, folder, metric), daemon=True)
        self.process.start()
        theirs.close()
        self.recalls: dict[int, float] = {}
        self.first_us: dict[int, float] = {}
        self.best_us: dict[int, float] = {}

    def answer(self, until: float) -> Any:
        """What it sends, or an error where it takes until then, or ends."""
        try:
            if not self.pipe.poll(max(0.0, until - time.monotonic())):
                return {"error": "not done in time"}
            return self.pipe.recv()
        except (EOFError, OSError):
            return {"error": "the process ended"}

    def end(self) -> None:
        self.process.kill()

    def efforts(self) -> list[int]:
        """Those on both sides of the recalls that are wanted."""
        tried = sorted(self.recalls)
        needed = set()
        for wanted in _WANTED:
            above = next((i for i, effort in enumerate(tried) if self.recalls[effort] >= wanted), None)
            if above is not None:
                needed |= {tried[above], tried[max(0, above - 1)]}
        return sorted(needed)


def built(names: list[str], options: Any, folder: str, metric: str, until: float) -> Iterator[tuple[Worker, dict[str, Any]]]:
    """Indexes as they are done; two at a time but for those of --alone."""
    waiting, running = list(names), []
    efforts = dict(given.split("=") for given in options.own_effort)
    while waiting or running:
        alone = bool(waiting) and waiting[0] in options.alone
        while waiting and time.monotonic() < until and len(running) < (1 if alone else 2):
            if running and running[0].name in options.alone:
                break
            name = waiting.pop(0)
            worker = Worker(name, folder, metric)
            worker.pipe.send((options.threads, int(efforts.get(name, options.build_effort))))
            running.append(worker)
            alone = bool(waiting) and (waiting[0] in options.alone or name in options.alone)
        if not running:
            for name in waiting:
                print(f"# {name}: no time left to build it", flush=True)
            return
        multiprocessing.connection.wait([worker.pipe for worker in running], max(0.0, until - time.monotonic()))
        for worker in list(running):
            if not worker.pipe.poll() and time.monotonic() < until:
                continue
            taken = worker.answer(time.monotonic())
            running.remove(worker)
            if "error" in taken:
                print(f"# {worker.name}: {taken['error']}", flush=True)
                worker.end()
            else:
                yield worker, taken


def measure_recalls(workers: list[Worker], efforts: list[int], until: float) -> None:
    """All processes at once, each by one thread: efforts upwards until the recall is enough."""
    at = {worker.pipe: (worker, 0) for worker in workers}
    for worker in workers:
        worker.pipe.send(("recall", efforts[0], None))
    while at:
        ready = multiprocessing.connection.wait(list(at), max(0.0, until - time.monotonic()))
        if not ready:
            return
        for pipe in ready:
            worker, number = at.pop(pipe)
            found = worker.answer(time.monotonic() + 1)
            if isinstance(found, dict):
                print(f"# {worker.name}: {found['error']}", flush=True)
                continue
            worker.recalls[efforts[number]] = found
            if found < _ENOUGH and number + 1 < len(efforts):
                pipe.send(("recall", efforts[number + 1], None))
                at[pipe] = worker, number + 1


def timed_together(workers: list[Worker], cores: list[int | None], until: float) -> None:
    """A first round: as many processes at once as there are cores, each with its efforts."""
    waiting, free, running = [worker for worker in workers if worker.efforts()], list(cores), {}
    while (waiting or running) and time.monotonic() < until:
        while waiting and free:
            worker, core = waiting.pop(0), free.pop(0)
            running[worker.pipe] = worker, core, worker.efforts()
            worker.pipe.send(("time", worker.efforts()[0], core))
        for pipe in multiprocessing.connection.wait(list(running), max(0.0, until - time.monotonic())):
            worker, core, efforts = running.pop(pipe)
            us = worker.answer(until)
            if isinstance(us, float):
                worker.first_us[efforts[0]] = us
                if efforts[1:]:
                    pipe.send(("time", efforts[1], core))
                    running[pipe] = worker, core, efforts[1:]
                    continue
            free.append(core)
    for worker, _, _ in running.values():
        worker.answer(time.monotonic() + 60)


def timed_alone(workers: list[Worker], core: int | None, rounds: int, until: float) -> int:
    """Rounds in which every process has its turn at each of its efforts; how many were done whole."""
    for done in range(rounds):
        for number in range(max((len(worker.efforts()) for worker in workers), default=0)):
            for worker in workers:
                if number >= len(worker.efforts()):
                    continue
                if time.monotonic() > until:
                    return done
                effort = worker.efforts()[number]
                worker.pipe.send(("time", effort, core))
                us = worker.answer(time.monotonic() + 60)
                if isinstance(us, float):
                    worker.best_us[effort] = min(us, worker.best_us.get(effort, np.inf))
    return rounds


def at_recall(points: list[tuple[float, float]], wanted: float) -> float | None:
    """The time at a recall, between the two efforts around it; that of the least effort where it has more."""
    points = sorted(points)
    if points and points[0][0] >= wanted:
        return points[0][1]
    for (r0, t0), (r1, t1) in zip(points, points[1:]):
        if r0 <= wanted <= r1 and r1 > r0:
            return t0 + (t1 - t0) * (wanted - r0) / (r1 - r0)
    return None


def tell(report: Report, shape: str, workers: list[Worker], which: str, runs: int) -> None:
    for wanted in _WANTED:
        reached = {}
        for worker in workers:
            times = worker.best_us if which == "alone" else worker.first_us
            us = at_recall([(worker.recalls[effort], times[effort]) for effort in times], wanted)
            if us is not None:
                reached[worker.name] = us
        own = reached.pop("kith", None)
        figures = {"kith_us": own} if own else {}
        figures |= {f"{name}_us": us for name, us in reached.items()}
        if own:
            figures |= {f"{name}_over_kith": us / own for name, us in reached.items() if not name.startswith("kith")}
        report.row(f"one query at a recall of {wanted}, {which}", shape=shape, runs=runs, clock="processor", figures=figures)


def compare(report: Report, name: str, options: Any, began: float) -> None:
    import kith

    x, queries, metric = data_of(name, options.folder, options.rows, options.queries)
    shape = f"{name}: {x.shape[0]} x {x.shape[1]} {x.dtype}, {metric}"
    chosen = options.chosen if options.chosen is not None else _DEFAULT
    names = [peer for peer in chosen if peer not in options.without]
    if x.dtype != np.uint8:
        names = [peer for peer in names if peer != "kith_bytes"]
    with tempfile.TemporaryDirectory() as folder:
        values = x if x.dtype == np.uint8 else x.astype(np.float32)
        np.save(f"{folder}/x.npy", values)
        np.save(f"{folder}/queries.npy", queries if x.dtype == np.uint8 else queries.astype(np.float32))
        np.save(f"{folder}/truth.npy", np.asarray(kith.knn(queries, x, k=K, metric=metric).ids))
        print(f"# {shape}: data after {time.monotonic() - began:.1f} s", flush=True)
        workers = []
        until = began + options.build_seconds
        for worker, taken in built(names, options, folder, metric, until):
            figures = {"processor_s": taken["processor"]}
            labels = {"threads": str(options.threads), "alone": "yes" if worker.name in options.alone else "no"}
            report.row(f"{worker.name}, build", shape=shape, ms=1e3 * taken["wall"], clock="wall", figures=figures, labels=labels)
            workers.append(worker)
        workers.sort(key=lambda worker: names.index(worker.name))
        if not options.efforts:
            for worker in workers:
                worker.end()
            return
        until = began + options.seconds
        measure_recalls(workers, options.efforts, until)
        print(f"# recalls after {time.monotonic() - began:.1f} s", flush=True)
        cores = options.cores or [None]
        timed_together(workers, cores, until)
        tell(report, shape, workers, "together", 1)
        print(f"# a first round after {time.monotonic() - began:.1f} s", flush=True)
        done = timed_alone(workers, cores[0], options.rounds, until)
        tell(report, shape, workers, "alone", done)
        for worker in workers:
            for effort, recall in sorted(worker.recalls.items()):
                us = worker.best_us.get(effort)
                ms = None if us is None else us / 1e3
                case = f"{worker.name}, effort {effort}"
                report.row(case, shape=shape, ms=ms, runs=done, clock="processor", figures={"recall": recall})
            worker.end()
        print(f"# {shape}: done after {time.monotonic() - began:.1f} s", flush=True)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--data", nargs="+", default=["sift", "glove", "mixture"])
    parser.add_argument("--folder", type=Path, default=Path("data"))
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--with", nargs="*", dest="chosen")
    parser.add_argument("--without", nargs="*", default=[])
    parser.add_argument("--alone", nargs="*", default=["kith", "kith_bytes", "hnswlib_16"])
    parser.add_argument("--efforts", nargs="*", type=int, default=list(_EFFORTS))
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--build-effort", type=int, default=200)
    parser.add_argument("--own-effort", nargs="*", default=[], metavar="NAME=N", help="another effort for the build of one")
    parser.add_argument("--cores", nargs="*", type=int, help="cores on which processes search; without it they are not pinned")
    parser.add_argument("--build-seconds", type=float, default=1e6)
    parser.add_argument("--seconds", type=float, default=1e6)
    options = parser.parse_args()
    report = report_of("graph_index", options)
    for name in options.data:
        compare(report, name, options, time.monotonic())


if __name__ == "__main__":
    main()
