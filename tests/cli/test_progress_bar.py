"""The progress bar: drawn on a terminal alone, and gone in the end."""

import fcntl
import os
import pty
import struct
import subprocess
import termios
import threading

import numpy as np
import pytest

from matrix_files import write_matrix

CLEAR_LINE = "\r\x1b[K"


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    """Some pieces of 16 MiB, so that a conversion reports more than once."""
    return write_matrix(tmp_path_factory.mktemp("bar") / "v.fbin", np.zeros((100_000, 128), np.float32))


def run_on_terminal(kith, *arguments, columns=0, term="xterm"):
    """stdout and what a terminal, of a width that it tells if any, got from stderr."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    drawn = []

    def listen():
        while True:
            try:
                data = os.read(ours, 4096)
            except OSError:  # the other side has closed
                return
            if not data:
                return
            drawn.append(data)

    listener = threading.Thread(target=listen)
    listener.start()
    environment = {**os.environ, "TERM": term}
    command = [kith.path, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, timeout=60, env=environment)
    os.close(theirs)
    listener.join(30)
    os.close(ours)
    return done.returncode, done.stdout.decode(), b"".join(drawn).decode()


def test_bar_on_a_terminal(kith, vectors, tmp_path):
    code, out, drawn = run_on_terminal(kith, "convert", vectors, tmp_path / "v.npy")
    assert code == 0 and out.startswith("wrote ")
    frames = drawn.split(CLEAR_LINE)
    assert frames[0] == "" and frames[-1] == ""  # each frame clears the one before, the last clear leaves nothing
    assert frames[1] == f"convert [{'.' * 30}]   0 %"
    assert frames[-2].startswith(f"convert [{'#' * 30}] 100 %  ") and "/s  0:00 left" in frames[-2]


def test_no_time_left_is_told_before_it_can_be_known(kith, tmp_path):
    path = write_matrix(tmp_path / "v.fbin", np.random.default_rng(0).standard_normal((20_000, 32)).astype(np.float32))
    code, _, drawn = run_on_terminal(kith, "graph", "build", "--data", path, "-k", "10", "--out", tmp_path / "g", columns=100)
    assert code == 0
    for frame in drawn.split(CLEAR_LINE)[1:-1]:
        share = int(frame.partition("%")[0].split()[-1])
        assert share >= 10 or "left" not in frame, frame


@pytest.mark.parametrize("columns", [200, 80, 60, 40, 30, 20, 12, 6, 1])
def test_no_line_is_wider_than_the_terminal(kith, vectors, tmp_path, columns):
    code, _, drawn = run_on_terminal(kith, "convert", vectors, tmp_path / "v.npy", columns=columns)
    frames = drawn.split(CLEAR_LINE)
    assert code == 0 and len(frames) > 2 and max(map(len, frames)) < columns
    if columns >= 12:
        assert "100 %" in frames[-2]
    if columns >= 30:
        assert frames[-2].startswith("convert [#####")
    if columns >= 60:
        assert "left" in frames[-2]


def test_a_dumb_terminal_gets_plain_lines(kith, vectors, tmp_path):
    code, _, drawn = run_on_terminal(kith, "convert", vectors, tmp_path / "v.npy", term="dumb")
    lines = drawn.replace("\r\n", "\n").splitlines()
    assert code == 0 and "\x1b" not in drawn and "\r" not in drawn.replace("\r\n", "\n")
    assert lines[0] == "convert: 0 %" and lines[-1] == "convert: 100 %" and len(lines) <= 11


def test_bar_with_json_leaves_stdout_clean(kith, vectors, tmp_path):
    import json

    code, out, drawn = run_on_terminal(kith, "convert", vectors, tmp_path / "v.npy", "--json")
    assert code == 0 and json.loads(out)["command"] == "convert"
    assert "convert [" in drawn


def test_bar_of_a_search(kith, tmp_path):
    base = write_matrix(tmp_path / "b.fbin", np.random.default_rng(13).standard_normal((20_000, 32)))
    code, _, drawn = run_on_terminal(kith, "knn", "--base", base, "--queries", base, "--out-ids", tmp_path / "i.ibin")
    assert code == 0
    assert "search [" in drawn and "100 %" in drawn and drawn.endswith(CLEAR_LINE)


def test_an_error_comes_after_the_bar(kith, tmp_path):
    matrix = np.zeros((100_000, 128), np.float32)
    matrix[-1, -1] = 0.5
    path = write_matrix(tmp_path / "v.fbin", matrix)
    code, out, drawn = run_on_terminal(kith, "convert", path, tmp_path / "v.u8bin")
    assert (code, out) == (2, "")
    assert "convert [" in drawn
    assert drawn.rsplit(CLEAR_LINE, 1)[1].startswith("kith: row 99999, column 127")


def test_quiet_draws_nothing(kith, vectors, tmp_path):
    assert run_on_terminal(kith, "convert", vectors, tmp_path / "v.npy", "--quiet") == (0, "", "")
