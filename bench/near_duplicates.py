"""Near duplicates of many rows by the graph and exactly, beside the search of every row's range.

    python bench/near_duplicates.py [--rows 500000] [--cols 128] [--threads 2]

Rows are of a mixture of 2,000 clusters, and a twenty-fifth of them are copies with a little noise. The range search is of a
sample of the rows among all of them, told for all. Processor time counts, since machines are shared; both find the copies.
"""

import argparse
import time

import kith
import numpy as np

COPIES = 25  # one row of so many is a copy
SAMPLE = 2000
RADIUS = 0.5


def rows_of(rows: int, cols: int) -> tuple[np.ndarray, np.ndarray]:
    """Vectors, and which of them are copies."""
    rng = np.random.default_rng(1)
    centres = rng.standard_normal((2000, cols), dtype=np.float32)
    x = centres[rng.integers(2000, size=rows)] + np.float32(0.5) * rng.standard_normal((rows, cols), dtype=np.float32)
    copies = np.sort(rng.choice(np.arange(rows // 2, rows), rows // COPIES, replace=False))
    x[copies] = x[rng.choice(rows // 2, copies.size, replace=False)] + np.float32(0.01) * rng.standard_normal((copies.size, cols), dtype=np.float32)
    return x, copies


def timed(call):
    begun = time.process_time(), time.perf_counter()
    made = call()
    return made, time.process_time() - begun[0], time.perf_counter() - begun[1]


def main() -> None:
    parser = argparse.ArgumentParser(description="near duplicates by the graph and by ranges")
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--cols", type=int, default=128)
    parser.add_argument("--threads", type=int, default=0)
    options = parser.parse_args()
    x, copies = rows_of(options.rows, options.cols)
    info = kith.info()
    print(f"kith {info['version']} ({info['instruction_set']}), {options.rows:,} x {options.cols} f32, {copies.size:,} copies, radius {RADIUS}")

    found, cpu, wall = timed(lambda: kith.near_duplicates(x, RADIUS, threads=options.threads))
    print(f"near_duplicates: {cpu:8.1f} s of processors, {wall:7.1f} s; found {np.isin(copies, found.dropped).mean():.4%} of the copies, "
          f"{found.dropped.size - np.isin(found.dropped, copies).sum()} others")

    exact, cpu, wall = timed(lambda: kith.near_duplicates(x, RADIUS, exact=True, threads=options.threads))
    print(f"... exact:       {cpu:8.1f} s of processors, {wall:7.1f} s; {exact.dropped.size - found.dropped.size} more than by the graph")

    sample = np.concatenate([copies[: SAMPLE // 2], np.setdiff1d(np.arange(SAMPLE), copies)[: SAMPLE // 2]])
    near, cpu, wall = timed(lambda: kith.range_search(x[sample], x, RADIUS, threads=options.threads))
    scale = options.rows / sample.size
    several = np.diff(near.offsets)[: SAMPLE // 2] > 1
    print(f"range_search:    {cpu * scale:8.1f} s of processors, {wall * scale:7.1f} s, told from {sample.size:,} rows; found {several.mean():.4%} of "
          f"{several.size:,} copies")


if __name__ == "__main__":
    main()
