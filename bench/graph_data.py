"""The sets of which benchmarks build graphs: real ones from files, made ones of any size.

sift, glove and fashion are read from a folder of sift1m_base.u8bin, glove100_base.f16bin and train-images-idx3-ubyte.gz (the
last also from where Debian's package dataset-fashion-mnist puts it); mixture and manifold are those of made_data.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from made_data import manifold, mixture

import kith

FASHION = Path("/usr/share/datasets/fashion-mnist")
Rows = npt.NDArray[Any]


def load(name: str, rows: int, data: Path, dtype: str = "f32") -> Rows:
    """The first rows of a set, or all where it has fewer; u8 where bytes are asked for."""
    if name == "sift":
        x: Rows = kith.read_vectors(data / "sift1m_base.u8bin")[:rows]
    elif name == "glove":
        x = kith.read_vectors(data / "glove100_base.f16bin")[:rows]
    elif name == "fashion":
        file = "train-images-idx3-ubyte.gz"
        there = data / file if (data / file).exists() else FASHION / file
        x = kith.read_vectors(there)[:rows]
        x = x.reshape(len(x), -1)
    elif name == "mixture":
        x = mixture(rows)
    else:
        x = manifold(rows)
    return np.ascontiguousarray(x, np.uint8 if dtype == "u8" else np.float32)


def on_device(x: Rows, device: str) -> Any:
    """Where it is worked on: as it is for the CPU, else an array of torch's there."""
    if device == "cpu":
        return x
    import torch

    return torch.from_numpy(x).to(device)
