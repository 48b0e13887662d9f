"""Files of vectors that kith explore takes: those of Kith, and those that kith convert takes besides."""

from __future__ import annotations

import numpy as np
import pytest

import kith
from kith._explore.vector_files import vectors_in


@pytest.fixture
def x(rng):
    return rng.standard_normal((20, 3)).astype(np.float32)


def same(found, x):
    np.testing.assert_array_equal(found, x)
    assert found.dtype == np.float32 and found.flags.c_contiguous


def test_arrays_of_other_dtypes_and_orders(tmp_path, x):
    for number, array in enumerate([x, x.astype(np.float64), np.asfortranarray(x), np.asfortranarray(x.astype(np.float64))]):
        np.save(tmp_path / f"{number}.npy", array)
        same(vectors_in(str(tmp_path / f"{number}.npy")), x)
    np.save(tmp_path / "wide.npy", np.arange(6, dtype=np.int64).reshape(2, 3))
    same(vectors_in(str(tmp_path / "wide.npy")), np.arange(6).reshape(2, 3))
    np.save(tmp_path / "bytes.npy", np.eye(3, dtype=np.uint8))
    assert vectors_in(str(tmp_path / "bytes.npy")).dtype == np.uint8


def test_npz(tmp_path, x):
    np.savez(tmp_path / "one.npz", embeddings=x.astype(np.float64), labels=np.arange(20))
    same(vectors_in(str(tmp_path / "one.npz")), x)
    np.savez(tmp_path / "two.npz", a=x, b=x + 1)
    same(vectors_in(f"{tmp_path / 'two.npz'}::b"), x + 1)
    with pytest.raises(ValueError, match="name one array"):
        vectors_in(str(tmp_path / "two.npz"))


@pytest.mark.parametrize("between", [",", ";", "\t", " "])
@pytest.mark.parametrize("heading", ["", "a{0}b{0}c\n"])
def test_tables(tmp_path, x, between, heading):
    file = tmp_path / "x.csv"
    lines = [between.join(f"{value:.9g}" for value in row) for row in x]
    file.write_text("\ufeff" + heading.format(between) + "\n".join(lines) + "\n\n", "utf-8")
    same(vectors_in(str(file)), x)


def test_parquet(tmp_path, x):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    column = arrow.FixedSizeListArray.from_arrays(arrow.array(x.ravel()), 3)
    parquet.write_table(arrow.table({"vector": column}), tmp_path / "x.parquet")
    same(vectors_in(str(tmp_path / "x.parquet")), x)


def test_what_is_refused(tmp_path):
    np.save(tmp_path / "large.npy", np.array([[1.0, 1e300]]))
    np.save(tmp_path / "line.npy", np.ones(3))
    (tmp_path / "words.csv").write_text("1,2\n3,four\n")
    for file, says in (("large.npy", "row 0, column 1: 1e[+]300 is too large"), ("line.npy", "vectors are numbers"), ("words.csv", "four.*columns of numbers alone")):
        with pytest.raises(ValueError, match=says):
            vectors_in(str(tmp_path / file))
    with pytest.raises(OSError):
        vectors_in(str(tmp_path / "none.csv"))


def test_the_page_takes_them(explore, tmp_path, x):
    np.save(tmp_path / "x.npy", np.asfortranarray(x.astype(np.float64)))
    page = explore(None, tmp_path / "x.npy")
    assert [one["row"] for one in page.get("api/neighbours/0?k=4")["found"]] == kith.knn(x[:1], x, k=5).ids[0, 1:].tolist()
