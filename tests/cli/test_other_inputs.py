"""kith convert of what no other command reads, and kith info of any file."""

import os
import subprocess
import sys

import numpy as np
import pytest
from matrix_files import read_matrix


def converted(kith, path, tmp_path, *more):
    kith.ok("convert", path, tmp_path / "out.fbin", *more)
    return read_matrix(tmp_path / "out.fbin")


@pytest.mark.parametrize("dtype", ["f8", ">f8", ">f4", "i2", "u2", "u4", "u8", "<f4", "<f2", "u1", "i1"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_any_numbers_and_order(kith, tmp_path, dtype, order):
    x = np.array(np.random.default_rng(1).integers(0, 100, (700, 5)) / (4 if "f" in dtype else 1), dtype=dtype, order=order)
    np.save(tmp_path / "x.npy", x)
    found = converted(kith, tmp_path / "x.npy", tmp_path, "--dtype", "f32")
    np.testing.assert_array_equal(found, x.astype(np.float32))
    part = converted(kith, tmp_path / "x.npy", tmp_path, "--dtype", "f32", "--first", "600", "--count", "50")
    np.testing.assert_array_equal(part, x[600:650].astype(np.float32))


def test_arrays_that_are_refused(kith, tmp_path):
    np.save(tmp_path / "large.npy", np.array([[0.0, 1e300]]))
    assert "row 0, column 1 is too large" in kith.fails(2, "convert", tmp_path / "large.npy", tmp_path / "x.fbin")
    np.save(tmp_path / "cube.npy", np.zeros((2, 2, 2)))
    assert "3 axes" in kith.fails(2, "convert", tmp_path / "cube.npy", tmp_path / "x.fbin")
    np.save(tmp_path / "cut.npy", np.zeros((50, 20)))
    os.truncate(tmp_path / "cut.npy", 3000)
    assert "ends here" in kith.fails(3, "convert", tmp_path / "cut.npy", tmp_path / "x.fbin")
    assert not (tmp_path / "x.fbin").exists()


@pytest.mark.parametrize(
    "text",
    [
        "1,2.5,-3\n4,5,6e1\n",
        "a,b,c\n1,2.5,-3\n\n4,5,60\n",
        "1\t2.5\t-3\r\n4\t5\t60\r\n",
        '"1";"2.5";"-3"\n4; 5;60',
        "  1 2.5   -3 \n4 5 60\n",
        "\ufeff1,2.5,-3\n4,5,60\n",
    ],
)
def test_tables(kith, tmp_path, text):
    (tmp_path / "x.csv").write_bytes(text.encode())
    np.testing.assert_array_equal(converted(kith, tmp_path / "x.csv", tmp_path), np.array([[1, 2.5, -3], [4, 5, 60]], np.float32))


# As pandas writes a frame without names (with and without its index), and one with.
@pytest.mark.parametrize(
    "text, note",
    [
        ("0,1,2\n1,2.5,-3\n4,5,60\n", "first line, 0 to 2"),
        (",0,1,2\n0,1,2.5,-3\n1,4,5,60\n", "first column"),
        ("Unnamed: 0,a,b,c\n0,1,2.5,-3\n1,4,5,60\n", "first column"),
        ('"id";"a";"b";"c"\n"one";1;2.5;-3\n"two";4;5;60\n', "first column"),
        ("\ufeff,a,b,c\r\n7,1,2.5,-3\r\n8,4,5,60\r\n", "first column"),
    ],
)
def test_what_pandas_writes_around_the_numbers_is_left_out_and_said(kith, tmp_path, text, note):
    (tmp_path / "x.csv").write_bytes(text.encode())
    said = kith.ok("convert", tmp_path / "x.csv", tmp_path / "out.fbin").out
    assert note in said and "--whole" in said
    np.testing.assert_array_equal(read_matrix(tmp_path / "out.fbin"), np.array([[1, 2.5, -3], [4, 5, 60]], np.float32))
    assert note in kith.ok("convert", tmp_path / "x.csv", tmp_path / "out.fbin", "--json").json["result"]["note"]


def test_a_whole_table_is_taken_where_that_is_asked_for(kith, tmp_path):
    (tmp_path / "x.csv").write_text("0,1,2\n1,2.5,-3\n")
    np.testing.assert_array_equal(converted(kith, tmp_path / "x.csv", tmp_path, "--whole"), np.array([[0, 1, 2], [1, 2.5, -3]], np.float32))
    (tmp_path / "one.csv").write_text("0,1,2\n")  # nothing would be left
    np.testing.assert_array_equal(converted(kith, tmp_path / "one.csv", tmp_path), np.array([[0, 1, 2]], np.float32))
    (tmp_path / "names.csv").write_text(",0,1\n0,1,2\n")
    assert "line 1: '' in column 0 is no number" in kith.fails(2, "convert", tmp_path / "names.csv", tmp_path / "x.fbin", "--whole")
    np.save(tmp_path / "x.npy", np.eye(3))
    assert "--whole is for tables" in kith.fails(2, "convert", tmp_path / "x.npy", tmp_path / "x.fbin", "--whole")


def test_tables_that_are_refused(kith, tmp_path):
    for text, says in [
        ("1,2\n3\n", "line 2: 1 numbers, and the first has 2"),
        ("1,2\nx,4\n", "line 2: 'x' in column 0 is no number"),
        ("1,2\n3,,5\n", "line 2"),
        ("", "no line of numbers"),
        ("only,words\n", "no line of numbers"),
    ]:
        (tmp_path / "x.csv").write_text(text)
        assert says in kith.fails(2, "convert", tmp_path / "x.csv", tmp_path / "x.fbin")


def test_a_pipe(kith, tmp_path):
    x = np.random.default_rng(1).standard_normal((3000, 7))
    np.save(tmp_path / "x.npy", x)
    out = subprocess.run([kith.path, "convert", tmp_path / "x.npy", "-"], capture_output=True, check=True).stdout
    (tmp_path / "y.npy").write_bytes(out)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), x.astype(np.float32))
    subprocess.run([kith.path, "convert", "-", tmp_path / "z.fbin", "--first", "9"], input=out, check=True, capture_output=True)
    np.testing.assert_array_equal(read_matrix(tmp_path / "z.fbin"), x[9:].astype(np.float32))
    cut = subprocess.run([kith.path, "convert", "-", tmp_path / "w.fbin"], input=out[:5000], capture_output=True)
    assert cut.returncode == 2 and b"ends within the rows" in cut.stderr and not (tmp_path / "w.fbin").exists()


def test_archives_go_through_python(kith, tmp_path, monkeypatch):
    python = subprocess.run(["python3", "-c", "import kith"], capture_output=True)
    np.savez(tmp_path / "x.npz", x=np.eye(3), label=np.arange(3))
    if python.returncode != 0:
        assert "Python's package kith" in kith.fails(2, "convert", tmp_path / "x.npz", tmp_path / "x.fbin")
        return
    np.testing.assert_array_equal(converted(kith, tmp_path / "x.npz", tmp_path), np.eye(3, dtype=np.float32))
    assert "no array 'y'" in kith.fails(2, "convert", f"{tmp_path / 'x.npz'}::y", tmp_path / "x.fbin")


def test_archives_are_read_by_the_python_that_is_named(kith, tmp_path, monkeypatch):
    np.savez(tmp_path / "x.npz", x=np.eye(3))
    monkeypatch.setenv("KITH_PYTHON", sys.executable)
    if subprocess.run([sys.executable, "-c", "import kith"], capture_output=True).returncode == 0:
        np.testing.assert_array_equal(converted(kith, tmp_path / "x.npz", tmp_path), np.eye(3, dtype=np.float32))
    monkeypatch.setenv("KITH_PYTHON", "/no/such/python")
    refused = kith.fails(2, "convert", tmp_path / "x.npz", tmp_path / "x.fbin")
    assert "/no/such/python does not have" in refused and "KITH_PYTHON" in refused


def test_info_tells_what_a_folder_is(kith, tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(1).standard_normal((200, 8)).astype(np.float32))
    kith.ok("graph", "build", "--data", tmp_path / "x.npy", "-k", 4, "--out", tmp_path / "graph")
    assert "a k-NN graph; kith graph info" in kith.ok("info", tmp_path / "graph").out
    created = kith("collection", "create", tmp_path / "films", "--dimension", 8)
    if created.code == 0:  # built with SQLite
        assert "a collection; kith collection info" in kith.ok("info", tmp_path / "films").out
    (tmp_path / "empty").mkdir()
    assert "is a directory, of no collection and no k-NN graph" in kith.fails(3, "info", tmp_path / "empty")


def test_a_missing_file_is_said_to_be_missing(kith, tmp_path):
    for name in ("none", "none.npy", "none.parquet", "none.csv", "none.kith"):
        assert "No such file" in kith.fails(3, "info", tmp_path / name)
        assert "No such file" in kith.fails(3, "convert", tmp_path / name, tmp_path / "x.fbin")


def test_info_tells_what_files_are(kith, tmp_path):
    x = np.random.default_rng(1).standard_normal((200, 8)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "f.npy", np.asfortranarray(x.astype(np.float64)))
    (tmp_path / "x.gz").write_bytes(b"\x1f\x8b123")
    (tmp_path / "x.what").write_bytes(b"1234567890")
    kith.ok("index", "build", "--base", tmp_path / "x.npy", "--factory", "Flat", "--metric", "sqeuclidean", "--out", tmp_path / "x.kith")
    kith.ok("index", "convert", tmp_path / "x.kith", tmp_path / "x.faiss")
    for name, says in [
        ("x.kith", "index, "),
        ("x.faiss", "Flat, metric sqeuclidean: 200 vectors of 8"),
        ("f.npy", "200 x 8 float64, in Fortran order"),
        ("x.gz", "a gzip file"),
    ]:
        assert says in kith.ok("info", tmp_path / name).out
    assert "extension of" in kith.fails(2, "info", tmp_path / "x.what")
    told = kith.ok("info", tmp_path / "x.kith", "--json").json["result"]["files"][0]
    assert told["content"] == "index" and told["index"]["size"] == 200
