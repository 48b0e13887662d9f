"""Clusters of single cells: scanpy's Leiden on a k-NN graph that Kith has built, beside scanpy's own.

    pip install build/wheel/dist/kithnn-*.whl scanpy leidenalg igraph
    python scanpy_clusters.py [CELLS.h5ad] [--out clusters.csv]

CELLS.h5ad holds cells with principal components (`sc.pp.pca`); without it 700 cells that come with scanpy take their place.
"""

import argparse
import time
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import kith
import numpy as np

NEIGHBOURS = 15  # as scanpy counts: the cell itself is its first


def clusters_of(scanpy: Any, cells: Any) -> Any:
    scanpy.tl.leiden(cells, flavor="igraph", n_iterations=2, random_state=0)
    return cells.obs["leiden"].to_numpy().astype(int)


def main() -> None:
    parser = argparse.ArgumentParser(description="Leiden clusters of cells on Kith's graph")
    parser.add_argument("cells", type=Path, nargs="?", help="an .h5ad file (default: 700 cells of blood)")
    parser.add_argument("--out", type=Path, default=Path("clusters.csv"), help="the cluster of each cell")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of scanpy's own dependencies
    sc = import_module("scanpy")

    cells = sc.datasets.pbmc68k_reduced() if options.cells is None else sc.read_h5ad(options.cells)
    theirs = cells.copy()
    start = time.perf_counter()
    sc.pp.neighbors(theirs, n_neighbors=NEIGHBOURS)
    print(f"scanpy's neighbours of {cells.n_obs} cells: {time.perf_counter() - start:.2f} s")

    start = time.perf_counter()
    graph = kith.knn_graph(cells.obsm["X_pca"], k=NEIGHBOURS - 1)
    graph.to_scanpy(cells, n_neighbors=NEIGHBOURS, use_rep="X_pca")
    print(f"Kith's: {time.perf_counter() - start:.2f} s, recall {graph.report.recall}")

    ours, others = clusters_of(sc, cells), clusters_of(sc, theirs)
    score = import_module("sklearn.metrics").adjusted_rand_score(ours, others)
    print(f"{len(np.unique(ours))} clusters and {len(np.unique(others))}; adjusted Rand index {score:.3f}")
    cells.obs[["leiden"]].to_csv(options.out)
    print(f"written to {options.out}")


if __name__ == "__main__":
    main()
