"""The vectors of an .npz or a .parquet file as .npy on stdout, for ``kith convert``: ``python3 -m kith._to_npy FILE``.

An error is written as "!" and its text, for the program to report.
"""

from __future__ import annotations

import sys
from typing import Any, BinaryIO

import numpy as np

_STEP = 1 << 16  # rows that are written at a time


def array_in(path: str) -> Any:
    """The array of an .npz that is named behind ``::``, or its only one of two axes."""
    file, _, name = path.partition(".npz::")
    arrays = np.load(path if not name else file + ".npz", allow_pickle=False)
    if not name:
        matrices = [key for key in arrays.files if arrays[key].ndim == 2 and arrays[key].dtype.kind in "fiu"]
        if len(matrices) != 1:
            raise ValueError(f"'{path}' holds {', '.join(arrays.files) or 'nothing'}; name one array of two axes: {path}::NAME")
        name = matrices[0]
    if name not in arrays.files:
        raise ValueError(f"'{path}' has no array {name!r}; it holds {', '.join(arrays.files)}")
    return arrays[name]


def _write(array: Any, out: BinaryIO) -> None:
    rows, cols = array.shape
    header = {"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False, "shape": (rows, cols)}
    np.lib.format.write_array_header_2_0(out, header)
    for first in range(0, rows, _STEP):
        out.write(np.ascontiguousarray(array[first : first + _STEP]).tobytes())


class _Slices:
    """Rows of a Parquet file, as an array has them."""

    def __init__(self, path: str) -> None:
        from kith._arrays import DTYPE_NAMES
        from kith._parquet import ParquetRows

        self._rows = ParquetRows([path])
        self.shape = self._rows.shape
        self.dtype = {name: dtype for dtype, name in DTYPE_NAMES.items()}[self._rows.dtype]

    def __getitem__(self, rows: slice) -> Any:
        first = rows.start
        return self._rows.read(first, min(rows.stop, self.shape[0]) - first)


def main(path: str, out: BinaryIO) -> None:
    try:
        array = array_in(path) if ".npz" in path else _Slices(path)
        if len(array.shape) != 2:
            raise ValueError(f"'{path}' holds an array of {len(array.shape)} axes; vectors are rows of two")
    except Exception as error:
        out.write(b"!" + str(error).replace("\n", " ").encode())
        return
    _write(array, out)


if __name__ == "__main__":
    try:
        main(sys.argv[1], sys.stdout.buffer)
        sys.stdout.buffer.flush()
    except BrokenPipeError:  # the program has what it wanted
        sys.exit(1)
