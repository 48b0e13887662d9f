"""How good found neighbours are."""

from __future__ import annotations

from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from kith import _kith
from kith._libraries import library_of
from kith._options import whole_number
from kith._other_names import answers_other_names


@answers_other_names("kith.recall()")
def recall(found: Any, truth: Any, k: SupportsIndex | None = None) -> float:
    """The share of the true k nearest neighbours that were found: k-recall@k, averaged over the queries.

    Parameters
    ----------
    found : array_like of int, (queries, columns)
        Ids that a search returned, nearest first, or its whole result (`Neighbors`, `KnnGraph`). -1 is ignored.
    truth : array_like of int, (queries, columns)
        Ids of the true neighbours, as `knn` finds them.
    k : int, optional
        How many columns of both to compare; by default as many as both have.

    Returns
    -------
    float
        From 0 to 1.

    Raises
    ------
    ValueError
        Different numbers of queries, none at all, more columns asked for than there are, or a truth with fewer than k
        neighbours or with one twice.

    Examples
    --------
    >>> import kith
    >>> kith.recall([[0, 1], [2, 5]], [[0, 1], [2, 3]])
    0.75
    >>> kith.recall([[0, 1], [2, 5]], [[0, 1], [2, 3]], k=1)
    1.0
    """
    ids, true_ids = _ids(found, "found"), _ids(truth, "truth")
    count = min(ids.shape[1], true_ids.shape[1]) if k is None else whole_number(k, "k")
    return _kith.k_recall(ids, true_ids, count)


def _ids(given: Any, name: str) -> npt.NDArray[np.int64]:
    given = getattr(given, "ids", given)
    array = np.asarray(library_of(given).to_host(given) if hasattr(given, "shape") else given)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} is {array.dtype}; it must be ids, which are whole numbers")
    if array.ndim != 2:
        raise ValueError(f"{name} has {array.ndim} axes (shape {array.shape}); it must be 2-D, one row for each query")
    return np.ascontiguousarray(array, dtype=np.int64)
