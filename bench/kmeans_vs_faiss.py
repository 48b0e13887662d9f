"""k-means against faiss-cpu and scikit-learn, all measured in this run, turn by turn.

200,000 x 128 vectors of a mixture to 1,024 centres, 10 iterations of Lloyd from random rows, every library on all rows.
Prints, for each seed, the times and the objective of each library's own centres, all computed by the same routine;
then the shortest times, their ratios, and the objectives' means. A second table starts from k-means++ (kith and
scikit-learn; faiss has `init_method = kmeans++` of its own). The floor is the matrix product alone at the rate that
numpy reaches here, once for each iteration.

    .venv/bin/python bench/kmeans_vs_faiss.py [--threads 2] [--rows 200000] [--seeds 5] [--json FILE]

Needs the package kith; installs faiss-cpu, scikit-learn and threadpoolctl beside it where they are missing.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from made_data import mixture
from turns import install_missing, write_results

import kith

Vectors = npt.NDArray[np.float32]


def objective(x: Vectors, centres: Vectors, threads: int) -> float:
    model = kith.KMeans(len(centres), init=centres, device="cpu")
    model.partial_fit(x, threads=threads)  # its objective is that of the centres it begins with
    return model.inertia_


def timed(run: Callable[[], Any]) -> tuple[float, float, Any]:
    """Seconds by the clock, seconds of all processors together, and the result."""
    start, cpu = time.perf_counter(), time.process_time()
    result = run()
    return time.perf_counter() - start, time.process_time() - cpu, result


def main() -> None:
    parser = argparse.ArgumentParser(description="k-means: kith against faiss-cpu and scikit-learn")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--cols", type=int, default=128)
    parser.add_argument("--clusters", type=int, default=1024)
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sklearn-seeds", type=int, default=2, help="scikit-learn, the slowest, runs for the first of them")
    parser.add_argument("--plus-plus-seeds", type=int, default=1, help="seeds of the table that starts from k-means++")
    parser.add_argument("--json", metavar="FILE", help="write the numbers to FILE too")
    options = parser.parse_args()

    install_missing("faiss", "faiss-cpu")
    install_missing("sklearn", "scikit-learn")
    install_missing("threadpoolctl", "threadpoolctl")
    import faiss
    import sklearn
    import sklearn.cluster
    import threadpoolctl

    faiss.omp_set_num_threads(options.threads)
    k, iterations, threads = options.clusters, options.iterations, options.threads
    x = mixture(options.rows, options.cols, 1)

    def ours(seed: int, init: str) -> Vectors:
        model = kith.KMeans(
            k, iterations=iterations, tol=0, init=init, seed=seed, compute_labels=False, device="cpu"
        )
        return model.fit(x, threads=threads).cluster_centers_

    def faiss_kmeans(seed: int, init: str) -> Vectors:
        model = faiss.Kmeans(
            options.cols, k, niter=iterations, seed=seed + 1, max_points_per_centroid=options.rows, min_points_per_centroid=1
        )
        if init == "kmeans++":
            model.cp.init_method = faiss.ClusteringInitMethod_KMEANS_PLUS_PLUS
        model.train(x)
        return model.centroids.reshape(k, options.cols)

    def sklearn_kmeans(seed: int, init: str) -> Vectors:
        model = sklearn.cluster.KMeans(
            k,
            init={"kmeans++": "k-means++"}.get(init, init),
            n_init=1,
            max_iter=iterations,
            tol=0,
            algorithm="lloyd",
            random_state=seed,
        )
        return model.fit(x).cluster_centers_.astype(np.float32)

    info = kith.info()
    print(f"{options.rows} x {options.cols} f32 to {k} centres, {iterations} iterations, {threads} threads")
    print(f"{info['cpu']}, {info['instruction_set']}; faiss {faiss.__version__}, scikit-learn {sklearn.__version__}")
    with threadpoolctl.threadpool_limits(threads):
        sample = x[: min(20_000, options.rows)]
        product = min(timed(lambda: sample @ x[:k].T)[0] for _ in range(3)) * options.rows / len(sample) * iterations
    print(f"the matrix products alone, by numpy: {product:.2f} s\n")

    results = []
    for init, seeds in (("random", options.seeds), ("kmeans++", options.plus_plus_seeds)):
        if seeds == 0:
            continue
        runs: dict[str, list[tuple[float, float, float]]] = {"kith": [], "faiss": [], "scikit-learn": []}
        for seed in range(seeds):
            for name, run in (("kith", ours), ("faiss", faiss_kmeans), ("scikit-learn", sklearn_kmeans)):
                if init == "kmeans++" and name == "faiss" and not hasattr(faiss, "ClusteringInitMethod_KMEANS_PLUS_PLUS"):
                    continue
                if name == "scikit-learn" and seed >= options.sklearn_seeds:
                    continue
                with threadpoolctl.threadpool_limits(threads):
                    seconds, cpu, centres = timed(lambda: run(seed, init))
                value = objective(x, centres, threads)
                runs[name].append((seconds, cpu, value))
                print(f"{init:9} seed {seed} {name:13} {seconds:7.2f} s, {cpu:7.2f} s of CPU  objective {value:.6e}", flush=True)
        mine = min(r[0] for r in runs["kith"])
        mine_cpu = min(r[1] for r in runs["kith"])
        mine_objective = float(np.mean([r[2] for r in runs["kith"]]))
        for name, found in runs.items():
            if not found:
                continue
            seconds, cpu = min(r[0] for r in found), min(r[1] for r in found)
            value = float(np.mean([r[2] for r in found]))
            print(
                f"{init:9} {name:13} {seconds:7.2f} s, {seconds / mine:.2f}x kith's; CPU {cpu:7.2f} s, {cpu / mine_cpu:.2f}x; "
                f"mean objective {value:.6e} ({(value / mine_objective - 1) * 100:+.2f} % of kith's)"
            )
            results.append(
                {
                    "init": init,
                    "library": name,
                    "seconds": [r[0] for r in found],
                    "cpu_seconds": [r[1] for r in found],
                    "objectives": [r[2] for r in found],
                    "best_seconds": seconds,
                    "ratio_to_kith": seconds / mine,
                    "cpu_ratio_to_kith": cpu / mine_cpu,
                    "mean_objective": value,
                }
            )
        print()

    if options.json:
        settings = {name: value for name, value in vars(options).items() if name != "json"}
        versions = {"faiss": faiss.__version__, "scikit_learn": sklearn.__version__}
        write_results(Path(options.json), settings, results, **versions, product=product)


if __name__ == "__main__":
    main()
