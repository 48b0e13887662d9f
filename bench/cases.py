"""Cases of a benchmark: each has a name and makes calls, Kith's and those of its peers, which are timed turn by turn.

    cases = Cases()

    @cases.add("50 queries in 1,000 x 40,000", shape="1,000 x 40,000 f32", goal=1.0)
    def _(random):
        return {"kith": ..., "faiss": ...}

    cases.run(report, options.case, times)

Data is made when a case is run, and forgotten after it. A goal is how many times as long as Kith the peer should take.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from report import Report
from turns import Call

Calls = dict[str, Call]
Make = Callable[[np.random.Generator], Calls]
Times = Callable[[Calls], dict[str, float]]  # seconds of each


@dataclass(frozen=True)
class Case:
    name: str
    make: Make
    shape: str = ""
    floor_ms: float | None = None
    goal: float | None = None


class Cases:
    def __init__(self) -> None:
        self.all: list[Case] = []

    def add(
        self, name: str, *, shape: str = "", floor_ms: float | None = None, goal: float | None = None
    ) -> Callable[[Make], None]:
        """Registers the function below it."""

        def register(make: Make) -> None:
            self.all.append(Case(name, make, shape, floor_ms, goal))

        return register

    def run(self, report: Report, part: str, times: Times, *, clock: str = "wall", runs: int = 0, seed: int = 1) -> int:
        """Those whose names hold `part`; how many there were. The last lines say which missed their goals."""
        ratios: dict[str, float] = {}
        missed: list[str] = []
        for case in self.all:
            if part not in case.name:
                continue
            seconds = times(case.make(np.random.default_rng(seed)))
            peers = {name: 1e3 * value for name, value in seconds.items() if name != "kith"}
            figures = {}
            ratio = min((value / seconds["kith"] for name, value in seconds.items() if name != "kith"), default=None)
            if ratio is not None:
                ratios[case.name] = figures["ratio"] = ratio
            if case.goal is not None:
                figures["goal"] = case.goal
            if ratio is not None and case.goal is not None and ratio < case.goal:
                missed.append(case.name)
            report.row(
                case.name,
                shape=case.shape,
                ms=1e3 * seconds["kith"],
                runs=runs,
                clock=clock,
                floor_ms=case.floor_ms,
                peers_ms=peers,
                figures=figures,
            )
        if ratios:
            worst = min(ratios, key=lambda name: ratios[name])
            report.note(f"worst ratio {ratios[worst]:.2f} ({worst}); below their goals: {', '.join(missed) or 'none'}")
        return len(ratios)
