"""Ctrl-C and SIGTERM during a search that would take minutes: a quick, clean end."""

import json
import signal
import subprocess
import time

import numpy as np
import pytest

from matrix_files import leftovers, write_matrix

SECONDS_TO_STOP = 10


@pytest.fixture(scope="module")
def long_search(tmp_path_factory):
    """Arguments of a search of some 10^13 operations, and the folder it writes to."""
    folder = tmp_path_factory.mktemp("long")
    rows = np.random.default_rng(9).standard_normal((150_000, 64)).astype(np.float32)
    base = write_matrix(folder / "b.fbin", rows)
    queries = folder / "q.npy"
    np.save(queries, np.tile(rows, (4, 1)))
    out = folder / "out"
    out.mkdir()
    (out / "i.ibin").write_bytes(b"old")
    return [
        "knn",
        "--base",
        base,
        "--queries",
        queries,
        "-k",
        "50",
        "--device",
        "cpu",
        "--out-ids",
        out / "i.ibin",
        "--out-distances",
        out / "d.fbin",
    ], out


def wait_for_temporary_files(folder, process):
    end = time.monotonic() + 30
    while len(leftovers(folder)) < 3:
        assert process.poll() is None and time.monotonic() < end, "the search did not start"
        time.sleep(0.01)


def hear_signals():
    """A job in the background of a script, or under nohup, inherits ignored signals, which the program respects."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("threads", ["1", "2"])
def test_signal_stops_the_search(kith, long_search, which, threads):
    arguments, out = long_search
    process = subprocess.Popen(
        [kith.path, *map(str, arguments), "--threads", threads, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_signals,
    )
    try:
        wait_for_temporary_files(out, process)
        time.sleep(0.7)  # into the search itself
        assert process.poll() is None
        begin = time.monotonic()
        process.send_signal(which)
        text, error = process.communicate(timeout=60)
    finally:
        process.kill()
    assert time.monotonic() - begin < SECONDS_TO_STOP
    assert process.returncode == 130
    assert error == "kith: interrupted; no output was written\n"
    assert json.loads(text)["error"]["type"] == "Cancelled"
    assert leftovers(out) == ["i.ibin"]
    assert (out / "i.ibin").read_bytes() == b"old"
