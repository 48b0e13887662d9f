"""Benchmarks in C++ and in Python write lines of JSON with the same members, so that one program compares them."""

from __future__ import annotations

import inspect
import json
import re
import sys
from pathlib import Path

BENCH = Path(__file__).parents[2] / "bench"
sys.path.insert(0, str(BENCH))

from report import Report  # noqa: E402

MEMBERS = re.findall(r'add\("(\w+)"', (BENCH / "driver/report.cpp").read_text("utf-8"))


def test_members_are_the_drivers() -> None:
    assert MEMBERS == [name for name in inspect.signature(Report.row).parameters if name not in ("self", "case")]


def test_rows_are_written_without_what_was_not_measured(tmp_path: Path) -> None:
    report = Report("walks", tmp_path / "out.jsonl")
    report.note("a quiet machine")
    report.row("alone", ms=1.5, runs=3, peers_ms={"faiss": 3.0})
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    assert lines == [
        {"table": "walks", "note": "a quiet machine"},
        {"table": "walks", "case": "alone", "ms": 1.5, "runs": 3, "peers_ms": {"faiss": 3.0}},
    ]


def test_stored_lines_are_of_this_form() -> None:
    files = [*BENCH.glob("results/*/*.jsonl")]
    assert files
    for file in files:
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
            members = set(json.loads(line)) - {"table"}
            assert members == {"note"} or "case" in members and members <= {"case", *MEMBERS}, f"{file}:{number}"


def test_stored_results_are_lines() -> None:
    texts = {path.name for path in BENCH.glob("results/*/*") if path.suffix not in (".jsonl", ".json")}
    assert not texts, f"a benchmark writes its lines with --write, a C++ one with --out: {sorted(texts)}"


def test_programs_in_cpp_are_of_the_driver() -> None:
    """All but the hashes, which check bytes: a main() of its own would have options and lines of its own."""
    own = {str(path.relative_to(BENCH)) for path in BENCH.rglob("*.c*") if re.search(r"^int main\(", path.read_text("utf-8"), re.M)}
    assert own == {"driver/main.cpp", "hashes/main.cpp"}


def test_python_benchmarks_report() -> None:
    """A parser of its own is for what measures no times: pictures, and checks of answers."""
    others = {"graph_lives", "lsq_curves", "plot_curves", "plot_graphs", "random_calls", "report"}
    own = {path.stem for path in BENCH.glob("*.py") if "ArgumentParser(" in path.read_text("utf-8")}
    assert own <= others, f"use parser_of() and report_of() of report.py: {sorted(own - others)}"
