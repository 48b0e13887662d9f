"""Vectors in files, for ``kith explore --vectors``: what `kith.read_vectors` reads, whole, and .npy from stdin."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from kith._files import read_vectors
from kith._other_files import matrix


def vectors_in(path: str) -> npt.NDArray[Any]:
    """The vectors of a file; ``-`` is .npy from stdin. Numbers that are wider than float32 are rounded to it."""
    if path == "-":
        return matrix(np.load(sys.stdin.buffer, allow_pickle=False), "what stdin brought")
    if os.path.isdir(path):
        raise ValueError(f"{path!r} is a folder; --vectors is a file of vectors, and --items the folder of images")
    if path.endswith(".npy"):  # integers are numbers here, and no ids
        return matrix(np.load(path, allow_pickle=False), repr(path))
    return read_vectors(path)
