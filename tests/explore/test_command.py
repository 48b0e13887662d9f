"""python3 -m kith.explore, and what it makes of files."""

from __future__ import annotations

import gzip
import signal
import subprocess
import sys
import urllib.request

import numpy as np
import pytest

from kith._explore import command


def hear_ctrl_c():
    """A job in the background of a script inherits that it is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_it_runs_as_a_module(tmp_path):
    x = np.random.default_rng(0).integers(0, 256, (50, 36), dtype=np.uint8)
    np.save(tmp_path / "x.npy", x)
    arguments = ["--vectors", tmp_path / "x.npy", "--shape", "6,6", "--no-browser", "--device", "cpu"]
    running = subprocess.Popen([sys.executable, "-W", "error", "-m", "kith.explore", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               preexec_fn=hear_ctrl_c)  # fmt: skip
    assert running.stdout is not None
    address = running.stdout.readline().removeprefix("kith explore: ").strip()
    with urllib.request.urlopen(address + "image/7", timeout=30) as reply:
        assert reply.read().startswith(b"\x89PNG")
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 0 and "Traceback" not in err, err


@pytest.fixture
def asked(monkeypatch):
    """What the command line asks of kith.explore."""
    calls = []
    monkeypatch.setattr(command, "explore", lambda *given, **more: calls.append((given, more)))
    return calls


def test_files_become_what_explore_takes(tmp_path, asked):
    import kith

    x = np.random.default_rng(0).standard_normal((30, 4), dtype=np.float32)
    graph = kith.knn_graph(x, k=3)
    kith.write_vectors(tmp_path / "x.fbin", x)
    kith.write_vectors(tmp_path / "xy.npy", x[:, :2].copy())
    graph.save(tmp_path / "ids.npy", tmp_path / "distances.npy")
    labels = np.arange(30, dtype=np.uint8)
    (tmp_path / "l-idx1-ubyte.gz").write_bytes(gzip.compress(b"\0\0\x08\x01\0\0\0\x1e" + labels.tobytes()))
    files = {"--vectors": "x.fbin", "--labels": "l-idx1-ubyte.gz", "--xy": "xy.npy"}
    arguments = [word for name, file in files.items() for word in (name, str(tmp_path / file))]
    arguments += ["--graph", str(tmp_path / "ids.npy"), str(tmp_path / "distances.npy"), "--metric", "l2", "--port", "8123", "--no-browser"]
    assert command.main(arguments) == 0
    ((items, vectors, given_labels, given_graph, xy), more) = asked[0]
    assert items is None and (vectors == x).all() and (given_labels == labels).all() and (xy == x[:, :2]).all()
    assert (given_graph.ids == graph.ids).all() and more["port"] == 8123 and more["browser"] is False and more["block"]


def test_labels_as_lines_and_arrays(tmp_path, asked):
    np.save(tmp_path / "x.npy", np.eye(2, dtype=np.float32))
    np.save(tmp_path / "l.npy", np.array([3, 4]))
    (tmp_path / "l.txt").write_text("one\ntwo\n")
    (tmp_path / "bad-idx1-ubyte").write_bytes(b"\0\0\x08\x01\0\0\0\x05abc")
    for file, expected in (("l.npy", [3, 4]), ("l.txt", ["one", "two"])):
        assert command.main(["--vectors", str(tmp_path / "x.npy"), "--labels", str(tmp_path / file)]) == 0
        assert list(asked[-1][0][2]) == expected
    assert command.main(["--vectors", str(tmp_path / "x.npy"), "--labels", str(tmp_path / "bad-idx1-ubyte")]) == 2


def test_a_missing_file_is_told_without_the_system_s_number(capsys):
    assert command.main(["--vectors", "/nowhere/x.what", "--no-browser"]) == 3
    assert capsys.readouterr().err == "kith explore: cannot open '/nowhere/x.what': No such file or directory\n"
