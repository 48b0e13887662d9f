"""read_vectors and write_vectors: round trips, ranges, and the errors of files."""

from __future__ import annotations

import errno
import os
import pickle

import numpy as np
import pytest

import kith


@pytest.mark.parametrize(
    "ending, dtype", [("fbin", np.float32), ("u8bin", np.uint8), ("npy", np.float32), ("npy", np.uint8)]
)
def test_vectors_come_back(ending, dtype, tmp_path, vectors):
    path = tmp_path / f"x.{ending}"
    x = vectors(57, 13, dtype)
    kith.write_vectors(path, x)
    y = kith.read_vectors(path)
    assert y.dtype == dtype and (x == y).all()
    assert y.flags.writeable and not y.flags.owndata
    assert (kith.read_vectors(str(path), 5) == x[5:]).all()
    assert (kith.read_vectors(path, first=5, count=7) == x[5:12]).all()
    assert kith.read_vectors(path, 57).shape == (0, 13)


@pytest.mark.parametrize("ending", ["ibin", "npy"])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint32, np.int8])
def test_ids_come_back_as_int64(ending, dtype, tmp_path, rng):
    path = tmp_path / f"ids.{ending}"
    ids = rng.integers(0, 100, (31, 10)).astype(dtype)
    kith.write_vectors(path, ids)
    back = kith.read_vectors(path)
    assert back.dtype == np.int64 and (back == ids).all()
    assert (kith.read_vectors(path, 3, 4) == ids[3:7]).all()
    assert kith.read_vectors(path, 31).shape == (0, 10)


def test_small_ids_may_be_bytes(tmp_path):
    ids = np.arange(6, dtype=np.uint8).reshape(2, 3)
    kith.write_vectors(tmp_path / "ids.ibin", ids)
    assert (kith.read_vectors(tmp_path / "ids.ibin") == ids).all()


def test_the_formats_are_what_others_write(tmp_path, vectors):
    x = vectors(9, 4)
    np.save(tmp_path / "x.npy", x)
    assert (kith.read_vectors(tmp_path / "x.npy") == x).all()
    kith.write_vectors(tmp_path / "y.npy", x)
    assert (np.load(tmp_path / "y.npy") == x).all()
    (tmp_path / "x.fbin").write_bytes(np.array([9, 4], "<i4").tobytes() + x.astype("<f4").tobytes())
    assert (kith.read_vectors(tmp_path / "x.fbin") == x).all()


@pytest.mark.parametrize("make", [lambda x: x[:, 2:5], np.asfortranarray, lambda x: x[::-1], lambda x: x[::2]])
def test_any_layout_is_written(make, tmp_path, vectors):
    x = make(vectors(20, 6))
    kith.write_vectors(tmp_path / "x.fbin", x)
    assert (kith.read_vectors(tmp_path / "x.fbin") == x).all()


def test_results_are_written_and_read(tmp_path, vectors):
    found = kith.knn(vectors(5, 3), vectors(8, 3), k=10)
    kith.write_vectors(tmp_path / "i.ibin", found.ids)
    kith.write_vectors(tmp_path / "d.fbin", found.distances)
    assert (kith.read_vectors(tmp_path / "i.ibin") == found.ids).all()
    assert (kith.read_vectors(tmp_path / "d.fbin") == found.distances).all()


def test_a_file_of_many_pieces(tmp_path, rng):
    x = rng.integers(0, 256, (70_000, 784), dtype=np.uint8)
    kith.write_vectors(tmp_path / "x.u8bin", x)
    y = kith.read_vectors(tmp_path / "x.u8bin")
    assert np.array_equal(x, y)
    ids = rng.integers(0, 2**31, (30_000, 100))
    kith.write_vectors(tmp_path / "x.ibin", ids)
    assert np.array_equal(kith.read_vectors(tmp_path / "x.ibin"), ids)


def test_what_was_read_stays_when_others_go(tmp_path, vectors):
    x = vectors(50, 4)
    kith.write_vectors(tmp_path / "x.fbin", x)
    part = kith.read_vectors(tmp_path / "x.fbin")[10:20]
    os.remove(tmp_path / "x.fbin")
    assert (part == x[10:20]).all()


@pytest.mark.parametrize("first, count", [(-1, None), (58, None), (0, 58), (50, 10), (0, -1), (2**62, 2**62)])
@pytest.mark.parametrize("name", ["x.fbin", "x.ibin"])
def test_rows_that_are_not_there(name, first, count, tmp_path):
    kith.write_vectors(tmp_path / name, np.zeros((57, 3), np.float32 if name == "x.fbin" else np.int32))
    with pytest.raises(ValueError):
        kith.read_vectors(tmp_path / name, first, count)


def test_errors_of_the_system(tmp_path):
    missing = tmp_path / "nothing.fbin"
    with pytest.raises(FileNotFoundError) as caught:
        kith.read_vectors(missing)
    assert caught.value.errno == errno.ENOENT and caught.value.filename == str(missing)
    with pytest.raises(FileNotFoundError):
        kith.knn(missing, missing)
    (tmp_path / "folder.fbin").mkdir()
    with pytest.raises(OSError):
        kith.read_vectors(tmp_path / "folder.fbin")
    with pytest.raises(FileNotFoundError):
        kith.write_vectors(tmp_path / "no" / "x.fbin", np.zeros((2, 2), np.float32))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tmp_path):
    path = tmp_path / "x.fbin"
    kith.write_vectors(path, np.zeros((2, 2), np.float32))
    path.chmod(0)
    with pytest.raises(PermissionError):
        kith.read_vectors(path)


def test_a_name_that_is_not_utf8(tmp_path):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe.fbin")
    kith.write_vectors(path, np.ones((2, 2), np.float32))
    assert (kith.read_vectors(path) == 1).all()
    os.remove(path)
    with pytest.raises(FileNotFoundError) as caught:
        kith.read_vectors(path)
    assert caught.value.filename == path


def test_a_null_in_a_name():
    with pytest.raises(ValueError, match="null"):
        kith.read_vectors("x\0.fbin")


def test_damaged_files(tmp_path):
    path = tmp_path / "x.fbin"
    kith.write_vectors(path, np.zeros((5, 4), np.float32))
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(kith.CorruptFileError) as caught:
        kith.read_vectors(path)
    error = caught.value
    assert isinstance(error, ValueError) and error.filename == str(path) and isinstance(error.offset, int)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.filename, again.offset) == (str(error), error.filename, error.offset)
    (tmp_path / "x.npy").write_bytes(b"not numpy's")
    with pytest.raises(kith.CorruptFileError):
        kith.read_vectors(tmp_path / "x.npy")


@pytest.mark.parametrize(
    "name, array, error",
    [
        ("x.fbin", np.zeros((2, 2)), TypeError),
        ("x.fbin", np.zeros((2, 2), np.float16), TypeError),
        ("x.fbin", np.zeros((2, 2), bool), TypeError),
        ("x.fbin", np.zeros((2, 2), np.uint8), ValueError),
        ("x.fbin", np.zeros((2, 2), np.int64), ValueError),
        ("x.u8bin", np.zeros((2, 2), np.float32), ValueError),
        ("x.ibin", np.zeros((2, 2), np.float32), ValueError),
        ("x.ibin", np.full((2, 2), 2**31), ValueError),
        ("x.npy", np.full((2, 2), 2**63, np.uint64), ValueError),
        ("x.fbin", np.zeros(2, np.float32), ValueError),
        ("x.txt", np.zeros((2, 2), np.float32), ValueError),
        ("x", np.zeros((2, 2), np.float32), ValueError),
    ],
)
def test_writes_that_are_refused(name, array, error, tmp_path):
    with pytest.raises(error):
        kith.write_vectors(tmp_path / name, array)
    assert os.listdir(tmp_path) == []


def test_a_refused_write_leaves_what_was_there(tmp_path):
    path = tmp_path / "x.ibin"
    kith.write_vectors(path, np.ones((2, 2), np.int64))
    with pytest.raises(ValueError):
        kith.write_vectors(path, np.full((2, 2), 2**40))
    assert (kith.read_vectors(path) == 1).all() and os.listdir(tmp_path) == ["x.ibin"]
