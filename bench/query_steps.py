"""Whether a query's time has steps as more are asked at once: few_queries.py --steps.

A planner has several exact ways to answer and should never choose the slower one, so that a query's time falls as the
batch grows and stays below that of `Flat` of the same rows. A fault is a query that takes more than a tenth longer than
in the next smaller batch, or longer than in `Flat`. What looks like a fault is measured again, with its neighbour in
turn, until it is gone or three measurements have shown it: other work on a machine makes some.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import turns

SIZES = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000)
MOST_STEP = 1.1  # of the next smaller batch's time a query
MOST_OF_FLAT = 1.03  # which is measured beside it: what two runs of one search differ by
_AGAIN = 3
_FEWEST = 100  # queries a run

Search = Callable[[Any], object]


class Run:
    """Calls with the next queries of a pool, `batch` at a time."""

    def __init__(self, search: Search, queries: Any, batch: int) -> None:
        self._search, self._queries, self._batch, self._at = search, queries, batch, 0
        self.calls = max(1, _FEWEST // batch)

    def __call__(self) -> None:
        for _ in range(self.calls):
            if self._at + self._batch > len(self._queries):
                self._at = 0
            self._search(self._queries[self._at : self._at + self._batch])
            self._at += self._batch


def times_of(searches: dict[str, Search], sizes: tuple[int, ...], queries: Any, rounds: int) -> dict[tuple[str, int], float]:
    """Microseconds a query of each search and size, all in turn."""
    runs = {(name, size): Run(search, queries, size) for name, search in searches.items() for size in sizes}
    named = {f"{name} {size}": run for (name, size), run in runs.items()}
    best = turns.best_in_turn(rounds, dict(named), time.process_time)
    return {key: 1e6 * best[f"{key[0]} {key[1]}"] / (key[1] * run.calls) for key, run in runs.items()}


def faults_of(own: Search, flat: Search | None, queries: Any, rounds: int) -> tuple[dict[tuple[str, int], float], list[str]]:
    """The times, and what is wrong with them. `flat`: None for `Flat` itself."""
    searches = {"own": own} if flat is None else {"own": own, "Flat": flat}
    times = times_of(searches, SIZES, queries, rounds)
    return times, list(_faults(searches, times, queries, rounds))


def _faults(searches: dict[str, Search], times: dict[tuple[str, int], float], queries: Any, rounds: int) -> Iterator[str]:
    alone = {"own": searches["own"]}
    for before, size in zip(SIZES, SIZES[1:], strict=False):
        step = _lasting(times["own", size] / times["own", before], MOST_STEP,
                        lambda pair=(before, size): _ratio(times_of(alone, pair, queries, rounds), ("own", pair[1]), ("own", pair[0])))  # fmt: skip
        if step > MOST_STEP:
            yield f"{size} queries take {step:.2f} times as long each as {before}"
    if "Flat" not in searches:
        return
    for size in SIZES:
        share = _lasting(times["own", size] / times["Flat", size], MOST_OF_FLAT,
                         lambda size=size: _ratio(times_of(searches, (size,), queries, rounds), ("own", size), ("Flat", size)))  # fmt: skip
        if share > MOST_OF_FLAT:
            yield f"{size} queries take {share:.2f} times as long as in Flat"


def _ratio(times: dict[tuple[str, int], float], one: tuple[str, int], other: tuple[str, int]) -> float:
    return times[one] / times[other]


def _lasting(ratio: float, most: float, measure: Callable[[], float]) -> float:
    """The smallest of several measurements of what is above `most`."""
    for _ in range(_AGAIN):
        if ratio <= most:
            break
        ratio = min(ratio, measure())
    return ratio
