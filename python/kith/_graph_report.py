"""How a k-NN graph was made and how good it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple


class GraphRecall(NamedTuple):
    """How many of the true neighbours a graph has: `KnnGraph.measure_recall`."""

    recall: float
    """Of all k neighbours."""
    standard_error: float
    """Of `recall`; 0 where all rows were looked at."""
    recall_at_10: float
    """Of the 10 nearest, or of all where k is smaller."""
    rows: int
    """How many were looked at."""


@dataclass(frozen=True)
class GraphRound:
    """One round of a method that has rounds."""

    recall: float | None
    """Estimated after the round, if it was."""
    phi: float
    """The sum of all distances in the lists (equation 3 of GNND)."""
    updates: int
    """Entries of lists that changed."""
    comparisons: int
    """Distances computed."""
    seconds: float


class GraphForecast(NamedTuple):
    """What cells were foreseen to take for the recall, before any pair was compared."""

    probes: int
    """Of every row."""
    comparisons: int
    """In all."""


@dataclass(frozen=True)
class GraphReport:
    """How a graph was made: `KnnGraph.report`."""

    method: str = "given"
    """``"exact"``, ...; ``"given"`` for a graph of arrays or files."""
    parameters: dict[str, Any] = field(default_factory=dict)
    """The method's parameters, those that followed from the problem included."""
    recall: float | None = None
    """The share of the true neighbours that were found: 1 for an exact graph, else estimated; None: unknown."""
    recall_at_10: float | None = None
    """The same of the 10 nearest."""
    standard_error: float | None = None
    """Of `recall`; 0 if all rows were measured."""
    reached: bool = True
    """Whether the recall that was asked for was reached."""
    forecast: GraphForecast | None = None
    """What cells were foreseen to take, where cells were learned; also if another method was sooner."""
    rounds: tuple[GraphRound, ...] = ()
    """What each round did."""
    seconds: float = 0.0
    """The time it took."""
    peak_bytes: int = 0
    """The most host memory that Kith had allocated for it, the graph included."""
    peak_device_bytes: int = 0
    """The same on a GPU."""

    @classmethod
    def _of(cls, told: dict[str, Any]) -> GraphReport:
        rounds = tuple(GraphRound(**one) for one in told.get("rounds", ()))
        forecast = told.get("forecast")
        return cls(**{**told, "forecast": GraphForecast(*forecast) if forecast else None, "rounds": rounds})
