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
