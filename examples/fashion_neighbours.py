"""Finds, for 10,000 images of clothes, the ten nearest of 60,000 others, checks the answer and draws some of it.

    pip install build/wheel/dist/kithnn-*.whl pillow
    python fashion_neighbours.py [--dataset FOLDER] [--out FOLDER]

The images are Fashion-MNIST, from Debian's package dataset-fashion-mnist; without it a small set of drawn letters takes
their place. The search is done by the program `kith`; numpy checks a sample of it in float64, and `kith eval` compares.
Then `kith kmeans` puts the 60,000 images into twenty clusters, whose mean images are drawn too.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kith
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageColor, ImageDraw, ImageFont

FASHION = Path("/usr/share/datasets/fashion-mnist")
FASHION_NAMES = ["T-shirt", "trousers", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"]
LETTERS = "ACEHIKLOTX"
K = 10
CHECKED = 100  # queries that numpy searches too
CLUSTERS = 20

CELL = 120  # side of a drawn image, in pixels; the picture is twice as wide as a README shows it
GAP = 12
MARGIN = 36
NAME_WIDTH = 170  # the column with the queries' names
ARROW_WIDTH = 44  # between a query and its neighbours
HEADER = 62
CAPTION = 44  # below a neighbour: its name or distance
CENTRE_CAPTION = 70  # below a centre: its class and size, one under the other
PAPER, INK, QUIET, FRAME = "#fcfcfb", "#24292f", "#8b949e", "#dcdfe3"
ACCENT, OTHER = "#2f6f9f", "#c4552d"  # the query; a neighbour of another class


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
    base, queries = letters(5000, seed=1), letters(1000, seed=2)
    return Images(base[0], base[1], queries[0], queries[1], list(LETTERS), "drawn letters")


def letters(count: int, seed: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Ten letters, moved about and turned, as rows of 16 x 16 bytes; and the number of each one's letter."""
    random = np.random.default_rng(seed)
    font = ImageFont.load_default(44)
    labels = random.integers(len(LETTERS), size=count).astype(np.uint8)
    images = np.zeros((count, 16, 16), np.uint8)
    for image, label in zip(images, labels):
        stamp = Image.new("L", (64, 64))
        place = (32 + float(random.normal(0, 3)), 32 + float(random.normal(0, 3)))
        ImageDraw.Draw(stamp).text(place, LETTERS[label], fill=int(random.integers(180, 255)), font=font, anchor="mm")
        image += np.asarray(stamp.rotate(float(random.normal(0, 12))).resize((16, 16), Image.Resampling.BOX))
    return images.reshape(count, -1), labels


def true_neighbours(queries: NDArray[np.uint8], base: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The K nearest rows by (distance, row number), with nothing but numpy: whole numbers in float64, so exact."""
    q, b = queries.astype(np.float64), base.astype(np.float64)
    squared = (q * q).sum(1)[:, None] - 2 * q @ b.T + (b * b).sum(1)
    return np.argsort(squared.astype(np.float32), axis=1, kind="stable")[:, :K]


def run(program: list[str], *arguments: object) -> Any:
    """What the program answers; its progress bar and errors go to the terminal."""
    command = [*program, *map(str, arguments), "--json"]
    print("  $", *command, flush=True)
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if result.returncode != 0:
        raise SystemExit(f"{program[-1]} ended with exit code {result.returncode}")
    return json.loads(result.stdout)


@dataclass
class Row:
    """A query and its neighbours, nearest first: square images of bytes, light on dark."""

    name: str
    image: NDArray[np.uint8]
    neighbours: Sequence[NDArray[np.uint8]]
    names: Sequence[str]
    distances: Sequence[float]


@dataclass
class Centre:
    """The mean image of a cluster, how many images it has and which class most of them are of."""

    image: NDArray[np.uint8]
    size: int
    name: str


def picture_rows(images: Images, found: kith.Neighbors) -> list[Row]:
    """One query of each of eight classes: the first with at least K - 2 neighbours of its class."""
    ids, distances = found
    side = round(images.base.shape[1] ** 0.5)
    agreeing = (images.base_labels[ids] == images.query_labels[:, None]).sum(1)
    rows = []
    for label in [7, 9, 5, 8, 1, 3, 2, 0]:
        mine = np.flatnonzero(images.query_labels == label)
        query = mine[np.argmax(agreeing[mine] >= K - 2)]
        rows.append(Row(
            images.names[label],
            images.queries[query].reshape(side, side),
            [images.base[i].reshape(side, side) for i in ids[query]],
            [images.names[images.base_labels[i]] for i in ids[query]],
            distances[query].tolist()))
    return rows


def find_centres(program: list[str], images: Images, out: Path) -> tuple[list[Centre], Any]:
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


def check(program: list[str], images: Images, found: kith.Neighbors, out: Path) -> tuple[float, bool]:
    """The recall of a sample against numpy, and whether Python finds the same bytes as the program did."""
    sample = np.linspace(0, len(images.queries) - 1, CHECKED).astype(int)
    queries, ids, distances = images.queries[sample], found.ids[sample], found.distances[sample]
    kith.write_vectors(out / "sample.ibin", ids)
    kith.write_vectors(out / "truth.ibin", true_neighbours(queries, images.base))
    score = run(program, "eval", "--found", out / "sample.ibin", "--truth", out / "truth.ibin")
    again = kith.knn(queries, images.base, k=K, metric="l2")
    same = np.array_equal(again.ids, ids) and np.array_equal(again.distances, distances)
    return score["result"]["k-recall@k"]["recall"], same


def draw(rows: Sequence[Row], title: str, centres: Sequence[Centre], centres_title: str, path: Path) -> None:
    columns = max(len(row.neighbours) for row in rows)
    first = MARGIN + NAME_WIDTH + CELL + ARROW_WIDTH  # where the neighbours begin
    width = first + columns * (CELL + GAP) - GAP + MARGIN
    centres_top = MARGIN + HEADER + len(rows) * (CELL + CAPTION) + GAP  # where the second part begins
    lines = -(-len(centres) // columns)
    height = centres_top + HEADER + lines * (CELL + CENTRE_CAPTION) - 4 + MARGIN
    picture = Image.new("RGB", (width, height), PAPER)
    pen = ImageDraw.Draw(picture)
    bold, plain, small = (ImageFont.load_default(size) for size in (28, 25, 21))

    pen.text((MARGIN + NAME_WIDTH + CELL / 2, MARGIN), "query", fill=ACCENT, font=bold, anchor="ma")
    pen.text((first, MARGIN), title, fill=INK, font=bold, anchor="la")
    for number, row in enumerate(rows):
        top = MARGIN + HEADER + number * (CELL + CAPTION)
        middle = top + CELL / 2
        pen.text((MARGIN, middle), row.name, fill=INK, font=plain, anchor="lm")
        _paste(picture, row.image, MARGIN + NAME_WIDTH, top, ACCENT, 3)
        for arrow in (0, 9):
            x = first - ARROW_WIDTH / 2 - 7 + arrow
            pen.line([(x - 4, middle - 9), (x + 4, middle), (x - 4, middle + 9)], fill=FRAME, width=3, joint="curve")
        for column, (image, name, distance) in enumerate(zip(row.neighbours, row.names, row.distances)):
            left = first + column * (CELL + GAP)
            same = name == row.name
            _paste(picture, image, left, top, FRAME if same else OTHER, 2)
            pen.text((left + CELL / 2, top + CELL + 6), f"{distance:.0f}" if same else f"{name} {distance:.0f}",
                     fill=QUIET if same else OTHER, font=small, anchor="ma")

    pen.line([(MARGIN, centres_top - GAP), (width - MARGIN, centres_top - GAP)], fill=FRAME, width=2)
    pen.text((first, centres_top + GAP), centres_title, fill=INK, font=bold, anchor="la")
    for number, centre in enumerate(centres):
        left = first + number % columns * (CELL + GAP)
        top = centres_top + HEADER + number // columns * (CELL + CENTRE_CAPTION)
        _paste(picture, centre.image, left, top, FRAME, 2)
        for line, (text, colour) in enumerate([(centre.name, INK), (f"{centre.size:,}", QUIET)]):
            place = (left + CELL / 2, top + CELL + 6 + 26 * line)
            pen.text(place, text, fill=colour, font=small, anchor="ma")
    # Few colours are in it: a palette makes the file a third as large.
    picture.quantize(palette=_palette(), dither=Image.Dither.NONE).save(path, optimize=True)


def _palette() -> Image.Image:
    """64 greys, and each colour used, pure and thinned towards the paper as the edges of letters are."""
    colours = [(grey, grey, grey) for grey in np.linspace(0, 255, 64).astype(int).tolist()]
    paper = np.array(ImageColor.getrgb(PAPER))
    for colour in (PAPER, INK, QUIET, FRAME, ACCENT, OTHER):
        for strength in (0.25, 0.5, 0.75, 1.0):
            mixed = paper + strength * (np.array(ImageColor.getrgb(colour)) - paper)
            colours.append(tuple(mixed.round().astype(int).tolist()))
    palette = Image.new("P", (1, 1))
    palette.putpalette([value for colour in colours for value in colour])
    return palette


def _paste(picture: Image.Image, image: NDArray[np.uint8], left: int, top: int, frame: str, line: int) -> None:
    """Dark on white, smoothly enlarged, in a frame."""
    enlarged = Image.fromarray(255 - image).resize((CELL, CELL), Image.Resampling.BICUBIC)
    picture.paste(enlarged.convert("RGB"), (left, top))
    ImageDraw.Draw(picture).rectangle((left - line, top - line, left + CELL + line - 1, top + CELL + line - 1),
                                      outline=frame, width=line)


def main() -> None:
    parser = argparse.ArgumentParser(description="Exact neighbours of images, checked and drawn.")
    parser.add_argument("--program", help="the program kith (default: the package's)")
    parser.add_argument("--out", type=Path, default=Path("fashion"), help="folder for what is made")
    parser.add_argument("--dataset", type=Path, default=FASHION, help="folder of Fashion-MNIST's files")
    options = parser.parse_args()
    program = [options.program] if options.program else [sys.executable, "-m", "kith"]
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
