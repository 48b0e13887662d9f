"""A warning where training will take minutes, and says nothing meanwhile.

Only the rotation of ``OPQ`` takes that long: each of its 50 rounds multiplies a sample of rows by it twice, and turns it by some
products of its own size.
"""

from __future__ import annotations

import operator
import os
import re
import warnings
from typing import SupportsIndex

from kith import _kith
from kith._caller import levels_to_the_caller
from kith._progress import Progress

_ROUNDS = 50
_MOST_ROWS = 65_536
_FLOPS = 3e10  # of one thread, on the slower of the processors measured
_LONG = 60  # seconds


def warn_of_long_training(steps: str, x: object, device: str, threads: SupportsIndex, progress: Progress) -> None:
    """Warns before a training by `steps`, a factory string, on a CPU; not where its progress is shown."""
    shape = getattr(x, "shape", ())
    if "OPQ" not in steps or progress is not False or len(shape) != 2:
        return
    if device != "cpu" and _kith.info()["cuda_devices"]:
        return
    used = operator.index(threads) or len(os.sched_getaffinity(0))
    columns, flops = _rotation(steps, *shape)
    if flops >= _LONG * _FLOPS * used:
        minutes = round(flops / (_FLOPS * used * 60) + 0.5)
        warnings.warn(
            f"OPQ of {columns} columns trains for some {minutes} minutes on {used} thread{'s' * (used != 1)} of a CPU; progress=True shows "
            "how far it is, and PCA before it (such as 'PCA256,OPQ32') makes it short",
            stacklevel=levels_to_the_caller(),
        )


def _rotation(steps: str, rows: int, columns: int) -> tuple[int, float]:
    """The columns that OPQ rotates, and its multiplications and additions, less what is small beside them."""
    for step in steps.replace(" ", "").split(","):
        found = re.fullmatch(r"(PCAR?|RR|Pad|OPQ)(\d+_)?(\d*)", re.sub(r"^OPQ\d+$", "OPQ", step))
        if found is None:
            continue
        out = int(found[3] or columns)
        if found[1] == "OPQ":
            return columns, _ROUNDS * columns * out * (4.0 * min(rows, _MOST_ROWS) + 50.0 * min(columns, out))
        columns = out
    return columns, 0.0
