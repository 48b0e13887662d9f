"""A small set of images for where Fashion-MNIST cannot be had: ten letters, drawn here, moved about and made noisy.

Each letter is an 8x8 bitmap. An image is one letter at a random place in a 12x12 frame, with random ink and noise.
The same seed gives the same images.
"""

import numpy as np
from numpy.typing import NDArray

SIDE = 12

_BITMAPS = {
    "A": ["...##...", "..####..", ".##..##.", ".##..##.", ".######.", ".##..##.", ".##..##.", "........"],
    "C": ["..####..", ".##..##.", ".##.....", ".##.....", ".##.....", ".##..##.", "..####..", "........"],
    "E": [".######.", ".##.....", ".##.....", ".#####..", ".##.....", ".##.....", ".######.", "........"],
    "H": [".##..##.", ".##..##.", ".##..##.", ".######.", ".##..##.", ".##..##.", ".##..##.", "........"],
    "I": ["..####..", "...##...", "...##...", "...##...", "...##...", "...##...", "..####..", "........"],
    "K": [".##..##.", ".##.##..", ".####...", ".###....", ".####...", ".##.##..", ".##..##.", "........"],
    "L": [".##.....", ".##.....", ".##.....", ".##.....", ".##.....", ".##.....", ".######.", "........"],
    "O": ["..####..", ".##..##.", ".##..##.", ".##..##.", ".##..##.", ".##..##.", "..####..", "........"],
    "T": [".######.", "...##...", "...##...", "...##...", "...##...", "...##...", "...##...", "........"],
    "X": [".##..##.", ".##..##.", "..####..", "...##...", "..####..", ".##..##.", ".##..##.", "........"],
}
NAMES = list(_BITMAPS)


def draw(count: int, seed: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Returns `count` images as rows of SIDE * SIDE bytes, and the number of each one's letter in NAMES."""
    random = np.random.default_rng(seed)
    letters = np.array([[[cell == "#" for cell in row] for row in bitmap] for bitmap in _BITMAPS.values()])
    labels = random.integers(len(NAMES), size=count)
    images = np.zeros((count, SIDE, SIDE))
    for image, label in zip(images, labels):
        top, left = random.integers(SIDE - 8 + 1, size=2)
        image[top : top + 8, left : left + 8] = letters[label] * random.uniform(140, 255)
    images += random.normal(0, 24, images.shape)
    return np.clip(images, 0, 255).astype(np.uint8).reshape(count, -1), labels.astype(np.uint8)
