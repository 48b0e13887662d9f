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


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    random = np.random.default_rng(1)
    base = random.normal(size=(600, 40)).astype(np.float32)
    write_matrix(folder / "base.fbin", base)
    write_matrix(folder / "queries.fbin", random.normal(size=(7, 40)).astype(np.float32))
    write_matrix(folder / "base.f16bin", base)
    write_matrix(folder / "base.u8bin", random.integers(0, 256, (600, 40)).astype(np.uint8))
    write_matrix(folder / "queries.u8bin", random.integers(0, 256, (7, 40)).astype(np.uint8))
    return folder


SEARCHES = [
    ("queries.fbin", "base.fbin", "l2"),
    ("queries.fbin", "base.fbin", "cosine"),
    ("queries.fbin", "base.f16bin", "l1"),
    ("queries.u8bin", "base.u8bin", "inner_product"),
    ("queries.u8bin", "base.u8bin", "chi_square"),
    ("queries.u8bin", "base.u8bin", "hamming"),
]


def bytes_of(kith, files, name):
    """What the program writes: exact searches, indexes and their answers, graphs."""
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
    for base in ["base.fbin", "base.u8bin"]:
        kith.ok("graph", "build", "--data", files / base, "-k", 5, "--method", "nn_descent", *threads,
                "--out-ids", out / f"{base}.graph.npy", "--out-distances", out / f"{base}.graph.fbin")  # fmt: skip
    return {path.name: path.read_bytes() for path in out.iterdir()}


def known_targets(kith, monkeypatch):
    with monkeypatch.context() as context:
        context.setenv("KITH_CPU_TARGET", "no such")
        return kith.fails(2, "info").rpartition("it has ")[2].strip().split(", ")


@pytest.fixture(scope="module")
def expected(kith, files):
    return bytes_of(kith, files, "best")


def test_every_instruction_set_gives_the_same_bytes(kith, files, expected, monkeypatch):
    for target in known_targets(kith, monkeypatch):
        monkeypatch.setenv("KITH_CPU_TARGET", target)
        assert bytes_of(kith, files, target) == expected, target


needs_qemu = pytest.mark.skipif(platform.machine() != "x86_64" or QEMU is None, reason="needs x86-64 and qemu-user")


def is_refused(kith, processor, monkeypatch):
    """Without KITH_X86_BASELINE, of which SSE4 is the lowest instruction set."""
    return processor != "Westmere" and known_targets(kith, monkeypatch)[-1] == "SSE4"


@needs_qemu
@pytest.mark.parametrize("processor", OLD_PROCESSORS)
def test_an_old_processor_is_refused_by_name_or_uses_what_it_has(kith, tmp_path, monkeypatch, processor):
    old = ProgramOnOldProcessor(kith.path, tmp_path, processor)
    if is_refused(kith, processor, monkeypatch):
        assert "too old" in old.fails(2, "info")
        return
    used = old.ok("info", "--json").json["result"]["cpu"]["instruction_set"]
    assert used == ("SSE4" if processor == "Westmere" else known_targets(kith, monkeypatch)[-1])


@needs_qemu
@pytest.mark.slow
@pytest.mark.parametrize("processor", OLD_PROCESSORS)
def test_an_old_processor_gives_the_same_bytes(kith, files, expected, tmp_path, monkeypatch, processor):
    if is_refused(kith, processor, monkeypatch):
        pytest.skip("this build refuses it; one with KITH_X86_BASELINE=ON does not")
    old = ProgramOnOldProcessor(kith.path, tmp_path, processor)
    assert bytes_of(old, files, processor) == expected
