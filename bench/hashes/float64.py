#!/usr/bin/env python3
"""Hashes of what the Python package returns for float64 and wide integers, in all layouts of numpy arrays.

    float64.py [--device cpu|cuda] [--seed N] [--only PREFIX] [--threads N] [--explain]

How such numbers become float32, and what is subtracted from them before, is the package's own work, which kith_hashes does
not see. Prints a line "case hash" for every call, as kith_hashes does; README.md says how lists are compared. A hash covers
the results with their dtypes, and whether there was a PrecisionWarning; of an exception its type.
"""

import argparse
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import kith
import numpy as np

METRICS = ["l2", "sqeuclidean", "inner_product", "cosine", "l1", "linf", "chi_square"]
MASK = (1 << 64) - 1


def mixed(counter: Any) -> Any:
    """The mixing step of SplitMix64, of a number or of an array of them."""
    if isinstance(counter, int):
        return int(mixed(np.array([counter & MASK], np.uint64))[0])
    z = counter * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


class Hash:
    """64-bit FNV-1a."""

    def __init__(self) -> None:
        self.value = 0xCBF29CE484222325

    def add(self, result: Any) -> None:
        if isinstance(result, (tuple, list)):
            for one in result:
                self.add(one)
        elif isinstance(result, np.ndarray):
            if result.dtype.kind == "f":
                result = np.where(np.isnan(result), np.array(np.nan, result.dtype), result)
            self.bytes(f"{result.dtype.str}{result.shape}".encode() + np.ascontiguousarray(result).tobytes())
        else:
            self.bytes(result if isinstance(result, bytes) else repr(result).encode())

    def bytes(self, content: bytes) -> None:
        value = self.value
        for byte in content:
            value = ((value ^ byte) * 0x100000001B3) & MASK
        self.value = value


class Case:
    """Its parameters and arrays follow from (seed, entry point, number)."""

    def __init__(self, run: argparse.Namespace, entry_point: str, number: int) -> None:
        self.run = run
        self.name = f"{entry_point}/{number}"
        self.number = number
        self.key = mixed(run.seed)
        for letter in entry_point.encode():
            self.key = mixed(self.key ^ letter)
        self.key = mixed(self.key ^ number)
        self.counter = 0
        self.notes: list[str] = []

    def bits(self) -> int:
        self.counter += 1
        return mixed(self.key ^ mixed(self.counter))

    def between(self, low: int, high: int) -> int:
        return low + self.bits() % (high - low + 1)

    def of(self, choices: list[Any]) -> Any:
        return choices[self.between(0, len(choices) - 1)]

    def chance(self, percent: int) -> bool:
        return self.between(1, 100) <= percent

    def call(self, step: str, call: Callable[[], Any]) -> Any:
        """Prints the hash of what the call returns, and returns it; None after an exception."""
        taken, result, problem = Hash(), None, ""
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                result = call()
                taken.add(result)
            except Exception as error:  # noqa: BLE001, every type of them is a result
                taken = Hash()
                taken.add(type(error).__name__)
                problem = " " + traceback.format_exception_only(error)[-1].strip()
                self.run.errors += 1
        taken.add(sum(issubclass(one.category, kith.PrecisionWarning) for one in told) > 0)
        self.run.calls += 1
        name = f"{self.name}/{step}" if step else self.name
        print(f"{name} {taken.value:016x}" + (" ".join(["", *self.notes]) + problem if self.run.explain else ""))
        return result

    @property
    def options(self) -> dict[str, Any]:
        return {"device": self.run.device, "threads": self.run.threads}


def values(key: int, first: int, rows: int, cols: int) -> np.ndarray:
    """Float64s between -1 and 1 with all their 53 bits."""
    counter = np.arange(first * cols, (first + rows) * cols, dtype=np.uint64).reshape(rows, cols)
    with np.errstate(over="ignore"):
        drawn = mixed(np.uint64(key) ^ mixed(counter)) >> np.uint64(11)
    return drawn.astype(np.float64) * 2.0**-52 - 1


class Collection:
    """Vectors of one kind: what is far from zero makes the package subtract an offset."""

    KINDS = ("plain", "far", "farther", "one_far_column", "times", "int32", "int64", "uint32", "tiny", "equal", "large")

    def __init__(self, case: Case, metric: str, cols: int) -> None:
        self.case, self.metric, self.cols = case, metric, cols
        self.kind = case.of(list(self.KINDS))
        self.key = case.bits()
        case.notes += [metric, self.kind]

    def rows(self, first: int, count: int) -> np.ndarray:
        x = values(self.key, first, count, self.cols)
        if self.metric == "chi_square":
            x = np.abs(x)
        if self.kind == "far":
            x = x + 1000.0
        elif self.kind == "farther":
            x = x * 0.5 + 2.0**30
        elif self.kind == "one_far_column":
            x[:, 0] += 1e9
        elif self.kind == "times":
            x = np.trunc(x * 1e5).astype(np.int64) + 1_700_000_000
        elif self.kind == "int32":
            x = np.trunc(x * 1e4).astype(np.int32)
        elif self.kind == "int64":
            x = np.trunc(x * 1e8).astype(np.int64)
        elif self.kind == "uint32":
            x = np.trunc(np.abs(x) * 1e9).astype(np.uint32)
        elif self.kind == "tiny":
            x = x * 2.0**-60
        elif self.kind == "equal":
            x = np.repeat(values(self.key, 0, 1, self.cols) + 5.0, count, axis=0)
        elif self.kind == "large":
            x = x * 2.0**40
        return self.laid_out(x)

    def laid_out(self, x: np.ndarray) -> Any:
        """The same numbers, elsewhere in memory."""
        layout = self.case.of(["c", "c", "fortran", "every_second_row", "backwards", "columns", "list", "read_only"])
        self.case.notes.append(layout)
        if layout == "fortran":
            return np.asfortranarray(x)
        if layout == "every_second_row":
            return np.repeat(x, 2, axis=0)[::2]
        if layout == "backwards":
            return x[::-1, ::-1]
        if layout == "columns":
            return np.repeat(x, 3, axis=1)[:, ::3]
        if layout == "list":
            return x.tolist()
        if layout == "read_only":
            x.flags.writeable = False
        return x


def draw_pair(case: Case, metric: str) -> tuple[Any, Any]:
    collection = Collection(case, metric, case.of([1, 2, 3, 5, 8, 17, 33]))
    count = case.between(1, 400)
    base = collection.rows(0, count)
    queries = collection.rows(count, case.between(1, 20))
    if case.chance(20):
        queries = np.asarray(queries).astype(np.float32)
    return queries, base


def knn(case: Case) -> None:
    metric = METRICS[case.number % 7]
    queries, base = draw_pair(case, metric)
    k = case.between(1, 20)
    kept = {"filter": np.arange(len(base)) % 3 == 0} if case.chance(25) else {}
    case.call("", lambda: tuple(kith.knn(queries, base, k, metric, **kept, **case.options)))


def range_search(case: Case) -> None:
    metric = METRICS[case.number % 7]
    queries, base = draw_pair(case, metric)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        near = kith.knn(queries, base, min(10, len(base)), metric, device="cpu")
    radius = float(near.distances[0, -1])
    case.call("", lambda: tuple(kith.range_search(queries, base, radius, metric, **case.options)))


def pairwise_distances(case: Case) -> None:
    metric = METRICS[case.number % 7]
    queries, base = draw_pair(case, metric)
    if case.chance(20):
        case.call("", lambda: kith.pairwise_distances(base, metric=metric, **case.options))
    else:
        case.call("", lambda: kith.pairwise_distances(queries, base, metric, **case.options))


def kmeans(case: Case) -> None:
    collection = Collection(case, "l2", case.of([1, 2, 5, 16]))
    x = collection.rows(0, case.between(60, 400))
    init = case.of(["kmeans++", "random", "given"])
    clusters = case.between(1, 12)
    spherical = case.chance(20)
    start = np.asarray(x)[:clusters] if init == "given" else init
    seed = case.bits() >> 1
    weights = np.arange(len(x)) % 4 * 0.5 if case.chance(30) else None
    model = kith.KMeans(clusters, iterations=6, init=start, seed=seed, spherical=spherical, device=case.run.device)
    threads = case.run.threads

    def fit() -> Any:
        model.fit(x, weights, threads=threads)
        return model.cluster_centers_, model.labels_, float(model.inertia_)

    if case.call("fit", fit) is None:
        return
    case.call("predict", lambda: model.predict(x, threads=threads))
    case.call("assign", lambda: model.assign(x, threads=threads))
    case.call("transform", lambda: model.transform(x, threads=threads))


def index(case: Case) -> None:
    factory = case.of(["Flat", "Flat", "SQ8", "SQfp16", "PQ4x4", "IVF4,Flat", "IVF4,SQ8", "PCA4,SQ8", "IVF4,PQ4x4,RFlat"])
    metric = case.of(["l2", "sqeuclidean", "inner_product", "cosine"])
    collection = Collection(case, metric, 8)
    count = case.between(100, 300)
    x, queries = collection.rows(0, count), collection.rows(count, 7)
    case.notes.append(factory)
    made = kith.Index(factory, metric, case.run.device, seed=case.bits() >> 1)
    threads, path = case.run.threads, Path(case.run.folder) / "index.kith"

    def fill() -> Any:
        made.train(x, threads=threads)
        made.add(x[: count // 2], threads=threads)
        made.add(x[count // 2 :], threads=threads)
        return len(made)

    if case.call("add", fill) is None:
        return
    case.call("search", lambda: tuple(made.search(queries, 9, threads=threads)))
    case.call("reconstruct", lambda: made.reconstruct([0, 5, count - 1]))

    def saved() -> Any:
        made.save(path)
        return path.read_bytes()

    case.call("save", saved)
    case.call("load", lambda: tuple(kith.load(path, device=case.run.device).search(queries, 9, threads=threads)))


def quantizer(case: Case) -> None:
    kind = case.of(["scalar", "product", "residual"])
    x = Collection(case, "l2", 8).rows(0, case.between(100, 300))
    case.notes.append(kind)
    seed, device, threads = case.bits() >> 1, case.run.device, case.run.threads
    made = {
        "scalar": lambda: kith.ScalarQuantizer(bits=8, device=device),
        "product": lambda: kith.ProductQuantizer(4, bits=4, seed=seed, device=device),
        "residual": lambda: kith.ResidualQuantizer(2, bits=4, seed=seed, device=device),
    }[kind]()

    def train() -> Any:
        made.train(x, threads=threads)
        return made.code_bytes

    if case.call("train", train) is None:
        return
    codes = case.call("encode", lambda: made.encode(x, threads=threads))
    if codes is not None:
        case.call("decode", lambda: made.decode(codes, threads=threads))


def transform(case: Case) -> None:
    steps = case.of(["PCA4", "OPQ2", "RR5", "Centre", "L2norm", "Pad12", "L2norm,PCA3"])
    x = Collection(case, "l2", 8).rows(0, case.between(100, 300))
    case.notes.append(steps)
    made = kith.Transform(steps, seed=case.bits() >> 1, device=case.run.device)

    def train() -> Any:
        made.train(x, threads=case.run.threads)
        return made.dimension_out

    if case.call("train", train) is None:
        return
    there = case.call("apply", lambda: made.apply(x, threads=case.run.threads))
    if there is not None:
        case.call("reverse", lambda: made.reverse(there, threads=case.run.threads))


def graph(case: Case) -> None:
    metric = case.of(["l2", "sqeuclidean", "cosine", "l1"])
    method = case.of(["exact", "nn_descent"])
    collection = Collection(case, metric, case.of([2, 5, 16]))
    count = case.between(40, 300)
    x = collection.rows(0, count)
    k, seed = case.between(1, 10), case.bits() >> 1
    case.notes.append(method)
    made = None

    def build() -> Any:
        nonlocal made
        made = kith.knn_graph(x, k, metric, method, seed=seed, **case.options)
        return made.ids, made.distances

    case.call("build", build)
    if made is None:
        return
    case.call("measure_recall", lambda: made.measure_recall(x).recall)
    fresh = collection.rows(count, 11)

    def extended() -> Any:
        longer = kith.extend_graph(made, x, fresh, seed=seed, **case.options)
        return longer.ids, longer.distances

    case.call("extend", extended)


def refused(case: Case) -> None:
    """What the package does not take."""
    plain = values(case.bits(), 0, 20, 4)
    given = [
        lambda: plain * 1e300,
        lambda: np.full((20, 4), np.nan),
        lambda: np.full((20, 4), 2**60),
        lambda: np.ma.masked_greater(plain, 0),
        lambda: plain.astype(complex),
        lambda: plain.astype(str),
        lambda: plain.reshape(2, 10, 4),
        lambda: [[1.0, 2.0], [1.0]],
        lambda: import_module("scipy.sparse").csr_matrix(plain),
    ]
    case.call("", lambda: tuple(kith.knn(given[case.number](), plain, 3, **case.options)))


ENTRY_POINTS: dict[str, tuple[int, Callable[[Case], None]]] = {
    "py_knn": (140, knn),
    "py_range_search": (63, range_search),
    "py_pairwise_distances": (63, pairwise_distances),
    "py_kmeans": (40, kmeans),
    "py_index": (45, index),
    "py_quantizer": (30, quantizer),
    "py_transform": (28, transform),
    "py_graph": (30, graph),
    "py_refused": (9, refused),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="cases that begin so")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--explain", action="store_true", help="parameters and texts of errors behind each hash")
    run = parser.parse_args()
    run.calls = run.errors = 0
    with tempfile.TemporaryDirectory() as run.folder:
        for name, (cases, call) in ENTRY_POINTS.items():
            for number in range(cases):
                if f"{name}/{number}/".startswith(run.only):
                    call(Case(run, name, number))
    print(f"{run.calls} calls, {run.errors} of them end in an error", file=sys.stderr)


if __name__ == "__main__":
    main()
