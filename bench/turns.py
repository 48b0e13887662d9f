"""Times of several programs, measured turn by turn so that all of them see the same machine, and where they are kept.

What other libraries take on a GPU is in one data file, `peers_h200.csv`, which the C++ benchmarks read too.
"""

from __future__ import annotations

import csv
import importlib.util
import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kith

_ENOUGH = 0.03
_MOST_ROUNDS = 200


def install_missing(module: str, package: str) -> None:
    if importlib.util.find_spec(module) is None:
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", package], check=True)


def clock_for(threads: int) -> Callable[[], float]:
    """Processor time for one thread, which other work on the machine disturbs less; else the time on the wall."""
    return time.process_time if threads == 1 else time.perf_counter


def best_in_turn(
    rounds: int, runs: dict[str, Callable[[], object]], clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
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


def write_results(path: Path, options: dict[str, Any], results: list[dict[str, Any]], **more: Any) -> None:
    """The numbers as JSON under what they were measured on and with; `more` is versions of peers, floors and the like."""
    info = kith.info()
    command = " ".join([f"bench/{Path(sys.argv[0]).name}", *sys.argv[1:]])
    machine = {"machine": platform.machine(), "cpu": info["cpu"], "instruction_set": info["instruction_set"]}
    given = {"command": command, "commit": _commit(), **machine, "kith": kith.__version__}
    content = {**given, **more, "options": options, "results": results}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(f"\nwritten to {path}")


def _commit() -> str:
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def results_path(name: str) -> Path:
    return Path(__file__).parent / "results" / "cpu" / f"{name}_{platform.machine()}.json"


def peers(benchmark: str) -> dict[str, dict[str, float]]:
    """Milliseconds by case and library, as known for an H200."""
    found: dict[str, dict[str, float]] = {}
    with open(Path(__file__).parent / "peers_h200.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            if row["benchmark"] == benchmark:
                found.setdefault(row["case"], {})[row["library"]] = float(row["milliseconds"])
    return found
