"""LSQ encodes rows of a file and of an array: rows per second of both, and whether the codes are the same.

    lsq_from_files.py --folder /dev/shm/kith [--rows 100000000] [--cols 96] [--books 7 15] [--rounds 16] [--array 20000000] [--out FILE]

The array is the file's first rows. The file is that of graph_from_disk.py, made where it is missing.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from graph_from_disk import make_rows
from report import parser_of, report_of
from turns import timed

import kith


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--cols", type=int, default=96)
    parser.add_argument("--books", type=int, nargs="+", default=[7, 15])
    parser.add_argument("--rounds", type=int, default=16)
    parser.add_argument("--array", type=int, default=20_000_000)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    report = report_of("lsq_from_files", options)
    options.folder.mkdir(parents=True, exist_ok=True)
    path = options.folder / f"mixture_{options.rows}_{options.cols}.npy"
    make_rows(path, options.rows, options.cols)
    x = np.load(path, mmap_mode="r")
    array = np.array(x[: options.array])
    sample = np.array(x[:: max(1, options.rows // 100_000)][:100_000])
    for books in options.books:
        quantizer = kith.LocalSearchQuantizer(books, device=options.device)
        quantizer.train(sample)
        quantizer.encode(array[:100_000], rounds=options.rounds)
        codes, seconds, _ = timed(lambda: quantizer.encode(array, rounds=options.rounds))  # noqa: B023
        of_file, from_file, _ = timed(lambda: quantizer.encode(str(path), rounds=options.rounds))  # noqa: B023
        in_memory, of_rows = len(array) / seconds, options.rows / from_file
        same = bool(np.array_equal(of_file[: len(codes)], codes))
        report.row(
            f"{books} books, {options.rounds} rounds, from a file",
            shape=f"{options.rows} x {options.cols} u8",
            ms=1e3 * from_file,
            clock="wall",
            figures={"million_rows_per_second": of_rows / 1e6, "of_an_array": in_memory / 1e6, "ratio": of_rows / in_memory},
            labels={"codes": "the same" if same else "OTHER CODES"},
        )


if __name__ == "__main__":
    main()
