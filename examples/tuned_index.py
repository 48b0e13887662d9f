"""An index for single queries: built, tuned to a recall, saved, read again, and kept up to date.

    pip install build/wheel/dist/kithnn-*.whl
    python tuned_index.py [VECTORS] [--index FILE] [--recall 0.95]

VECTORS is a file of vectors (.npy, .fbin, .fvecs, .hdf5 ...); without it 20,000 made ones take its place. FILE is an index of
FAISS's, hnswlib's (with --metric) or Kith's to begin with, in the place of a new `Graph32`; it holds the vectors.
"""

import argparse
import time
from pathlib import Path

import kith
import numpy as np
from numpy.typing import NDArray

QUERIES = 500


def made_vectors() -> NDArray[np.float32]:
    """Clouds along 12 of 64 directions, as embeddings lie."""
    random = np.random.default_rng(1)
    centres = random.standard_normal((200, 12))
    points = centres[random.integers(200, size=20_000)] + 0.5 * random.standard_normal((20_000, 12))
    rows: NDArray[np.float32] = (points @ random.standard_normal((12, 64))).astype(np.float32)
    return rows + random.normal(0, 0.1, rows.shape).astype(np.float32)


def read_index(path: Path, metric: kith.Metric) -> kith.Index:
    if path.suffix == ".kith":
        return kith.load(path)
    with path.open("rb") as file:
        head = file.read(4)
    of_faiss = head[:1] == b"I" and head.isalnum()
    return kith.read_faiss(path) if of_faiss else kith.read_hnswlib(path, metric)


def main() -> None:
    parser = argparse.ArgumentParser(description="an index tuned to a recall")
    parser.add_argument("vectors", type=Path, nargs="?", help="the vectors (default: 20,000 made ones)")
    parser.add_argument("--index", type=Path, help="an index of FAISS's, hnswlib's or Kith's that holds them")
    parser.add_argument("--metric", default="l2", help="of a new index, or of hnswlib's")
    parser.add_argument("--recall", type=float, default=0.95)
    parser.add_argument("--out", type=Path, default=Path("tuned.kith"))
    options = parser.parse_args()

    x = made_vectors() if options.vectors is None else kith.read_vectors(options.vectors)
    start = time.perf_counter()
    if options.index is None:
        index = kith.Index("Graph32", metric=options.metric)
        index.add(x)
    else:
        index = read_index(options.index, options.metric)
    print(f"{index} in {time.perf_counter() - start:.1f} s")

    queries = x[np.random.default_rng(2).choice(len(x), min(QUERIES, len(x)), replace=False)]
    report = index.tune(queries, recall=options.recall, k=10)
    print(report)
    index.save(options.out)

    again = kith.load(options.out)
    truth = kith.knn(queries, x, k=10, metric=index.metric)
    start = time.perf_counter()
    found = [again.search(query, k=10, recall=options.recall, threads=1).ids for query in queries]
    took = (time.perf_counter() - start) / len(queries)
    print(f"recall {kith.recall(np.array(found), truth):.3f}, {took * 1e6:.0f} microseconds a query, one thread")

    again.add(queries[0] * 1.01, ids=int(again.ids()[0]), replace=True)  # an upsert
    again.remove(again.ids()[-1:])
    again.save(options.out)
    print(f"{len(again)} vectors in {options.out}")


if __name__ == "__main__":
    main()
