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
from report import lines_of

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


def write_results(
    path: Path, options: dict[str, Any], results: list[dict[str, Any]], peers: tuple[str, ...] = (), **more: Any
) -> None:
    """The numbers as lines of JSON (report.py) under what they were measured on and with; `more` is versions of peers, floors
    and the like. With `peers` the member `kith` of a result and those of the peers are seconds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = path.name.split(".")[0].removesuffix(f"_{platform.machine()}")
    content = {**_measured_on(), **more, "options": options, "results": results}
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines_of(table, content, peers)), encoding="utf-8")
    print(f"\nwritten to {path}")


def write_document(path: Path, options: dict[str, Any], results: list[dict[str, Any]], **more: Any) -> None:
    """The same as one document, for a picture that is drawn from it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {**_measured_on(), **more, "options": options, "results": results}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(f"\nwritten to {path}")


def _measured_on() -> dict[str, str]:
    info = kith.info()
    command = " ".join([f"bench/{Path(sys.argv[0]).name}", *sys.argv[1:]])
    machine = {"machine": platform.machine(), "cpu": info["cpu"], "instruction_set": info["instruction_set"]}
    return {"command": command, "commit": _commit(), **machine, "kith": kith.__version__}


def _commit() -> str:
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def results_path(name: str) -> Path:
    return Path(__file__).parent / "results" / "cpu" / f"{name}_{platform.machine()}.jsonl"


def peers(benchmark: str) -> dict[str, dict[str, float]]:
    """Milliseconds by case and library, as known for an H200."""
    found: dict[str, dict[str, float]] = {}
    with open(Path(__file__).parent / "peers_h200.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            if row["benchmark"] == benchmark:
                found.setdefault(row["case"], {})[row["library"]] = float(row["milliseconds"])
    return found
