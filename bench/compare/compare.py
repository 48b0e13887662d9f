#!/usr/bin/env python3
"""What became slower: runs of kith_compare or kith_bench, stored and compared.

    compare.py run BINARY --out FILE          stores a run
    compare.py check STORED NEW               compares two stored runs
    compare.py turns OLD_BINARY NEW_BINARY    measures two builds in turns, case by case

`check` and `turns` exit with 1 where a case is slower than the allowance: 5 % on GPUs, 10 % on CPUs (README.md).
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from report import commit_here  # noqa: E402

ALLOWED_PERCENT = {"cpu": 10.0, "cuda": 5.0}
LEAST_MS = {"cpu": 0.005, "cuda": 0.005}
"""Differences below this are the clock's, not the library's."""

Line = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)

    run = commands.add_parser("run", help="run a build's kith_compare and store its times")
    run.add_argument("binary", type=Path)
    run.add_argument("--out", type=Path, required=True)
    run.add_argument("--commit", help="what the build was made from; default: the commit of this folder")
    add_case_options(run)

    check = commands.add_parser("check", help="compare two stored runs")
    check.add_argument("stored", type=Path)
    check.add_argument("new", type=Path)
    check.add_argument("--allow", type=float, help="percent that a case may be slower")

    turns = commands.add_parser("turns", help="measure two builds in turns")
    turns.add_argument("old", type=Path)
    turns.add_argument("new", type=Path)
    turns.add_argument("--allow", type=float, help="percent that a case may be slower")
    turns.add_argument("--rounds", type=int, default=4, help="measurements of each build and case")
    turns.add_argument("--again", type=int, default=8, help="further rounds for a case that seems slower")
    turns.add_argument("--only", default="", help="cases whose table/name has this in it")
    turns.add_argument("--out", type=Path, help="keep both builds' times as JSON")
    add_case_options(turns)

    options = parser.parse_args()
    return {"run": run_command, "check": check_command, "turns": turns_command}[options.command](options)


def add_case_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--table", help="one table alone")
    parser.add_argument("--repeat", type=int, help="calls in a measurement, at least")
    parser.add_argument("--threads", type=int, help="of the CPU; default: 1, by processor time; 0: all")


def given_options(options: argparse.Namespace) -> list[str]:
    given = ["--device", options.device]
    for name in ("table", "repeat", "threads"):
        if getattr(options, name) is not None:
            given += [f"--{name}", str(getattr(options, name))]
    return given


def machine_of(device: str) -> dict[str, Any]:
    machine = {"arch": platform.machine(), "cpus": os.cpu_count(), "cpu": cpu_name()}
    if device == "cuda":
        asked = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
        try:
            machine["gpu"] = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split("\n")[0]
        except (OSError, subprocess.CalledProcessError):
            machine["gpu"] = "unknown"
    return machine


def cpu_name() -> str:
    try:
        asked = subprocess.run(["lscpu"], capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"})
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    names = [line.split(":", 1)[1].strip() for line in asked.stdout.split("\n") if line.startswith("Model name:")]
    return names[0] if names else "unknown"


def name_of(line: Line) -> str:
    return f"{line['table']}/{line['case']}"


def run_command(options: argparse.Namespace) -> int:
    cases: list[Line] = []
    command = [str(options.binary), *given_options(options)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        for text in program.stdout:
            cases.append(json.loads(text))
            print(f"{cases[-1]['ms']:12.3f} ms  {name_of(cases[-1])}", flush=True)
    if program.returncode != 0:
        return 2
    store(options.out, options.device, options.commit or commit_here(), cases)
    return 0


def store(path: Path, device: str, commit: str, cases: list[Line], **more: Any) -> None:
    day = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    content = {"device": device, "machine": machine_of(device), "date": day, "commit": commit, **more}
    lines = ",\n".join("  " + json.dumps(case) for case in cases)
    head = json.dumps(content, indent=1).rstrip("}\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{head},\n "cases": [\n{lines}\n ]\n}}\n', encoding="utf-8")


def verdict(pairs: dict[str, tuple[float, float]], device: str, allow: float | None) -> int:
    """Prints every case, old and new milliseconds, and what is slower; the exit code."""
    allowed = ALLOWED_PERCENT[device] if allow is None else allow
    slower = []
    for name, (old, new) in pairs.items():
        percent = 100 * (new / old - 1)
        is_slower = percent > allowed and new - old > LEAST_MS[device]
        if is_slower:
            slower.append(name)
        print(f"{old:12.3f} {new:12.3f} ms {percent:+7.1f} %  {name}{'   SLOWER' if is_slower else ''}")
    ratios = [new / old for old, new in pairs.values()]
    if ratios:
        print(f"\n{len(ratios)} cases; median of new / old: {statistics.median(ratios):.3f}")
    print(f"slower by more than {allowed:g} %: {len(slower)}")
    for name in slower:
        print(f"  {name}")
    return 1 if slower else 0


def read_run(path: Path) -> dict[str, Any]:
    """A stored run, or the lines that a benchmark wrote with --out. Cases without a time are left out."""
    text = path.read_text("utf-8")
    if not text.startswith('{"table"'):
        run: dict[str, Any] = json.loads(text)
        return run
    cases = [line for line in map(json.loads, text.splitlines()) if "ms" in line]
    on_gpu = any(line.get("clock") == "cuda" for line in cases)
    return {"device": "cuda" if on_gpu else "cpu", "machine": None, "cases": cases}


def check_command(options: argparse.Namespace) -> int:
    stored, new = read_run(options.stored), read_run(options.new)
    if stored["device"] != new["device"] or stored["machine"] != new["machine"]:
        print(f"other machines: {stored['machine']} and {new['machine']}", file=sys.stderr)
    clocks = [{line["clock"] for line in run["cases"]} for run in (stored, new)]
    if clocks[0].isdisjoint(clocks[1]):
        print("one run has the processor time of one thread, the other the wall clock", file=sys.stderr)
        return 2
    times = {name_of(line): line["ms"] for line in new["cases"]}
    pairs = {name_of(line): (line["ms"], times[name_of(line)]) for line in stored["cases"] if name_of(line) in times}
    tables = {line["table"] for line in new["cases"]}  # a run of one table is compared with that table
    missing = [name_of(line) for line in stored["cases"] if line["table"] in tables and name_of(line) not in times]
    for name in missing:
        print(f"not in {options.new}: {name}")
    code = verdict(pairs, stored["device"], options.allow)
    return 1 if missing else code


class Served:
    """A build's kith_compare that measures the case it is asked for, and keeps that case's data until the next."""

    def __init__(self, binary: Path, options: list[str]) -> None:
        command = [str(binary), *options, "--serve"]
        self._program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def measure(self, case: str) -> Line:
        assert self._program.stdin is not None and self._program.stdout is not None
        try:
            self._program.stdin.write(case + "\n")
            self._program.stdin.flush()
        except BrokenPipeError:
            sys.exit(2)
        text = self._program.stdout.readline()
        if not text:
            sys.exit(2)  # it has said why
        line: Line = json.loads(text)
        return line

    def close(self) -> None:
        assert self._program.stdin is not None
        self._program.stdin.close()
        self._program.wait()


def cases_of(binary: Path, options: list[str]) -> list[str]:
    asked = subprocess.run([str(binary), *options, "--list"], stdout=subprocess.PIPE, text=True, check=True)
    return [name for name in asked.stdout.split("\n") if name]


def turns_command(options: argparse.Namespace) -> int:
    given = given_options(options)
    lists = [cases_of(binary, given) for binary in (options.old, options.new)]
    cases = [case for case in lists[0] if options.only in case]
    missing = [case for case in cases if case not in lists[1]]
    allowed = ALLOWED_PERCENT[options.device] if options.allow is None else options.allow
    builds = [Served(binary, given) for binary in (options.old, options.new)]
    pairs: dict[str, tuple[float, float]] = {}
    for case in cases:
        if case in missing:
            print(f"not in {options.new}: {case}")
            continue
        pairs[case] = best_in_turns(builds, case, options.rounds, options.again, 1 + allowed / 100)
        print(f"{pairs[case][0]:12.3f} {pairs[case][1]:12.3f} ms  {case}", flush=True)
    for build in builds:
        build.close()
    if options.out is not None:
        both = []
        for case, (old, new) in pairs.items():
            table, name = case.split("/", 1)
            both.append({"table": table, "case": name, "old_ms": old, "ms": new})
        store(options.out, options.device, commit_here(), both, old=str(options.old), new=str(options.new))
    print()
    code = verdict(pairs, options.device, options.allow)
    return 1 if missing else code


def best_in_turns(builds: list[Served], case: str, rounds: int, again: int, allowed: float) -> tuple[float, float]:
    """The shortest time of each. Who goes first changes with every round; a case that seems slower gets more rounds."""
    best = [float("inf"), float("inf")]
    for turn in range(rounds + again):
        if turn >= rounds and best[1] <= allowed * best[0]:
            break
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            best[which] = min(best[which], float(builds[which].measure(case)["ms"]))
    return best[0], best[1]


if __name__ == "__main__":
    sys.exit(main())
