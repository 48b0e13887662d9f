"""memory_limit: an error names the limit with which the whole call would do, and following it takes one try."""

from __future__ import annotations

import re

import numpy as np
import pytest

import kith


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(5).standard_normal((6000, 24)).astype(np.float32)


def named_limit(call, limit):
    with pytest.raises(MemoryError) as refused:
        call(limit)
    return int(re.search(r"a host memory limit of (\d+) bytes \([^)]+\) would do$", str(refused.value))[1])


def calls(x):
    index, bare, keep = kith.Index(), kith.Index(prepare=False), np.arange(6000) % 3 == 0
    index.add(x)
    bare.add(x)
    out = np.empty((900, 10), np.int64), np.empty((900, 10), np.float32)
    q = x[:900]
    return {
        "knn": lambda limit: kith.knn(q, x, memory_limit=limit, threads=2),
        "one query": lambda limit: kith.knn(x[0], x, memory_limit=limit, threads=2),
        "out": lambda limit: kith.knn(q, x, memory_limit=limit, threads=2, out=out),
        "mask": lambda limit: kith.knn(q, x, filter=keep, memory_limit=limit, threads=2),
        "rows": lambda limit: kith.knn(q, x, filter=np.flatnonzero(keep), memory_limit=limit, threads=2),
        "graph": lambda limit: kith.knn_graph(x, memory_limit=limit, threads=2),
        "cells": lambda limit: kith.knn_graph(x, method="cells", memory_limit=limit, threads=2),
        "nn_descent": lambda limit: kith.knn_graph(x, method="nn_descent", memory_limit=limit, threads=2),
        "index": lambda limit: index.search(q, memory_limit=limit, threads=2),
        "bare index": lambda limit: bare.search(q, memory_limit=limit, threads=2),
        "pairwise": lambda limit: kith.pairwise_distances(q, x, memory_limit=limit, threads=2),
    }


@pytest.mark.parametrize(
    "name",
    ["knn", "one query", "out", "mask", "rows", "graph", "cells", "nn_descent", "index", "bare index", "pairwise"],
)
def test_one_try(name, x):
    call = calls(x)[name]
    limit = named_limit(call, 1000)
    call(limit)
    with pytest.raises(MemoryError):
        call(limit // 2)


@pytest.mark.parametrize("index", [False, True])
def test_ranges(index, x, tmp_path):
    """Rows in range are counted to the end; before that nobody knows how many there are."""
    held = kith.Index()
    held.add(x)
    def search(q, radius, memory_limit):  # with more threads what they need would hold all that is found
        options = {"memory_limit": memory_limit, "threads": 2}
        return held.range_search(q, radius, **options) if index else kith.range_search(q, x, radius, **options)

    few = named_limit(lambda limit: search(x[:50], 0.5, memory_limit=limit), 1000)
    assert search(x[:50], 0.5, memory_limit=few).ids.size == 50
    least = named_limit(lambda limit: search(x[:500], 1e9, memory_limit=limit), 1000)
    many = named_limit(lambda limit: search(x[:500], 1e9, memory_limit=limit), least)
    assert search(x[:500], 1e9, memory_limit=many).ids.size == 500 * 6000
    with pytest.raises(MemoryError, match="3000000 rows are in range"):
        search(x[:500], 1e9, memory_limit=3_000_000 * 12)  # what the results alone take
    with pytest.raises(MemoryError) as refused:
        search(x[:500], 1.0, memory_limit=100)
    assert "range search" in str(refused.value) and "k = " not in str(refused.value)


def test_files(x, tmp_path):
    base, queries = tmp_path / "b.fbin", tmp_path / "q.fbin"
    kith.write_vectors(base, x)
    kith.write_vectors(queries, x[:900])
    found = kith.knn(queries, base, memory_limit=named_limit(lambda n: kith.knn(queries, base, memory_limit=n), 1000))
    assert (found.ids == kith.knn(x[:900], x).ids).all()
    few = named_limit(lambda n: kith.range_search(queries, base, 1e9, memory_limit=n, threads=2), 1000)
    many = named_limit(lambda n: kith.range_search(queries, base, 1e9, memory_limit=n, threads=2), few)
    assert kith.range_search(queries, base, 1e9, memory_limit=many, threads=2).ids.size == 900 * 6000


@pytest.mark.parametrize(
    "parameters", [{}, {"n_init": 3}, {"max_points_per_centre": 20}, {"init": "random"}, {"batch_size": 500}], ids=str
)
@pytest.mark.parametrize("scale", [1, 1e25])
def test_kmeans(parameters, scale, x, tmp_path):
    rows = (x * np.float32(scale)).astype(np.float32)
    kith.write_vectors(tmp_path / "x.fbin", rows)
    free = kith.KMeans(30, iterations=3, **parameters).fit(rows)
    for data in (rows, tmp_path / "x.fbin"):
        model = kith.KMeans(30, iterations=3, **parameters)
        limit = named_limit(lambda limit, data=data, model=model: model.fit(data, memory_limit=limit, threads=2), 1000)
        assert (model.fit(data, memory_limit=limit, threads=2).cluster_centers_ == free.cluster_centers_).all()


@pytest.mark.parametrize("scale", [1, 1e25])
@pytest.mark.parametrize("name", ["predict", "assign", "predict a file"])
def test_predictions(name, scale, x, tmp_path):
    rows = (x * np.float32(scale)).astype(np.float32)
    kith.write_vectors(tmp_path / "x.fbin", rows)
    model = kith.KMeans(30, iterations=3).fit(rows)
    call = {
        "predict": lambda limit: model.predict(rows, memory_limit=limit, threads=2),
        "assign": lambda limit: model.assign(rows, memory_limit=limit, threads=2),
        "predict a file": lambda limit: model.predict(tmp_path / "x.fbin", memory_limit=limit, threads=2),
    }[name]
    call(named_limit(call, 1000))
    with pytest.raises(MemoryError):
        call(20000)  # the labels alone are more


@pytest.mark.parametrize(("rows", "cols", "queries", "threads"), [(2473, 40, 35, 2), (2473, 40, 35, 1), (3533, 161, 26, 3)])
def test_one_try_of_a_prepared_index(rows, cols, queries, threads):
    rng = np.random.default_rng(7)
    index = kith.Index(device="cpu")
    index.add(rng.standard_normal((rows, cols), dtype=np.float32))
    q = rng.standard_normal((queries, cols), dtype=np.float32)
    free = index.search(q, 10, threads=threads)  # after it the rows lie in the layout of the processor
    for first in (402, 3000, 19000):
        found = index.search(
            q,
            10,
            threads=threads,
            memory_limit=named_limit(lambda limit: index.search(q, 10, memory_limit=limit, threads=threads), first),
        )
        assert (found.ids == free.ids).all() and (found.distances == free.distances).all()


@pytest.mark.parametrize("factory", ["IVF16,SQ8", "PCA8,IVF16,PQ4x4", "IVF16,RQ2x4_Nqint8", "IVF16,Flat,RFlat"])
def test_compressed_indexes(factory, x, tmp_path):
    """Training, adding from a file and range searches: one error, one limit that does."""
    vectors = np.ascontiguousarray(x[:3000])
    kith.write_vectors(tmp_path / "x.fbin", vectors)
    index = kith.Index(factory, device="cpu")
    for call in (
        lambda limit: index.train(vectors, memory_limit=limit, threads=2),
        lambda limit: index.add(tmp_path / "x.fbin", memory_limit=limit, threads=2),
        lambda limit: index.range_search(vectors[:50], 0.5, memory_limit=limit, threads=2),
    ):
        call(named_limit(call, 1000))
    assert len(index) == 3000


def made_once(x, tmp_path):
    """What is trained and made before, and calls of it."""
    quantizers = {
        "product": kith.ProductQuantizer(8),
        "product of 4 bits": kith.ProductQuantizer(8, bits=4),
        "scalar": kith.ScalarQuantizer(),
        "residual": kith.ResidualQuantizer(2, bits=5),
        "local search": kith.LocalSearchQuantizer(2, bits=5, rounds=1),
    }
    found = {}
    for name, quantizer in quantizers.items():
        quantizer.train(x[:2000])
        codes = quantizer.encode(x)
        found[f"{name}, encode"] = lambda limit, q=quantizer: q.encode(x, memory_limit=limit, threads=2)
        found[f"{name}, decode"] = lambda limit, q=quantizer, c=codes: q.decode(c, memory_limit=limit, threads=2)
    for steps in ("PCA8", "PCA16,RR16"):
        transform = kith.Transform(steps)
        transform.train(x)
        low = transform.apply(x)
        found[f"{steps}, apply"] = lambda limit, t=transform: t.apply(x, memory_limit=limit, threads=2)
        found[f"{steps}, reverse"] = lambda limit, t=transform, y=low: t.reverse(y, memory_limit=limit, threads=2)
    for factory in ("Flat", "IVF16,SQ8", "PCA8,IVF16,Flat,RFlat"):
        index = kith.Index(factory, device="cpu")
        index.train(x)
        index.add(x)
        path, ids = tmp_path / f"{len(found)}.kith", np.arange(0, 6000, 2)
        index.save(path)
        found[f"{factory}, load"] = lambda limit, p=path: kith.load(p, memory_limit=limit, threads=2)
        found[f"{factory}, reconstruct"] = lambda limit, i=index: i.reconstruct(ids, memory_limit=limit, threads=2)
        found[f"{factory}, remove"] = lambda limit, i=index: i.to("cpu").remove(ids, memory_limit=limit, threads=2)
    model = kith.KMeans(30, iterations=2).fit(x)
    kith.write_vectors(tmp_path / "x.fbin", x)
    for data in (x, tmp_path / "x.fbin"):
        found[f"predict of {type(data).__name__}"] = lambda limit, d=data: model.predict(d, memory_limit=limit, threads=2)
    return found


@pytest.mark.filterwarnings("ignore:.*train well")
def test_one_try_of_calls_that_fill_arrays(x, tmp_path):
    """Also where the limit has no room for the array that the call makes."""
    for name, call in made_once(x, tmp_path).items():
        for limit in (1, 20_000):
            try:
                call(limit)
            except MemoryError:
                call(named_limit(call, limit))
            else:
                assert limit > 1, name


@pytest.mark.parametrize(
    ("text", "size"),
    [("100000", 100_000), ("512M", 512 << 20), ("1.5G", 3 << 29), ("2GiB", 2 << 30), ("7b", 7), ("3k", 3 << 10), (".5T", 1 << 39)],
)
def test_limits_as_text(text, size):
    from kith._options import byte_size

    assert byte_size(text, "memory_limit") == size


@pytest.mark.parametrize("text", ["", "much", "5X", "1e9", "-1G", "1 G", "2GB", "iB", "G", "nan", "inf"])
def test_text_that_is_no_limit(text, x):
    with pytest.raises(ValueError, match="memory_limit .* is not a byte size"):
        kith.knn(x[:2], x, memory_limit=text)


def test_a_limit_as_text_is_that_limit(x):
    assert (kith.knn(x[:9], x, memory_limit="64M").ids == kith.knn(x[:9], x).ids).all()
    with pytest.raises(MemoryError, match="would do"):
        kith.knn(x[:900], x, memory_limit="1k")
    with pytest.raises(ValueError, match="device_memory_limit 'x' is not"):
        kith.knn(x[:2], x, device_memory_limit="x")
    with pytest.raises(ValueError, match="out of range"):
        kith.knn(x[:2], x, memory_limit="0.1")
    index = kith.Index("Flat")
    index.add(x, memory_limit="64M")
    assert len(index) == 6000
