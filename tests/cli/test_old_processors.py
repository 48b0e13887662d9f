"""Every instruction set gives the same bytes, down to x86-64 itself: on this processor, and on older ones under qemu."""

import platform
import shutil

import numpy as np
import pytest

from conftest import Program
from matrix_files import write_matrix

QEMU = shutil.which("qemu-x86_64") or shutil.which("qemu-x86_64-static")

# SSE3 alone, as many virtual machines have; SSSE3; SSE4.2 without AES and PCLMULQDQ; with them.
OLD_PROCESSORS = ["qemu64", "core2duo", "Nehalem", "Westmere"]


class ProgramOnOldProcessor(Program):
    def __init__(self, path, folder, processor):
        script = folder / f"kith-{processor}"
        script.write_text(f'#!/bin/sh\nexec "{QEMU}" -cpu {processor} "{path}" "$@"\n')
        script.chmod(0o755)
        super().__init__(script)


@pytest.fixture
def files(tmp_path):
    random = np.random.default_rng(1)
    base = random.normal(size=(600, 40)).astype(np.float32)
    write_matrix(tmp_path / "base.fbin", base)
    write_matrix(tmp_path / "queries.fbin", random.normal(size=(7, 40)).astype(np.float32))
    write_matrix(tmp_path / "base.f16bin", base)
    write_matrix(tmp_path / "base.u8bin", random.integers(0, 256, (600, 40)).astype(np.uint8))
    write_matrix(tmp_path / "queries.u8bin", random.integers(0, 256, (7, 40)).astype(np.uint8))
    return tmp_path


SEARCHES = [
    ("queries.fbin", "base.fbin", "l2"),
    ("queries.fbin", "base.fbin", "cosine"),
    ("queries.fbin", "base.f16bin", "l1"),
    ("queries.u8bin", "base.u8bin", "inner_product"),
    ("queries.u8bin", "base.u8bin", "chi_square"),
    ("queries.u8bin", "base.u8bin", "hamming"),
]


def bytes_of(kith, files, name):
    """What the program writes: exact searches, indexes and their answers, a graph."""
    out = files / name
    out.mkdir()
    threads = ["--threads", 1, "--quiet"]
    for number, (queries, base, metric) in enumerate(SEARCHES):
        kith.ok("knn", "--queries", files / queries, "--base", files / base, "-k", 10, "--metric", metric, *threads,
                "--out-ids", out / f"{number}.npy", "--out-distances", out / f"{number}.fbin")  # fmt: skip
    for factory in ["IVF8,PQ8", "IVF8,SQ8", "Graph16"]:
        index = out / f"{factory.replace(',', '_')}.kith"
        kith.ok("index", "build", "--base", files / "base.fbin", "--factory", factory, "--out", index, *threads)
        kith.ok("index", "search", "--index", index, "--queries", files / "queries.fbin", "-k", 5, *threads,
                "--out-ids", f"{index}.npy", "--out-distances", f"{index}.fbin")  # fmt: skip
    kith.ok("graph", "build", "--data", files / "base.fbin", "-k", 5, "--method", "nn_descent", *threads,
            "--out-ids", out / "graph.npy", "--out-distances", out / "graph.fbin")  # fmt: skip
    return {path.name: path.read_bytes() for path in out.iterdir()}


def known_targets(kith, monkeypatch):
    with monkeypatch.context() as context:
        context.setenv("KITH_CPU_TARGET", "no such")
        return kith.fails(2, "info").rpartition("it has ")[2].strip().split(", ")


def test_every_instruction_set_gives_the_same_bytes(kith, files, monkeypatch):
    expected = bytes_of(kith, files, "best")
    for target in known_targets(kith, monkeypatch):
        monkeypatch.setenv("KITH_CPU_TARGET", target)
        assert bytes_of(kith, files, target) == expected, target


@pytest.mark.skipif(platform.machine() != "x86_64" or QEMU is None, reason="needs x86-64 and qemu-user")
@pytest.mark.parametrize("processor", OLD_PROCESSORS)
def test_an_old_processor_gives_the_same_bytes_or_is_refused(kith, files, monkeypatch, processor):
    old = ProgramOnOldProcessor(kith.path, files, processor)
    lowest = known_targets(kith, monkeypatch)[-1]
    if processor != "Westmere" and lowest == "SSE4":  # built without KITH_X86_BASELINE
        assert "too old" in old.fails(2, "info")
        return
    used = old.ok("info", "--json").json["result"]["cpu"]["instruction_set"]
    assert used == ("SSE4" if processor == "Westmere" else lowest)
    assert bytes_of(old, files, processor) == bytes_of(kith, files, "here")
