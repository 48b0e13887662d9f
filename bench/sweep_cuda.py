"""Random shapes of everyday size on a GPU: Kith beside plain torch, data and results in the device's memory.

Each shape is drawn from the seed: a job, rows, columns, queries, k, a metric and a dtype. Torch does what a user would write
(as in bench/cliffs_cuda.py). The last lines are the median ratio (torch's time / Kith's), and the worst and the median of each job.

    python bench/sweep_cuda.py [--shapes 60] [--seed 1] [--only PART_OF_A_JOB] [--runs 5] [--write]

Needs the packages kith (with CUDA) and torch.
"""

from __future__ import annotations

import numpy as np
import torch
from cliffs_cuda import randn, torch_labels, torch_lloyd, torch_nearest
from cuda_timing import median_milliseconds
from report import parser_of, report_of
from shapes import Shape, draw_for_gpu, note_ratios
from turns import Call

import kith

DTYPES = {"f32": torch.float32, "f16": torch.float16}


def calls_of(shape: Shape, seed: int) -> tuple[Call, Call]:
    """Kith's and torch's."""
    base = randn(shape.rows, shape.cols, seed).to(DTYPES[shape.dtype])
    queries = randn(max(shape.queries, 1), shape.cols, seed + 1).to(DTYPES[shape.dtype])
    if shape.job == "knn":
        return (
            lambda: kith.knn(queries, base, shape.k, shape.metric),
            lambda: torch_nearest(queries, base, shape.k, shape.metric),
        )
    if shape.job == "pairwise":

        def torch_pairwise() -> object:
            if shape.metric == "l2":
                return torch.cdist(queries, base)
            return 1 - torch.nn.functional.normalize(queries) @ torch.nn.functional.normalize(base).T

        return lambda: kith.pairwise_distances(queries, base, metric=shape.metric), torch_pairwise
    if shape.job == "range":  # about one row in a thousand
        some = torch.cdist(queries[:64], base)
        radius = float(torch.quantile(some.flatten()[:1_000_000], 0.001))
        return (
            lambda: kith.range_search(queries, base, radius),
            lambda: (torch.cdist(queries, base) <= radius).nonzero(),
        )
    generator = torch.Generator(device="cuda").manual_seed(seed)
    first = base[torch.randperm(shape.rows, device="cuda", generator=generator)[: shape.k]].contiguous()
    if shape.job == "predict":
        model = kith.KMeans.of_centres(first.cpu().numpy())
        return lambda: model.predict(base), lambda: torch_labels(base, first)
    init = first.cpu().numpy()
    return (
        lambda: kith.KMeans(shape.k, init=init, iterations=10, tol=0).fit(base),
        lambda: torch_lloyd(base, first, 10),
    )


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--shapes", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="only jobs whose names contain this")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    report = report_of("sweep_cuda", options, torch=torch.__version__)
    rng = np.random.default_rng(options.seed)
    ratios: list[tuple[float, Shape]] = []
    for number in range(options.shapes):
        shape = draw_for_gpu(rng)
        if options.only not in shape.job:
            continue
        ours, theirs = (median_milliseconds(call, options.runs) for call in calls_of(shape, 100 + number))
        ratios.append((theirs / ours, shape))
        report.row(" ".join(str(shape).split()), median_ms=ours, runs=options.runs, clock="wall", peers_ms={"torch": theirs})
    note_ratios(report, ratios)


if __name__ == "__main__":
    main()
