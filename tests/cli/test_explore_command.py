"""kith explore: the program starts Python with what it was given."""

import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from test_interrupt import hear_signals


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(1)
    np.save(tmp_path / "x.npy", rng.standard_normal((40, 6), dtype=np.float32))
    (tmp_path / "texts.txt").write_text("".join(f"text {row}\n" for row in range(40)))
    (tmp_path / "labels.txt").write_text("".join(f"kind {row % 2}\n" for row in range(40)))
    return tmp_path


def environment(python=sys.executable):
    return {**os.environ, "KITH_PYTHON": str(python)}


def test_it_serves_until_it_is_interrupted(kith, files):
    command = [kith.path, "explore", "--vectors", "x.npy", "--items", "texts.txt", "--labels", "labels.txt", "--no-browser"]
    running = subprocess.Popen(command, cwd=files, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               preexec_fn=hear_signals)  # fmt: skip
    try:
        address = running.stdout.readline().removeprefix("kith explore: ").strip()
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address + "api/item/3", timeout=30) as reply:
            assert reply.read() == b'{"row": 3, "text": "text 3", "label": "kind 1"}'
    finally:
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    assert running.returncode == 0 and "Traceback" not in err, err


@pytest.mark.parametrize(
    "arguments, code, says",
    [
        (["--vectors", "nowhere.npy"], 3, "nowhere.npy"),
        (["--vectors", "x.npy", "--items", "nowhere"], 3, "there is no file or folder 'nowhere'"),
        (["--vectors", "x.npy", "--items", "labels.npy"], 2, "neither a folder of images nor"),
        (["--vectors", "x.npy", "--shape", "2,2"], 2, "6 values each"),
        (["--vectors", "x.npy", "--metric", "nearness"], 2, "nearness"),
        (["--vectors", "."], 2, "is a folder"),
        (["."], 2, "is a folder, but no collection"),
        (["nowhere"], 3, "there is no collection"),
        (["x.npy"], 2, "say --vectors x.npy"),
        (["--vectors", "x.npy", "--graph", "a", "b", "c"], 2, "--graph has 3 files"),
    ],
)
def test_mistakes_are_one_line(kith, files, arguments, code, says):
    (files / "labels.npy").write_bytes(b"")
    done = subprocess.run([kith.path, "explore", *arguments, "--no-browser"], cwd=files, env=environment(), capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done
    assert done.stderr.startswith("kith explore: ") and done.stderr.count("\n") == 1 and says in done.stderr, done.stderr


def test_a_collection(kith, files):
    kith("collection", "create", "notes", "--dimension", "6", cwd=files)
    kith("collection", "add", "notes", "--vectors", "x.npy", cwd=files)
    command = [kith.path, "explore", "notes", "--no-browser"]
    running = subprocess.Popen(command, cwd=files, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               preexec_fn=hear_signals)  # fmt: skip
    try:
        address = running.stdout.readline().removeprefix("kith explore: ").strip()
        with urllib.request.urlopen(address + "api/item/3", timeout=30) as reply:
            assert reply.read() == b'{"row": 3, "text": "3", "id": "3"}'
    finally:
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    assert running.returncode == 0 and "Traceback" not in err, err


def test_options_that_there_are_not(kith):
    assert "--vectors" in kith.fails(2, "explore")
    assert "did you mean --items" in kith.fails(2, "explore", "--vectors", "x.npy", "--item", "y")


def test_without_python_or_the_package(kith, files):
    command = [kith.path, "explore", "--vectors", "x.npy", "--no-browser"]
    gone = subprocess.run(command, cwd=files, env=environment("/no/such/python"), capture_output=True, text=True, timeout=60)
    assert gone.returncode == 2 and "cannot be started" in gone.stderr and gone.stderr.count("\n") == 1
    bare = files / "bare"
    bare.write_text(f'#!/bin/sh\nexec {Path("/usr/bin/env")} -u PYTHONPATH {sys.executable} -S -I "$@"\n')
    bare.chmod(0o755)
    lacking = subprocess.run(command, cwd=files, env=environment(bare), capture_output=True, text=True, timeout=60)
    assert lacking.returncode == 1 and "needs the Python package kithnn" in lacking.stderr and "Traceback" not in lacking.stderr
