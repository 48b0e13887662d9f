"""Near duplicates of many rows by the graph and exactly, beside the search of every row's range.

    python bench/near_duplicates.py [--rows 500000] [--cols 128] [--threads 2] [--out FILE]

Rows are of a mixture of 2,000 clusters, and a twenty-fifth of them are copies with a little noise. The range search is of a
sample of the rows among all of them, extrapolated to all. Processor time counts, since machines are shared; both find the copies.
"""

import kith
import numpy as np
from report import parser_of, report_of
from turns import timed

COPIES = 25  # one row of so many is a copy
SAMPLE = 2000
RADIUS = 0.5


def rows_of(rows: int, cols: int) -> tuple[np.ndarray, np.ndarray]:
    """Vectors, and which of them are copies."""
    rng = np.random.default_rng(1)
    centres = rng.standard_normal((2000, cols), dtype=np.float32)
    x = centres[rng.integers(2000, size=rows)] + np.float32(0.5) * rng.standard_normal((rows, cols), dtype=np.float32)
    copies = np.sort(rng.choice(np.arange(rows // 2, rows), rows // COPIES, replace=False))
    noise = np.float32(0.01) * rng.standard_normal((copies.size, cols), dtype=np.float32)
    x[copies] = x[rng.choice(rows // 2, copies.size, replace=False)] + noise
    return x, copies


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--cols", type=int, default=128)
    parser.add_argument("--threads", type=int, default=0)
    options = parser.parse_args()
    x, copies = rows_of(options.rows, options.cols)
    report = report_of("near_duplicates", options)
    shape = f"{options.rows:,} x {options.cols} f32, {copies.size:,} copies, radius {RADIUS}"

    def row(case: str, wall: float, processor: float, **figures: float) -> None:
        report.row(case, shape=shape, ms=1e3 * processor, clock="processor", figures={"wall_ms": 1e3 * wall, **figures})

    found, wall, processor = timed(lambda: kith.near_duplicates(x, RADIUS, threads=options.threads))
    others = float(found.dropped.size - np.isin(found.dropped, copies).sum())
    row("by the graph", wall, processor, found=float(np.isin(copies, found.dropped).mean()), others=others)

    exact, wall, processor = timed(lambda: kith.near_duplicates(x, RADIUS, exact=True, threads=options.threads))
    row("exactly", wall, processor, more_than_by_the_graph=float(exact.dropped.size - found.dropped.size))

    sample = np.concatenate([copies[: SAMPLE // 2], np.setdiff1d(np.arange(SAMPLE), copies)[: SAMPLE // 2]])
    near, wall, processor = timed(lambda: kith.range_search(x[sample], x, RADIUS, threads=options.threads))
    scale = options.rows / sample.size
    several = np.diff(near.offsets)[: SAMPLE // 2] > 1
    row("range_search of all rows", wall * scale, processor * scale, found=float(several.mean()), rows_searched=sample.size)


if __name__ == "__main__":
    main()
