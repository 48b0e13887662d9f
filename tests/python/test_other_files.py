"""read_vectors of what kith convert takes besides Kith's own formats."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import kith


@pytest.fixture
def x(rng):
    return rng.standard_normal((20, 3)).astype(np.float32)


def written(path, x):
    """The vectors in one of these files."""
    kind = path.name
    if kind == "x.npz":
        np.savez(path, x=x, labels=np.arange(len(x)))
    elif kind == "x.parquet":
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.table({"v": [row.tolist() for row in x]}), path)
    elif kind == "wide.npy":
        np.save(path, x.astype(np.float64))
    elif kind == "columns.npy":
        np.save(path, np.asfortranarray(x))
    elif kind == "swapped.npy":
        np.save(path, x.astype(">f4"))
    else:
        between = "," if kind == "x.csv" else "\t"
        path.write_text("\n".join(between.join(f"{value:.9g}" for value in row) for row in x))
    return path


@pytest.mark.parametrize("name", ["x.npz", "x.parquet", "wide.npy", "columns.npy", "swapped.npy", "x.csv", "x.tsv", "x.txt"])
def test_they_are_read_as_vectors(tmp_path, x, name):
    path = written(tmp_path / name, x)
    found = kith.read_vectors(path)
    assert found.dtype == np.float32 and found.flags.c_contiguous and (found == x).all()
    assert (kith.read_vectors(str(path), 5, 7, dtype="f32") == x[5:12]).all()
    assert kith.read_vectors(path, 20).shape == (0, 3)
    for first, count in ((-1, None), (21, None), (15, 6), (0, -1)):
        with pytest.raises(ValueError, match="which has 20"):
            kith.read_vectors(path, first, count)
    with pytest.raises(ValueError, match="kith convert"):
        kith.read_vectors(path, mmap=True)
    with pytest.raises(ValueError, match="astype"):
        kith.read_vectors(path, dtype="u8")


def test_one_of_several_is_named(tmp_path, x):
    np.savez(tmp_path / "two.npz", a=x, b=x + 1)
    assert (kith.read_vectors(f"{tmp_path / 'two.npz'}::b") == x + 1).all()
    with pytest.raises(ValueError, match="name one array"):
        kith.read_vectors(tmp_path / "two.npz")


def test_integers_of_other_sizes_are_numbers_and_ids_stay_ids(tmp_path):
    np.save(tmp_path / "short.npy", np.arange(6, dtype=np.int16).reshape(2, 3))
    assert kith.read_vectors(tmp_path / "short.npy").dtype == np.float32
    np.save(tmp_path / "ids.npy", np.arange(6).reshape(2, 3))
    assert kith.read_vectors(tmp_path / "ids.npy").dtype == np.int64


@pytest.mark.parametrize(
    "text, says",
    [
        (",0,1\n0,1.5,2\n1,3,4\n", "first column"),
        ("id;a;b\nx-1;1.5;2\nx-2;3;4\n", "first column"),
        ("0,1\n1.5,2\n3,4\n", "heading"),
        ("a,b\n1.5,2\n3,4\n", ""),
        ('"a" "b"\n1.5 2\n3 4\n', ""),
    ],
)
def test_what_pandas_writes_around_numbers_is_left_out(tmp_path, text, says):
    path = tmp_path / "x.csv"
    path.write_text(text)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = kith.read_vectors(path)
    assert found.tolist() == [[1.5, 2], [3, 4]]
    assert [says in str(one.message) and one.filename == __file__ for one in told] == ([True] if says else [])


def test_what_is_wrong_with_them_is_told(tmp_path, x):
    np.save(tmp_path / "large.npy", np.array([[1.0, 1e300]]))
    (tmp_path / "words.csv").write_text("1,2\n3,four\n")
    (tmp_path / "empty.csv").write_text("\n\n")
    (tmp_path / "cut.npy").write_bytes(written(tmp_path / "wide.npy", x).read_bytes()[:200])
    for name, says in (("large.npy", "too large for float32"), ("words.csv", "row 1: .four. is no number; keep columns of numbers alone"), ("empty.csv", "no line of numbers"), ("cut.npy", "cut.npy")):
        with pytest.raises(ValueError, match=says):
            kith.read_vectors(tmp_path / name)
    for name in ("none.csv", "none.npz", "none.npy"):
        with pytest.raises(FileNotFoundError):
            kith.read_vectors(tmp_path / name)
