"""Four parts of a device against the whole: the time of parts over that of one, for calls that share their work.

    python bench/devices_bench.py [--device cuda:0] [--parts 4] [--quick]

On one GPU the parts share its multiprocessors, so that 1.0 is the best there is; on a CPU give --device cpu --threads.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

import kith


def seconds(call: Callable[[], object]) -> float:
    call()
    times = []
    for _ in range(3):
        begun = time.perf_counter()
        call()
        times.append(time.perf_counter() - begun)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--parts", type=int, default=4)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--rows", type=int, default=1_000_000)
    args = parser.parse_args()
    whole, parts = args.device, f"{args.device}/{args.parts}"
    rng = np.random.default_rng(1)
    centres = rng.standard_normal((1000, 128), dtype=np.float32)
    x = centres[rng.integers(0, 1000, args.rows)] + 0.5 * rng.standard_normal((args.rows, 128), dtype=np.float32)
    q = centres[rng.integers(0, 1000, 10_000)] + 0.5 * rng.standard_normal((10_000, 128), dtype=np.float32)

    def compare(name: str, call: Callable[[str], object]) -> None:
        one, several = seconds(lambda: call(whole)), seconds(lambda: call(parts))
        print(f"{name}: {1000 * one:.1f} ms on {whole}, {1000 * several:.1f} ms on {parts}: {several / one:.2f} x", flush=True)

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
    model = {d: kith.KMeans(1024, iterations=5, device=d) for d in (whole, parts)}
    compare("k-means to 1,024", lambda d: model[d].fit(x[:200_000], threads=args.threads))
    compare("exact graph of 50,000", lambda d: kith.knn_graph(x[:50_000], k=10, method="exact", device=d))


if __name__ == "__main__":
    main()
