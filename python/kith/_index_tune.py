"""Which parameters of a search reach a recall, measured: `Index.tune`, a function of `self`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, SupportsFloat, SupportsIndex

from kith._arrays import VectorsLike, as_queries
from kith._index_searches import count_or_default
from kith._options import calling, real_number, whole_number
from kith._other_names import answers_other_names
from kith._progress import Progress
from kith._typing import ByteSize, ByteSizes

if TYPE_CHECKING:
    from kith._index import Index


class TunedSearch(NamedTuple):
    """Parameters of a search, and what searches with them were measured to find."""

    parameters: dict[str, int]
    """``beam``, ``width``, ``probes`` and ``refine``, as far as it has them: ``index.search(q, **parameters)``."""
    recall: float
    """The mean, over queries, of the share of the true k nearest that was found."""
    standard_error: float
    """Of that mean."""
    compared: float
    """Vectors, codes and centres that a query was compared with, on average; the same on every device."""
    seconds: float
    """Time per query, in the requested batches; 0 if the index was loaded from a file."""


class TuneReport(NamedTuple):
    """What `Index.tune` has measured: the search that was chosen, and all others."""

    parameters: dict[str, int]
    recall: float
    standard_error: float
    compared: float
    seconds: float
    reached: bool
    """Whether that search has the recall that was asked for; else it is the one with the highest."""
    searches: list[TunedSearch]
    """All that were measured, by ascending ``compared``."""


def searches_of(told: list[dict[str, Any]]) -> list[TunedSearch]:
    return [TunedSearch(**one) for one in told]


@answers_other_names("tune()")
def tune(
    self: Index,
    queries: VectorsLike,
    k: SupportsIndex = 10,
    recall: SupportsFloat = 0.95,
    *,
    batch: SupportsIndex | None = None,
    threads: SupportsIndex = 0,
    memory_limit: ByteSize | None = None,
    device_memory_limit: ByteSizes | None = None,
    progress: Progress = False,
) -> TuneReport:
    """Measure which parameters of `search` reach a recall, and keep the table for ``search(..., recall=)``.

    Searches with several parameters (``Graph``: ``beam``, ``width`` and ``refine``; lists: ``probes``; ``refine`` where
    vectors are kept for it) are compared with exact search of the vectors as the index keeps them. Of those with the recall
    the one with the fewest comparisons is chosen, so that the choice is the same on every device and every day. The table
    is a part of the index, is saved with it, and stays until the next `tune` or `train`; call it again when the
    vectors have changed much.

    Parameters
    ----------
    queries : array_like
        Some hundreds that are like those to come; the standard error tells whether they were enough.
    k : int, default 10
        How many neighbours searches will ask for.
    recall : float, default 0.95
        The share of the true k nearest that searches are to find.
    batch : int, optional
        How many queries are searched at a time, for ``seconds``; by default all.
    threads, memory_limit, device_memory_limit, progress
        As in `search`.

    Examples
    --------
    >>> import numpy as np, kith
    >>> x = np.random.default_rng(0).standard_normal((5000, 8), dtype=np.float32)
    >>> index = kith.Index("IVF32,Flat")
    >>> index.train(x)
    >>> index.add(x)
    >>> found = index.tune(x[:200], k=10, recall=0.9)
    >>> found.recall >= 0.9, sorted(found.parameters)
    (True, ['probes'])
    >>> ids, distances = index.search(x[:5], k=10, recall=0.9)
    """
    number, share = whole_number(k, "k"), real_number(recall, "recall")
    together = count_or_default(batch, "batch")
    with calling(self._device, threads, memory_limit, device_memory_limit, progress, arrays=(queries,)) as options:
        matrix, _ = as_queries(queries, options.stream)
        chosen, reached, searches = self._index.tune(matrix, number, share, together, options)
    return TuneReport(**chosen, reached=reached, searches=searches_of(searches))
