"""HDBSCAN, DBSCAN and LocalOutlierFactor of kith.sklearn beside scikit-learn's own.

    python bench/density.py [--rows 20000] [--cols 10]

Rows are of clusters of all densities. Processor time counts, since machines are shared. The adjusted Rand index tells how far labels
agree; of outliers it is the share of equal verdicts.
"""

import argparse
import time
import warnings

import kith
import kith.sklearn as ours
import numpy as np
import sklearn
from sklearn import cluster, neighbors
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score


def timed(model, x):
    begun = time.process_time(), time.perf_counter()
    labels = model.fit_predict(x)
    return labels, time.process_time() - begun[0], time.perf_counter() - begun[1]


def main() -> None:
    parser = argparse.ArgumentParser(description="clusters by density, beside scikit-learn")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--cols", type=int, default=10)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    x = make_blobs(options.rows, options.cols, centers=50, cluster_std=np.linspace(0.3, 2, 50), random_state=0)[0].astype(np.float32)
    print(f"kith {kith.__version__} ({kith.info()['instruction_set']}), scikit-learn {sklearn.__version__}, {options.rows:,} x {options.cols}")
    print(f"{'':20} {'kith: cpu s':>12} {'s':>7} {'theirs: cpu s':>14} {'s':>7} {'ratio':>7} {'agree':>8}")
    pairs = [
        ("HDBSCAN", ours.HDBSCAN(min_cluster_size=20), cluster.HDBSCAN(min_cluster_size=20, n_jobs=-1, copy=True)),
        ("DBSCAN", ours.DBSCAN(eps=1.5), cluster.DBSCAN(eps=1.5, n_jobs=-1)),
        ("LocalOutlierFactor", ours.LocalOutlierFactor(20), neighbors.LocalOutlierFactor(20, n_jobs=-1)),
    ]
    for name, mine, theirs in pairs:
        found, cpu, wall = timed(mine, x)
        wanted, their_cpu, their_wall = timed(theirs, x)
        agree = adjusted_rand_score(wanted, found) if name != "LocalOutlierFactor" else (wanted == found).mean()
        print(f"{name:20} {cpu:12.2f} {wall:7.2f} {their_cpu:14.2f} {their_wall:7.2f} {their_cpu / cpu:7.2f} {agree:8.4f}")


if __name__ == "__main__":
    main()
