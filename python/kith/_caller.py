"""The position of the code that called Kith, for warnings."""

from __future__ import annotations

import os
import sys

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def levels_to_the_caller() -> int:
    """How far up the stack the first function is that is none of the package's; 1 is the one that asks.

    The compiled half asks too: for it 1 is the function that called it.
    """
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level
