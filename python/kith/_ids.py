"""The caller's ids of vectors: int64 numbers from 0 on."""

from __future__ import annotations

from typing import Any, Union

import numpy as np
import numpy.typing as npt

from kith._arrays import SupportsDLPack, to_numpy

IdsLike = Union[npt.ArrayLike, SupportsDLPack]
Ids = npt.NDArray[np.int64]


def as_ids(ids: IdsLike, name: str = "ids") -> tuple[Ids, bool]:
    """The ids as the library reads them, and whether it was one alone, a number. Which there are the library checks."""
    array = to_numpy(ids, name, "kith.read_vectors(path).ravel()")
    if array.ndim > 1:
        raise ValueError(f"{name} has {array.ndim} axes (shape {array.shape}); it must be 1-D, or one whole number")
    return _as_int64(array, ids, name).reshape(-1), array.ndim == 0


def _as_int64(array: npt.NDArray[Any], given: IdsLike, name: str) -> Ids:
    if array.dtype.kind in "iu":
        if array.dtype == np.uint64 and array.size > 0 and array.max() > np.iinfo(np.int64).max:
            raise ValueError(f"{name} holds {array.max()}; ids are int64")
        return np.ascontiguousarray(array, dtype=np.int64)
    if array.size == 0 and isinstance(given, (list, tuple)):  # numpy takes an empty list for float64
        return np.empty(0, np.int64)
    hint = "; a mask chooses rows with numpy.flatnonzero" if array.dtype.kind == "b" else ""
    if array.dtype.kind in "USO":
        hint = ": number your names, or take a collection, which keeps texts as ids: kith.open(path, dimension=...)"
    raise TypeError(f"{name} is {array.dtype}; ids are whole numbers{hint}")
