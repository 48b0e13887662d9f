"""Calls of the package, and mistakes to make in each argument of each: what tests/python/test_error_audit.py tries.

A `Call` names its arguments, the kind of each, and values with which it works. For every kind there are mistakes, and one
argument at a time is replaced by each of them. Mistakes that an argument takes (None where that is its default) are left out
by `takes`.

    python tests/python/error_audit.py     # prints every answer, and how many there were
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import kith

X = np.random.default_rng(0).standard_normal((60, 8)).astype(np.float32)


class Odd:
    """Nothing that any call takes."""

    def __repr__(self) -> str:
        return "Odd()"


ODD = Odd()
NAN = X.copy()
NAN[3, 2] = np.nan

MISTAKES: dict[str, dict[str, Any]] = {
    "vectors": {
        "None": None, "a number": 3.5, "an object": ODD, "ragged": [[1.0, 2.0], [3.0]], "three axes": np.zeros((2, 3, 4), np.float32),
        "complex": X.astype(np.complex64), "words": np.array([["a", "b"]]), "dates": np.zeros((3, 2), "datetime64[s]"),
        "a dict": {"x": 1}, "objects": np.array([[ODD, ODD]]), "NaN": NAN, "no columns": np.zeros((4, 0), np.float32),
        "a missing file": "/nowhere/x.fbin", "an unknown ending": "/nowhere/x.what", "infinities": X * np.float32(np.inf),
        "masked": np.ma.masked_array(X), "bools as text": ["yes", "no"], "a null in the path": "x\0.fbin", "a set": {1, 2},
        "a graph": kith.knn_graph(X, k=2), "a range": iter([1, 2]),
    },
    "columns": {"other columns": X[:, :5], "one column": X[:, :1]},
    "count": {
        "zero": 0, "negative": -1, "a fraction": 2.5, "a word": "ten", "None": None, "True": True, "huge": 2**70, "a list": [3],
        "NaN": float("nan"), "an object": ODD, "bytes": b"3",
    },
    "whole": {"a fraction": 2.5, "a word": "ten", "huge": 2**70, "a list": [3], "an object": ODD, "True": True},
    "real": {"a word": "wide", "None": None, "NaN": float("nan"), "a list": [1.0, 2.0], "an object": ODD, "complex": 1j, "True": True},
    "metric": {"a slip": "cosin", "an unknown one": "wide", "a number": 3, "None": None, "empty": "", "FAISS's": "L2", "bytes": b"l2"},
    "device": {"an unknown one": "gpu7", "a number": 3, "None": None, "a GPU beyond": "cuda:99", "empty": "", "parts of none": "cpu/0",
               "an empty list": [], "a list of numbers": [0, 1]},
    "threads": {"negative": -1, "a fraction": 1.5, "a word": "two", "None": None, "huge": 2**40, "True": True},
    "limit": {"negative": -5, "a wrong unit": "1X", "a fraction": 1.5, "zero": 0, "a list": [ODD], "tiny": 1},
    "flag": {"a word": "yes", "a number": 2, "None": None, "an array": np.array([True, False])},
    "progress": {"a number": 3, "a word": "yes", "None": None},
    "seed": {"negative": -1, "a fraction": 0.5, "a word": "x", "None": None, "huge": 2**70},
    "ids": {
        "too few": [1], "words": ["a"] * 60, "fractions": np.arange(60) + 0.5, "two axes": np.zeros((60, 1), np.int64),
        "negative": np.arange(60) - 5, "twice": np.zeros(60, np.int64), "an object": ODD, "bools": np.ones(60, bool),
        "a path": "ids.ibin", "beyond int64": np.full(60, 2**63, np.uint64),
    },
    "filter": {
        "a short mask": np.ones(7, bool), "fractions": np.ones(60, np.float32), "three axes": np.ones((2, 2, 2), bool),
        "a row beyond": [600], "a negative row": [-1], "a word": "lang = 'en'", "a dict": {"lang": "en"}, "a function": lambda row: True,
        "short bits": np.ones(3, np.uint8), "a set": {1, 2}, "an object": ODD,
    },
    "new file": {"a number": 3, "None": None, "no such folder": "/nowhere/at/all/x.kith", "a folder": "/tmp", "a null": "x\0.kith",
                 "an object": ODD, "empty": ""},
    "old file": {"a number": 3, "None": None, "missing": "/nowhere/x.kith", "a folder": "/tmp", "a null": "x\0.kith", "an object": ODD,
                 "empty": "", "of text": __file__},
    "factory": {"a slip": "Flatt", "an unknown one": "Trees10", "a number": 768, "None": None, "empty": "", "too many": "IVF8,IVF8,Flat",
                "no divisor": "PQ", "FAISS's tree": "IMI2x6,PQ16", "a list": ["Flat"]},
    "choice": {"an unknown one": "wide", "a number": 3, "an object": ODD},
    "graph": {"None": None, "an array": X, "an object": ODD, "a path": "graph.npy", "an index": kith.Index()},
    "index": {"None": None, "an array": X, "an object": ODD, "a path": "x.kith"},
    "row": {"negative": -1, "beyond": 600, "a fraction": 1.5, "a word": "x", "None": None},
    "found": {"None": None, "an object": ODD, "words": np.array([["a"]]), "fractions": np.ones((60, 2)), "three axes": np.zeros((2, 2, 2), np.int64)},
    "out": {"a number": 3, "one array": np.zeros((60, 3), np.int64), "wrong shapes": (np.zeros((1, 1), np.int64), np.zeros((1, 1), np.float32)),
            "wrong dtypes": (np.zeros((60, 3), np.int32), np.zeros((60, 3), np.float64)), "an object": ODD},
}

# Words of numpy, nanobind, Python's converters and C++ that tell a caller nothing of his call.
BARE = re.compile(
    r"incompatible (function|constructor)|nanobind|nb_type|std::|basic_string|inhomogeneous|could not convert|ufunc|cannot reshape"
    r"|has no attribute|setting an array|invalid literal|not subscriptable|unsupported operand|broadcast|not iterable"
    r"|only (length-1|0-dimensional|integer)|truth value|must be real number,|argument must be|cannot be interpreted|buffer (is|size)|a bytes-like object"
    r"|unhashable|object of type|expected str, bytes|embedded null|out of bounds|Traceback|unexpected keyword|too large to convert"
    r"|array is not|can't convert|cannot convert"
)
# By what else an answer may call the rows of an argument.
WORDS = {
    "queries": ("query", "rows have", "path is"), "base": ("path is",), "factory": ("of the index",), "x": ("row ", "rows", "vectors"), "array": ("columns",), "x1": ("rows of", "graph 1"),
    "x2": ("rows of", "graph 2"), "new": ("rows of",), "found": ("truth",), "items": ("queries",), "clusters": ("k =",),
}
TYPED = (ValueError, TypeError, OSError, MemoryError, RuntimeError)


class Call(NamedTuple):
    name: str
    run: Callable[..., Any]
    arguments: dict[str, tuple[str, Any]]  # name: (kinds, with spaces between alternatives written "a+b"), value)
    takes: set[tuple[str, str]] = set()  # (argument, mistake) that are none


SETTINGS: dict[str, tuple[str, Any]] = {
    "threads": ("threads", 1), "memory_limit": ("limit", None), "progress": ("progress", False),
}
ON_DEVICES = {**SETTINGS, "device": ("device", "cpu")}


def calls(folder: Path) -> Iterator[Call]:
    vectors = folder / "x.fbin"
    kith.write_vectors(vectors, X)
    graph = kith.knn_graph(X, k=4)
    flat = kith.Index("Flat")
    flat.add(X)
    lists = kith.Index("IVF4,SQ8")
    lists.train(X)
    lists.add(X)
    flat.save(folder / "flat.kith")
    kith.write_faiss(flat, folder / "flat.faiss")
    walked = kith.Index("Graph16")
    walked.add(np.random.default_rng(1).standard_normal((4500, 4)).astype(np.float32))
    kith.write_hnswlib(walked, folder / "graph.bin")
    model = kith.KMeans(3, seed=1).fit(X)
    pq = kith.ProductQuantizer(4, bits=4)
    pq.train(X)
    paths = kith.SmoothPaths(graph)

    def index_of(factory: Any = "Flat", **parameters: Any) -> Any:
        index = kith.Index(factory, **parameters)
        index.add(X) if index.trained else index.train(X)
        return index

    def fresh(**arguments: Any) -> Any:
        index = kith.Index("Flat")
        index.add(X[:5], ids=np.arange(5) + 10_000)
        return index.add(**arguments)

    def learnt(kind: Any, **parameters: Any) -> Any:
        made = kind(**parameters)
        return made.train(X)

    pair = {"queries": ("vectors+columns", X[:5]), "base": ("vectors+columns", X)}
    yield Call("kith.knn", kith.knn, {**pair, "k": ("count", 3), "metric": ("metric", "l2"), "filter": ("filter", None),
                                      "check_finite": ("flag", True), "out": ("out", None), **ON_DEVICES})
    yield Call("kith.range_search", kith.range_search, {**pair, "radius": ("real", 2.0), "metric": ("metric", "l2"), "filter": ("filter", None),
                                                        "without_self": ("flag", False), "check_finite": ("flag", True), **ON_DEVICES})
    yield Call("kith.pairwise_distances", kith.pairwise_distances, {"x": ("vectors", X), "y": ("vectors+columns", X), "metric": ("metric", "l2"),
                                                                    "check_finite": ("flag", True), **ON_DEVICES}, {("y", "None")})
    yield Call("kith.knn_graph", kith.knn_graph, {
        "x": ("vectors", X), "k": ("count", 4), "metric": ("metric", "l2"), "method": ("choice", "exact"), "seed": ("seed", 0),
        "check_finite": ("flag", True), **ON_DEVICES}, {("seed", "None")})
    yield Call("kith.knn_graph by nn_descent", lambda **a: kith.knn_graph(X, k=4, method="nn_descent", **a), {
        "recall": ("real", 0.9), "samples": ("count", 4), "list_length": ("count", 8), "iterations": ("count", 2), "delta": ("real", 0.01),
        "start": ("choice", None), "update": ("choice", None)},
        {(name, "None") for name in ("recall", "samples", "list_length", "iterations", "delta")})
    yield Call("kith.near_duplicates", kith.near_duplicates, {
        "x": ("vectors", X), "radius": ("real", 0.1), "metric": ("metric", "l2"), "exact": ("flag", False), "k": ("count", 4),
        "recall": ("real", 0.9), "seed": ("seed", 0), "check_finite": ("flag", True), **ON_DEVICES})
    yield Call("kith.merge_graphs", lambda **a: kith.merge_graphs(**a), {
        "graph1": ("graph", graph), "x1": ("vectors+columns", X), "graph2": ("graph", graph), "x2": ("vectors+columns", X),
        "recall": ("real", None), "seed": ("seed", 0), **ON_DEVICES}, {("recall", "None"), ("seed", "None")})
    yield Call("kith.extend_graph", kith.extend_graph, {"graph": ("graph", graph), "x": ("vectors+columns", X), "new": ("vectors+columns", X[:9]),
                                                        "seed": ("seed", 0), **ON_DEVICES}, {("seed", "None")})
    yield Call("kith.refine_graph", kith.refine_graph, {"graph": ("graph", graph), "x": ("vectors", X), "seed": ("seed", 0), **ON_DEVICES},
               {("seed", "None")})
    yield Call("kith.recall", kith.recall, {"found": ("found", graph.ids), "truth": ("found", graph.ids), "k": ("count", 3)}, {("k", "None")})
    yield Call("kith.read_vectors", kith.read_vectors, {"path": ("old file", vectors), "first": ("whole", 0), "count": ("whole", 3), "mmap": ("flag", False)})
    yield Call("kith.write_vectors", kith.write_vectors, {"path": ("new file", folder / "y.fbin"), "array": ("vectors", X)}, {
        ("array", "NaN"), ("array", "infinities")})
    yield Call("kith.load", kith.load, {"path": ("old file", folder / "flat.kith"), "device": ("device", "cpu"), "mmap": ("flag", False),
                                        "verify": ("flag", False), "lists": ("choice", "host"), **SETTINGS})
    yield Call("kith.read_faiss", kith.read_faiss, {"path": ("old file", folder / "flat.faiss"), **SETTINGS})
    yield Call("kith.read_hnswlib", kith.read_hnswlib, {"path": ("old file", folder / "graph.bin"), "metric": ("metric", "l2"), **SETTINGS})
    yield Call("kith.write_faiss", kith.write_faiss, {"index": ("index", flat), "path": ("new file", folder / "y.faiss"), **SETTINGS},
               {("memory_limit", "tiny")})
    yield Call("kith.write_hnswlib", kith.write_hnswlib, {"index": ("index", walked), "path": ("new file", folder / "y.bin"), **SETTINGS})
    yield Call("kith.merge_files", kith.merge_files, {"paths": ("old file", [folder / "flat.kith"]), "out": ("new file", folder / "m.kith"),
                                                      "shift_ids": ("flag", False), **SETTINGS})
    yield Call("kith.plan", kith.plan, {"rows": ("count", 1000), "cols": ("count", 8), "dtype": ("choice", "f32"), "factory": ("factory", None),
                                        "k": ("count", 10), "metric": ("metric", "l2"), "recall": ("real", 0.9), "threads": ("threads", 1),
                                        "memory_limit": ("limit", None)}, {("factory", "None"), ("factory", "empty"), ("memory_limit", "tiny")})
    yield Call("kith.show", kith.show, {"items": ("vectors", X.reshape(60, 2, 4)), "found": ("found", graph), "rows": ("count", 3),
                                        "columns": ("count", 3), "labels": ("choice", None)})
    yield Call("kith.Index", index_of, {"factory": ("factory", "Flat"), "metric": ("metric", "l2"), "device": ("device", "cpu"),
                                        "check_finite": ("flag", True), "prepare": ("flag", True), "seed": ("seed", 0),
                                        "expected_rows": ("count", None)}, {("expected_rows", "None"), ("expected_rows", "zero")})
    yield Call("Index.train", lambda **a: kith.Index("IVF4,SQ8").train(**a), {"x": ("vectors", X), **SETTINGS})
    yield Call("Index.add", fresh, {"x": ("vectors+columns", X), "ids": ("ids", None), "replace": ("flag", False), "copy": ("flag", True), **SETTINGS})
    yield Call("Index.remove", lambda **a: flat.clone().remove(**a), {"ids": ("ids", [3]), **SETTINGS},
               {("ids", "too few"), ("ids", "twice"), ("ids", "negative")})
    yield Call("Index.search", flat.search, {"queries": ("vectors+columns", X[:5]), "k": ("count", 3), "filter": ("filter", None),
                                             "filter_strict": ("flag", False), "out": ("out", None), **SETTINGS}, {("filter", "a row beyond"), ("filter", "a negative row")})
    yield Call("Index.search of lists", lists.search, {"queries": ("vectors+columns", X[:5]), "k": ("count", 3), "probes": ("count", 2),
                                                       "refine": ("whole", None), "filter": ("filter", None), **SETTINGS},
               {("probes", "None"), ("filter", "a row beyond"), ("filter", "a negative row")})
    yield Call("Index.range_search", flat.range_search, {"queries": ("vectors+columns", X[:5]), "radius": ("real", 2.0), "filter": ("filter", None),
                                                         **SETTINGS}, {("filter", "a row beyond"), ("filter", "a negative row")})
    yield Call("Index.reconstruct", flat.reconstruct, {"ids": ("ids", [3]), **SETTINGS}, {("ids", "too few"), ("ids", "twice")})
    yield Call("Index.tune", lists.tune, {"queries": ("vectors+columns", X[:20]), "k": ("count", 3), "recall": ("real", 0.5), **SETTINGS})
    yield Call("Index.save", flat.save, {"path": ("new file", folder / "s.kith"), **SETTINGS})
    yield Call("Index.save_added", flat.save_added, {"path": ("new file", folder / "s.kith"), "x": ("vectors", str(vectors)), **SETTINGS})
    yield Call("Index.to", flat.to, {"device": ("device", "cpu"), "copies": ("count", 1), **SETTINGS}, {("memory_limit", "tiny")})
    yield Call("Index.merge", lambda **a: flat.clone().merge(**a), {"other": ("index", flat.clone()), "shift_ids": ("flag", True), **SETTINGS})
    yield Call("Index.knn_graph", lists.knn_graph, {"x": ("vectors+columns", X), "k": ("count", 3), "seed": ("seed", 0), **SETTINGS})
    yield Call("kith.KMeans", lambda **a: kith.KMeans(**a).fit(X), {
        "clusters": ("count", 3), "iterations": ("count", 5), "tol": ("real", 0.01), "n_init": ("count", 1), "init": ("choice", "kmeans++"),
        "seed": ("seed", 0), "spherical": ("flag", False), "batch_size": ("count", None), "compute_labels": ("flag", True),
        "history": ("flag", True), "device": ("device", "cpu"), "check_finite": ("flag", True)},
        {("batch_size", "None"), ("batch_size", "zero"), ("iterations", "zero")})
    yield Call("KMeans.fit", lambda **a: kith.KMeans(3).fit(**a), {"x": ("vectors", X), "sample_weight": ("choice", None), **SETTINGS})
    yield Call("KMeans.predict", model.predict, {"x": ("vectors+columns", X), **SETTINGS})
    yield Call("KMeans.transform", model.transform, {"x": ("vectors+columns", X), **SETTINGS})
    yield Call("kith.KnnGraph", kith.KnnGraph, {"ids": ("found", graph.ids), "distances": ("vectors", graph.distances), "metric": ("metric", "l2")},
               {("distances", "NaN"), ("distances", "infinities")})
    yield Call("KnnGraph.save", graph.save, {"ids": ("new file", folder / "g.npy"), "distances": ("new file", folder / "d.npy")})
    yield Call("KnnGraph.load", kith.KnnGraph.load, {"ids": ("old file", folder / "g.npy"), "distances": ("old file", folder / "d.npy"),
                                                     "metric": ("metric", "l2")}, {("distances", "None"), ("metric", "None")})
    yield Call("KnnGraph.smoothest_path", graph.smoothest_path, {"a": ("row", 1), "b": ("row", 7), "by": ("choice", "steps")})
    yield Call("KnnGraph.labels", graph.labels, {"height": ("real", 1.0)})
    yield Call("KnnGraph.measure_recall", graph.measure_recall, {"x": ("vectors", X), "rows": ("count", 10), "seed": ("seed", 0)})
    yield Call("KnnGraph.spanning_tree", graph.spanning_tree, {"weights": ("choice", "distance"), "min_samples": ("count", None),
                                                               "unconnected": ("choice", "at_inf")}, {("min_samples", "None")})
    yield Call("KnnGraph.to_scanpy", graph.to_scanpy, {"adata": ("choice", None), "n_neighbors": ("count", 3)}, {("n_neighbors", "None")})
    yield Call("kith.SmoothPaths", kith.SmoothPaths, {"graph": ("graph", graph), **ON_DEVICES})
    yield Call("SmoothPaths.width", paths.width, {"a": ("row", 1), "b": ("row", 7)})
    yield Call("SmoothPaths.widths", paths.widths, {"pairs": ("found", [[1, 7]]), "threads": ("threads", 1)})
    for kind, parameters in ((kith.ProductQuantizer, {"parts": ("count", 4), "bits": ("count", 4)}), (kith.ScalarQuantizer, {"bits": ("count", 8)}),
                             (kith.LocalSearchQuantizer, {"codebooks": ("count", 2), "bits": ("count", 4), "rounds": ("count", 2)}),
                             (kith.ResidualQuantizer, {"codebooks": ("count", 2), "bits": ("count", 4), "beam": ("count", 2)}),
                             (kith.PCA, {"dimension": ("count", 4)}), (kith.OPQ, {"parts": ("count", 4), "dimension": ("count", 8)}),
                             (kith.RandomRotation, {"dimension": ("count", 4)})):
        more = {"device": ("device", "cpu")} | ({} if kind in (kith.PCA, kith.OPQ, kith.RandomRotation) else {"check_finite": ("flag", True)})
        yield Call(f"kith.{kind.__name__}", lambda kind=kind, **a: learnt(kind, **a), {**parameters, **more},
                   {("dimension", "None"), ("dimension", "zero"), ("rounds", "zero"), ("device", "a GPU beyond")})
    yield Call("ProductQuantizer.encode", pq.encode, {"x": ("vectors+columns", X), **SETTINGS})
    yield Call("ProductQuantizer.decode", pq.decode, {"codes": ("vectors", pq.encode(X)), **SETTINGS})
    yield Call("ProductQuantizer.save", pq.save, {"path": ("new file", folder / "q.kith")})
    yield Call("ProductQuantizer.load", kith.ProductQuantizer.load, {"path": ("old file", folder / "q.kith"), "device": ("device", "cpu")},
               {("device", "a GPU beyond")})
    yield Call("Transform.apply", learnt(kith.PCA, dimension=4).apply, {"x": ("vectors+columns", X), **SETTINGS})


def attempts(call: Call) -> Iterator[tuple[str, str, Any]]:
    """(argument, mistake, value)."""
    for argument, (kinds, default) in call.arguments.items():
        for kind in kinds.split("+"):
            for mistake, value in MISTAKES[kind].items():
                if (argument, mistake) not in call.takes and not (value is None and default is None):
                    yield argument, mistake, value


def outcome(call: Call, argument: str, value: Any) -> BaseException | None:
    given = {name: value for name, (_, value) in call.arguments.items() if value is not None}
    given[argument] = value
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call.run(**given)
    except Exception as error:
        return error
    return None


def complaint(argument: str, value: Any, error: BaseException | None) -> str:
    """What is wrong with the answer; empty if nothing."""
    if error is None:
        return "no error"
    text = str(error)
    if not isinstance(error, TYPED) or isinstance(error, (KeyError, IndexError, UnicodeError)):
        return "the type"
    if BARE.search(text):
        return "the words of something else"
    shown = text.lower().replace("_", " ")
    names = {*WORDS.get(argument, ())} | {argument.lower().replace("_", " "), argument.lower().rstrip("s").replace("_", " ")}
    told = any(name in shown for name in names) or (isinstance(value, (str, int, float)) and str(value).lower() in text.lower() and value != "")
    return "" if told or isinstance(error, (OSError, MemoryError)) else "it does not name what was given"


if __name__ == "__main__":
    import tempfile

    tried = wrong = 0
    for one in calls(Path(tempfile.mkdtemp())):
        for argument_, mistake_, value_ in attempts(one):
            error_ = outcome(one, argument_, value_)
            fault = complaint(argument_, value_, error_)
            tried += 1
            wrong += bool(fault)
            print(f"{'BAD ' + fault if fault else 'ok'}\t{one.name}\t{argument_}\t{mistake_}\t{type(error_).__name__}: {error_}".replace("\n", " "))
    print(f"{tried} mistakes tried, {wrong} answered badly")
