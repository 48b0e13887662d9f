"""Times of several programs, measured turn by turn so that all of them see the same machine, and where they are kept."""

from __future__ import annotations

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


def install_missing(module: str, package: str) -> None:
    if importlib.util.find_spec(module) is None:
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", package], check=True)


def best_in_turn(rounds: int, runs: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The shortest time of each in seconds, after one round that does not count."""
    best = {name: float("inf") for name in runs}
    for turn in range(rounds + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            if turn > 0:
                best[name] = min(best[name], time.perf_counter() - start)
    return best


def write_results(path: Path, options: dict[str, Any], results: list[dict[str, Any]], **versions: str) -> None:
    info = kith.info()
    machine = {"machine": platform.machine(), "cpu": info["cpu"], "instruction_set": info["instruction_set"]}
    content = {**machine, "kith": kith.__version__, **versions, "options": options, "results": results}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(f"\nwritten to {path}")


def results_path(name: str) -> Path:
    return Path(__file__).parent / "results" / "cpu" / f"{name}_{platform.machine()}.json"
