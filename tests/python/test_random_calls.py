"""Random calls (bench/random_calls.py): the same bytes for every number of threads and device, exact where exact."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import kith

_PROGRAM = Path(__file__).parents[2] / "bench" / "random_calls.py"


def _devices() -> list[str]:
    return ["cpu", "cuda:0"] if kith.info()["cuda_devices"] else ["cpu"]


@pytest.mark.parametrize("calls", [60, pytest.param(2000, marks=pytest.mark.slow)])
def test_random_calls_give_the_same_bytes_everywhere(calls):
    options = ["--calls", str(calls), "--threads", "1", "3", "--devices", *_devices()]
    ran = subprocess.run([sys.executable, _PROGRAM, *options], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"{calls} calls" in ran.stdout and "0 differ" in ran.stdout
