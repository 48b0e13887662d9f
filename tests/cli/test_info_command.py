"""kith info: the machine, and what files hold."""

import os

import numpy as np
import pytest

from matrix_files import write_images, write_matrix


def test_machine(kith):
    text = kith.ok("info").out
    assert text.startswith("kith ")
    for word in ("CPU", "threads", "kernels", "memory", "CUDA"):
        assert word in text or word == "CUDA" and "cuda:0" in text


def test_machine_as_json(kith):
    result = kith.ok("info", "--json").json["result"]
    assert result["cpu"]["threads"] == os.cpu_count()
    assert result["cpu"]["instruction_set"]
    assert result["cpu"]["memory_bytes"] == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 0 < result["cpu"]["memory_free_bytes"] <= result["cpu"]["memory_bytes"]
    cuda = result["cuda"]
    if not cuda["built"]:
        assert cuda["devices"] == [] and "no CUDA backend" in cuda["why_none"]
    elif not cuda["devices"]:
        assert "no usable CUDA device" in cuda["why_none"]
    else:
        assert cuda["devices"][0]["device"] == "cuda:0" and "why_none" not in cuda


def test_the_instruction_set_can_be_chosen(kith, monkeypatch):
    monkeypatch.setenv("KITH_CPU_TARGET", "no such")
    known = kith.fails(2, "info").rpartition("it has ")[2].strip().split(", ")
    for target in known:
        monkeypatch.setenv("KITH_CPU_TARGET", target)
        assert kith.ok("info", "--json").json["result"]["cpu"]["instruction_set"] == target


@pytest.mark.parametrize(
    "name, matrix, content, dtype",
    [
        ("a.fbin", np.zeros((5, 3), np.float32), "vectors", "f32"),
        ("a.u8bin", np.zeros((5, 3), np.uint8), "vectors", "u8"),
        ("a.ibin", np.zeros((5, 3), np.int32), "ids", "i32"),
        ("a.npy", np.zeros((5, 3), np.float32), "vectors", "f32"),
        ("b.npy", np.zeros((5, 3), np.uint8), "vectors", "u8"),
        ("c.npy", np.zeros((5, 3), np.int32), "ids", "i32"),
        ("d.npy", np.zeros((5, 3), np.int64), "ids", "i64"),
        ("e.npy", np.zeros((5, 3), np.float16), "vectors", "f16"),
        ("f.npy", np.zeros((5, 3), np.int8), "vectors", "i8"),
        ("a.f16bin", np.zeros((5, 3), np.float16), "vectors", "f16"),
        ("a.bf16bin", np.zeros((5, 3), np.uint16), "vectors", "bf16"),
        ("a.i8bin", np.zeros((5, 3), np.int8), "vectors", "i8"),
        ("a.fvecs", np.zeros((5, 3), np.float32), "vectors", "f32"),
        ("a.bvecs", np.zeros((5, 3), np.uint8), "vectors", "u8"),
        ("a.ivecs", np.zeros((5, 3), np.int32), "ids", "i32"),
    ],
)
def test_files(kith, tmp_path, name, matrix, content, dtype):
    path = write_matrix(tmp_path / name, matrix)
    facts = kith.ok("info", path, "--json").json["result"]["files"]
    assert facts == [
        {
            "path": str(path),
            "format": path.suffix[1:],
            "content": content,
            "dtype": dtype,
            "rows": 5,
            "cols": 3,
            "bytes": path.stat().st_size,
        }
    ]
    text = kith.ok("info", path).out
    assert f"{path}: {path.suffix[1:]} ({content}), 5 x 3 {dtype}, {path.stat().st_size} B\n" == text


@pytest.mark.parametrize("name", ["t-idx3-ubyte", "t-idx3-ubyte.gz"])
def test_images(kith, tmp_path, name):
    path = write_images(tmp_path / name, np.zeros((5, 3), np.uint8))
    assert kith.ok("info", path).out == f"{path}: idx (vectors), 5 x 3 u8, {path.stat().st_size} B\n"


def test_rows_of_different_lengths(kith, tmp_path):
    path = write_matrix(tmp_path / "a.fvecs", np.zeros((5, 3)))
    os.truncate(path, 60)
    assert "12 bytes remain after the last whole row" in kith.fails(3, "info", path)


def test_several_files(kith, tmp_path):
    a = write_matrix(tmp_path / "a.fbin", np.zeros((5, 3)))
    b = write_matrix(tmp_path / "b.ibin", np.zeros((2, 9)))
    assert kith.ok("info", a, b).out.count("\n") == 2
    assert kith.ok("info", a, b, "--quiet").out == ""


def test_a_file_that_is_missing_does_not_hide_the_others(kith, tmp_path):
    a = write_matrix(tmp_path / "a.fbin", np.zeros((5, 3)))
    b = write_matrix(tmp_path / "b.ibin", np.zeros((2, 9)))
    names = (a, tmp_path / "missing.fbin", b, tmp_path / "c.txt")
    done = kith("info", *names)
    assert done.code == 3 and [line.split(":")[0] for line in done.out.splitlines()] == [str(a), str(b)]
    assert done.err.count("kith: ") == 2 and "missing.fbin" in done.err and "c.txt" in done.err
    done = kith("info", *names, "--json")
    files = done.json["result"]["files"]
    assert done.code == 3 and [file["path"] for file in files] == list(map(str, names))
    assert files[0]["rows"] == 5 and files[2]["cols"] == 9 and "error" not in files[0]
    assert files[1]["error"]["type"] == "IoError" == done.json["error"]["type"]


def test_missing_file(kith, tmp_path):
    error = kith.fails(3, "info", tmp_path / "missing.fbin")
    assert "missing.fbin" in error and "No such file" in error


def test_directory(kith, tmp_path):
    (tmp_path / "d.fbin").mkdir()
    assert "directory" in kith.fails(3, "info", tmp_path / "d.fbin")


def test_truncated_file(kith, tmp_path):
    path = write_matrix(tmp_path / "a.fbin", np.zeros((5, 3)))
    os.truncate(path, 8 + 59)
    error = kith.fails(3, "info", path)
    assert str(path) in error and "67" in error


def test_unknown_ending(kith, tmp_path):
    (tmp_path / "a.dat").write_text("hello")
    error = kith.fails(2, "info", tmp_path / "a.dat")
    assert all(ending in error for ending in (".fbin", ".u8bin", ".ibin", ".npy"))


def test_a_path_that_is_no_utf8(kith, tmp_path):
    import subprocess

    path = os.fsencode(tmp_path) + b"/\xff.fbin"
    with open(path, "wb") as file:
        file.write(np.array([1, 1], np.uint32).tobytes() + np.zeros(1, np.float32).tobytes())
    done = subprocess.run([kith.path, "info", path, "--json"], capture_output=True, timeout=30)
    assert done.returncode == 0
    assert "\ufffd.fbin" in done.stdout.decode("utf-8")


def test_files_of_other_kinds_are_told_of(kith, tmp_path):
    (tmp_path / "x.csv").write_text("1,2\n3,4\n")
    (tmp_path / "x.dat").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(30))
    out = kith("info", tmp_path / "x.csv", tmp_path / "x.dat").out
    assert "x.csv: a table" in out and "kith convert" in out and "x.dat: an image" in out
