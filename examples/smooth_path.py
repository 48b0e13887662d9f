"""Walks from one image of clothes to another in steps that are as small as they can be, and draws the walks.

    pip install build/wheel/dist/kithnn-*.whl pillow
    python smooth_path.py [--data FOLDER] [--out FOLDER]

The images are Fashion-MNIST, from Debian's package dataset-fashion-mnist; without it a small set of drawn letters takes
their place. Steps are edges of the k-NN graph; of all walks between two images the largest step of this one is the least,
and of all such walks it is one with the fewest steps. `graph.report` and the walks' steps are checked with numpy.
"""

import argparse
from pathlib import Path
from typing import NamedTuple

import kith
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageColor, ImageDraw, ImageFont

FASHION = Path("/usr/share/datasets/fashion-mnist")
FASHION_NAMES = ["T-shirt", "trousers", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"]
LETTERS = "ACEHIKLOTX"
K = 10
IMAGES = 11  # in a walk that is drawn
TRIED = 400  # images of each class among which the ends are looked for
WALKS = [(7, 9), (1, 3), (0, 8)]  # from the first class to the second
STEP = 30  # between two images
CELL, MARGIN, HEADER = 120, 36, 62  # pixels: an image's side, the margin, a title's line
PAPER, INK, QUIET, FRAME = "#fcfcfb", "#24292f", "#8b949e", "#dcdfe3"
ACCENT, OTHER = "#2f6f9f", "#c4552d"  # the ends; the largest step


class Images(NamedTuple):
    """Vectors of bytes, one image a row, with the number of each one's class in `names`."""

    base: NDArray[np.uint8]
    base_labels: NDArray[np.uint8]
    names: list[str]


def load_images(folder: Path) -> Images:
    if (folder / "train-images-idx3-ubyte.gz").exists():
        images, labels = (kith.read_vectors(folder / f"train-{part}-ubyte.gz") for part in ("images-idx3", "labels-idx1"))
        return Images(images, labels[:, 0], FASHION_NAMES)
    print(f"Fashion-MNIST is not in {folder} (Debian's package dataset-fashion-mnist could not be had): "
          "using a small set of drawn letters instead")
    return Images(*letters(5000, seed=1), list(LETTERS))


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


def find_walk(images: Images, paths: kith.SmoothPaths, classes: tuple[int, int]) -> kith.SmoothPath:
    """Of walks between images of the two classes, the narrowest that can be drawn; the shortest where none fits."""
    ends = [np.flatnonzero(images.base_labels == label)[:TRIED] for label in classes]
    pairs = np.stack(np.meshgrid(*ends, indexing="ij"), axis=-1).reshape(-1, 2)
    narrowest = np.argsort(paths.widths(pairs), kind="stable")[:2000]
    walk = paths.path(*pairs[narrowest[0]])
    for place in narrowest:
        found = paths.path(*pairs[place])
        if len(found.rows) == IMAGES:
            return found
        if len(found.rows) < len(walk.rows):
            walk = found
    return walk


def check_walk(images: Images, graph: kith.KnnGraph, walk: kith.SmoothPath) -> NDArray[np.float64]:
    """The steps' lengths by numpy; an error unless each is an edge and the largest is the width."""
    rows = images.base[walk.rows].astype(np.float64)
    steps: NDArray[np.float64] = np.sqrt(((rows[1:] - rows[:-1]) ** 2).sum(axis=1))
    for a, b in zip(walk.rows[:-1], walk.rows[1:]):
        if b not in graph.ids[a] and a not in graph.ids[b]:
            raise SystemExit(f"{a} and {b} are no neighbours")
    if not np.isclose(steps.max(), walk.width, rtol=1e-6):
        raise SystemExit(f"the largest step is {steps.max()} and not {walk.width}")
    return steps


def draw_walks(images: Images, walks: list[tuple[str, kith.SmoothPath, NDArray[np.float64]]], path: Path) -> None:
    side = round(images.base.shape[1] ** 0.5)
    columns = max(len(walk.rows) for _, walk, _ in walks)
    line = HEADER + CELL + 34
    width = 2 * MARGIN + columns * (CELL + STEP) - STEP
    picture = Image.new("RGB", (width, 2 * MARGIN + len(walks) * line - 20), PAPER)
    pen = ImageDraw.Draw(picture)
    bold, small = (ImageFont.load_default(size) for size in (28, 21))
    for number, (title, walk, steps) in enumerate(walks):
        top = MARGIN + number * line
        pen.text((MARGIN, top), title, fill=INK, font=bold, anchor="la")
        top += HEADER - 8
        for place, row in enumerate(walk.rows):
            left = MARGIN + place * (CELL + STEP)
            at_end = place in (0, len(walk.rows) - 1)
            _paste(picture, images.base[row].reshape(side, side), left, top, ACCENT if at_end else FRAME, 3 if at_end else 2)
            if place < len(steps):
                largest = steps[place] == steps.max()
                middle = (left + CELL + STEP / 2, top + CELL + 8)
                pen.text(middle, f"{steps[place]:.0f}", fill=OTHER if largest else QUIET, font=small, anchor="ma")
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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, default=FASHION, help="folder of Fashion-MNIST")
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for the picture")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)

    images = load_images(arguments.data)
    print(f"the {K} nearest others of each of {len(images.base):,} images ...", flush=True)
    graph = kith.knn_graph(images.base, k=K, method="exact")
    paths = kith.SmoothPaths(graph)
    print(f"{graph}, {graph.report.seconds:.1f} s; {paths.parts} connected component{'' if paths.parts == 1 else 's'}")
    walks = []
    for classes in WALKS:
        first, second = (images.names[label % len(images.names)] for label in classes)
        walk = find_walk(images, paths, (classes[0] % len(images.names), classes[1] % len(images.names)))
        if len(walk.rows) == 0:
            print(f"no walk joins {first} and {second}")
            continue
        steps = check_walk(images, graph, walk)
        print(f"from {first} to {second}: {len(steps)} steps, the largest {walk.width:.0f}")
        walks.append((f"{first} to {second}: no step longer than {walk.width:.0f}", walk, steps))
    if walks:
        draw_walks(images, walks, arguments.out / "smooth_path.png")
        print(f"drew {arguments.out / 'smooth_path.png'}")


if __name__ == "__main__":
    main()
