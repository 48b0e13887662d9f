"""What an index says of itself."""

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
    rows, dimension : int
        The shape of what it holds; the dimension is 0 before it is known.
    dead : float
        The share of removed vectors in what is kept, until `Index.compact`.
    dtype : str
        Of the vectors that were given: ``"f32"``, ``"f16"``, ``"bf16"``, ``"u8"`` or ``"i8"``.
    lists : int
        Of an inverted file; 1 for codes without one, 0 for ``"Flat"``.
    imbalance : float
        How many times as many vectors a search looks at as if all lists were as long: 1 at best.
    longest_list : int
        The vectors of the longest list.
    filled_lists : int
        Lists that have any vectors. Others are left where the vectors that differ are fewer than the lists.
    code_bytes : int
        What a vector takes in the lists.
    degree : int
        Of a graph: how many neighbours a vector has at most; 0 without one. What follows stays 0 while search is exact.
    unlinked : int
        The vectors added since the graph was built, which every search compares.
    walk_bits : int
        Bits of a column in the codes that walks go by: 8, or 4 (``"Graph32x4"``); 0 where they compare the vectors.
    clipped : int
        Values of vectors beyond the codes that walks go by.
    lost : int
        The vectors that a short walk towards them does not find.
    beam : int
        That searches take by default.
    recalls : dict
        The recall of the 10 nearest by beam, measured when the graph was built.
    tuned : list of TunedSearch
        What `Index.tune` has measured; empty before.
    host_bytes, device_bytes : int
        All memory that the index owns, on the host and on all GPUs; not arrays that it borrows.
    parts : dict
        The same bytes by what they are for.
    """

    factory: str
    metric: Metric
    trained: bool
    rows: int
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
