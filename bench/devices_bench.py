"""Four parts of a device against the whole: the time of parts over that of one, for calls that share their work.

    python bench/devices_bench.py [--device cuda:0] [--parts 4] [--rows N] [--many-rows N] [--folder DIR]

On one GPU the parts share its multiprocessors, so that 1.0 is the best there is; on a CPU give --device cpu --threads.
--many-rows: of an index in shards, and of a graph by cells (in memory by the whole, through files in --folder by the
parts), on a GPU.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable

import numpy as np
from report import Report, parser_of, report_of
from turns import best_of, timed

import kith


def milliseconds(call: Callable[[], object]) -> float:
    """The shortest of three, after one that does not count."""
    call()
    return 1e3 * best_of(3, call)[1]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--parts", type=int, default=4)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--clusters", type=int, default=4096)
    parser.add_argument("--many-rows", type=int, default=0)
    parser.add_argument("--folder", default="/dev/shm/kith_devices")
    args = parser.parse_args()
    report = report_of("devices", args)
    whole, parts = args.device, f"{args.device}/{args.parts}"
    rng = np.random.default_rng(1)
    centres = rng.standard_normal((1000, 128), dtype=np.float32)
    x = centres[rng.integers(0, 1000, args.rows)] + 0.5 * rng.standard_normal((args.rows, 128), dtype=np.float32)
    q = centres[rng.integers(0, 1000, 10_000)] + 0.5 * rng.standard_normal((10_000, 128), dtype=np.float32)

    def compare(name: str, call: Callable[[str], object]) -> None:
        one, several = milliseconds(lambda: call(whole)), milliseconds(lambda: call(parts))
        report.row(name, ms=several, runs=3, clock="wall", peers_ms={whole: one}, figures={"over_one": several / one}, labels={"device": parts})

    compare("10,000 exact searches", lambda d: kith.knn(q, x, k=10, device=d, threads=args.threads))
    if whole.startswith("cuda"):
        import torch

        tq, tx = torch.from_numpy(q).cuda(), torch.from_numpy(x).cuda()
        compare("10,000 exact searches, all on the device", lambda d: kith.knn(tq, tx, k=10, device=d))
    index = kith.Index("IVF4096,PQ16", device=whole)
    index.train(x[:200_000])
    index.add(x)
    for copies in (1, args.parts):
        placed = {whole: index, parts: index.to(parts, copies=copies)}
        compare(f"10,000 searches of IVF4096,PQ16, copies {copies}", lambda d: placed[d].search(q, k=10, probes=32))

    def add(device: str) -> None:
        fresh = empty.to(device)
        fresh.add(x)

    empty = kith.Index("IVF4096,PQ16", device=whole)
    empty.train(x[:200_000])
    compare("add to IVF4096,PQ16", add)
    for init in ("kmeans++", "random"):
        model = {d: kith.KMeans(args.clusters, init=init, device=d) for d in (whole, parts)}
        name = f"k-means of {args.rows:,} to {args.clusters:,}, {init}"
        compare(name, lambda d: model[d].fit(x, threads=args.threads))
        assert (model[whole].cluster_centers_ == model[parts].cluster_centers_).all()
    if whole.startswith("cuda"):
        model = {d: kith.KMeans(args.clusters, init="random", device=d) for d in (whole, parts)}
        compare(f"k-means of {args.rows:,} to {args.clusters:,}, all on the device", lambda d: model[d].fit(tx))
    compare("exact graph of 50,000", lambda d: kith.knn_graph(x[:50_000], k=10, method="exact", device=d))
    if args.many_rows > 0:
        many_rows(args.many_rows, whole, parts, args.folder, report, compare)


def many_rows(
    rows: int, whole: str, parts: str, folder: str, report: Report, compare: Callable[[str, Callable[[str], object]], None]
) -> None:
    import torch

    torch.manual_seed(1)
    centres = torch.randint(40, 216, (20_000, 96), device="cuda")

    def draw(count: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
        near = centres[torch.randint(0, len(centres), (count,), device="cuda")]
        return (near + 12 * torch.randn((count, 96), device="cuda")).clamp(0, 255).to(torch.uint8).cpu().numpy()

    x = np.concatenate([draw(1_000_000) for _ in range(rows // 1_000_000)])
    q = draw(10_000)
    torch.cuda.empty_cache()
    index = kith.Index("IVF4096,PQ16", device=whole)
    index.train(x[:300_000])
    index.add(x)
    shards = {whole: index, parts: index.to(parts, copies=1)}
    compare(f"10,000 searches of IVF4096,PQ16 of {rows:,}, shards", lambda d: shards[d].search(q, k=10, probes=32))
    one, several = (shards[d].search(q, k=10, probes=32) for d in (whole, parts))
    assert (one.ids == several.ids).all() and (one.distances == several.distances).all()

    os.makedirs(folder, exist_ok=True)
    np.save(f"{folder}/x.npy", x)
    found = {}
    for device in (whole, parts):
        graph, seconds, _ = timed(
            lambda: kith.knn_graph(
                f"{folder}/x.npy", k=10, method="cells", recall=0.95, out=f"{folder}/graph", device=device  # noqa: B023
            )
        )
        report.row(f"graph of {rows:,} by cells", ms=1e3 * seconds, clock="wall", labels={"device": device})
        found[device] = np.array(graph.ids)
        shutil.rmtree(f"{folder}/graph")
    assert (found[whole] == found[parts]).all()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
