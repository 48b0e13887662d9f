"""kith convert: every pair of formats, ranges, and what would change a value."""

import numpy as np
import pytest

from matrix_files import DTYPES, leftovers, read_matrix, write_images, write_matrix

BYTES = np.random.default_rng(3).integers(0, 256, (37, 5), np.uint8)
REALS = np.random.default_rng(4).standard_normal((37, 5)).astype(np.float32)
IDS = np.random.default_rng(5).integers(-1, 2**31 - 1, (37, 5), np.int32)


def convert(kith, folder, matrix, source, target, *options):
    """The converted matrix and the report."""
    a, b = write_matrix(folder / f"a{source}", matrix), folder / f"b{target}"
    report = kith.ok("convert", a, b, "--json", *options).json
    assert leftovers(folder) == sorted([a.name, b.name])
    return read_matrix(b), report["result"]


@pytest.mark.parametrize(
    "source, target",
    [(".fbin", ".npy"), (".npy", ".fbin"), (".fbin", ".fbin"), (".npy", ".npy")],
)
def test_reals(kith, tmp_path, source, target):
    matrix = REALS.copy()
    matrix[0, :3] = np.nan, np.inf, -0.0
    made, result = convert(kith, tmp_path, matrix, source, target)
    assert (
        made.tobytes() == matrix.tobytes()
        and made.dtype == np.float32
        and made.shape == (37, 5)
    )
    assert (
        result["content"],
        result["from"],
        result["to"],
        result["rows"],
        result["cols"],
    ) == (
        "vectors",
        "f32",
        "f32",
        37,
        5,
    )


@pytest.mark.parametrize("source, target", [(".u8bin", ".npy"), (".npy", ".u8bin")])
def test_bytes(kith, tmp_path, source, target):
    made, _ = convert(kith, tmp_path, BYTES, source, target)
    assert made.dtype == np.uint8
    np.testing.assert_array_equal(made, BYTES)


@pytest.mark.parametrize("source", [".u8bin", ".npy"])
def test_bytes_become_reals(kith, tmp_path, source):
    made, result = convert(kith, tmp_path, BYTES, source, ".fbin")
    assert made.dtype == np.float32 and (result["from"], result["to"]) == ("u8", "f32")
    np.testing.assert_array_equal(made, BYTES)


@pytest.mark.parametrize("source", [".fbin", ".npy"])
def test_whole_reals_become_bytes(kith, tmp_path, source):
    made, result = convert(kith, tmp_path, BYTES.astype(np.float32), source, ".u8bin")
    assert made.dtype == np.uint8 and (result["from"], result["to"]) == ("f32", "u8")
    np.testing.assert_array_equal(made, BYTES)


@pytest.mark.parametrize("value", [3.5, -1, 256, 255.5, 1e30, -0.5, np.nan, np.inf])
def test_other_reals_do_not_become_bytes(kith, tmp_path, value):
    matrix = BYTES.astype(np.float32)
    matrix[23, 4] = value
    a = write_matrix(tmp_path / "a.fbin", matrix)
    error = kith.fails(2, "convert", a, tmp_path / "b.u8bin", "--first", 2)
    assert (
        "row 23, column 4" in error
        and str(a) in error
        and f"holds {np.float32(value):g}".lower() in error.lower()
    )
    assert leftovers(tmp_path) == ["a.fbin"]


@pytest.mark.parametrize(
    "source, target, kind",
    [
        (".ibin", ".npy", np.int64),
        (".ivecs", ".npy", np.int64),
        (".npy", ".ibin", np.int32),
        (".ibin", ".ivecs", np.int32),
        (".npy", ".npy", np.int64),
    ],
)
@pytest.mark.parametrize("stored", [np.int32, np.int64])
def test_ids(kith, tmp_path, source, target, kind, stored):
    made, result = convert(kith, tmp_path, IDS.astype(stored), source, target)
    assert made.dtype == kind and result["content"] == "ids"
    np.testing.assert_array_equal(made, IDS)


VECTOR_ENDINGS = [
    ".fvecs",
    ".bvecs",
    ".fbin",
    ".f16bin",
    ".bf16bin",
    ".u8bin",
    ".i8bin",
    ".npy",
]
SMALL = np.random.default_rng(7).integers(
    0, 128, (37, 5), np.uint8
)  # which every dtype holds


def stored(matrix, ending):
    """The matrix as a file of that ending holds it."""
    if ending == ".bf16bin":
        return (matrix.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return matrix.astype(DTYPES.get(ending, np.float32))


@pytest.mark.parametrize("source", VECTOR_ENDINGS)
@pytest.mark.parametrize("target", VECTOR_ENDINGS)
def test_between_all_vector_formats(kith, tmp_path, source, target):
    a, b = (
        write_matrix(tmp_path / f"a{source}", stored(SMALL, source)),
        tmp_path / f"b{target}",
    )
    if (source, target) == (".bf16bin", ".npy"):
        assert "write .bf16bin, or convert" in kith.fails(2, "convert", a, b)
        kith.ok("convert", a, b, "--dtype", "f32")
    else:
        kith.ok("convert", a, b)
    made = read_matrix(b)
    if target == ".npy":
        expected = SMALL.astype(
            np.float32 if source == ".bf16bin" else DTYPES.get(source, np.float32)
        )
    else:
        expected = stored(SMALL, target)
    assert made.dtype == expected.dtype
    np.testing.assert_array_equal(made, expected)


@pytest.mark.parametrize(
    "name, dtype",
    [("f32", np.float32), ("f16", np.float16), ("u8", np.uint8), ("i8", np.int8)],
)
def test_dtype(kith, tmp_path, name, dtype):
    made, result = convert(kith, tmp_path, SMALL, ".bvecs", ".npy", "--dtype", name)
    assert made.dtype == dtype and (result["from"], result["to"]) == ("u8", name)
    np.testing.assert_array_equal(made, SMALL)


def test_dtypes_that_do_not_fit(kith, tmp_path):
    a = write_matrix(tmp_path / "a.fbin", REALS)
    assert ".u8bin files hold u8" in kith.fails(
        2, "convert", a, tmp_path / "b.u8bin", "--dtype", "f16"
    )
    assert "unknown dtype 'f64'" in kith.fails(
        2, "convert", a, tmp_path / "b.npy", "--dtype", "f64"
    )
    assert "only read" in kith.fails(2, "convert", a, tmp_path / "b-idx3-ubyte")
    i = write_matrix(tmp_path / "i.ibin", IDS)
    assert "is for vectors" in kith.fails(
        2, "convert", i, tmp_path / "b.npy", "--dtype", "f32"
    )
    assert leftovers(tmp_path) == ["a.fbin", "i.ibin"]


def test_rounding_and_overflow(kith, tmp_path):
    matrix = REALS.copy()
    made, _ = convert(kith, tmp_path, matrix, ".fbin", ".f16bin")
    np.testing.assert_array_equal(made, matrix.astype(np.float16))
    matrix[30, 1] = -70000
    a = write_matrix(tmp_path / "c.fbin", matrix)
    assert "row 30, column 1" in kith.fails(2, "convert", a, tmp_path / "d.f16bin")
    assert not (tmp_path / "d.f16bin").exists()


@pytest.mark.parametrize("pack", [None, bytes])
def test_images(kith, tmp_path, pack):
    a = write_images(
        tmp_path / "train-images-idx3-ubyte.gz", BYTES, *([pack] if pack else [])
    )
    kith.ok("convert", a, tmp_path / "b.u8bin", "--first", 3)
    np.testing.assert_array_equal(read_matrix(tmp_path / "b.u8bin"), BYTES[3:])


def test_hdf5_of_other_datasets_is_not_replaced(kith, tmp_path):
    a, h = write_matrix(tmp_path / "a.fbin", REALS), tmp_path / "h.h5"
    kith.ok("convert", a, f"{h}::kept")
    before = h.read_bytes()
    error = kith.fails(2, "convert", a, f"{h}::extra")
    assert (
        f"'{h}' already exists and holds: kept; writing 'extra' would replace"
        in error
    )
    assert h.read_bytes() == before
    kith.ok("convert", a, f"{h}::kept", "--count", 1)
    assert (
        kith.ok("info", f"{h}::kept", "--json").json["result"]["files"][0]["rows"] == 1
    )


def test_hdf5(kith, tmp_path):
    a, h = write_matrix(tmp_path / "a.fbin", REALS), tmp_path / "h.hdf5"
    kith.ok("convert", a, h)
    kith.ok("convert", f"{h}::train", tmp_path / "b.npy", "--first", 5)
    np.testing.assert_array_equal(read_matrix(tmp_path / "b.npy"), REALS[5:])
    kith.ok(
        "convert",
        write_matrix(tmp_path / "i.ivecs", IDS),
        f"{tmp_path / 'i.h5'}::neighbors",
    )
    kith.ok("convert", f"{tmp_path / 'i.h5'}::neighbors", tmp_path / "i.npy")
    np.testing.assert_array_equal(read_matrix(tmp_path / "i.npy"), IDS)
    assert "holds: train" in kith.fails(2, "convert", f"{h}::test", tmp_path / "b.npy")
    assert "same file" in kith.fails(2, "convert", f"{h}::train", f"{h}::test")


def test_ids_too_large_for_ibin(kith, tmp_path):
    a = write_matrix(tmp_path / "a.npy", np.array([[1, 2**31]], np.int64))
    assert str(2**31) in kith.fails(2, "convert", a, tmp_path / "b.ibin")
    assert leftovers(tmp_path) == ["a.npy"]


@pytest.mark.parametrize(
    "options, rows",
    [
        (["--first", 5], slice(5, None)),
        (["--count", 4], slice(0, 4)),
        (["--first", 30, "--count", 7], slice(30, 37)),
        (["--first", 36, "--count", 1], slice(36, 37)),
        (["--count", -1], slice(0, 37)),
        (["--first", 10, "--count", 0], slice(10, 10)),
        (["--first", 37], slice(37, 37)),
    ],
)
@pytest.mark.parametrize("matrix, suffix", [(REALS, ".fbin"), (IDS, ".ibin")])
def test_ranges(kith, tmp_path, options, rows, matrix, suffix):
    made, result = convert(kith, tmp_path, matrix, suffix, ".npy", *options)
    np.testing.assert_array_equal(made, matrix[rows])
    assert (result["first"], result["rows"]) == (rows.start, len(matrix[rows]))


@pytest.mark.parametrize(
    "options",
    [
        ["--first", 38],
        ["--first", -1],
        ["--count", 38],
        ["--count", -2],
        ["--first", 30, "--count", 8],
        ["--first", 1, "--count", 2**63 - 1],
    ],
)
@pytest.mark.parametrize("matrix, suffix", [(REALS, ".fbin"), (IDS, ".ibin")])
def test_ranges_outside(kith, tmp_path, options, matrix, suffix):
    a = write_matrix(tmp_path / f"a{suffix}", matrix)
    assert "37 rows" in kith.fails(2, "convert", a, tmp_path / "b.npy", *options)
    assert leftovers(tmp_path) == [a.name]


def test_summary(kith, tmp_path):
    a = write_matrix(tmp_path / "a.u8bin", BYTES)
    text = kith.ok("convert", a, tmp_path / "b.fbin").out
    assert text.startswith(
        f"wrote {tmp_path / 'b.fbin'}: 37 rows of 5 values (f32) in "
    )
    assert kith.ok("convert", a, tmp_path / "b.fbin", "--quiet").out == ""


@pytest.mark.parametrize(
    "matrix, source, target, text",
    [
        (IDS, ".ibin", ".fbin", "holds ids"),
        (IDS, ".npy", ".u8bin", "holds ids"),
        (IDS, ".ivecs", ".fvecs", "holds ids"),
        (REALS, ".fvecs", ".ivecs", "holds vectors"),
        (REALS, ".fbin", ".ibin", "holds vectors"),
        (REALS, ".npy", ".ibin", "holds vectors"),
        (REALS, ".fbin", ".txt", ".txt"),
        (REALS, ".fbin", "", "known extensions"),
    ],
)
def test_contents_that_do_not_fit(kith, tmp_path, matrix, source, target, text):
    a = write_matrix(tmp_path / f"a{source}", matrix)
    assert text in kith.fails(2, "convert", a, tmp_path / f"b{target}")
    assert leftovers(tmp_path) == [a.name]


def test_onto_itself(kith, tmp_path):
    a = write_matrix(tmp_path / "a.npy", REALS)
    before = a.read_bytes()
    (tmp_path / "link.npy").symlink_to(a)
    for name in (a, tmp_path / "link.npy", "a.npy"):
        assert "same file" in kith.fails(2, "convert", a, name, cwd=tmp_path)
    assert a.read_bytes() == before


def test_missing_input(kith, tmp_path):
    for name in ("a.fbin", "a.npy", "a.ibin"):
        assert "No such file" in kith.fails(
            3, "convert", tmp_path / name, tmp_path / "b.npy"
        )
    assert leftovers(tmp_path) == []


def test_pieces_join_without_seams(kith, tmp_path):
    """More than one 16 MiB piece, with rows that do not divide it."""
    matrix = np.random.default_rng(6).integers(0, 256, (50_021, 131), np.uint8)
    a = write_matrix(tmp_path / "a.u8bin", matrix)
    kith.ok("convert", a, tmp_path / "b.fbin")
    kith.ok("convert", tmp_path / "b.fbin", tmp_path / "c.u8bin")
    assert (tmp_path / "c.u8bin").read_bytes() == a.read_bytes()
    np.testing.assert_array_equal(read_matrix(tmp_path / "b.fbin"), matrix)
