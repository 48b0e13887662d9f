"""Information about an index."""

from __future__ import annotations

from dataclasses import dataclass, field

from kith._index_tune import TunedSearch
from kith._metrics import Metric


@dataclass(frozen=True)
class IndexInfo:
    """What an index holds, as `Index.info` tells it.

    Attributes
    ----------
    factory, metric : str
        As they were given.
    trained : bool
        Whether vectors can be added.
    size, dimension : int
        The number of vectors, and of their columns: 0 before it is known.
    dead : float
        The share of removed vectors in what is kept, until `Index.compact`.
    dtype : str
        Of the first vectors added: ``"f32"``, ``"f16"``, ``"bf16"``, ``"u8"`` or ``"i8"``.
    lists : int
        Of an inverted file; 1 for codes without one, 0 for ``"Flat"``.
    imbalance : float
        How many times as many vectors a search scans as with lists of equal length; 1 is ideal.
    longest_list : int
        The vectors of the longest list.
    filled_lists : int
        Lists that are not empty. There are empty ones if there are fewer different vectors than lists.
    code_bytes : int
        Bytes per vector in the lists.
    degree : int
        Of a graph: how many neighbours a vector has at most; 0 without one. What follows stays 0 while search is exact.
    unlinked : int
        The vectors added since the graph was built, which every search compares.
    walk_bits : int
        Bits per column of the codes that walks compare: 8, or 4 (``"Graph32x4"``); 0 if they compare the vectors.
    clipped : int
        Values of vectors out of the range of these codes.
    lost : int
        Vectors that a short walk towards them does not find.
    beam : int
        The default beam of searches.
    recalls : dict
        The recall of the 10 nearest by beam, measured when the graph was built.
    tuned : list of TunedSearch
        The measurements of `Index.tune`; empty before.
    host_bytes, device_bytes : int
        Memory that the index owns, on the host and on all GPUs, without borrowed arrays.
    parts : dict
        The same bytes by purpose.
    """

    factory: str
    metric: Metric
    trained: bool
    size: int
    dead: float
    dimension: int
    dtype: str
    lists: int
    imbalance: float
    longest_list: int
    filled_lists: int
    code_bytes: int
    host_bytes: int
    device_bytes: int
    parts: dict[str, int] = field(default_factory=dict)
    degree: int = 0
    unlinked: int = 0
    walk_bits: int = 0
    clipped: int = 0
    lost: int = 0
    beam: int = 0
    recalls: dict[int, float] = field(default_factory=dict)
    tuned: list[TunedSearch] = field(default_factory=list)
