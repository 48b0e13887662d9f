"""kith graph build --method cells with a limit below the vectors: one graph, whatever happens on the way."""

import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from test_interrupt import hear_signals

ROWS, COLS = 20_000, 96
# Some 10.6 MiB of it are the program itself.
LIMIT = "18M"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A file, the same in seven shards, and the arguments that are the same for all."""
    folder = tmp_path_factory.mktemp("vectors")
    random = np.random.default_rng(5)
    x = (random.standard_normal((200, COLS))[random.integers(0, 200, ROWS)] * 2).astype(np.float32)
    x += random.standard_normal(x.shape).astype(np.float32)
    np.save(folder / "whole.npy", x)
    for number, part in enumerate(np.split(x, [10, 3000, 3001, 9000, 15_000, 15_000])):
        np.save(folder / f"part-{number}.npy", part)
    return folder


def build(data, out, limit=LIMIT, *more):
    limits = () if limit is None else ("--memory-limit", limit)
    return ["graph", "build", "--data", data, "-k", 8, "--method", "cells", "--cells", 60, "--recall", 0.9,
            "--device", "cpu", "--threads", 2, "--out", out, *limits, *more]  # fmt: skip


@pytest.fixture(scope="module")
def truth(kith, files, tmp_path_factory):
    out = tmp_path_factory.mktemp("truth")
    kith.ok(*build(files / "whole.npy", out, None))
    return out


def assert_same(truth, out):
    for name in ("ids.npy", "distances.npy", "report.json"):
        assert (truth / name).read_bytes() == (out / name).read_bytes(), name
    assert {path.name for path in out.iterdir()} == {"distances.npy", "ids.npy", "report.json"}


@pytest.mark.parametrize("limit", [LIMIT, "21M"])
@pytest.mark.parametrize("data", ["whole.npy", "part-*.npy"])
def test_the_bytes_of_memory(kith, files, truth, tmp_path, data, limit):
    report = kith.ok(*build(files / data, tmp_path / "g", limit, "--json")).json
    assert report["result"]["report"]["peak_host_bytes"] <= report["memory"]["limit_bytes"]
    assert_same(truth, tmp_path / "g")


def test_work_folder(kith, files, truth, tmp_path):
    work = tmp_path / "elsewhere"
    kith.ok(*build(files / "whole.npy", tmp_path / "g", LIMIT, "--work", work, "--keep-work"))
    assert_same(truth, tmp_path / "g")
    assert {"manifest", "survey", "centres", "plan"} < {path.name for path in work.iterdir()}
    # All is done: it is written once more.
    kith.ok(*build(files / "whole.npy", tmp_path / "h", "19M", "--work", work))
    assert_same(truth, tmp_path / "h")
    assert list(work.iterdir()) == []


def test_other_work_is_refused(kith, files, tmp_path):
    work = tmp_path / "w"
    kith.ok(*build(files / "whole.npy", tmp_path / "g", LIMIT, "--work", work, "--keep-work"))
    other = [*build(files / "whole.npy", tmp_path / "g", LIMIT, "--work", work)]
    other[other.index("-k") + 1] = 9
    assert "k is 9, and was 8" in kith.fails(2, *other)
    told = kith.fails(2, *build(files / "part-*.npy", tmp_path / "g", LIMIT, "--work", work))
    assert "part-0.npy (10 rows), part-1.npy (2990 rows)" in told and "was whole.npy (20000 rows)" in told
    x = np.load(files / "whole.npy")
    x[-1, -1] += 1
    (tmp_path / "changed").mkdir()
    np.save(tmp_path / "changed" / "whole.npy", x)
    told = kith.fails(2, *build(tmp_path / "changed" / "whole.npy", tmp_path / "g", LIMIT, "--work", work))
    assert "the vectors have changed since this work began" in told
    assert "--work, --keep-work, --ids-only, --int32-ids and --part go with --out" in kith.fails(
        2, "graph", "build", "--data", files / "whole.npy", "--out-ids", tmp_path / "i.npy", "--out-distances",
        tmp_path / "d.npy", "--work", work
    )  # fmt: skip


def start(kith, arguments):
    return subprocess.Popen([kith.path, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            preexec_fn=hear_signals)  # fmt: skip


def test_killed_again_and_again(kith, files, truth, tmp_path):
    """Each run lives a little longer than the one before, until one ends by itself; limits change all the time."""
    seconds, kills = 0.02, 0
    for run in range(200):
        process = start(kith, build(files / "part-*.npy", tmp_path / "g", ["18M", "19M", "21M"][run % 3]))
        try:
            process.wait(seconds)
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
            seconds += 0.01
    assert process.returncode == 0
    assert kills >= 3 or kith.sanitized
    assert_same(truth, tmp_path / "g")


def started_until(kith, arguments, step):
    """The program at work, once this step of it is there, or at its end where that came first."""
    process = start(kith, arguments)
    out = Path(arguments[arguments.index("--out") + 1])
    while not (out / "work" / step).exists() and process.poll() is None:
        time.sleep(0.002)
    return process


def test_one_process_at_a_time(kith, files, truth, tmp_path):
    for attempt in range(20):  # a quick machine may be done before the second begins
        arguments = build(files / "whole.npy", tmp_path / f"g{attempt}")
        process = started_until(kith, arguments, "manifest")
        second = kith(*arguments)
        assert process.wait() == 0
        assert_same(truth, tmp_path / f"g{attempt}")
        if second.code != 0:
            assert "another process works in the folder" in second.err
            return
    pytest.fail("the second process never met the first")


def test_interrupt(kith, files, truth, tmp_path):
    for attempt in range(20):
        arguments = build(files / "whole.npy", tmp_path / f"g{attempt}")
        process = started_until(kith, arguments, "plan")
        process.send_signal(signal.SIGINT)
        if process.wait(10) == 0:  # it was done
            continue
        assert process.returncode == 130
        assert not (tmp_path / f"g{attempt}" / "report.json").exists()
        kith.ok(*arguments)
        assert_same(truth, tmp_path / f"g{attempt}")
        return
    pytest.fail("every run was done before it was interrupted")


def test_ids_alone_and_as_int32(kith, files, truth, tmp_path):
    out = tmp_path / "g"
    kith.ok(*build(files / "whole.npy", out, LIMIT, "--ids-only", "--int32-ids"))
    assert {path.name for path in out.iterdir()} == {"ids.npy", "report.json"}
    ids = np.load(out / "ids.npy")
    assert ids.dtype == np.int32 and (ids == np.load(truth / "ids.npy")).all()


def part(kith, files, tmp_path, number, of=3, *more):
    arguments = build(files / "part-*.npy", tmp_path / "g", LIMIT, "--work", tmp_path / "w", "--part", f"{number}/{of}", *more)
    arguments[arguments.index("--threads") + 1] = 1
    return arguments


def test_three_parts(kith, files, truth, tmp_path):
    """One of them is killed again and again, and started again."""
    others = [start(kith, part(kith, files, tmp_path, number)) for number in (1, 3)]
    seconds, kills = 0.05, 0
    while True:
        process = start(kith, part(kith, files, tmp_path, 2))
        try:
            assert process.wait(seconds) == 0
            break
        except subprocess.TimeoutExpired:
            if (tmp_path / "g" / "report.json").exists():  # all is done: killed while it tidies up it would begin anew
                assert process.wait(60) == 0
                break
            process.kill()
            process.wait()
            kills += 1
            seconds *= 1.5
    assert [process.wait(60) for process in others] == [0, 0]
    assert kills >= 1 or kith.sanitized
    assert_same(truth, tmp_path / "g")
    assert list((tmp_path / "w").iterdir()) == []


def test_parts_that_do_not_wait(kith, files, truth, tmp_path):
    codes, told = {}, []
    for turn in range(20):
        for number in (1, 2, 3):
            if codes.get(number) == 0:
                continue
            run = kith(*part(kith, files, tmp_path, number, 3, "--no-wait"))
            codes[number] = run.code
            assert run.code in (0, 75), run.err
            told.append(run.err)
        if set(codes.values()) == {0}:
            break
    assert set(codes.values()) == {0} and turn >= 1
    assert any("has done its share for now" in text and "the lists of" in text for text in told)
    assert_same(truth, tmp_path / "g")


def test_parts_that_cannot_be(kith, files, truth, tmp_path):
    running = start(kith, part(kith, files, tmp_path, 2))
    while not (tmp_path / "w" / "manifest").exists():
        time.sleep(0.002)
    assert "part 2 of 3 is running" in kith.fails(1, *part(kith, files, tmp_path, 2))
    assert "give the same number of parts" in kith.fails(1, *part(kith, files, tmp_path, 1, 2))
    alone = build(files / "part-*.npy", tmp_path / "g", LIMIT, "--work", tmp_path / "w")
    assert "another process works in the folder" in kith.fails(1, *alone)
    running.kill()
    running.wait()
    kith.ok(*alone)
    assert_same(truth, tmp_path / "g")
    assert "--no-wait goes with --part" in kith.fails(2, *alone, "--no-wait")
    assert "as 2/3" in kith.fails(2, *part(kith, files, tmp_path, 4))
    other = part(kith, files, tmp_path, 1)
    other[other.index("cells")] = "exact"
    assert "by the method cells" in kith.fails(2, *[a for a in other if a not in ("--cells", 60)])


def test_ggm_from_disk(kith, files, tmp_path):
    """Under a limit the bytes of memory; killed again and again."""
    few = np.load(files / "whole.npy")[:6000, :32].copy()
    np.save(tmp_path / "few.npy", few)

    def ggm(out, *more):
        return ["graph", "build", "--data", tmp_path / "few.npy", "-k", 6, "--method", "ggm", "--shards", 6, "--recall", 0.8,
                "--list-length", 24, "--iterations", 3, "--device", "cpu", "--threads", 2, "--out", out, *more]  # fmt: skip

    report = kith.ok(*ggm(tmp_path / "memory", "--json")).json["result"]["report"]
    assert report["method"] == "ggm" and report["parameters"]["shards"] == 6
    assert "limit" in kith.fails(4, *ggm(tmp_path / "disk", "--memory-limit", "11M"))
    seconds, kills = 0.05, 0
    for _ in range(100):
        process = start(kith, ggm(tmp_path / "disk", "--memory-limit", "16M"))
        try:
            assert process.wait(seconds) == 0
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
            seconds *= 1.3
    assert kills >= 1 or kith.sanitized
    assert_same(tmp_path / "memory", tmp_path / "disk")


def test_extending_a_folder(kith, files, tmp_path):
    """Under a limit of half of the rows; killed at any time it goes on."""
    x = np.load(files / "whole.npy")[:9000]
    x = np.tile(x, (1, 45_000_000 // x.nbytes))
    np.save(tmp_path / "old.npy", x[:8500])
    np.save(tmp_path / "new.npy", x[8500:])
    kith.ok("graph", "build", "--data", tmp_path / "old.npy", "-k", 6, "--recall", 0.9, "--device", "cpu", "--out", tmp_path / "g")
    extend = ["graph", "extend", "--data", tmp_path / "old.npy", "--new", tmp_path / "new.npy", "--threads", 2, "--device", "cpu"]
    in_files = ["--ids", tmp_path / "g/ids.npy", "--distances", tmp_path / "g/distances.npy"]
    kith.ok(*extend, *in_files, "--out-ids", tmp_path / "ids.npy", "--out-distances", tmp_path / "distances.npy")
    expected = (tmp_path / "ids.npy").read_bytes()
    folders = [*extend, "--graph", tmp_path / "g", "--out", tmp_path / "disk"]
    report = kith.ok(*folders, "--memory-limit", x.nbytes // 2, "--json").json["result"]
    assert report["rows"] == 9000 and report["report"]["method"] == "extend"
    assert (tmp_path / "disk/ids.npy").read_bytes() == expected
    assert (tmp_path / "disk/distances.npy").read_bytes() == (tmp_path / "distances.npy").read_bytes()

    killed = [*extend, "--graph", tmp_path / "g", "--out", tmp_path / "killed", "--work", tmp_path / "work", "--recall", 1]
    seconds, kills = 0.05, 0
    for _ in range(100):
        process = start(kith, killed)
        try:
            assert process.wait(seconds) == 0
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
            seconds *= 1.3
    assert kills >= 1 or kith.sanitized
    assert (tmp_path / "killed/ids.npy").read_bytes() == expected
    assert "--graph FOLDER goes with --out FOLDER" in kith.fails(2, *extend, "--graph", tmp_path / "g")
    assert "give --graph FOLDER" in kith.fails(2, *extend, "--out-ids", tmp_path / "i.npy", "--out-distances", tmp_path / "d.npy")
    assert "go with --out" in kith.fails(2, *extend, *in_files, "--keep-work")


def test_merging_folders(kith, files, tmp_path):
    x = np.load(files / "whole.npy")[:6000, :32].copy()
    names = []
    for number, part in enumerate(np.split(x, [1500, 4000])):
        np.save(tmp_path / f"{number}.npy", part)
        kith.ok("graph", "build", "--data", tmp_path / f"{number}.npy", "-k", 6, "--method", "exact", "--device", "cpu",
                "--out", tmp_path / f"g{number}")  # fmt: skip
        names.append(number)
    base = ["graph", "merge", "--graph", *(tmp_path / f"g{n}" for n in names), "--data", *(tmp_path / f"{n}.npy" for n in names),
            "--recall", 0.8, "--list-length", 24, "--iterations", 3, "--device", "cpu", "--threads", 2]  # fmt: skip
    report = kith.ok(*base, "--out", tmp_path / "memory", "--json").json["result"]
    assert report["rows"] == 6000 and report["report"]["method"] == "merge"
    kith.ok(*base, "--out", tmp_path / "disk", "--memory-limit", "21M")
    assert_same(tmp_path / "memory", tmp_path / "disk")
    assert "give as many of each" in kith.fails(2, *base)
    swapped = base.copy()
    at = swapped.index("--data")
    swapped[at + 1], swapped[at + 2] = swapped[at + 2], swapped[at + 1]
    assert "has 1500 rows, and" in kith.fails(2, *swapped, "--out", tmp_path / "other")
