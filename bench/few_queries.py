#!/usr/bin/env python3
"""Few queries on the CPU: processor time a query of every kind of index, by the size of the batch, beside FAISS's and
beside Kith's own `Flat` of the same rows, in one run on one thread.

    few_queries.py [--tables usual batches kinds metrics neighbors widths filters large sweep] [--rows 60000]
                   [--rounds 7] [--targets AVX2 ...] [--cells PART ...] [--kept 1 ...] [--seconds 60] [--worst 20]
                   [--steps] [--write | --out FILE]

Tables are lists of cells; a cell is a kind of index, its rows and columns, a metric, k, the size of a batch and, where
there is a filter, how many rows it keeps:

    usual      the kinds that people use, 128 and 384 columns, one query and ten
    batches    1 to 1,000 queries at a time
    kinds      every kind, alone, in lists, behind OPQ and PCA, with a second look; 1, 10 and 100 queries
    metrics    inner_product and cosine; one query
    neighbors  k = 1 and 100
    widths     16, 100, 768 and 1,536 columns; 20,000 rows
    filters    one row kept in two, in ten, in a hundred and in a thousand
    large      200,000 x 768 in 447 lists
    sweep      every kind, alone, in lists, behind OPQ and PCA and with a second look, times k = 1, 10 and 100, times 1, 10
               and 100 queries, times six widths from 16 to 1,536 columns; 10,000 rows

FAISS's trained file is read by Kith, so that both search the same lists and codes, and training plays no part. Every
round takes other queries, so that no list stays in a cache because it was asked for just before. Every cell is searched
by Kith, by FAISS and by `Flat` in turn. `same` is the share of ids that are equal place by place; `alone` says whether
one query's answer has the bytes of the same query's in a batch. `short` says what is below twice FAISS, or slower than
`Flat`; `--worst` repeats the cases with the smallest ratios at the end. `--steps` instead times 1 to 1,000 queries of every kind, with and without a filter, without FAISS's searches; it
fails where a query takes a tenth longer than in the next smaller batch, or longer than in `Flat` (query_steps.py). Where
FAISS is not installed, or does not have the kind in that form, its times are left out and Kith trains by
itself: `cosine` is `METRIC_INNER_PRODUCT` of rows of length 1 there.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import query_steps
import turns
from made_data import mixture
from report import Report, parser_of, report_of

import kith

try:
    import faiss
except ImportError:
    faiss = None

_USUAL = ("Flat", "SQ8", "SQfp16", "PQ{d8}", "IVF256,Flat", "IVF256,SQ8", "IVF256,SQ4", "IVF256,SQfp16", "IVF256,PQ{d8}",
          "IVF256,PQ{d4}x4")  # fmt: skip
_KINDS = ("Flat", "SQ8", "SQ6", "SQ4", "SQfp16", "PQ{d8}", "PQ{d4}x4", "RQ8x8_Nqint8", "LSQ8x8_Nqint8")
_BEFORE_AND_AFTER = ("OPQ{d8},IVF256,PQ{d8}", "PCA{d2},IVF256,SQ8", "PCA{d2},SQ8", "OPQ{d8},PQ{d8}", "IVF256,PQ{d8},RFlat",
                     "IVF256,PQ{d8},Refine(SQ8)", "PQ{d8},RFlat", "SQ8,RFlat")  # fmt: skip
_ALL = (*_KINDS, *(f"IVF256,{kind}" for kind in _KINDS), *_BEFORE_AND_AFTER)
_CODES = ("Flat", "SQ8", "SQ4", "SQfp16", "PQ{d8}", "PQ{d4}x4")
_SWEPT = (*(f"IVF64,{kind}" for kind in _CODES), *_CODES, "IVF64,PQ{d8},RFlat", "IVF64,PQ{d8},Refine(SQ8)", "SQ8,RFlat", "PQ{d8},RFlat",
          "PCA{d2},IVF64,SQ8", "PCA{d2},SQ8", "OPQ{d8},IVF64,PQ{d8}", "OPQ{d8},PQ{d8}")  # fmt: skip
_STEPPED = (*_USUAL, "SQ4", "PQ{d4}x4", "RQ8x8_Nqint8", "IVF256,RQ8x8_Nqint8", "PCA{d2},IVF256,SQ8", "OPQ{d8},IVF256,PQ{d8}",
            "IVF256,PQ{d8},RFlat", "PQ{d8},RFlat")  # fmt: skip
_STEPPED_FILTERED = ("Flat", "SQ8", "PQ{d8}", "IVF256,Flat", "IVF256,SQ8", "IVF256,SQfp16", "IVF256,PQ{d8}")
_WIDEST_OPQ = 384  # columns: beyond, FAISS's training takes minutes
_TRAINED_ROWS = 20_000  # of RQ and LSQ, whose training takes long


@dataclass(frozen=True)
class Cell:
    kind: str
    rows: int = 60_000
    cols: int = 128
    metric: str = "l2"
    k: int = 10
    batch: int = 1
    kept: float = 1.0  # the share of the rows that a filter keeps
    probes: int = 16

    @property
    def factory(self) -> str:
        return self.kind.format(d8=self.cols // 8, d4=self.cols // 4, d2=self.cols // 2)


def cells_of(table: str, rows: int) -> Iterator[Cell]:
    plain = Cell("Flat", rows=rows)
    if table == "usual":
        for cols in (128, 384):
            for kind in _USUAL:
                for batch in (1, 10):
                    yield replace(plain, kind=kind, cols=cols, batch=batch)
    elif table == "batches":
        for kind in ("Flat", "SQ8", "PQ{d8}", "IVF256,Flat", "IVF256,SQ8", "IVF256,SQfp16", "IVF256,PQ{d8}", "IVF256,PQ{d4}x4"):
            for batch in (1, 2, 5, 10, 30, 100, 1000):
                yield replace(plain, kind=kind, batch=batch)
    elif table == "kinds":
        yield from (replace(plain, kind=kind, batch=batch) for kind in _ALL for batch in (1, 10, 100))
    elif table == "metrics":
        for metric in ("inner_product", "cosine"):
            for kind in ("Flat", "SQ8", "SQfp16", "PQ{d8}", "IVF256,Flat", "IVF256,SQ8", "IVF256,SQfp16", "IVF256,PQ{d8}",
                         "IVF256,PQ{d4}x4", "IVF256,RQ8x8_Nqint8"):  # fmt: skip
                yield replace(plain, kind=kind, metric=metric)
    elif table == "neighbors":
        for k in (1, 100):
            yield from (replace(plain, kind=kind, k=k) for kind in _USUAL)
    elif table == "widths":
        for cols in (16, 100, 768, 1536):
            for kind in ("Flat", "SQ8", "SQfp16", "PQ{d4}", "IVF64,Flat", "IVF64,SQ8", "IVF64,SQfp16", "IVF64,PQ{d4}",
                         "IVF64,PQ{d4}x4"):  # fmt: skip
                yield Cell(kind, rows=min(rows, 20_000), cols=cols, probes=8)
    elif table == "filters":
        for kept in (0.5, 0.1, 0.01, 0.001):
            for kind in ("Flat", "SQ8", "PQ{d8}", "IVF256,Flat", "IVF256,SQ8", "IVF256,SQfp16", "IVF256,PQ{d8}"):
                yield replace(plain, kind=kind, kept=kept)
    elif table == "sweep":
        for cols in (128, 16, 768, 64, 384, 1536):
            for kind in _SWEPT:
                if "OPQ" in kind and cols > _WIDEST_OPQ:
                    continue
                for batch in (1, 10, 100):
                    for k in (10, 1, 100):
                        yield Cell(kind, rows=min(rows, 10_000), cols=cols, k=k, batch=batch, probes=8)
    elif table == "large":
        for kind in ("Flat", "IVF447,Flat", "IVF447,SQ8", "IVF447,PQ96", "IVF447,PQ96,Refine(SQ8)"):
            yield Cell(kind, rows=200_000, cols=768, probes=32)


def stepped_cells(rows: int) -> Iterator[Cell]:
    for kind in _STEPPED:
        yield Cell(kind, rows=rows)
        if kind in _STEPPED_FILTERED:
            yield from (Cell(kind, rows=rows, kept=kept) for kept in (0.5, 0.1, 0.01))


class Data:
    """Rows and queries of a shape, with Kith's `Flat` of them; one shape at a time."""

    def __init__(self, rows: int, cols: int, metric: str) -> None:
        self.base = mixture(rows, cols, 1, rounded=False)
        self.queries = mixture(4000, cols, 9, rounded=False)
        if metric == "cosine":
            for part in (self.base, self.queries):
                part /= np.linalg.norm(part, axis=1, keepdims=True)
        self.flat = kith.Index("Flat", metric=metric)
        self.flat.add(self.base)


def made_by_faiss(factory: str, metric: str, base: Any) -> Any:
    """FAISS's index; None where it has no such kind."""
    try:
        index = faiss.index_factory(base.shape[1], factory, faiss.METRIC_L2 if metric == "l2" else faiss.METRIC_INNER_PRODUCT)
    except RuntimeError:
        return None
    faiss.omp_set_num_threads(len(os.sched_getaffinity(0)))
    index.train(base[:_TRAINED_ROWS] if "RQ" in factory or "LSQ" in factory else base)
    index.add(base)
    faiss.omp_set_num_threads(1)
    return index


def pair_of(cell: Cell, base: Any, folder: str) -> tuple[Any, kith.Index]:
    """FAISS's index and Kith's of the same lists and codes, or only Kith's. What the folder has of it is taken."""
    index, path = None, Path(folder) / f"{cell.factory}_{cell.rows}_{cell.cols}_{cell.metric}"
    if faiss is not None:
        index = faiss.read_index(str(path)) if path.exists() else made_by_faiss(cell.factory, cell.metric, base)
    if index is not None:
        if not path.exists():
            faiss.write_index(index, str(path))
        if cell.metric != "cosine":
            try:
                return index, kith.read_faiss(str(path))
            except NotImplementedError:
                pass
    own = kith.Index(cell.factory, metric=cell.metric)
    own.train(base[:_TRAINED_ROWS] if "RQ" in cell.factory or "LSQ" in cell.factory else base)
    own.add(base)
    return index, own


def calls_of(cell: Cell, data: Data, index: Any, own: kith.Index) -> dict[str, Callable[[Any], Any]]:
    """The three searches that are timed."""
    lists = {"probes": cell.probes} if "IVF" in cell.kind else {}
    packed = None  # a filter's bits, the form that FAISS takes too
    if cell.kept < 1:
        bits = np.zeros(cell.rows, bool)
        bits[np.random.default_rng(3).choice(cell.rows, int(cell.kept * cell.rows), replace=False)] = True
        packed = np.packbits(bits, bitorder="little")
    given = {} if packed is None else {"filter": packed}
    found: dict[str, Callable[[Any], Any]] = {
        "kith": lambda some: own.search(some, cell.k, threads=1, **lists, **given),
        "Flat": lambda some: data.flat.search(some, cell.k, threads=1, **given),
    }
    if index is None:
        return found
    inner = faiss.try_extract_index_ivf(index)
    if inner is not None:
        inner.nprobe = cell.probes
    if packed is None:
        found["faiss"] = lambda some: index.search(some, cell.k)[::-1]
        return found
    selector = faiss.IDSelectorBitmap(packed)
    params = faiss.SearchParametersIVF(nprobe=cell.probes, sel=selector) if inner is not None else faiss.SearchParameters(sel=selector)
    found["faiss"] = lambda some, keep=(packed, selector): index.search(some, cell.k, params=params)[::-1]
    try:
        found["faiss"](data.queries[:1])
    except RuntimeError:  # it has no filter for this kind
        del found["faiss"]
    return found


def measure(cell: Cell, data: Data, index: Any, own: kith.Index, rounds: int) -> dict[str, Any]:
    calls = calls_of(cell, data, index, own)
    together = calls["kith"](data.queries[:50])
    alone = [calls["kith"](data.queries[i : i + 1]) for i in range(50)]
    equal = all(alone[i][j][0].tobytes() == together[j][i].tobytes() for i in range(50) for j in range(2))
    same = float(np.mean(together[0] == calls["faiss"](data.queries[:50])[0])) if "faiss" in calls else float("nan")
    runs = {name: query_steps.Run(search, data.queries, cell.batch) for name, search in calls.items()}
    best = turns.best_in_turn(rounds, dict(runs), turns.clock_for(1))
    ms = {name: 1e3 * taken / (cell.batch * runs[name].calls) for name, taken in best.items()}
    return {**asdict(cell), "kind": cell.factory, **ms, "same": same, "alone": equal}


def ratios_of(found: dict[str, Any]) -> tuple[float, float]:
    """How many times as long FAISS and `Flat` take; FAISS where it has the kind."""
    return found.get("faiss", float("inf")) / found["kith"], found["Flat"] / found["kith"]


def add_row(report: Report, found: dict[str, Any]) -> None:
    of_faiss, of_flat = ratios_of(found)
    labels = {"alone": "same" if found["alone"] else "DIFFER"}
    short = ["faiss"] * (of_faiss < 2) + ["Flat"] * (of_flat < (0.97 if found["kind"] == "Flat" else 1))
    if short:
        labels["short"] = " and ".join(short)
    report.row(
        f"{found['kind']}, {found['cols']} columns, {found['metric']}, k = {found['k']}, {found['kept']:g} kept, {found['batch']} together",
        shape=f"{found['rows']} x {found['cols']} f32",
        ms=found["kith"],
        clock="processor",
        peers_ms={name: found[name] for name in ("faiss", "Flat") if name in found},
        figures={"same_ids": found["same"]} if "faiss" in found else {},
        labels=labels,
    )


def check_steps(cell: Cell, data: Data, own: kith.Index, rounds: int, report: Report) -> int:
    """The number of faults."""
    calls = calls_of(cell, data, None, own)
    times, faults = query_steps.faults_of(calls["kith"], None if cell.factory == "Flat" else calls["Flat"], data.queries, rounds)
    for size in query_steps.SIZES:
        flat = {"Flat": times["Flat", size] / 1e3} if ("Flat", size) in times else {}
        name = f"{cell.factory}, {cell.kept:g} kept, {size} together"
        report.row(name, shape=f"{cell.rows} x {cell.cols} f32", ms=times["own", size] / 1e3, clock="processor", peers_ms=flat)
    for fault in faults:
        report.note(f"{cell.factory}, {cell.kept:g} kept: {fault}")
    return len(faults)


def run_targets(targets: list[str]) -> None:
    """The same command once for each instruction set, which a process chooses as it starts, with the same indexes."""
    at = sys.argv.index("--targets")
    rest = sys.argv[:at] + sys.argv[at + 1 + len(targets) :]
    if "--write" in rest or "--out" in rest:
        sys.exit("few_queries: runs of several targets would write the same file; give --write or --out to one target at a time")
    with tempfile.TemporaryDirectory() as folder:
        for target in targets:
            print(f"\nKITH_CPU_TARGET={target}", flush=True)
            given = {**os.environ, "KITH_CPU_TARGET": target}
            subprocess.run([sys.executable, *rest, "--indexes", folder], check=True, env=given)


def main() -> None:
    parser = parser_of(__doc__)
    every = ("usual", "batches", "kinds", "metrics", "neighbors", "widths", "filters", "large", "sweep")
    parser.add_argument("--tables", nargs="+", choices=every, default=["usual"])
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--cells", nargs="+", default=[""], help="only kinds that have one of these in their name")
    parser.add_argument("--cols", type=int, nargs="+", help="only these columns")
    parser.add_argument("--batches", type=int, nargs="+", help="only these sizes of a batch")
    parser.add_argument("--neighbors", type=int, nargs="+", help="only these k")
    parser.add_argument("--kept", type=float, nargs="+", help="only filters that keep this share of the rows; 1: none")
    parser.add_argument("--targets", nargs="+", help="values of KITH_CPU_TARGET, one run each")
    parser.add_argument("--indexes", help="a folder where FAISS's indexes are kept for another run")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begins no cell after so long")
    parser.add_argument("--worst", type=int, default=0, help="repeats so many cells with the smallest ratio to FAISS at the end")
    parser.add_argument("--steps", action="store_true", help="times 1 to 1,000 queries, and fails where the time rises")
    options = parser.parse_args()
    if options.targets:
        return run_targets(options.targets)
    peer = "no faiss" if faiss is None else f"faiss {faiss.__version__}"
    if faiss is not None:
        faiss.omp_set_num_threads(1)
    report = report_of("few_queries", options, faiss=peer)
    tables = [cell for table in options.tables for cell in cells_of(table, options.rows)]
    cells = list(stepped_cells(options.rows)) if options.steps else tables
    cells = [cell for cell in dict.fromkeys(cells) if any(part in cell.factory for part in options.cells)]
    cells = [cell for cell in cells if cell.cols in (options.cols or [cell.cols])]
    cells = [cell for cell in cells if cell.batch in (options.batches or [cell.batch])]
    cells = [cell for cell in cells if cell.k in (options.neighbors or [cell.k]) and cell.kept in (options.kept or [cell.kept])]
    failed = 0
    done = 0
    results: list[dict[str, Any]] = []
    data_key: Any = None
    pair_key: Any = None
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as unkept:
        for cell in cells:
            if time.monotonic() - begun > options.seconds:
                report.note(f"{len(cells) - done} of {len(cells)} cells were not measured in {options.seconds:.0f} s")
                break
            if data_key != (data_key := (cell.rows, cell.cols, cell.metric)):
                data, pair_key = Data(cell.rows, cell.cols, cell.metric), None
            if pair_key != (pair_key := cell.factory):
                index, own = pair_of(cell, data.base, options.indexes or unkept)
            done += 1
            if options.steps:
                failed += check_steps(cell, data, own, options.rounds, report)
                continue
            results.append(measure(cell, data, index, own, options.rounds))
            add_row(report, results[-1])
    if options.steps:
        report.note(f"{failed} faults")
    else:
        compared = sorted((found for found in results if "faiss" in found), key=lambda found: ratios_of(found)[0])
        below = sum(ratios_of(found)[0] < 2 for found in compared)
        report.note(f"{below} of {len(compared)} below twice FAISS")
        for found in compared[: options.worst]:
            report.note(f"{found['kind']}, {found['cols']} columns, {found['batch']} together: {ratios_of(found)[0]:.2f} x FAISS")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
