"""HDBSCAN, DBSCAN and LocalOutlierFactor of kith.sklearn beside scikit-learn's own.

    python bench/density.py [--rows 20000] [--cols 10]

Rows are of clusters of all densities. Processor time counts, since machines are shared. The adjusted Rand index tells how far labels
agree; of outliers it is the share of equal verdicts.
"""

import warnings

import kith
import kith.sklearn as ours
import numpy as np
import sklearn
from report import parser_of, report_of
from sklearn import cluster, neighbors
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from turns import timed


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--cols", type=int, default=10)
    options = parser.parse_args()
    report = report_of("density", options, sklearn=sklearn.__version__)
    warnings.simplefilter("ignore")
    x = make_blobs(options.rows, options.cols, centers=50, cluster_std=np.linspace(0.3, 2, 50), random_state=0)[0].astype(np.float32)
    pairs = [
        ("HDBSCAN", ours.HDBSCAN(min_cluster_size=20), cluster.HDBSCAN(min_cluster_size=20, n_jobs=-1, copy=True)),
        ("DBSCAN", ours.DBSCAN(eps=1.5), cluster.DBSCAN(eps=1.5, n_jobs=-1)),
        ("LocalOutlierFactor", ours.LocalOutlierFactor(20), neighbors.LocalOutlierFactor(20, n_jobs=-1)),
    ]
    for name, mine, theirs in pairs:
        found, wall, processor = timed(lambda: mine.fit_predict(x))
        wanted, their_wall, their_processor = timed(lambda: theirs.fit_predict(x))
        agree = adjusted_rand_score(wanted, found) if name != "LocalOutlierFactor" else (wanted == found).mean()
        report.row(
            name,
            shape=f"{options.rows} x {options.cols}",
            ms=1e3 * processor,
            clock="processor",
            peers_ms={"sklearn": 1e3 * their_processor},
            figures={"agree": float(agree), "wall_ms": 1e3 * wall, "sklearn_wall_ms": 1e3 * their_wall},
        )


if __name__ == "__main__":
    main()
