"""Times of several programs, measured turn by turn so that all of them see the same machine.

What other libraries take on a GPU is in one data file, `peers_h200.csv`, which the C++ benchmarks read too.
"""

from __future__ import annotations

import csv
import importlib.util
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

Result = TypeVar("Result")
Call = Callable[[], object]

_ENOUGH = 0.03
_MOST_ROUNDS = 200


def install_missing(*packages: str) -> None:
    """Packages by their names on PyPI, where their modules are not there."""
    modules = {"faiss-cpu": "faiss", "scikit-learn": "sklearn"}
    missing = [package for package in packages if importlib.util.find_spec(modules.get(package, package)) is None]
    if missing:
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *missing], check=True)


def clock_for(threads: int) -> Callable[[], float]:
    """Processor time for one thread, which other work on the machine disturbs less; else the time on the wall."""
    return time.process_time if threads == 1 else time.perf_counter


def clock_name(threads: int) -> str:
    """The same clock, as reports call it."""
    return "processor" if threads == 1 else "wall"


def timed(call: Callable[[], Result]) -> tuple[Result, float, float]:
    """What a call returns, its seconds on the wall, and those of all processors together."""
    wall, processor = time.perf_counter(), time.process_time()
    result = call()
    return result, time.perf_counter() - wall, time.process_time() - processor


def best_of(runs: int, call: Callable[[], Result]) -> tuple[Result, float]:
    """The last result, and the shortest time on the wall in seconds."""
    result, best, _ = timed(call)
    for _ in range(runs - 1):
        result, seconds, _ = timed(call)
        best = min(best, seconds)
    return result, best


def best_in_turn(rounds: int, runs: dict[str, Call], clock: Callable[[], float] = time.perf_counter) -> dict[str, float]:
    """The shortest time of each in seconds, after one round that does not count.

    Short runs, whose time says little about the next one's, get more rounds: until all took `_ENOUGH` seconds.
    """
    best = {name: float("inf") for name in runs}
    spent, turn = 0.0, 0
    while turn <= rounds or (spent < _ENOUGH and turn < _MOST_ROUNDS):
        for name, run in runs.items():
            start = clock()
            run()
            taken = clock() - start
            spent += taken
            if turn > 0:
                best[name] = min(best[name], taken)
        turn += 1
    return best


def peers(benchmark: str) -> dict[str, dict[str, float]]:
    """Milliseconds by case and library, as known for an H200."""
    found: dict[str, dict[str, float]] = {}
    with open(Path(__file__).parent / "peers_h200.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            if row["benchmark"] == benchmark:
                found.setdefault(row["case"], {})[row["library"]] = float(row["milliseconds"])
    return found
