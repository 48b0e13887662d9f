"""Vectors in several files, by a pattern: what comes of them is what comes of the rows in one file."""

import numpy as np
import pytest

from matrix_files import read_matrix, write_matrix


@pytest.fixture
def shards(tmp_path):
    """The rows in one file, and a pattern of three that hold them; the second has no rows."""
    x = np.random.default_rng(2).standard_normal((500, 6)).astype(np.float32)
    (tmp_path / "parts").mkdir()
    for number, (first, end) in enumerate([(0, 120), (120, 120), (120, 500)]):
        np.save(tmp_path / "parts" / f"{number}.npy", x[first:end])
    return x, write_matrix(tmp_path / "x.fbin", x), tmp_path / "parts" / "*.npy"


def both(kith, shards, tmp_path, arguments, outputs):
    """Runs a command with the file and with the pattern in the place of FILE; the outputs must be the same bytes."""
    written = []
    for number, path in enumerate(shards[1:]):
        names = [tmp_path / f"{number}-{name}" for name in outputs]
        kith.ok(*[path if a == "FILE" else names[int(a[3:])] if str(a).startswith("OUT") else a for a in arguments])
        written.append([name.read_bytes() for name in names])
    assert written[0] == written[1]


@pytest.mark.parametrize(
    ("arguments", "outputs"),
    [
        (["knn", "--base", "FILE", "--queries", "FILE", "-k", 4, "--out-ids", "OUT0", "--out-distances", "OUT1"], "id"),
        (["kmeans", "--data", "FILE", "-k", 5, "--out", "OUT0", "--out-labels", "OUT1"], "id"),
        (["graph", "build", "--data", "FILE", "-k", 4, "--out-ids", "OUT0", "--out-distances", "OUT1"], "id"),
        (["convert", "FILE", "OUT0"], "i"),
    ],
)
def test_commands_take_a_pattern(kith, shards, tmp_path, arguments, outputs):
    both(kith, shards, tmp_path, arguments, [f"{name}.npy" for name in outputs])


def test_an_index_is_built_of_a_pattern(kith, shards, tmp_path):
    both(kith, shards, tmp_path, ["index", "build", "--base", "FILE", "--factory", "IVF4,PQ3x4", "--out", "OUT0"], ["x.kith"])


def test_codes_of_a_pattern(kith, shards, tmp_path):
    train = ["train", "--data", "FILE", "--quantizer", "PQ3x4", "--out", "OUT0"]
    both(kith, shards, tmp_path, train, ["q.kith"])
    encode = ["encode", "--quantizer", tmp_path / "0-q.kith", "--data", "FILE", "--out", "OUT0"]
    both(kith, shards, tmp_path, encode, ["c.npy"])


def test_errors_name_the_file(kith, shards, tmp_path):
    bad = shards[0][120:].copy()
    bad[17, 2] = np.nan
    np.save(tmp_path / "parts" / "2.npy", bad)
    failed = kith("kmeans", "--data", shards[2], "-k", 5, "--out", tmp_path / "c.npy")
    assert failed.code == 2 and "row 137 (row 17 of " in failed.err and "2.npy" in failed.err
    failed = kith("kmeans", "--data", tmp_path / "none-*.npy", "-k", 5, "--out", tmp_path / "c.npy")
    assert failed.code != 0 and "no file matches the pattern" in failed.err


def test_an_output_among_the_inputs_is_refused(kith, shards, tmp_path):
    before = (tmp_path / "parts" / "2.npy").read_bytes()
    failed = kith("kmeans", "--data", shards[2], "-k", 5, "--out", tmp_path / "parts" / "2.npy")
    assert failed.code == 2 and "are the same file" in failed.err
    assert (tmp_path / "parts" / "2.npy").read_bytes() == before
    assert read_matrix(tmp_path / "x.fbin").shape == (500, 6)
