"""Draws query images, each with its nearest neighbours beside it, and cluster centres below, as one picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageColor, ImageDraw, ImageFont

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
