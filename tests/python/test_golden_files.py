"""The golden files of tests/golden/kith/recipes, which commit 8d3366cc wrote: Python opens and writes them as C++ does.

tests/index/golden_recipes.cpp makes them. Those of float64 vectors, from which an offset is subtracted, are made here
again, from the vectors that tests/index/golden_data.hpp has.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from conftest import probing

import kith

GOLDEN = Path(__file__).parents[1] / "golden" / "kith" / "recipes"
NOT_INDEXES = ("quantizer.", "transform.", "graph.")
INDEXES = sorted(path.name for path in GOLDEN.glob("*.kith") if not path.name.startswith(NOT_INDEXES))
SUBTRACTED = [name for name in INDEXES if name.endswith(".subtracted.kith")]
FAISS = sorted(path.name for path in GOLDEN.glob("*.faiss"))

COLS = 8
TRAIN_ROWS, FIRST_ROWS, ALL_ROWS = 320, 30, 50
FIRST_QUERY, QUERIES = 1000, 3


def numbers(seed: int, row: np.ndarray, col: np.ndarray, number_range: int) -> np.ndarray:
    """golden_number(): splitmix64 of a place in a matrix."""
    with np.errstate(over="ignore"):
        z = (np.uint64(seed * 1000003) + row.astype(np.uint64)) * np.uint64(1009) + col.astype(np.uint64) + np.uint64(1)
        z = z * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        z = z ^ z >> np.uint64(31)
    return (z % np.uint64(number_range)).astype(np.int64)


def doubles(first: int, rows: int) -> np.ndarray:
    """golden_doubles()."""
    row, col = np.meshgrid(np.arange(first, first + rows), np.arange(COLS), indexing="ij")
    scale = 1 << 22
    wide = scale * 4 // 5
    centre = numbers(1, numbers(2, row, np.zeros_like(col), 6), col, 2 * wide + 1) - wide
    fine = (centre + numbers(3, row, col, 2 * (scale // 5) + 1) - scale // 5).astype(np.float64)
    x: np.ndarray = fine * 2.0**-18
    x[:, 0] = 1.7e9 + fine[:, 0] * 2.0**-12
    x[:, 1] = 48.75 + fine[:, 1] * 2.0**-38
    return x


def factory_and_metric(path: Path) -> tuple[str, str]:
    info = kith.load(path).info()
    return info.factory, info.metric


@pytest.mark.parametrize("name", INDEXES)
def test_an_index_is_written_again_in_its_bytes(name: str, tmp_path: Path) -> None:
    kith.load(GOLDEN / name).save(tmp_path / name)
    assert (tmp_path / name).read_bytes() == (GOLDEN / name).read_bytes()


@pytest.mark.parametrize("name", SUBTRACTED)
def test_float64_vectors_give_the_same_bytes(name: str, tmp_path: Path) -> None:
    factory, metric = factory_and_metric(GOLDEN / name)
    index = kith.Index(factory, metric=metric)
    x = doubles(0, ALL_ROWS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # so few rows do not train well
        if factory != "Flat":
            index.train(doubles(0, TRAIN_ROWS))
        index.add(x[:FIRST_ROWS])
        index.add(x[FIRST_ROWS:])
    index.remove([2, 40])
    index.save(tmp_path / name)
    assert (tmp_path / name).read_bytes() == (GOLDEN / name).read_bytes()


def test_there_are_such_files() -> None:
    assert len(SUBTRACTED) >= 8
    assert len(INDEXES) >= 50
    assert len(FAISS) >= 30


@pytest.mark.parametrize("name", SUBTRACTED)
def test_float64_queries_find_what_they_found(name: str) -> None:
    paragraphs = (GOLDEN / "answers.txt").read_text("utf-8").split("\n\n")
    told = next(text.split("\n")[1:] for text in paragraphs if text.split("\n")[0] == name.removesuffix(".kith"))
    expected = [line.split(": ")[1].split() for line in told if line.startswith("search ")]
    index = kith.load(GOLDEN / name)
    found = index.search(doubles(FIRST_QUERY, QUERIES), k=4, **probing(index, 2))
    for ids, distances, pairs in zip(found.ids, found.distances, expected, strict=True):
        assert ids.tolist() == [int(pair.split("@")[0]) for pair in pairs]
        np.testing.assert_array_equal(distances, np.array([pair.split("@")[1] for pair in pairs], np.float32))


@pytest.mark.parametrize("name", FAISS)
def test_faiss_reads_what_was_written_for_it(name: str) -> None:
    faiss = pytest.importorskip("faiss")
    index = faiss.read_index(str(GOLDEN / name))
    assert index.ntotal == len(kith.load(GOLDEN / name.replace(".faiss", ".kith")))
