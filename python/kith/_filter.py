"""Which rows a search may return: a mask, packed bits or a list of row numbers, as the library reads them.

Or one of these for each query.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt

from kith._arrays import SupportsDLPack, to_numpy
from kith._errors import kind_of
from kith._kith import RowFilter

FilterLike = Union[npt.NDArray[Any], Sequence[bool], Sequence[int], SupportsDLPack]
# One filter for all queries, or one per query, where None means no filter.
FiltersLike = Union[FilterLike, Sequence[Optional[FilterLike]]]


def as_filters(filter: FiltersLike | None) -> RowFilter | None:
    """The filter, or those of each query: a list of filters, or rows of a 2-D array."""
    if not _is_for_each(filter):
        return _one_filter(filter)
    given: Any = filter
    each: Any = given if isinstance(given, (list, tuple)) else to_numpy(given, "filter", "numpy.load(path)")
    filters = []
    for query, one in enumerate(each):
        try:
            filters.append(_one_filter(one))
        except (TypeError, ValueError) as error:
            raise type(error)(f"query {query}: {error}") from None
    return RowFilter.each(filters)


def _is_for_each(filter: Any) -> bool:
    if isinstance(filter, (list, tuple)):
        first = filter[0] if len(filter) > 0 else 0
        return first is None or isinstance(first, (list, tuple, range)) or getattr(first, "ndim", 0) == 1
    return getattr(filter, "ndim", 1) == 2


def as_filter(filter: FilterLike | None) -> RowFilter | None:
    """The filter, whose dtype determines its form. Its length is checked once the number of rows is known."""
    if _is_for_each(filter):
        raise ValueError("filter is a filter for each query; this call takes one filter for all queries")
    return _one_filter(filter)


def _one_filter(filter: Any) -> RowFilter | None:
    if filter is None:
        return None
    is_condition = isinstance(filter, str) and not filter.endswith((".npy", ".npz"))  # not the name of a file
    if is_condition or isinstance(filter, (dict, set, frozenset)) or callable(filter):
        is_set = isinstance(filter, (set, frozenset))
        hint = "sorted(filter) is one" if is_set else "collections, which kith.open makes, take conditions: where="
        raise TypeError(
            f"filter is {kind_of(filter)}; it must be a bool for each row, packed bits as uint8, or a list of row numbers; {hint}"
        )
    array = to_numpy(filter, "filter", "numpy.load(path)")
    if array.ndim != 1:
        raise ValueError(
            f"filter has {array.ndim} axes (shape {array.shape}); it must be 1-D: a bool for each row, packed bits as "
            "uint8, or a list of row numbers"
        )
    kind = array.dtype.kind
    if kind == "b":
        return RowFilter.mask(np.ascontiguousarray(array).view(np.uint8))
    if array.dtype == np.uint8:
        return RowFilter.bits(np.ascontiguousarray(array))
    if kind in "iu":
        if array.dtype == np.uint64 and array.size > 0 and array.max() > np.iinfo(np.int64).max:
            raise ValueError(f"filter holds the row number {array.max()}; row numbers are int64")
        return RowFilter.rows(np.ascontiguousarray(array, dtype=np.int64))
    if array.size == 0 and isinstance(filter, (list, tuple)):  # numpy takes an empty list for float64
        return RowFilter.rows(np.empty(0, np.int64))
    raise TypeError(
        f"filter is {array.dtype}; it must be a bool for each row, packed bits as uint8 "
        "(numpy.packbits(keep, bitorder='little')), or row numbers of another integer type"
    )
