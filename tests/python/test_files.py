"""read_vectors and write_vectors: round trips, ranges, and the errors of files."""

from __future__ import annotations

import errno
import gzip
import os
import pickle

import numpy as np
import pytest

import kith


VECTOR_FORMATS = [
    ("fvecs", np.float32),
    ("bvecs", np.uint8),
    ("fbin", np.float32),
    ("f16bin", np.float16),
    ("u8bin", np.uint8),
    ("i8bin", np.int8),
    *[
        (ending, dtype)
        for ending in ("npy", "hdf5")
        for dtype in (np.float32, np.float16, np.uint8, np.int8)
    ],
]


@pytest.mark.parametrize("ending, dtype", VECTOR_FORMATS)
def test_vectors_come_back(ending, dtype, tmp_path, vectors):
    path = tmp_path / f"x.{ending}"
    x = vectors(57, 13, dtype)
    kith.write_vectors(path, x)
    y = kith.read_vectors(path)
    assert y.dtype == dtype and y.shape == x.shape and (x == y).all()
    assert y.flags.writeable and not y.flags.owndata
    assert (kith.read_vectors(str(path), 5) == x[5:]).all()
    assert (kith.read_vectors(path, first=5, count=7) == x[5:12]).all()
    assert kith.read_vectors(path, 57).shape == (0, 13)


@pytest.mark.parametrize("ending, dtype", VECTOR_FORMATS)
def test_mapped_vectors(ending, dtype, tmp_path, vectors):
    path = tmp_path / f"x.{ending}"
    x = vectors(57, 13, dtype)
    kith.write_vectors(path, x)
    mapped = kith.read_vectors(path, mmap=True)
    assert mapped.dtype == dtype and mapped.shape == x.shape and (mapped == x).all()
    assert not mapped.flags.writeable and not mapped.flags.owndata
    with pytest.raises(ValueError):
        mapped[0, 0] = 1
    os.remove(path)
    part = mapped[5:12]
    del mapped
    assert (part == x[5:12]).all()


def test_a_part_of_a_mapping(tmp_path, vectors):
    x = vectors(57, 13)
    for name in ("x.fvecs", "x.npy"):
        kith.write_vectors(tmp_path / name, x)
        assert (kith.read_vectors(tmp_path / name, 5, 7, mmap=True) == x[5:12]).all()
        assert kith.read_vectors(tmp_path / name, 57, mmap=True).shape == (0, 13)
        with pytest.raises(ValueError):
            kith.read_vectors(tmp_path / name, 50, 8, mmap=True)
    assert kith.read_vectors(tmp_path / "x.fvecs", mmap=True).strides == (56, 4)


@pytest.mark.parametrize(
    "ending, stored", [("ibin", np.int32), ("ivecs", np.int32), ("npy", np.int64)]
)
def test_mapped_ids_come_as_they_are_stored(ending, stored, tmp_path):
    ids = np.arange(12).reshape(4, 3)
    kith.write_vectors(tmp_path / f"x.{ending}", ids)
    mapped = kith.read_vectors(tmp_path / f"x.{ending}", mmap=True)
    assert mapped.dtype == stored and (mapped == ids).all()


def test_what_is_not_mapped(tmp_path):
    (tmp_path / "x-idx3-ubyte.gz").write_bytes(
        gzip.compress(bytes([0, 0, 8, 1, 0, 0, 0, 1, 7]))
    )
    with pytest.raises(ValueError, match="cannot be mapped"):
        kith.read_vectors(tmp_path / "x-idx3-ubyte.gz", mmap=True)
    kith.write_vectors(tmp_path / "x.u8bin", np.zeros((2, 2), np.uint8))
    with pytest.raises(ValueError, match="nothing is converted"):
        kith.read_vectors(tmp_path / "x.u8bin", mmap=True, dtype="f32")
    with pytest.raises(TypeError, match="mmap"):
        kith.read_vectors(tmp_path / "x.u8bin", mmap=1)


@pytest.mark.parametrize("ending, stored", VECTOR_FORMATS)
@pytest.mark.parametrize(
    "wanted",
    [np.float32, "float16", np.dtype(np.uint8), np.int8, "f32", "f16", "u8", "i8"],
)
def test_reading_as_another_dtype(ending, stored, wanted, tmp_path):
    names = {"f32": np.float32, "f16": np.float16, "u8": np.uint8, "i8": np.int8}
    x = np.arange(120).reshape(10, 12)
    kith.write_vectors(tmp_path / f"x.{ending}", x.astype(stored))
    y = kith.read_vectors(tmp_path / f"x.{ending}", dtype=wanted)
    assert (
        y.dtype
        == np.dtype(names.get(wanted, wanted) if isinstance(wanted, str) else wanted)
        and (y == x).all()
    )


def test_conversions_that_would_change_a_value(tmp_path):
    path = tmp_path / "x.fbin"
    x = np.ones((20, 3), np.float32)
    x[7, 2] = 1e6
    kith.write_vectors(path, x)
    for wanted in ("f16", "u8", "i8"):
        with pytest.raises(ValueError, match="row 7, column 2 .* holds 1000000"):
            kith.read_vectors(path, dtype=wanted)
        with pytest.raises(ValueError, match="row 7, column 2"):
            kith.write_vectors(tmp_path / "y.npy", x, dtype=wanted)
    assert (kith.read_vectors(path, 8, dtype="u8") == 1).all()
    assert os.listdir(tmp_path) == ["x.fbin"]
    x[7, 2] = 2049
    kith.write_vectors(path, x, dtype=np.float32)
    assert kith.read_vectors(path, dtype=np.float16)[7, 2] == 2048
    with pytest.raises(TypeError, match="float64"):
        kith.read_vectors(path, dtype=np.float64)
    kith.write_vectors(tmp_path / "i.ibin", np.ones((2, 2), np.int64))
    with pytest.raises(ValueError, match="dtype is for vectors"):
        kith.read_vectors(tmp_path / "i.ibin", dtype="f32")
    with pytest.raises(TypeError, match="dtype is for vectors"):
        kith.write_vectors(tmp_path / "i.ibin", np.ones((2, 2), np.int64), dtype="f32")


def test_bfloat16(tmp_path, vectors):
    path = tmp_path / "x.bf16bin"
    x = vectors(9, 5)
    kith.write_vectors(path, x, dtype="bf16")
    wide = kith.read_vectors(path)
    assert wide.dtype == np.float32
    np.testing.assert_allclose(wide, x, rtol=2**-8)
    bits = kith.read_vectors(path, dtype="bf16")
    assert (
        bits.dtype == np.uint16
        and ((bits.astype(np.uint32) << 16).view(np.float32) == wide).all()
    )
    assert (kith.read_vectors(path, mmap=True, dtype="bf16") == bits).all()
    with pytest.raises(ValueError, match="bf16"):
        kith.read_vectors(path, mmap=True)
    kith.write_vectors(tmp_path / "y.bf16bin", bits, dtype="bf16")
    assert (tmp_path / "y.bf16bin").read_bytes() == path.read_bytes()
    with pytest.raises(ValueError, match="write .bf16bin"):
        kith.write_vectors(tmp_path / "y.npy", x, dtype="bf16")


def test_bfloat16_of_ml_dtypes(tmp_path, vectors):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = vectors(9, 5).astype(ml_dtypes.bfloat16)
    kith.write_vectors(tmp_path / "x.bf16bin", x)
    y = kith.read_vectors(tmp_path / "x.bf16bin", dtype=ml_dtypes.bfloat16)
    assert y.dtype == ml_dtypes.bfloat16 and (x == y).all()
    assert (kith.read_vectors(tmp_path / "x.bf16bin") == x.astype(np.float32)).all()
    np.save(tmp_path / "x.npy", x)
    with pytest.raises(ValueError, match="bfloat16 has no dtype"):
        kith.read_vectors(tmp_path / "x.npy")


def test_hdf5_of_ann_benchmarks(tmp_path, vectors):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "ann.hdf5"
    train, test = vectors(500, 16), vectors(7, 16, np.float16)
    neighbors = np.arange(35, dtype=np.int32).reshape(7, 5)
    with h5py.File(path, "w") as file:
        file["train"], file["test"], file["neighbors"] = train, test, neighbors
        file.create_dataset(
            "packed", data=train, chunks=(64, 5), compression="gzip", shuffle=True
        )
    assert (kith.read_vectors(path) == train).all()
    assert (kith.read_vectors(f"{path}::test") == test).all()
    assert (kith.read_vectors(f"{path}::packed", 100, 300) == train[100:400]).all()
    assert (
        kith.read_vectors(f"{path}::packed", dtype=np.float16)
        == train.astype(np.float16)
    ).all()
    read = kith.read_vectors(f"{path}::neighbors")
    assert read.dtype == np.int64 and (read == neighbors).all()
    with pytest.raises(ValueError, match="it holds: neighbors, packed, test, train"):
        kith.read_vectors(f"{path}::nothing")


@pytest.mark.parametrize("version", ["earliest", "v108", "v110", "latest"])
@pytest.mark.parametrize(
    "filters",
    [
        {},
        {"compression": "gzip", "shuffle": True},
        {"compression": "lzf", "fletcher32": True},
    ],
)
@pytest.mark.parametrize(
    "limits", [None, (400, 40), (None, 10), (200, None), (None, None)]
)
def test_hdf5_chunks_of_h5py(version, filters, limits, tmp_path, vectors):
    """Every index of chunks, with the dataset's edge inside of chunks and a part that was never written."""
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "x.hdf5"
    x = vectors(200, 10)
    with h5py.File(
        path, "w", libver=version if version == "latest" else (version, "latest")
    ) as file:
        made = file.create_dataset(
            "a/b",
            x.shape,
            x.dtype,
            chunks=(7, 3),
            maxshape=limits,
            fillvalue=3,
            **filters,
        )
        made[:100] = x[:100]
        made[150:, :5] = x[150:, :5]
        x = made[:]
        for i in range(30):
            file[f"link{i}"] = h5py.SoftLink("/a/b")
    assert (kith.read_vectors(f"{path}::a/b") == x).all()
    assert (kith.read_vectors(f"{path}::link29", 90, 70) == x[90:160]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.uint8, np.int8, np.int64])
@pytest.mark.parametrize("name", ["train", "deep/inside/x", "vecteurs/données"])
def test_h5py_reads_what_is_written(name, dtype, tmp_path):
    h5py = pytest.importorskip("h5py")
    for rows in (0, 1, 33):
        path = tmp_path / f"{rows}.h5"
        x = np.arange(rows * 7).reshape(rows, 7).astype(dtype)
        kith.write_vectors(f"{path}::{name}", x)
        with h5py.File(path) as file:
            made = file[name]
            assert (
                made.dtype == dtype and made.shape == x.shape and (made[:] == x).all()
            )
            assert made.chunks is None and (rows == 0 or made.id.get_offset() % 64 == 0)
            assert list(file) == [name.split("/")[0]]
        with h5py.File(path, "r+") as file:
            file["more"] = x
        assert (kith.read_vectors(f"{path}::more") == x).all()
        assert (kith.read_vectors(f"{path}::{name}") == x).all()
        with pytest.raises(
            ValueError,
            match="already exists and holds: .*more.* would replace all of it",
        ):
            kith.write_vectors(f"{path}::{name}", x)
        assert (kith.read_vectors(f"{path}::more") == x).all()


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_images_in_idx(pack, tmp_path, vectors):
    x = vectors(30, 12, np.uint8)
    header = bytes([0, 0, 8, 3]) + np.array([30, 3, 4], ">u4").tobytes()
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(pack(header + x.tobytes()))
    assert (kith.read_vectors(path) == x).all()
    assert (kith.read_vectors(path, 20, 5) == x[20:25]).all()
    assert (kith.read_vectors(path, 3, dtype=np.float32) == x[3:]).all()
    with pytest.raises(ValueError, match="only read"):
        kith.write_vectors(path, x)


@pytest.mark.parametrize("ending", ["ibin", "ivecs", "npy", "hdf5"])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint32, np.int16])
def test_ids_come_back_as_int64(ending, dtype, tmp_path, rng):
    path = tmp_path / f"ids.{ending}"
    ids = rng.integers(0, 100, (31, 10)).astype(dtype)
    kith.write_vectors(path, ids)
    back = kith.read_vectors(path)
    assert back.dtype == np.int64 and (back == ids).all()
    assert (kith.read_vectors(path, 3, 4) == ids[3:7]).all()
    assert kith.read_vectors(path, 31).shape == (0, 10)


def test_small_ids_may_be_bytes(tmp_path):
    for name, dtype in (
        ("a.ibin", np.uint8),
        ("b.ivecs", np.uint8),
        ("c.ibin", np.int8),
    ):
        ids = np.arange(6, dtype=dtype).reshape(2, 3)
        kith.write_vectors(tmp_path / name, ids)
        assert (kith.read_vectors(tmp_path / name) == ids).all()


def test_the_formats_are_what_others_write(tmp_path, vectors):
    x = vectors(9, 4)
    np.save(tmp_path / "x.npy", x)
    assert (kith.read_vectors(tmp_path / "x.npy") == x).all()
    kith.write_vectors(tmp_path / "y.npy", x)
    assert (np.load(tmp_path / "y.npy") == x).all()
    (tmp_path / "x.fbin").write_bytes(
        np.array([9, 4], "<i4").tobytes() + x.astype("<f4").tobytes()
    )
    assert (kith.read_vectors(tmp_path / "x.fbin") == x).all()
    rows = b"".join(np.int32(4).tobytes() + row.tobytes() for row in x)
    (tmp_path / "x.fvecs").write_bytes(rows)
    assert (kith.read_vectors(tmp_path / "x.fvecs") == x).all()
    kith.write_vectors(tmp_path / "y.fvecs", x)
    assert (tmp_path / "y.fvecs").read_bytes() == rows


@pytest.mark.parametrize(
    "make",
    [lambda x: x[:, 2:5], np.asfortranarray, lambda x: x[::-1], lambda x: x[::2]],
)
def test_any_layout_is_written(make, tmp_path, vectors):
    x = make(vectors(20, 6))
    kith.write_vectors(tmp_path / "x.fbin", x)
    assert (kith.read_vectors(tmp_path / "x.fbin") == x).all()


def test_results_are_written_and_read(tmp_path, vectors):
    with pytest.warns(RuntimeWarning, match="8 rows"):
        found = kith.knn(vectors(5, 3), vectors(8, 3), k=10)  # with ids of -1
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


@pytest.mark.parametrize(
    "first, count", [(-1, None), (58, None), (0, 58), (50, 10), (0, -1), (2**62, 2**62)]
)
@pytest.mark.parametrize("name", ["x.fbin", "x.ibin"])
def test_rows_that_are_not_there(name, first, count, tmp_path):
    kith.write_vectors(
        tmp_path / name, np.zeros((57, 3), np.float32 if name == "x.fbin" else np.int32)
    )
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


def test_an_error_without_a_number_keeps_its_reason(tmp_path):
    os.mkfifo(tmp_path / "x.npy")
    with pytest.raises(OSError, match="x.npy.*only regular files") as caught:
        kith.read_vectors(tmp_path / "x.npy")
    assert caught.value.errno is None and "None" not in str(caught.value)


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
    assert (
        isinstance(error, ValueError)
        and error.filename == str(path)
        and isinstance(error.offset, int)
    )
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.filename, again.offset) == (
        str(error),
        error.filename,
        error.offset,
    )
    (tmp_path / "x.npy").write_bytes(b"not numpy's")
    with pytest.raises(kith.CorruptFileError):
        kith.read_vectors(tmp_path / "x.npy")


@pytest.mark.parametrize(
    "name, array, error",
    [
        ("x.fbin", np.zeros((2, 2)), TypeError),
        ("x.fbin", np.zeros((2, 2), np.float16), ValueError),
        ("x.bvecs", np.zeros((2, 2), np.int8), ValueError),
        ("x.ivecs", np.full((2, 2), 2**31), ValueError),
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
