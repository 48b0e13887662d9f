"""k-means against faiss-cpu and scikit-learn, all measured in this run, turn by turn.

200,000 x 128 vectors of a mixture to 1,024 centres, 10 iterations of Lloyd from random rows, every library on all rows.
The shortest times over some seeds, and the means of the objectives, which are computed by the same routine for all. Further
cases start from k-means++ (kith and scikit-learn; faiss has `init_method = kmeans++` of its own). The floor is the matrix product alone at the rate that
numpy reaches here, once for each iteration.

    .venv/bin/python bench/kmeans_vs_faiss.py [--threads 2] [--rows 200000] [--seeds 5] [--out FILE]

Needs the package kith; installs faiss-cpu, scikit-learn and threadpoolctl beside it where they are missing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from made_data import mixture
from report import parser_of, report_of
from turns import install_missing, timed

import kith

Vectors = npt.NDArray[np.float32]


def objective(x: Vectors, centres: Vectors, threads: int) -> float:
    model = kith.KMeans(len(centres), init=centres, device="cpu")
    model.partial_fit(x, threads=threads)  # its objective is that of the centres it begins with
    return model.inertia_


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--cols", type=int, default=128)
    parser.add_argument("--clusters", type=int, default=1024)
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sklearn-seeds", type=int, default=2, help="scikit-learn, the slowest, runs for the first of them")
    parser.add_argument("--plus-plus-seeds", type=int, default=1, help="seeds of the table that starts from k-means++")
    options = parser.parse_args()

    install_missing("faiss-cpu", "scikit-learn", "threadpoolctl")
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

    report = report_of("kmeans_vs_faiss", options, faiss=faiss.__version__, scikit_learn=sklearn.__version__)
    with threadpoolctl.threadpool_limits(threads):
        sample = x[: min(20_000, options.rows)]
        product = min(timed(lambda: sample @ x[:k].T)[1] for _ in range(3)) * options.rows / len(sample) * iterations
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
                    centres, seconds, cpu = timed(lambda: run(seed, init))  # noqa: B023
                value = objective(x, centres, threads)
                runs[name].append((seconds, cpu, value))
                each = {"processor_s": cpu, "objective": value}
                report.row(f"{init}, {name}, seed {seed}", ms=1e3 * seconds, clock="wall", figures=each)
        figures: dict[str, float] = {}
        for name, found in runs.items():
            if not found:
                continue
            figures[f"{name}_processor_s"] = min(r[1] for r in found)
            figures[f"{name}_objective"] = float(np.mean([r[2] for r in found]))
        best = {name: 1e3 * min(r[0] for r in found) for name, found in runs.items() if found}
        report.row(
            f"{init}, {iterations} iterations",
            shape=f"{options.rows} x {options.cols} f32 to {k}, {threads} threads",
            ms=best.pop("kith"),
            runs=seeds,
            clock="wall",
            floor_ms=1e3 * product,
            peers_ms=best,
            figures=figures,
        )


if __name__ == "__main__":
    main()
