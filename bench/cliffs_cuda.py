"""Everyday shapes on a GPU: Kith beside plain torch, data and results in the device's memory.

Medians of both, torch's divided by Kith's, and the goal. Torch does what a user would write: a matrix product or cdist,
then topk, argmin or nonzero; it promises neither exact distances nor equal bytes.

    python bench/cliffs_cuda.py [--case TEXT] [--runs 7] [--write]

Needs the packages kith (with CUDA) and torch. `--case` keeps the cases whose names contain the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from cases import Cases
from cuda_timing import medians
from report import parser_of, report_of

import kith


class Case(NamedTuple):
    name: str
    goal: float
    kith: Callable[[], object]
    torch: Callable[[], object]


def randn(rows: int, cols: int, seed: int) -> torch.Tensor:
    generator = torch.Generator(device="cuda").manual_seed(seed)
    return torch.randn((rows, cols), device="cuda", generator=generator)


def torch_nearest(queries: torch.Tensor, base: torch.Tensor, k: int, metric: str = "l2") -> object:
    if metric == "cosine":
        queries = torch.nn.functional.normalize(queries)
        base = torch.nn.functional.normalize(base)
    if metric == "l2":
        keys = (base * base).sum(1)[None, :] - 2 * (queries @ base.T)
    else:
        keys = -(queries @ base.T)
    return torch.topk(keys, k, dim=1, largest=False)


def nearest(
    name: str, goal: float, queries: torch.Tensor, base: torch.Tensor, k: int = 10, metric: str = "l2"
) -> Case:
    return Case(
        name,
        goal,
        lambda: kith.knn(queries, base, k, metric),
        lambda: torch_nearest(queries, base, k, metric),
    )


def few_queries() -> Iterator[Case]:
    for rows, cols in ((1_000_000, 2), (1_000_000, 3), (1_000_000, 9), (200_000, 33), (100_000, 1000), (3000, 64)):
        base = randn(rows, cols, 1)
        for count in (1, 8):
            yield nearest(f"{count} queries in {rows} x {cols}", 1.0, randn(count, cols, 2), base)


def wide_rows() -> Iterator[Case]:
    base = randn(20_000, 8192, 3)
    for count, goal in ((1, 1.0), (100, 1.0), (2000, 2.0)):
        yield nearest(f"{count} queries in 20000 x 8192", goal, randn(count, 8192, 4), base)


def hard_data() -> Iterator[Case]:
    base = randn(100_000, 64, 5)
    queries = randn(500, 64, 6)
    yield nearest("plain rows, 500 queries in 100000 x 64", 1.0, queries, base)
    yield nearest("equal rows", 1.0, queries, base[:1].repeat(100_000, 1))
    decades = torch.pow(10.0, torch.arange(100_000, device="cuda") % 7 - 3.0)[:, None]
    yield nearest("norms over six decades", 1.0, queries, base * decades)
    yield nearest("values times 1e17", 1.0, queries * 1e17, base * 1e17)
    zeros = base.clone()
    zeros[::10] = 0
    none = queries.clone()
    none[::10] = 0
    yield nearest("zero rows by cosine", 1.0, none, zeros, metric="cosine")


def large_k() -> Iterator[Case]:
    base = randn(100_000, 128, 7)
    yield nearest("k = 5000, 2000 queries in 100000 x 128", 1.0, randn(2000, 128, 8), base, k=5000)
    yield nearest("k = 1000, 10000 queries in 4096 x 128", 1.0, randn(10_000, 128, 9), base[:4096], k=1000)


def bits() -> Iterator[Case]:
    generator = torch.Generator(device="cuda").manual_seed(10)
    base = torch.randint(0, 256, (100_000, 64), device="cuda", dtype=torch.uint8, generator=generator)
    queries = torch.randint(0, 256, (2000, 64), device="cuda", dtype=torch.uint8, generator=generator)
    base_floats = base.float()
    query_floats = queries.float()
    yield Case(
        "hamming, 2000 queries in 100000 x 64 bytes (torch: l2)",
        2.0,
        lambda: kith.knn(queries, base, 10, "hamming"),
        lambda: torch_nearest(query_floats, base_floats, 10),
    )


def pairwise() -> Iterator[Case]:
    narrow = randn(4000, 64, 11)
    wide = randn(4000, 784, 12)
    yield Case(
        "pairwise l2, 4000 x 64", 0.5, lambda: kith.pairwise_distances(narrow), lambda: torch.cdist(narrow, narrow)
    )

    def torch_cosine() -> object:
        unit = torch.nn.functional.normalize(wide)
        return 1 - unit @ unit.T

    yield Case("pairwise cosine, 4000 x 784", 0.5, lambda: kith.pairwise_distances(wide, metric="cosine"), torch_cosine)
    yield Case(
        "pairwise l1, 4000 x 64",
        0.5,
        lambda: kith.pairwise_distances(narrow, metric="l1"),
        lambda: torch.cdist(narrow, narrow, p=1.0),
    )
    yield Case(
        "pairwise linf, 4000 x 64",
        0.5,
        lambda: kith.pairwise_distances(narrow, metric="linf"),
        lambda: torch.cdist(narrow, narrow, p=float("inf")),
    )


def ranges() -> Iterator[Case]:
    base = randn(100_000, 64, 13)
    queries = randn(200, 64, 14)
    yield Case(
        "range, everything in range, 200 queries in 100000 x 64",
        0.5,
        lambda: kith.range_search(queries, base, 1e6),
        lambda: (torch.cdist(queries, base) <= 1e6).nonzero(),
    )


def torch_labels(x: torch.Tensor, centres: torch.Tensor) -> torch.Tensor:
    return ((centres * centres).sum(1)[None, :] - 2 * (x @ centres.T)).argmin(1)


def torch_lloyd(x: torch.Tensor, centres: torch.Tensor, iterations: int) -> torch.Tensor:
    for _ in range(iterations):
        labels = torch_labels(x, centres)
        sums = torch.zeros_like(centres).index_add_(0, labels, x)
        counts = torch.bincount(labels, minlength=centres.shape[0]).clamp(min=1)
        centres = sums / counts[:, None]
    return torch_labels(x, centres)


def prediction(rows: int, cols: int, k: int) -> Case:
    x = randn(rows, cols, 15)
    centres = x[:k].contiguous()
    model = kith.KMeans.of_centres(centres.cpu().numpy())
    name = f"predict {rows} x {cols}, k = {k}"
    return Case(name, 1.0, lambda: model.predict(x), lambda: torch_labels(x, centres))


def fit(rows: int, cols: int, k: int, *, given: bool) -> Case:
    """Ten passes each, and one more for the labels. Torch begins with random rows, in the place of k-means++ too."""
    x = randn(rows, cols, 16)
    generator = torch.Generator(device="cuda").manual_seed(17)
    first = x[torch.randperm(rows, device="cuda", generator=generator)[:k]]
    init = first.cpu().numpy() if given else "kmeans++"
    name = f"k-means {rows} x {cols}, k = {k}, {'given' if given else 'default'} start"
    return Case(
        name,
        2.0,
        lambda: kith.KMeans(k, init=init, iterations=10, tol=0).fit(x),
        lambda: torch_lloyd(x, first, 10),
    )


def clusters() -> Iterator[Case]:
    yield prediction(1_000_000, 8, 8)
    yield prediction(5_000_000, 32, 50)
    yield prediction(100_000, 784, 100)
    yield fit(1_000_000, 8, 8, given=False)
    yield fit(100_000, 784, 100, given=True)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--case", default="", help="only cases whose names contain this")
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    report = report_of("cliffs_cuda", options, torch=torch.__version__)
    for group in (few_queries, wide_rows, hard_data, large_k, bits, pairwise, ranges, clusters):
        cases = Cases()
        for one in group():
            cases.add(one.name, goal=one.goal)(lambda _, one=one: {"kith": one.kith, "torch": one.torch})
        cases.run(report, options.case, medians(options.runs), runs=options.runs)


if __name__ == "__main__":
    main()
