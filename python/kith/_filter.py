"""Which rows a search may return: a mask, packed bits or a list of row numbers, as the library reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from kith._arrays import SupportsDLPack, to_numpy
from kith._kith import RowFilter

FilterLike = Union[npt.NDArray[Any], Sequence[bool], Sequence[int], SupportsDLPack]


def as_filter(filter: FilterLike | None) -> RowFilter | None:
    """The filter, told by its dtype. Its length is checked where the number of rows is known."""
    if filter is None:
        return None
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
