"""Images as PNG files: an encoder of one page, so that showing an array needs no library of images."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import numpy.typing as npt

_COLOUR_TYPES = {1: 0, 3: 2, 4: 6}  # of as many channels: grey, colour, colour and opacity


def png(image: npt.NDArray[np.uint8]) -> bytes:
    """The PNG file of an image, (height, width) or (height, width, 3 or 4), of uint8.

    Takes less than 0.1 ms for 28 x 28 grey values and some 50 ms for each million.
    """
    rows = image.reshape(image.shape[0], image.shape[1], -1)
    height, width, channels = rows.shape
    # A byte in front of each row names its filter: 0 is none.
    lines = np.zeros((height, 1 + width * channels), np.uint8)
    lines[:, 1:] = rows.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOUR_TYPES[channels], 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 1)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*part) for part in parts)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
