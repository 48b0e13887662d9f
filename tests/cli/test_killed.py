"""Work that is killed at any moment, and done by few file handles: the same bytes, and nothing left behind."""

import re
import resource
import subprocess

import numpy as np
import pytest

from test_interrupt import hear_signals

COLS = 48


def shards(folder, rows):
    random = np.random.default_rng(7)
    x = random.standard_normal((100, COLS))[random.integers(0, 100, rows)] * 2
    x = (x + random.standard_normal(x.shape)).astype(np.float32)
    for number, part in enumerate(np.split(x, [10, rows // 2, rows // 2 + 1])):
        np.save(folder / f"part-{number}.npy", part)
    return folder / "part-*.npy"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return shards(tmp_path_factory.mktemp("few"), 3_000)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """More than an index takes at a time under the limits below."""
    return shards(tmp_path_factory.mktemp("many"), 60_000)


METHODS = {
    "exact": ["--method", "exact"],
    "ggm": ["--method", "ggm", "--shards", 3, "--list-length", 16, "--recall", 0.9],
    "cells": ["--method", "cells", "--cells", 30, "--recall", 0.9],
}


def graph(files, method, out, *more):
    return ["graph", "build", "--data", files, "-k", 8, *METHODS[method], "--device", "cpu", "--threads", 2, "--out", out,
            *more]  # fmt: skip


def index(files, trained, out, *more):
    return ["index", "add", "--index", trained, "--base", files, "--out", out, "--device", "cpu", "--threads", 2, *more]


def kill_again_and_again(kith, arguments_of, growth):
    """Each run lives longer than the one before, until one ends by itself. Returns the number of kills."""
    seconds, kills = 0.03, 0
    for run in range(400):
        process = subprocess.Popen([kith.path, *map(str, arguments_of(run))], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, preexec_fn=hear_signals)  # fmt: skip
        try:
            process.wait(seconds)
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
            seconds = growth(seconds)
    assert process.returncode == 0
    return kills


PATIENCE = [
    pytest.param(lambda seconds: seconds * 1.6, id="few"),
    pytest.param(lambda seconds: seconds + 0.01, id="many", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("growth", PATIENCE)
@pytest.mark.parametrize("method", METHODS)
def test_a_graph(kith, files, tmp_path, method, growth):
    """Without a limit at the end: what was begun under one is gone on with, and nothing is left of it."""
    kith.ok(*graph(files, method, tmp_path / "truth"))
    work = tmp_path / "g" / "work"
    limits = [("--work", work, "--memory-limit", "20M"), ("--work", work, "--memory-limit", "24M"), ("--work", work), ()]
    kill_again_and_again(kith, lambda run: graph(files, method, tmp_path / "g", *limits[run % 4]), growth)
    for name in ("ids.npy", "distances.npy", "report.json"):
        assert (tmp_path / "truth" / name).read_bytes() == (tmp_path / "g" / name).read_bytes(), name
    left = {path.name for path in (tmp_path / "g").iterdir()} - {"ids.npy", "distances.npy", "report.json"}
    assert not left or (left == {"work"} and not list((tmp_path / "g" / "work").iterdir()))


@pytest.fixture(scope="module")
def two(kith, tmp_path_factory):
    """Two graphs with their vectors, which do not fit in the limit below together with the lists of a merge."""
    folder = tmp_path_factory.mktemp("two")
    x = np.concatenate([np.load(path) for path in sorted(shards(folder, 20_000).parent.glob("part-*.npy"))])
    for name, rows in (("a", x[:8_000]), ("b", x[8_000:])):
        np.save(folder / f"{name}.npy", rows)
        kith.ok("graph", "build", "--data", folder / f"{name}.npy", "-k", 8, "--method", "exact", "--device", "cpu",
                "--out", folder / name)  # fmt: skip
    return folder


def least_limit(kith, arguments):
    """Of the whole program, in mebibytes, as the refusal of less says it."""
    told = kith.fails(4, *arguments, "--memory-limit", "15M")
    return int(re.search(r"--memory-limit (\d+)M would do", told)[1])


def kill_from_disk(kith, arguments, folder, growth):
    """Just above the least limit, a little more and none; the rounds must have been seen to go from disk. What the program
    itself takes differs by some hundreds of kilobytes from run to run."""
    least = least_limit(kith, arguments) if not kith.sanitized else 0
    limits = [("--memory-limit", f"{least + 1}M"), ("--memory-limit", f"{least + 2}M"), ()]
    joined = False

    def killed(run):
        nonlocal joined
        joined = joined or any((folder / "work").glob("join-0-1-*"))
        if kith.sanitized:
            return arguments
        return [*arguments, *limits[run % (3 if joined else 2)]]

    kill_again_and_again(kith, killed, growth)
    assert joined or kith.sanitized
    left = {path.name for path in folder.iterdir()} - {"ids.npy", "distances.npy", "report.json"}
    assert not left or (left == {"work"} and not list((folder / "work").iterdir()))


@pytest.mark.parametrize("growth", PATIENCE)
def test_a_merge_of_two_graphs(kith, two, tmp_path, growth):
    merge = ["graph", "merge", "--graph", two / "a", two / "b", "--data", two / "a.npy", two / "b.npy", "--list-length", 32,
             "--recall", 0.9, "--device", "cpu", "--threads", 2, "--out"]  # fmt: skip
    kith.ok(*merge, tmp_path / "truth")
    kill_from_disk(kith, [*merge, tmp_path / "g"], tmp_path / "g", growth)
    for name in ("ids.npy", "distances.npy"):
        assert (tmp_path / "truth" / name).read_bytes() == (tmp_path / "g" / name).read_bytes(), name


@pytest.mark.parametrize("growth", PATIENCE)
def test_an_extension_by_rounds(kith, two, tmp_path, growth):
    """The graph of the new rows is built first, in a folder of its own that goes too."""
    extend = ["graph", "extend", "--graph", two / "a", "--data", two / "a.npy", "--new", two / "b.npy", "--list-length", 32,
              "--recall", 0.9, "--device", "cpu", "--threads", 2, "--out"]  # fmt: skip
    kith.ok(*extend, tmp_path / "truth")
    kill_from_disk(kith, [*extend, tmp_path / "g"], tmp_path / "g", growth)
    for name in ("ids.npy", "distances.npy"):
        assert (tmp_path / "truth" / name).read_bytes() == (tmp_path / "g" / name).read_bytes(), name


@pytest.fixture(scope="module")
def trained(kith, many, tmp_path_factory):
    path = tmp_path_factory.mktemp("trained") / "empty.kith"
    kith.ok("index", "build", "--base", many, "--factory", "IVF64,SQ8", "--out", path, "--device", "cpu", "--threads", 2)
    return path


@pytest.mark.parametrize("growth", PATIENCE)
def test_an_index(kith, many, trained, tmp_path, growth):
    (tmp_path / "out").mkdir()
    truth, out = tmp_path / "truth.kith", tmp_path / "out" / "x.kith"
    kith.ok(*index(many, trained, truth))
    limits = [("--memory-limit", "26M"), ("--memory-limit", "30M"), ()]
    kill_again_and_again(kith, lambda run: index(many, trained, out, *limits[run % 3]), growth)
    assert truth.read_bytes() == out.read_bytes()
    assert [path.name for path in out.parent.iterdir()] == ["x.kith"]


def build(files, out, *more):
    return ["index", "build", "--base", files, "--factory", "IVF64,PQ12", "--out", out, "--device", "cpu", "--threads", 2,
            *more]  # fmt: skip


@pytest.mark.parametrize("growth", PATIENCE)
def test_an_index_in_steps(kith, many, tmp_path, growth):
    """The training and the rows that were coded stay: each run goes on where the one before was killed."""
    (tmp_path / "out").mkdir()
    truth, out, work = tmp_path / "truth.kith", tmp_path / "out" / "x.kith", tmp_path / "work"
    kith.ok(*build(many, truth))
    limits = [("--memory-limit", "26M"), ("--memory-limit", "30M"), ()]
    kills = kill_again_and_again(kith, lambda run: build(many, out, "--work", work, *limits[run % 3]), growth)
    assert kills >= 2 or kith.sanitized
    assert truth.read_bytes() == out.read_bytes()
    assert [path.name for path in out.parent.iterdir()] == ["x.kith"]
    assert not list(work.iterdir())


def test_other_work_of_an_index_is_refused(kith, many, trained, tmp_path):
    work, out = tmp_path / "work", tmp_path / "x.kith"
    kith.ok(*build(many, out, "--work", work, "--keep-work"))
    assert {"manifest", "survey", "trained"} < {path.name for path in work.iterdir()}
    told = kith.fails(2, *build(many, out, "--work", work, "--seed", 9))
    assert "seed is 9, and was 0" in told
    assert "holds other work" in kith.fails(2, *index(many, trained, out, "--work", work))
    kith.ok(*build(many, out, "--work", work))
    assert not list(work.iterdir())
    assert "--keep-work goes with --work" in kith.fails(2, *build(many, out, "--keep-work"))
    assert "with --out" in kith.fails(2, "index", "add", "--index", trained, "--base", many, "--work", work)
    kith.ok(*index(many, trained, out, "--work", work))
    kith.ok(*index(many, trained, tmp_path / "y.kith"))
    assert out.read_bytes() == (tmp_path / "y.kith").read_bytes()


def few_handles():
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))


@pytest.mark.parametrize("method", METHODS)
def test_64_file_handles(kith, files, tmp_path, method):
    kith.ok(*graph(files, method, tmp_path / "truth"))
    for limit in ("17M", "20M"):
        arguments = graph(files, method, tmp_path / "g", "--memory-limit", limit, "--work", tmp_path / "w")
        done = subprocess.run([kith.path, *map(str, arguments)], capture_output=True, text=True, preexec_fn=few_handles)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "truth" / "report.json").read_bytes() == (tmp_path / "g" / "report.json").read_bytes()
