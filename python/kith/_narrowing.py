"""Numbers that float32 may not hold, float64's and wide integers', on their way to the library, which reads float32.

Rounding to float32 keeps 24 bits of a number, counted from its leading one. Where the values of a column lie close
together and far from 0, as times and places do, those bits are spent on what all values have in common. So one of the
values is subtracted from all first, in float64: differences do not change, and with them no distance of `l2`,
`sqeuclidean`, `l1` and `linf`. What is subtracted is told by the base alone. Columns that do not need it stay as they
are, and their results are those of ``x.astype(numpy.float32)``.

What rounding costs is estimated from a sample of the rows; `PrecisionWarning` says where that may be too much.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from kith._caller import levels_to_the_caller

Doubles = npt.NDArray[np.float64]

# Metrics of differences alone, which no offset changes.
SHIFTABLE = frozenset({"l2", "sqeuclidean", "l1", "linf"})

# Rows that are looked at, evenly spaced: fewer where they are long.
_SAMPLE_ROWS = 512
_FEWEST_ROWS = 64
_SAMPLE_VALUES = 1 << 16
# Values are compared with those that a so many-th part of the sample lies between.
_PART = 8
# A column is shifted where a window of values is so many times as far from 0 as it is wide, and the shift gains so much.
_FAR = 64.0
_GAIN = 4.0
# The most that rounding may move a vector, as a share of the estimated distance of neighbours.
_MOST_MOVED = 1 / 64

_HALF_STEP = 2.0**-24  # rounding to float32 changes a number by this share of it at most
_SMALLEST = 2.0**-150  # or by this, near 0


class PrecisionWarning(UserWarning):
    """Rounding to float32, in which Kith reads vectors, may change which of them are nearest."""


class Narrowing:
    """How the vectors of one collection become float32, and those that are compared with them.

    Attributes
    ----------
    offset : numpy.ndarray of float64, (dimension,), or None
        What is subtracted from every vector, in float64, before it is rounded.
    """

    __slots__ = ("offset",)

    def __init__(self, offset: Doubles | None = None) -> None:
        self.offset = offset

    def restored(self, rows: npt.NDArray[np.float32]) -> npt.NDArray[Any]:
        """Rows of the library, such as centres, where the vectors were: float64 if something was subtracted."""
        return rows if self.offset is None else rows.astype(np.float64) + self.offset


# Rounds and subtracts nothing.
PLAIN = Narrowing()


def is_wide(dtype: np.dtype[Any]) -> bool:
    """Whether values of a numpy dtype are numbers that float32 may not hold."""
    return (dtype.kind == "f" and dtype.itemsize > 4) or (dtype.kind in "iu" and dtype.itemsize >= 4)


def check_integers(smallest: int, largest: int, name: str, *, float32: bool = False) -> None:
    """ValueError for integers that float64, in which they are subtracted, may not hold; or float32 where that is all."""
    bits = 24 if float32 else 53
    if largest > 2**bits or smallest < -(2**bits):
        shown = largest if largest > 2**bits else smallest
        raise ValueError(
            f"{name} holds the integer {shown}; {'float32' if float32 else 'float64'} holds those up to 2**{bits} alone: "
            "subtract an offset that all values have in common, or drop digits, before you pass it"
        )


def warn_of_rounding(name: str, *, wide: bool = True) -> None:
    """Of values that are rounded; where these are `wide` no more, by what is subtracted from all of an index."""
    warnings.warn(
        f"{name}: float32, in which Kith reads vectors, cannot tell these values apart well enough, so that other rows may "
        "come out as nearest. Subtract what the values of a column have in common (for l2, sqeuclidean, l1 and linf Kith "
        "has done that), or spread such a column over two. "
        + (
            f"To accept the rounding and silence this, pass {name}.astype(numpy.float32)"
            if wide
            else "What is subtracted was told by the first vectors of the index, float64 ones: those here lie elsewhere"
        ),
        PrecisionWarning,
        stacklevel=levels_to_the_caller(),
    )


def sample_step(rows: int, columns: int) -> int:
    """Every so many-th row is in the sample."""
    wanted = min(max(_SAMPLE_VALUES // max(1, columns), _FEWEST_ROWS), _SAMPLE_ROWS)
    return max(1, -(-rows // wanted))


def narrowed(array: npt.NDArray[Any], name: str, narrowing: Narrowing) -> npt.NDArray[np.float32]:
    """A numpy array of any real dtype in float32. ValueError for a finite number beyond its range."""
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8 and array.size > 0:
        check_integers(int(array.min()), int(array.max()), name)
    result = np.empty(array.shape, np.float32)
    try:
        with np.errstate(over="raise", invalid="ignore", under="ignore"):
            if narrowing.offset is None:
                np.copyto(result, array, casting="same_kind")
            else:
                np.subtract(array, narrowing.offset, out=result, casting="same_kind", dtype=np.float64)
    except FloatingPointError:
        offset = 0.0 if narrowing.offset is None else narrowing.offset
        row, column = np.argwhere(np.abs(array - offset) > np.finfo(np.float32).max)[0].tolist()
        raise ValueError(
            f"{name} holds {array[row, column]} in row {row}, column {column}, which is beyond float32's range of "
            "3.4e38: scale the vectors"
        ) from None
    return result


def is_exact(array: npt.NDArray[Any], narrowing: Narrowing) -> bool:
    """Whether rounding changes nothing."""
    block = max(1, (1 << 16) // max(1, array.shape[1]))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for first in range(0, array.shape[0], block):
            rows = array[first : first + block].astype(np.float64, copy=False)
            if narrowing.offset is not None:
                rows = rows - narrowing.offset
            if not np.array_equal(rows.astype(np.float32), rows, equal_nan=True):
                return False
    return True


class Survey:
    """What a sample of a collection's rows tells of it.

    A window of a column are the values between one of its sample and that an eighth of the sample further on.
    """

    def __init__(self, sample: Doubles, rows: int) -> None:
        self._rows = rows
        columns = np.ascontiguousarray(sample.T)
        finite = np.isfinite(columns).all(axis=0)
        self._all = np.sort(columns if finite.all() else columns[:, finite], axis=1)
        count, taken = self._all.shape
        low, counts = self._all, np.full(count, taken)
        again = np.zeros(low.shape, bool)
        np.equal(low[:, 1:], low[:, :-1], out=again[:, 1:])
        if again.any():  # each value once: rows that share one are not close by chance
            low, counts = np.sort(np.where(again, np.inf, low), axis=1), taken - again.sum(axis=1)
        step = np.maximum(1, counts // _PART)
        end = np.arange(taken) + step[:, np.newaxis]
        self._inside = end < counts[:, np.newaxis]
        self._low = low
        self._high = np.take_along_axis(low, np.minimum(end, taken - 1), axis=1) if taken > 0 else low
        self._share = float(np.median(step / np.maximum(counts, 1))) if count > 0 else 1.0  # of the values in a window

    def narrowing(self, metric: str) -> Narrowing:
        """What to subtract."""
        count, taken = self._all.shape
        if metric not in SHIFTABLE or self._all.size == 0:
            return PLAIN
        middle = self._all[:, (taken - 1) // 2]  # a value of each column, which rounding has not touched
        before, after = self._farthest(np.zeros(count)), self._farthest(middle)
        with np.errstate(invalid="ignore"):  # NaN where a column has one value, which is best subtracted
            shifted = np.isnan(before) | ((before >= _FAR) & (before >= _GAIN * after))
        offset = np.where(shifted, middle, 0.0)
        return Narrowing(offset) if offset.any() else PLAIN

    def rounds_too_much(self, narrowing: Narrowing) -> bool:
        return self.moved_by_rounding(narrowing) > _MOST_MOVED

    def moved_by_rounding(self, narrowing: Narrowing) -> float:
        """How far rounding moves a vector, as a share of the distance of neighbours; about.

        With its share of the rows spread evenly over windows that wide in every column, neighbours are
        (rows in it) ** (1 / columns) times as close as it is wide.
        """
        if self._all.size == 0:
            return 0.0
        reach, width, ratio = self._measured(np.zeros(self._all.shape[0]) if narrowing.offset is None else narrowing.offset)
        at = ratio.argmax(axis=1)[:, np.newaxis]
        varied = np.take_along_axis(ratio, at, axis=1)[:, 0] >= 0
        if not varied.any():
            return 0.0
        width = np.take_along_axis(width, at, axis=1)[varied, 0]
        error = np.maximum(np.take_along_axis(reach, at, axis=1)[varied, 0] * _HALF_STEP, _SMALLEST)
        largest = width.max()
        width, error = width / largest, error / largest  # whose squares can be added
        moved = np.sqrt(np.sum((width * error) ** 2)) / np.sum(width**2)
        return float(moved * max(1.0, self._rows * self._share) ** (1.0 / width.size))

    def _measured(self, offset: Doubles) -> tuple[Doubles, Doubles, Doubles]:
        """The distance of every window from the offset, its width, and how many times as far as wide it is; -1: none."""
        from_offset = offset[:, np.newaxis]
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            reach = np.maximum(np.abs(self._low - from_offset), np.abs(self._high - from_offset))
            width = self._high - self._low
            return reach, width, np.where(self._inside, reach / width, -1.0)

    def _farthest(self, offset: Doubles) -> Doubles:
        """How many times as far from the offset as wide a column's window is at most; NaN for a column of one value."""
        most = self._measured(offset)[2].max(axis=1, initial=-1.0)
        return np.where(most < 0, np.nan, most)
