"""Finds, for 10,000 images of clothes, the ten nearest of 60,000 others, checks the answer and draws some of it.

The images are Fashion-MNIST, from Debian's package dataset-fashion-mnist; without it a small set of drawn letters takes
their place. The search is done by the program `kith`; numpy checks a sample of it in float64, and `kith eval` compares.
Then `kith kmeans` puts the 60,000 images into twenty clusters, whose mean images are drawn too.
"""

import argparse
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kith
import numpy as np
from numpy.typing import NDArray

import glyphs
from neighbour_picture import Centre, Row, draw

FASHION = Path("/usr/share/datasets/fashion-mnist")
FASHION_NAMES = ["T-shirt", "trousers", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"]
K = 10
CHECKED = 100  # queries that numpy searches too
CLUSTERS = 20


@dataclass
class Images:
    """Vectors of bytes, one image a row, with the number of each one's class in `names`."""

    base: NDArray[np.uint8]
    base_labels: NDArray[np.uint8]
    queries: NDArray[np.uint8]
    query_labels: NDArray[np.uint8]
    names: list[str]
    title: str


def load_images(folder: Path) -> Images:
    if (folder / "train-images-idx3-ubyte.gz").exists():
        parts = [kith.read_vectors(folder / f"{part}-ubyte.gz")
                 for part in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")]
        return Images(parts[0], parts[1][:, 0], parts[2], parts[3][:, 0], FASHION_NAMES, "Fashion-MNIST")
    print(f"Fashion-MNIST is not in {folder} (Debian's package dataset-fashion-mnist could not be had): "
          "using a small set of drawn letters instead")
    base, queries = glyphs.draw(5000, seed=1), glyphs.draw(1000, seed=2)
    return Images(base[0], base[1], queries[0], queries[1], glyphs.NAMES, "drawn letters")


def true_neighbours(queries: NDArray[np.uint8], base: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The K nearest rows by (distance, row number), with nothing but numpy: whole numbers in float64, so exact."""
    q, b = queries.astype(np.float64), base.astype(np.float64)
    squared = (q * q).sum(1)[:, None] - 2 * q @ b.T + (b * b).sum(1)
    return np.argsort(squared.astype(np.float32), axis=1, kind="stable")[:, :K]


def run(program: Path, *arguments: object) -> Any:
    """What the program answers; its progress bar and errors go to the terminal."""
    command = [str(program), *map(str, arguments), "--json"]
    print("  $", *command, flush=True)
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if result.returncode != 0:
        raise SystemExit(f"{program} ended with exit code {result.returncode}")
    return json.loads(result.stdout)


def picture_rows(images: Images, found: kith.Neighbors) -> list[Row]:
    """One query of each of eight classes: the first with at least K - 2 neighbours of its class."""
    ids, distances = found
    side = round(images.base.shape[1] ** 0.5)
    agreeing = (images.base_labels[ids] == images.query_labels[:, None]).sum(1)
    rows = []
    for label in [7, 9, 5, 8, 1, 3, 2, 0]:
        mine = np.flatnonzero((images.query_labels == label) & (agreeing >= K - 2))
        query = mine[0]
        rows.append(Row(
            images.names[label],
            images.queries[query].reshape(side, side),
            [images.base[i].reshape(side, side) for i in ids[query]],
            [images.names[images.base_labels[i]] for i in ids[query]],
            distances[query].tolist()))
    return rows


def find_centres(program: Path, images: Images, out: Path) -> tuple[list[Centre], Any]:
    """The clusters of the images, the largest first, and what the program said of them."""
    answer = run(program, "kmeans", "--data", out / "base.u8bin", "-k", CLUSTERS, "--iterations", 20, "--seed", 1,
                 "--out", out / "centres.fbin", "--out-labels", out / "labels.ibin")
    means = kith.read_vectors(out / "centres.fbin")
    labels = kith.read_vectors(out / "labels.ibin")[:, 0]
    side = round(images.base.shape[1] ** 0.5)
    centres = []
    for cluster in np.argsort(-np.bincount(labels, minlength=CLUSTERS), kind="stable"):
        classes = np.bincount(images.base_labels[labels == cluster], minlength=len(images.names))
        mean = means[cluster].round().clip(0, 255).astype(np.uint8).reshape(side, side)
        centres.append(Centre(mean, int(classes.sum()), images.names[int(classes.argmax())]))
    return centres, answer


def check(program: Path, images: Images, found: kith.Neighbors, out: Path) -> tuple[float, bool]:
    """The recall of a sample against numpy, and whether Python finds the same bytes as the program did."""
    sample = np.linspace(0, len(images.queries) - 1, CHECKED).astype(int)
    queries, ids, distances = images.queries[sample], found.ids[sample], found.distances[sample]
    kith.write_vectors(out / "sample.ibin", ids)
    kith.write_vectors(out / "truth.ibin", true_neighbours(queries, images.base))
    score = run(program, "eval", "--found", out / "sample.ibin", "--truth", out / "truth.ibin")
    again = kith.knn(queries, images.base, k=K, metric="l2")
    same = np.array_equal(again.ids, ids) and np.array_equal(again.distances, distances)
    return score["result"]["k-recall@k"]["recall"], same


def main() -> None:
    parser = argparse.ArgumentParser(description="Exact neighbours of images, checked and drawn.")
    parser.add_argument("--program", type=Path, default=Path("build/release/kith"), help="the program kith")
    parser.add_argument("--out", type=Path, default=Path("build/quickstart"), help="folder for what is made")
    parser.add_argument("--dataset", type=Path, default=FASHION, help="folder of Fashion-MNIST's files")
    options = parser.parse_args()
    program: Path = options.program
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)

    images = load_images(options.dataset)
    count, size = images.base.shape
    print(f"\n{images.title}: {len(images.queries):,} queries, {count:,} images to search, {size} bytes each")
    kith.write_vectors(out / "base.u8bin", images.base)
    kith.write_vectors(out / "queries.u8bin", images.queries)
    answer = run(program, "knn", "--base", out / "base.u8bin", "--queries", out / "queries.u8bin", "-k", K,
                 "--metric", "l2", "--out-ids", out / "ids.ibin", "--out-distances", out / "distances.fbin")
    found = kith.Neighbors(kith.read_vectors(out / "ids.ibin"), kith.read_vectors(out / "distances.fbin"))

    recall, same = check(program, images, found, out)
    accuracy = np.mean(images.base_labels[found.ids[:, 0]] == images.query_labels)
    picture = out / "neighbours.png"
    centres, clustering = find_centres(program, images, out)
    draw(picture_rows(images, found), f"its {K} nearest neighbours, with their l2 distances", centres,
         f"the centres of {CLUSTERS} clusters, with their sizes and commonest classes", picture)

    timings, threads = answer["timings"], answer["result"]["threads"]
    print(f"""
  speed      {timings["queries_per_second"]:,.0f} queries/s ({timings["search_seconds"]:.2f} s, {threads} threads)
  recall     {K}-recall@{K} = {recall:.4f} on {CHECKED} queries, against numpy in float64
  Python     kith.knn gives {"the same bytes as" if same else "OTHER RESULTS THAN"} the program
  labels     the nearest neighbour's class is right for {accuracy:.2%} of the queries
  clusters   {CLUSTERS} centres of {count:,} images in {clustering["timings"]["fit_seconds"]:.2f} s
  picture    {picture}
""")
    if recall < 1 or not same:
        raise SystemExit("the search is not exact: this is a bug in Kith")


if __name__ == "__main__":
    main()
