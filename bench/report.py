"""What a Python benchmark has measured: a line on the terminal for each case, and a line of JSON in a file, with the members
that the C++ driver writes (README.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class Report:
    """Rows and notes of one benchmark; `out` is the file of JSON lines, or None."""

    def __init__(self, table: str, out: Path | str | None = None) -> None:
        self.table = table
        self._out = Path(out) if out is not None else None
        if self._out is not None:
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
        text = f"{case:<40}"
        if ms is not None:
            text += f" {ms:11.4f} ms"
        if median_ms is not None:
            text += f"  median {median_ms:.4f}"
        time = median_ms if median_ms is not None else ms
        if floor_ms and time is not None:
            text += f"  floor {floor_ms:.4f} ({time / floor_ms:.1f}x)"
        text += "".join(f"  {name} {value:.4g} ms" for name, value in (peers_ms or {}).items())
        text += "".join(f"  {name} {value:.6g}" for name, value in (figures or {}).items())
        text += "".join(f"  {name} {value}" for name, value in (labels or {}).items())
        print(text, flush=True)
        self._write({"case": case, **{name: value for name, value in members.items() if value}})

    def note(self, text: str) -> None:
        """Text that is no result: what was measured, and how."""
        print(f"# {text}", flush=True)
        self._write({"note": text})

    def _write(self, members: dict[str, Any]) -> None:
        if self._out is None:
            return
        with self._out.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"table": self.table, **members}, ensure_ascii=False) + "\n")


def lines_of(table: str, content: dict[str, Any], peers: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """The lines of a document of results: a note with all that holds for the run, then a case for each result. Its texts, and
    the whole numbers before its first measurement, name the case; the others are figures. With `peers`, their members and
    `kith` are seconds."""
    given = {name: value for name, value in content.items() if name != "results"}
    lines: list[dict[str, Any]] = [{"table": table, "note": json.dumps(given, ensure_ascii=False, default=str)}]
    for result in content["results"]:
        members = dict(result)
        named = members.pop("text", None) or members.pop("case", None) or members.pop("name", None)
        words: list[str] = [] if named is None else [" ".join(str(named).split())]
        figures: dict[str, float] = {}
        times: dict[str, float] = {}
        for name, value in _flat(members):
            if name == "kith" or name in peers:
                times[name] = 1e3 * value
            elif isinstance(value, str) or (isinstance(value, int) and not figures and not times):
                if named is None:
                    words.append(f"{name} {value}" if not isinstance(value, str) else value)
            elif isinstance(value, int | float):
                figures[name] = value
        line: dict[str, Any] = {"table": table, "case": ", ".join(words)}
        if peers and "kith" in times:
            line["ms"] = times.pop("kith")
            line["peers_ms"] = times
        else:
            figures |= {name: value / 1e3 for name, value in times.items()}
        lines.append(line | ({"figures": figures} if figures else {}))
    cases = [line.get("case") for line in lines]
    for line in lines[1:]:
        if cases.count(line["case"]) > 1 and line.get("figures"):  # of results that differ by a share or a rate
            name, value = next(iter(line["figures"].items()))
            line["case"] += f", {name} {value:g}"
    return lines


def _flat(members: dict[str, Any]) -> list[tuple[str, Any]]:
    """Lists and dictionaries as members of their own: "recall.0"."""
    flat: list[tuple[str, Any]] = []
    for name, value in members.items():
        if isinstance(value, dict):
            flat += _flat({f"{name}.{inner}": one for inner, one in value.items()})
        elif isinstance(value, list):
            flat += _flat({f"{name}.{number}": one for number, one in enumerate(value)})
        elif value is not None:
            flat.append((name, value))
    return flat
