"""kith head: some rows of a file, as numbers."""

import numpy as np
import pytest

from matrix_files import write_matrix


@pytest.fixture
def file(tmp_path):
    return write_matrix(tmp_path / "a.fbin", np.arange(60, dtype=np.float32).reshape(4, 15) / 2)


def test_rows(kith, file):
    lines = kith.ok("head", file, "--rows", "1:3").out.splitlines()
    assert lines[0] == f"{file}: 4 x 15 f32, rows 1 to 2"
    assert lines[1].split() == ["1:", *(f"{n / 2:g}" for n in range(15, 27)), "..."]
    assert len(lines) == 3 and len(lines[1]) == len(lines[2])


@pytest.mark.parametrize(
    "rows, shown", [("0:2", [0, 1]), ("2:", [2, 3]), (":1", [0]), ("3", [3]), ("1:99", [1, 2, 3]), ("2:2", []), (":", [0, 1, 2, 3])]
)
def test_ranges(kith, file, rows, shown):
    result = kith.ok("head", file, "--rows", rows, "--columns", 0, "--json").json["result"]
    assert [row["row"] for row in result["shown"]] == shown
    for row in result["shown"]:
        assert row["values"] == [(15 * row["row"] + n) / 2 for n in range(15)]
    assert (result["rows"], result["cols"], result["dtype"]) == (4, 15, "f32")


def test_ids(kith, tmp_path):
    np.save(tmp_path / "i.npy", np.array([[2**53 + 1, -1]]))
    assert kith.ok("head", tmp_path / "i.npy", "--json").json["result"]["shown"] == [{"row": 0, "values": [2**53 + 1, -1]}]
    assert f"{2**53 + 1}" in kith.ok("head", tmp_path / "i.npy").out


def test_bytes(kith, tmp_path):
    file = write_matrix(tmp_path / "a.u8bin", np.array([[0, 255, 7]]))
    assert kith.ok("head", file).out.endswith("0:   0 255   7\n")


@pytest.mark.parametrize("rows", ["4:5", "3:1", "a:b", "-1:2", "1:2:3", "9"])
def test_ranges_that_are_refused(kith, file, rows):
    assert f"--rows {rows}" in kith.fails(2, "head", file, f"--rows={rows}")


def test_only_the_rows_are_read(kith, tmp_path):
    rows = np.zeros((200_000, 100), np.float32)
    file = write_matrix(tmp_path / "large.fbin", rows)
    assert kith.ok("head", file, "--rows", "199999", "--memory-limit", "48M").out.count("\n") == 2


def test_missing(kith, tmp_path):
    assert "No such file" in kith.fails(3, "head", tmp_path / "missing.fbin")
    kith.fails(2, "head", tmp_path / "missing.fbin", "--columns", "-1")
