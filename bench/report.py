"""What a Python benchmark has measured: a line on the terminal for each case, and a line of JSON in a file, with the members
that the C++ driver writes (README.md).

    options = parser_of(__doc__).parse_args()
    report = report_of("sweep", options, faiss=faiss.__version__)  # notes the command, the commit and the machine
    report.row("one query", ms=0.3, clock="processor", peers_ms={"faiss": 0.9})

    python bench/report.py FILE...    prints such files as tables
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


class Report:
    """Rows and notes of one benchmark; `out` is the file of JSON lines, or None."""

    def __init__(self, table: str, out: Path | str | None = None) -> None:
        self.table = table
        self._out = Path(out) if out is not None else None
        if self._out is not None:
            self._out.parent.mkdir(parents=True, exist_ok=True)
            self._out.write_text("", encoding="utf-8")

    def row(
        self,
        case: str,
        *,
        shape: str = "",
        ms: float | None = None,
        median_ms: float | None = None,
        runs: int = 0,
        clock: str = "",
        floor_ms: float | None = None,
        peers_ms: dict[str, float] | None = None,
        figures: dict[str, float] | None = None,
        labels: dict[str, str] | None = None,
    ) -> None:
        """One case. `ms` is the shortest time, `clock` one of wall, processor and cuda. What was not measured is left out."""
        members: dict[str, Any] = {
            "shape": shape,
            "ms": ms,
            "median_ms": median_ms,
            "runs": runs,
            "clock": clock,
            "floor_ms": floor_ms,
            "peers_ms": peers_ms,
            "figures": figures,
            "labels": labels,
        }
        line = {"case": case, **{name: value for name, value in members.items() if value}}
        print(_text(line), flush=True)
        self._write(line)

    def note(self, text: str) -> None:
        """Text that is no result: what was measured, and how."""
        print(f"# {text}", flush=True)
        self._write({"note": text})

    def _write(self, members: dict[str, Any]) -> None:
        if self._out is None:
            return
        with self._out.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"table": self.table, **members}, ensure_ascii=False) + "\n")


def _text(line: dict[str, Any]) -> str:
    text = f"{line['case']:<52}"
    ms, median, floor = line.get("ms"), line.get("median_ms"), line.get("floor_ms")
    if ms is not None:
        text += f" {ms:11.4f} ms"
    if median is not None:
        text += f"  median {median:.4f}"
    time = median if median is not None else ms
    if floor and time is not None:
        text += f"  floor {floor:.4f} ({time / floor:.1f}x)"
    for name, value in line.get("peers_ms", {}).items():
        text += f"  {name} {value:.4g} ms" + (f" ({value / time:.2f}x)" if time else "")
    text += "".join(f"  {name} {value:.6g}" for name, value in line.get("figures", {}).items())
    return text + "".join(f"  {name} {value}" for name, value in line.get("labels", {}).items())


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """A parser with the options of every benchmark: where its lines are kept."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, metavar="FILE", help="a file for lines of JSON")
    parser.add_argument("--write", action="store_true", help="keep the lines where the documentation finds them, bench/results")
    return parser


def report_of(table: str, options: argparse.Namespace, **more: Any) -> Report:
    """The report of a run; its first line is a note of what was run, and on what. `more`: versions of peers and the like."""
    on_gpu = table.endswith("_cuda") or str(getattr(options, "device", "cpu")).startswith("cuda")
    place = RESULTS / "h200" / f"{table}.jsonl" if on_gpu else RESULTS / "cpu" / f"{table}_{platform.machine()}.jsonl"
    report = Report(table, place if options.write else options.out)
    given = {name: value for name, value in vars(options).items() if name not in ("out", "write")}
    report.note(json.dumps({**_measured_on(on_gpu), **more, "options": given}, ensure_ascii=False, default=str))
    return report


def _measured_on(on_gpu: bool) -> dict[str, str]:
    import kith

    info = kith.info()
    command = " ".join([f"bench/{Path(sys.argv[0]).name}", *sys.argv[1:]])
    machine = {"machine": platform.machine(), "cpu": str(info["cpu"]), "instruction_set": str(info["instruction_set"])}
    devices: Any = info["cuda_devices"] if on_gpu else []
    gpu = {"gpu": str(devices[0]["name"])} if devices else {}
    return {"command": command, "commit": commit_here(), **machine, **gpu, "kith": kith.__version__}


def commit_here() -> str:
    """The commit of this tree, short."""
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def shown(line: dict[str, Any]) -> str:
    """A line of a file, as the terminal had it."""
    if "note" in line:
        return f"# {line['note']}"
    return _text({name: value for name, value in line.items() if name != "table"})


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        for text in Path(argument).read_text("utf-8").splitlines():
            print(shown(json.loads(text)))
