"""Random calls on every kind of data: the same bytes on all devices, and exact results beside a float64 reference.

    bench/random_calls.py --calls 5000 --devices cpu cuda:0
    bench/random_calls.py --calls 500 --devices cpu --threads 1 3
    bench/random_calls.py --calls 5000 --devices cpu cuda:0 --threads 1 --processes 8
    bench/random_calls.py --only 1234 --devices cpu cuda:0

A call is drawn from the seed and its number alone: the kind of data, its shape, its dtype and scale, which function, with
which parameters. Its first answer is kept, and every other device and number of threads must give the same bytes. Answers
of exact search must be those of float64, up to the order of distances that float32 cannot tell apart. A call that differs
is printed with its number, by which `--only` makes it again; the program ends with 1 if there is any. With --processes,
parts of the calls are made side by side by as many programs; on one GPU under CUDA's MPS.
"""

from __future__ import annotations

import argparse
import collections
import re
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import data_kinds
import numpy as np
import numpy.typing as npt

import kith

Rows = npt.NDArray[Any]
Random = np.random.Generator
Answer = dict[str, npt.NDArray[Any]]
# What a call is told of where it runs: device and threads.
Place = dict[str, Any]
Call = Callable[[Place], Answer]

_MANY_METRICS = ["l2", "sqeuclidean", "inner_product", "cosine"]
_ALL_METRICS = [*_MANY_METRICS, "l1", "linf"]
_DTYPES = ["float32"] * 4 + ["float16", "uint8", "int8"]
_CODES = ["Flat", "SQ8", "SQ6", "SQ4", "SQfp16", "PQ{parts}", "PQ{parts}x4", "LSQ2x4", "RQ2x4"]


def _drawn_count(drawn: Random, least: int, most: int) -> int:
    """As likely small as large: even in its logarithm."""
    return int(np.exp(drawn.uniform(np.log(least), np.log(most + 1))))


def _of_dtype(rows: Rows, dtype: str) -> Rows:
    if dtype == "float32":
        return rows
    top = np.float32(max(float(np.abs(rows).max(initial=0)), 1e-30))
    if dtype == "float16":
        return (rows / top * np.float32(100)).astype(np.float16)
    if dtype == "int8":
        return np.round(rows / top * np.float32(127)).astype(np.int8)
    return np.round(np.abs(rows) / top * np.float32(255)).astype(np.uint8)


def _data(drawn: Random, least_rows: int, most_rows: int) -> tuple[str, Rows, Rows]:
    """The data in words, rows, and queries: some of the rows, some near to them, some far from all."""
    kind = str(drawn.choice(data_kinds.NAMES))
    rows = _drawn_count(drawn, least_rows, most_rows)
    x = data_kinds.make(kind, max(rows, 2000), int(drawn.integers(1 << 31)))[:rows]
    if drawn.random() < 0.3:  # another width
        cols = _drawn_count(drawn, 1, 1536 if rows < 4000 else 300)
        x = np.tile(x, (1, -(-cols // x.shape[1])))[:, :cols]
    if drawn.random() < 0.2:
        x = x * np.float32(10.0 ** int(drawn.integers(-12, 13)))
    queries = x[drawn.integers(0, rows, _drawn_count(drawn, 1, 400))]
    way = drawn.random()
    if way < 0.6:
        spread = np.float32(max(float(x[:1000].std()) * 10.0 ** drawn.uniform(-4, 0), 1e-30))
        queries = queries + spread * drawn.standard_normal(queries.shape, np.float32)
    elif way < 0.7:
        queries = queries * np.float32(1000)
    dtype = str(drawn.choice(_DTYPES))
    both = _of_dtype(np.concatenate([x, queries]), dtype)
    x, queries = np.ascontiguousarray(both[:rows]), np.ascontiguousarray(both[rows:])
    return f"{kind} {rows} x {x.shape[1]} {dtype}, {len(queries)} queries", x, queries


def _filter(drawn: Random, rows: int) -> Rows | None:
    if drawn.random() < 0.7:
        return None
    if drawn.random() < 0.5:
        return np.asarray(drawn.random(rows) < drawn.random())
    return np.unique(drawn.integers(0, rows, _drawn_count(drawn, 1, rows)))


def _found(found: Any) -> Answer:
    return {"ids": found.ids, "distances": found.distances}


# --- calls: each is drawn with its words, what it does, and, where it is exact, a check of its answer --------------------


def _knn(drawn: Random, x: Rows, queries: Rows) -> tuple[str, Call, Callable[[Answer], None] | None]:
    metric, k = str(drawn.choice(_ALL_METRICS)), _drawn_count(drawn, 1, 300)
    kept = _filter(drawn, len(x))

    def check(answer: Answer) -> None:
        check_exact(answer, queries, x, k, metric, kept)

    words = f"knn k={k} {metric}{'' if kept is None else ' filter'}"
    return words, lambda place: _found(kith.knn(queries, x, k, metric, filter=kept, **place)), check


def _range(drawn: Random, x: Rows, queries: Rows) -> tuple[str, Call, None]:
    metric, k = str(drawn.choice(_ALL_METRICS)), _drawn_count(drawn, 1, min(len(x), 200))
    kept = _filter(drawn, len(x))
    some = kith.knn(queries[:5], x, k, metric, device="cpu").distances[:, k - 1]
    radius = float(np.median(some))

    def call(place: Place) -> Answer:
        found = kith.range_search(queries, x, radius, metric, filter=kept, **place)
        return {"offsets": found.offsets, "ids": found.ids, "distances": found.distances}

    return f"range_search {metric} of {k}{'' if kept is None else ' filter'}", call, None


def _pairwise(drawn: Random, x: Rows, queries: Rows) -> tuple[str, Call, None]:
    metric = str(drawn.choice(_ALL_METRICS))
    some = x[: max(1, 2_000_000 // max(1, len(queries) * x.shape[1] // 16))][:2000]
    return f"pairwise_distances {metric}", lambda at: {"d": kith.pairwise_distances(queries, some, metric, **at)}, None


def _graph(drawn: Random, x: Rows, _: Rows) -> tuple[str, Call, None]:
    metric, k = str(drawn.choice(_MANY_METRICS)), _drawn_count(drawn, 1, 40)
    method, seed = str(drawn.choice(["exact", "cells", "nn_descent"])), int(drawn.integers(100))

    def call(place: Place) -> Answer:
        graph = kith.knn_graph(x, k, metric, method, seed=seed, **place)
        return {"ids": graph.ids, "distances": graph.distances}

    return f"knn_graph k={k} {metric} {method}", call, None


def _kmeans(drawn: Random, x: Rows, queries: Rows) -> tuple[str, Call, None]:
    clusters, seed = _drawn_count(drawn, 1, min(len(x), 300)), int(drawn.integers(100))
    iterations, spherical = int(drawn.integers(1, 12)), bool(drawn.random() < 0.2)

    def call(place: Place) -> Answer:
        model = kith.KMeans(
            clusters, iterations=iterations, seed=seed, spherical=spherical, device=place["device"]
        )
        model.fit(x, threads=place["threads"])
        return {"centres": model.cluster_centers_, "labels": model.labels_, "predicted": model.predict(queries)}

    return f"KMeans {clusters}, {iterations} iterations{' spherical' if spherical else ''}", call, None


def _index(drawn: Random, x: Rows, queries: Rows) -> tuple[str, Call, None]:
    cols = x.shape[1]
    parts = int(drawn.choice([p for p in range(1, min(cols, 96) + 1) if cols % p == 0]))
    code = str(drawn.choice(_CODES)).format(parts=parts)
    lists = _drawn_count(drawn, 1, min(max(len(x) // 2, 1), 200))
    factory = code if drawn.random() < 0.25 else f"IVF{lists},{code}"
    if drawn.random() < 0.15 and cols % 2 == 0:
        factory = f"PCA{cols // 2},{factory.replace(f'PQ{parts}', 'PQ1')}"
    if code != "Flat" and drawn.random() < 0.25:
        factory += str(drawn.choice([",RFlat", ",Refine(SQ8)"]))
    metric, k = str(drawn.choice(_MANY_METRICS)), _drawn_count(drawn, 1, 200)
    probes = int(drawn.integers(1, lists + 1)) if "IVF" in factory else None
    kept, seed = _filter(drawn, len(x)), int(drawn.integers(100))

    def call(place: Place) -> Answer:
        index = kith.Index(factory, metric, place["device"], seed=seed)
        threads = place["threads"]
        if not index.trained:
            index.train(x, threads=threads)
        half = len(x) // 2
        index.add(x[:half], threads=threads)
        index.add(x[half:], threads=threads)
        return _found(index.search(queries, k, probes=probes, filter=kept, threads=threads))

    return f"Index({factory!r}, {metric!r}) k={k} probes={probes}{'' if kept is None else ' filter'}", call, None


# What is called, how often, and of how many rows: an index has enough to train codewords with.
_CALLS: list[tuple[Callable[..., tuple[str, Call, Callable[[Answer], None] | None]], float, int, int]] = [
    (_knn, 0.36, 1, 30_000),
    (_range, 0.10, 1, 10_000),
    (_pairwise, 0.08, 1, 4_000),
    (_graph, 0.10, 1, 6_000),
    (_kmeans, 0.12, 1, 8_000),
    (_index, 0.24, 256, 8_000),
]


# --- the reference ------------------------------------------------------------------------------------------------------


def _distances(query: Rows, rows: Rows, metric: str) -> Any:
    """Of one query, in float64, smaller is nearer."""
    q, x = query.astype(np.float64), rows.astype(np.float64)
    if metric == "inner_product":
        return -(x @ q)
    if metric == "cosine":
        lengths = np.sqrt((x * x).sum(1)) * np.sqrt((q * q).sum())
        return 1 - np.divide(x @ q, lengths, out=np.zeros(len(x)), where=lengths > 0)
    differences = np.abs(x - q)
    if metric == "l1":
        return differences.sum(1)
    if metric == "linf":
        return differences.max(1)
    squares = (differences * differences).sum(1)
    return np.sqrt(squares) if metric == "l2" else squares


def check_exact(answer: Answer, queries: Rows, x: Rows, k: int, metric: str, kept: Rows | None) -> None:
    """AssertionError unless the first of some queries are the nearest in float64, at the distances of float64."""
    numbers = np.arange(len(x))
    if kept is not None:
        numbers = numbers[kept]
    count = min(k, len(numbers))
    for i in range(0, len(queries), max(1, len(queries) // 20)):
        ids, found = answer["ids"][i], answer["distances"][i].astype(np.float64)
        assert (ids[count:] == -1).all(), f"query {i}: more than there are"
        ids = ids[:count]
        assert len(np.unique(ids)) == count and np.isin(ids, numbers).all(), f"query {i}: rows twice, or not kept"
        true = _distances(queries[i], x[numbers], metric)
        of_rows = dict(zip(numbers.tolist(), true.tolist(), strict=True))
        own = np.array([of_rows[int(row)] for row in ids])
        nearest = np.sort(true)[:count]
        # Float32's rounding; of products beside it what the order of float64 sums may leave.
        lengths = np.sqrt((x[ids].astype(np.float64) ** 2).sum(1)) * np.sqrt((queries[i].astype(np.float64) ** 2).sum())
        slack = {"inner_product": 1e-13 * lengths, "cosine": 1e-12}.get(metric, 0.0)
        room = 1.3e-7 * np.abs(nearest) + slack + 1e-45
        assert (own <= nearest + room).all(), f"query {i}: a nearer row was missed"
        reported = -found[:count] if metric == "inner_product" else found[:count]
        with np.errstate(over="ignore"):
            large = np.abs(own) > np.finfo(np.float32).max
        assert (np.abs(reported - own) <= room).all() or large.any(), f"query {i}: another distance"


# --- the loop -----------------------------------------------------------------------------------------------------------


def _bytes_of(answer: Answer) -> dict[str, tuple[Any, bytes]]:
    return {name: (array.shape, np.ascontiguousarray(array).tobytes()) for name, array in answer.items()}


def _outcome(call: Call, place: Place) -> tuple[Any, Answer | None]:
    """Bytes and answer; or the kind of error, which must be the same everywhere too."""
    try:
        answer = call(place)
    except (ValueError, RuntimeError) as error:
        return type(error).__name__, None
    return _bytes_of(answer), answer


def one_call(seed: int, number: int, places: list[Place], times: int = 1) -> tuple[str, str, list[str]]:
    """Its function, its words, and what is wrong with it."""
    drawn = np.random.default_rng([seed, number])
    make, _, least, most = _CALLS[int(drawn.choice(len(_CALLS), p=[share for _, share, _, _ in _CALLS]))]
    data, x, queries = _data(drawn, least, times * most)
    words, call, check = make(drawn, x, queries)
    wrong = []
    first, answer = _outcome(call, places[0])
    for place in places[1:]:
        other, _ = _outcome(call, place)
        if other != first:
            parts = [name for name in first if first[name] != other.get(name)] if isinstance(other, dict) else other
            wrong.append(f"{place} differs in {parts}" if isinstance(first, dict) else f"{first}, {place}: {parts}")
    if check is not None and answer is not None:
        try:
            check(answer)
        except AssertionError as error:
            wrong.append(f"float64: {error}")
    name = words.split()[0].split("(")[0] + ("" if answer is not None else " refused")
    return name, f"{words} of {data}", wrong


def in_processes(options: argparse.Namespace) -> int:
    """The calls in parts, each by a program of its own, whose lines are printed as they come to an end."""
    each = -(-options.calls // options.processes)
    given = ["--seed", options.seed, "--times", options.times, "--seconds", options.seconds]
    given += ["--devices", *options.devices, "--threads", *options.threads]
    running = []
    for first in range(options.first, options.first + options.calls, each):
        calls = min(each, options.first + options.calls - first)
        command = [sys.executable, __file__, "--calls", calls, "--first", first, *given]
        running.append(subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True))
    made = bad = ended = 0
    for process in running:
        output, _ = process.communicate()
        print(output, end="", flush=True)
        last = output.splitlines()[-1] if output else ""
        told = re.fullmatch(r"(\d+) calls .*: (\d+) differ", last)
        if told:
            made, bad = made + int(told[1]), bad + int(told[2])
        ended += process.returncode not in (0, 1) or not told
    print(f"{made} calls in {len(running)} processes: {bad} differ, {ended} processes ended early")
    return 1 if bad or ended else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--first", type=int, default=0, help="the number of the first call")
    parser.add_argument("--only", type=int, help="this call alone")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--times", type=int, default=1, help="the largest collections, that many times as large")
    parser.add_argument("--devices", nargs="+", default=["cpu"])
    parser.add_argument("--threads", nargs="+", type=int, default=[0])
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no call after that")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    if options.processes > 1:
        return in_processes(options)
    places = [{"device": device, "threads": threads} for device in options.devices for threads in options.threads]
    if len(places) < 2:
        places.append({"device": places[0]["device"], "threads": 1})
    numbers = range(options.first, options.first + options.calls) if options.only is None else [options.only]
    warnings.simplefilter("ignore")
    counts: collections.Counter[str] = collections.Counter()
    bad, began = 0, time.perf_counter()
    for number in numbers:
        if time.perf_counter() - began > options.seconds:
            break
        try:
            name, words, wrong = one_call(options.seed, number, places, options.times)
        except Exception:  # what no call may raise
            name, words, wrong = "error", traceback.format_exc().splitlines()[-1], ["not an error of Kith"]
        counts[name] += 1
        bad += bool(wrong)
        for what in wrong:
            print(f"call {number}: {words}: {what}", flush=True)
    told = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    print(f"{sum(counts.values())} calls from {options.first}, seed {options.seed} ({told}): {bad} differ")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
