"""Looks through a folder of photos: which ones are nearly the same, and what is most like each.

    pip install build/wheel/dist/kithnn-*.whl pillow matplotlib
    python photo_folder.py PHOTOS [--out photos] [--explore]

PHOTOS is a folder of JPEGs, or of other images that Pillow reads, with folders in it or without. Each photo becomes a vector:
its colours on a grid of 16 by 16. That finds copies of other sizes and qualities, and scenes alike in light and layout; to find the
same things, put a network in the place of `vector` (any function from an image to numbers, such as CLIP's). Without PHOTOS a
folder of 120 drawn ones takes their place.
"""

import argparse
from pathlib import Path

import kith
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

ENDINGS = {".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff"}
SIDE = 16
RADIUS = 0.005  # of near duplicates, by cosine
K = 6


def vector(photo: Image.Image) -> NDArray[np.float32]:
    """The photo's colours, less their mean, so that a brighter copy is a copy."""
    small = np.asarray(photo.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BOX), np.float32)
    flat: NDArray[np.float32] = (small - small.mean()).ravel()
    return flat


def draw_photos(folder: Path) -> None:
    """A hundred skies with suns and hills, and twenty of them again, smaller and brighter."""
    random = np.random.default_rng(1)
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(100):
        colours = [tuple(map(int, random.integers(40, 255, 3))) for _ in range(4)]
        photo = Image.new("RGB", (240, 160), colours[0])
        pen = ImageDraw.Draw(photo)
        x, y = map(int, random.integers((20, 15), (220, 90)))
        pen.ellipse((x - 18, y - 18, x + 18, y + 18), fill=colours[1])
        pen.polygon([(0, 160), (int(random.integers(20, 220)), int(random.integers(60, 130))), (240, 160)], fill=colours[2])
        pen.rectangle((0, int(random.integers(125, 150)), 240, 160), fill=colours[3])
        photo.save(folder / f"{number:03}.jpg", quality=90)
        if number % 5 == 0:
            photo.resize((150, 100)).point(lambda value: min(255, int(value * 1.05))).save(
                folder / f"{number:03}-copy.jpg", quality=60)


def main() -> None:
    parser = argparse.ArgumentParser(description="near duplicates and neighbours in a folder of photos")
    parser.add_argument("photos", type=Path, nargs="?", help="the folder (default: drawn photos)")
    parser.add_argument("--out", type=Path, default=Path("photos"), help="folder for the pictures and the index")
    parser.add_argument("--explore", action="store_true", help="open a page to click through them")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    folder: Path = options.photos or options.out / "drawn"
    if options.photos is None:
        draw_photos(folder)

    paths, rows = [], []
    for path in sorted(path for path in folder.rglob("*") if path.suffix.lower() in ENDINGS):
        try:
            with Image.open(path) as photo:
                rows.append(vector(photo))
            paths.append(path)
        except OSError as error:
            print(f"passing over {path}: {error}")
    if len(paths) < 2:
        raise SystemExit(f"{folder} holds {len(paths)} photos; name a folder of some")
    x = np.stack(rows)
    print(f"{len(paths)} photos, {x.shape[1]} numbers each")

    same = kith.near_duplicates(x, radius=RADIUS, metric="cosine")
    for group in same.groups():
        print("nearly the same:", ", ".join(str(paths[row].relative_to(folder)) for row in group))
    kept = same.keep
    print(f"{len(kept)} photos without the copies")

    graph = kith.knn_graph(x[kept], k=min(K, len(kept) - 1), metric="cosine")
    kith.show([paths[row] for row in kept], graph, rows=6).savefig(options.out / "neighbours.png", dpi=120)
    kith.write_vectors(options.out / "photos.fbin", x)
    print(f"drew {options.out / 'neighbours.png'}; their vectors are in {options.out / 'photos.fbin'}")
    if options.explore:
        kith.explore(paths, x, metric="cosine")  # until Ctrl-C


if __name__ == "__main__":
    main()
