"""`Index.tune`: what it returns, what searches make of it, copies and files, and what is refused."""

from __future__ import annotations

import pickle
from pathlib import Path

import kith
import numpy as np
import pytest

ROWS = 6_000


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    points = rng.standard_normal((ROWS + 100, 8), dtype=np.float32) @ rng.standard_normal((8, 16), dtype=np.float32)
    return points[:ROWS], points[ROWS:]


def filled(factory: str, x: np.ndarray) -> kith.Index:
    index = kith.Index(factory)
    if not index.trained:
        index.train(x)
    index.add(x)
    return index


@pytest.mark.parametrize(
    ("factory", "names"),
    [("Graph16", {"beam", "width", "refine"}), ("IVF32,Flat", {"probes"}), ("IVF32,SQ4,RFlat", {"probes", "refine"}),
     ("SQ4,RFlat", {"refine"}), ("Flat", set())],
)
def test_the_choice_has_the_recall_and_searches_use_it(data, factory: str, names: set[str]) -> None:
    x, queries = data
    index = filled(factory, x)
    tuned = index.tune(queries, k=10, recall=0.9)
    assert isinstance(tuned, kith.TuneReport) and tuned.reached
    assert set(tuned.parameters) == names
    assert tuned.recall >= 0.9 and 0 <= tuned.standard_error < 0.1 and tuned.seconds > 0
    found = index.search(queries, k=10, **tuned.parameters)
    assert kith.recall(found, kith.knn(queries, x, k=10)) == pytest.approx(tuned.recall)
    assert (index.search(queries, k=10, recall=0.9).ids == found.ids).all()
    assert all(one.compared >= tuned.compared for one in tuned.searches if one.recall >= 0.9)
    parameters, recall, error, compared, seconds, *_ = tuned
    assert (parameters, recall, error, compared, seconds) == tuned[:5]


def test_the_table_goes_with_the_index(data, tmp_path: Path) -> None:
    x, queries = data
    index = filled("IVF32,Flat", x)
    assert index.info().tuned == []
    tuned = index.tune(queries, batch=7)
    assert index.info().tuned == tuned.searches
    without = [one._replace(seconds=0) for one in tuned.searches]
    index.save(tmp_path / "x.kith")
    for other in (kith.load(tmp_path / "x.kith"), pickle.loads(pickle.dumps(index))):
        assert [one._replace(seconds=0) for one in other.info().tuned] == without
        assert (other.search(queries, recall=0.95).ids == index.search(queries, recall=0.95).ids).all()


def test_a_recall_that_nothing_had_is_exact(data) -> None:
    x, queries = data
    index = filled("IVF32,SQ4,RFlat", x)
    index.tune(queries, recall=0.5)
    if all(one.recall < 1 for one in index.info().tuned):
        assert kith.recall(index.search(queries, k=10, recall=1), kith.knn(queries, x, k=10)) == 1


def test_what_is_refused_says_what_to_do(data) -> None:
    x, queries = data
    index = filled("IVF32,Flat", x)
    with pytest.raises(ValueError, match="tune"):
        index.search(queries, recall=0.9)
    with pytest.raises(ValueError, match="recall"):
        index.tune(queries, recall=1.5)
    with pytest.raises(ValueError, match="batch"):
        index.tune(queries, batch=0)
    with pytest.raises(ValueError, match="columns"):
        index.tune(queries[:, :5])
    with pytest.raises(TypeError):
        index.tune(queries, beams=3)
    index.tune(queries)
    with pytest.raises(ValueError, match="one of them"):
        index.search(queries, recall=0.9, probes=3)
