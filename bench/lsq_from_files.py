"""LSQ encodes rows of a file and of an array: rows per second of both, and whether the codes are the same.

    lsq_from_files.py --folder /dev/shm/kith [--rows 100000000] [--cols 96] [--books 7 15] [--rounds 16] [--array 20000000]

The array is the file's first rows. The file is that of graph_from_disk.py, made where it is missing.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from graph_from_disk import make_rows

import kith


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--cols", type=int, default=96)
    parser.add_argument("--books", type=int, nargs="+", default=[7, 15])
    parser.add_argument("--rounds", type=int, default=16)
    parser.add_argument("--array", type=int, default=20_000_000)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
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
        began = time.perf_counter()
        codes = quantizer.encode(array, rounds=options.rounds)
        in_memory = len(array) / (time.perf_counter() - began)
        began = time.perf_counter()
        of_file = quantizer.encode(str(path), rounds=options.rounds)
        from_file = options.rows / (time.perf_counter() - began)
        same = bool(np.array_equal(of_file[: len(codes)], codes))
        print(f"{books} books, {options.rounds} rounds: {in_memory / 1e6:.2f} million rows/s of an array, {from_file / 1e6:.2f} of a "
              f"file, {from_file / in_memory:.2f} x; {'the same codes' if same else 'OTHER CODES'}", flush=True)


if __name__ == "__main__":
    main()
