"""Embeds images of clothes in the plane with UMAP, on a k-NN graph that Kith has built.

UMAP spends much of its time on finding neighbours, and finds them approximately; here it is given the exact ones. The
images are Fashion-MNIST, from Debian's package dataset-fashion-mnist; without it clouds of random points take their
place.

    pip install build/wheel/dist/kithnn-*.whl umap-learn
    python umap_graph.py [--rows 10000] [--out umap.npy]
"""

import argparse
import importlib
import importlib.util
import time
import warnings
from pathlib import Path

import kith
import numpy as np
from numpy.typing import NDArray

FASHION = Path("/usr/share/datasets/fashion-mnist")
K = 15


def load(rows: int) -> tuple[NDArray[np.uint8] | NDArray[np.float32], NDArray[np.int64]]:
    """Vectors and the class of each."""
    if FASHION.exists():
        images, labels = (kith.read_vectors(FASHION / f"train-{part}-ubyte.gz") for part in ("images-idx3", "labels-idx1"))
        return images[:rows], labels[:rows, 0].astype(np.int64)
    print(f"Fashion-MNIST is not in {FASHION}: taking random points around ten centres instead")
    rng = np.random.default_rng(1)
    centres = rng.normal(0, 3, (10, 32))
    drawn = rng.integers(0, 10, rows)
    return (centres[drawn] + rng.standard_normal((rows, 32))).astype(np.float32), drawn


def main() -> None:
    parser = argparse.ArgumentParser(description="a map of images by UMAP on an exact k-NN graph")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--out", type=Path, help="write the points of the map here, as .npy")
    options = parser.parse_args()

    x, labels = load(options.rows)
    start = time.perf_counter()
    graph = kith.knn_graph(x, k=K, method="exact")
    print(f"{graph} in {time.perf_counter() - start:.2f} s")
    same = labels[graph.ids] == labels[:, None]
    print(f"neighbours of a row's own class: {same.mean():.1%}")

    if importlib.util.find_spec("umap") is None:
        print("umap-learn is not installed, so no map is made: pip install umap-learn")
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without its own search index UMAP says that it cannot map new points
        umap = importlib.import_module("umap")
        start = time.perf_counter()
        model = umap.UMAP(n_neighbors=K + 1, precomputed_knn=graph.to_umap(), random_state=1)
        points: NDArray[np.float32] = model.fit_transform(x)
    print(f"UMAP's map in {time.perf_counter() - start:.2f} s")
    kept = labels[kith.knn_graph(points, k=K, method="exact").ids] == labels[:, None]
    print(f"neighbours of a row's own class on the map: {kept.mean():.1%}")
    if options.out:
        kith.write_vectors(options.out, points)
        print(f"written to {options.out}")


if __name__ == "__main__":
    main()
