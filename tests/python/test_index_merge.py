"""Indexes that become one, that go to another device, and that refine with the vectors of a file."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import kith

KINDS = ["Flat", "IVF8,SQ8", "PQ4x4", "RR,IVF8,PQ4x4,RFlat"]


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(1).standard_normal((900, 16)).astype(np.float32)


def trained(factory, x, **more):
    index = kith.Index(factory, device="cpu", **more)
    index.train(x)
    return index


def same(a, b, x, **more):
    for one, other in zip(a.search(x[:20], k=8, **more), b.search(x[:20], k=8, **more), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("factory", KINDS)
def test_merge(x, factory):
    whole = trained(factory, x)
    one, two = whole.to("cpu"), copy.copy(whole)
    whole.add(x)
    one.add(x[:500])
    two.add(x[500:])
    with pytest.raises(ValueError, match="id 0 is in both indexes"):
        one.merge(two)
    assert len(one) == 500
    one.merge(two, shift_ids=True)
    assert len(one) == 900 and len(two) == 400
    same(one, whole, x)
    three = kith.Index(factory, device="cpu") if factory == "Flat" else copy.copy(two)
    if factory == "Flat":
        three.merge(two)  # an empty one takes all
        same(three, two, x)


def test_merge_keeps_ids_and_arrays(x):
    one, two = kith.Index("Flat", device="cpu"), kith.Index("Flat", device="cpu")
    one.add(x[:10], ids=np.arange(10) * 2)
    two.add(x[10:20].copy(), ids=np.arange(10) * 2 + 1, copy=False)
    one.merge(two)
    del two
    assert one.search(x[13], k=1).ids[0] == 7 and one.search(x[3], k=1).ids[0] == 6
    one.add(x[20:21])
    assert one.search(x[20], k=1).ids[0] == 20


def test_merge_refuses(x):
    index = trained("IVF8,SQ8", x)
    with pytest.raises(TypeError, match="other is a str"):
        index.merge("x.kith")
    with pytest.raises(ValueError, match="the centres of their lists differ"):
        index.merge(trained("IVF8,SQ8", x[:400]))
    with pytest.raises(ValueError, match="searched by l2, the other by cosine"):
        index.merge(trained("IVF8,SQ8", x, metric="cosine"))
    with pytest.raises(RuntimeError, match="must be trained"):
        index.merge(kith.Index("IVF8,SQ8"))
    with pytest.raises(TypeError, match="has no argument 'shift'"):
        index.merge(index, shift=True)
    wide = kith.Index("Flat", device="cpu")
    wide.add(x.astype(np.float64) + 1e6)
    plain = kith.Index("Flat", device="cpu")
    plain.add(x)
    with pytest.raises(ValueError, match="different offsets"):
        plain.merge(wide, shift_ids=True)
    assert len(plain) == 900
    empty = kith.Index("Flat", device="cpu")
    empty.merge(wide)
    same(empty, wide, x.astype(np.float64) + 1e6)


@pytest.mark.parametrize("factory", KINDS)
def test_to_gives_a_new_index(x, factory):
    index = trained(factory, x)
    index.add(x)
    other = index.to("auto")
    assert other is not index and other.device == "auto" and index.device == "cpu"
    same(index, other.to("cpu"), x)
    other.remove(np.arange(0, 900, 2))
    assert len(index) == 900 and len(other) == 450
    with pytest.raises(ValueError, match="unknown device"):
        index.to("gpu")


def test_to_keeps_what_is_subtracted_and_what_a_subclass_has(x):
    class Named(kith.Index):
        pass

    index = Named("Flat", device="cpu")
    index.name = "photos"
    wide = x.astype(np.float64) + 1e6
    index.add(wide)
    other = index.to("cpu")
    assert type(other) is Named and other.name == "photos"
    same(index, other, wide)
    del index
    assert other.search(wide[5], k=1).ids[0] == 5


def test_a_copy_reads_borrowed_arrays(x):
    rows = x.copy()
    index = kith.Index("Flat", device="cpu")
    index.add(rows, copy=False)
    other = index.to("cpu")
    del index, rows
    assert other.search(x[5], k=1).ids[0] == 5


def test_refine_from(x, tmp_path):
    path = tmp_path / "x.fbin"
    kith.write_vectors(path, x)
    index = trained("PQ4x4", x)
    index.add(x)
    found = index.search(x[:9] + 0.1, k=6, refine=1000, refine_from=path)
    exact = kith.knn(x[:9] + 0.1, x, k=6, device="cpu")
    assert np.array_equal(found.ids, exact.ids) and np.array_equal(found.distances, exact.distances)
    index.remove([3, 7])
    assert 3 not in index.search(x[3], k=6, refine=1000, refine_from=str(path)).ids
    with pytest.raises(OSError):
        index.search(x[:2], refine_from=tmp_path / "none.fbin")
    with pytest.raises(TypeError, match="PathLike"):
        index.search(x[:2], refine_from=5)
    keeping = trained("PQ4x4,RFlat", x)
    keeping.add(x)
    with pytest.raises(ValueError, match="keeps vectors to refine with itself"):
        keeping.search(x[:2], refine_from=path)


@pytest.mark.parametrize("factory", KINDS)
def test_parameters_survive(x, tmp_path, factory):
    index = trained(factory, x, seed=7, prepare=False, expected_rows=12345, check_finite=False)
    index.add(x)
    index.save(tmp_path / "x.kith")
    for other in (kith.load(tmp_path / "x.kith"), pickle.loads(pickle.dumps(index)), copy.deepcopy(index), index.to("cpu")):
        inner = other._index
        assert (inner.seed, inner.prepare, inner.expected_rows, inner.check_finite) == (7, False, 12345, False)
        same(index, other.to("cpu"), x)


def test_a_limit_names_one_that_does(x):
    index = trained("IVF8,PQ4x4,RFlat", x)
    index.add(x)
    free = index.search(x, k=50, refine=3)
    with pytest.raises(MemoryError, match="would do") as caught:
        index.search(x, k=50, refine=3, memory_limit=10_000, threads=1)
    limit = int(str(caught.value).rsplit("limit of ", 1)[1].split(" bytes")[0])
    found = index.search(x, k=50, refine=3, memory_limit=limit, threads=1)
    assert np.array_equal(found.ids, free.ids)
