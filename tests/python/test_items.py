"""What vectors stand for: images and texts of every kind that kith.show and kith.explore take."""

from __future__ import annotations

import io
import json
import struct
import zlib

import numpy as np
import pytest

from kith._items import ItemError, Items, media_type
from kith._png import png


def decoded(data):
    """The values of a PNG file without filters, by its specification."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, content, header = 8, b"", ()
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + body)
        if kind == b"IHDR":
            header = struct.unpack(">IIBBBBB", body)
        content += body if kind == b"IDAT" else b""
        at += 12 + length
    width, height, depth, colours = header[:4]
    assert depth == 8 and kind == b"IEND"
    lines = np.frombuffer(zlib.decompress(content), np.uint8).reshape(height, -1)
    assert (lines[:, 0] == 0).all()
    return lines[:, 1:].reshape((height, width) if colours == 0 else (height, width, {2: 3, 6: 4}[colours]))


def shown(items, row):
    picture = items.picture(row)
    assert picture.media_type == "image/png"
    return decoded(picture.data)


@pytest.mark.parametrize("shape", [(1, 1), (7, 5), (4, 6, 3), (4, 6, 4)])
def test_png(rng, shape):
    image = rng.integers(0, 256, shape, dtype=np.uint8)
    assert (decoded(png(image)) == image).all()


@pytest.mark.parametrize("shape, each", [((6, 8), (6, 8)), ((6, 8, 1), (6, 8)), ((6, 8, 3), (6, 8, 3)), ((3, 6, 8), (6, 8, 3))])
def test_images_in_one_array(rng, shape, each):
    images = rng.integers(0, 256, (5, *shape), dtype=np.uint8)
    items = Items(images)
    assert items.kind == "images" and len(items) == 5 and items.image_shape == each
    expected = np.moveaxis(images[2], 0, 2) if shape[0] == 3 else images[2].reshape(each)
    assert (shown(items, 2) == expected).all() and (items.pixels(2) == expected).all()


def test_vectors_of_pixels(rng):
    x = rng.integers(0, 256, (5, 36), dtype=np.uint8)
    assert (shown(Items(x), 1) == x[1].reshape(6, 6)).all()
    assert (shown(Items(x, shape=(4, 9)), 1) == x[1].reshape(4, 9)).all()
    with pytest.raises(ValueError, match="no square: say what they are with shape="):
        Items(x[:, :35])
    with pytest.raises(ValueError, match=r"shape is \(4, 4\), and items have 36 values"):
        Items(x, shape=(4, 4))


@pytest.mark.parametrize("low, high, black, white", [(0, 1, 0, 1), (0, 200, 0, 255), (-3, 5, -3, 5)])
def test_real_values_have_one_range_for_all(low, high, black, white):
    images = np.linspace(low, high, 4 * 9).reshape(4, 3, 3)
    expected = np.rint((images[3] - black) * 255 / (white - black))
    assert (shown(Items(images), 3) == expected).all()


def test_hard_values():
    images = np.zeros((3, 2, 2), np.float32)
    images[1] = [[np.nan, np.inf], [-np.inf, 0]]
    assert (shown(Items(images), 0) == 0).all()
    assert shown(Items(images), 1)[0, 1] == 255
    assert (shown(Items(np.ones((2, 2, 2), bool)), 0) == 255).all()


def test_images_of_several_sizes(rng):
    images = [rng.integers(0, 256, shape, dtype=np.uint8) for shape in ((3, 4), (5, 2, 3), (1, 9))]
    items = Items(images)
    assert items.image_shape is None
    for row, image in enumerate(images):
        assert (shown(items, row) == image).all()


def test_files_missing_and_broken(tmp_path, rng):
    image = rng.integers(0, 256, (4, 4), dtype=np.uint8)
    (tmp_path / "b.png").write_bytes(png(image))
    (tmp_path / "a.png").write_bytes(b"nonsense")
    (tmp_path / "c.jpg").write_bytes(b"")
    (tmp_path / "notes.md").write_text("no image")
    items = Items(tmp_path)
    assert len(items) == 3 and [items.caption(row) for row in range(3)] == ["a.png", "b.png", "c.jpg"]
    assert (decoded(items.picture(1).data) == image).all()
    with pytest.raises(ItemError, match="c.jpg is empty"):
        items.picture(2)
    with pytest.raises(ItemError, match="item 0"):
        items.picture(0)
    (tmp_path / "b.png").unlink()
    with pytest.raises(ItemError, match="b.png: No such file"):
        items.picture(1)
    with pytest.raises(ItemError, match="item 1 is missing"):
        Items([png(image), None]).picture(1)


def test_images_of_pillow(rng):
    image_module = pytest.importorskip("PIL.Image")
    grey = rng.integers(0, 256, (40, 30), dtype=np.uint8)
    colour = rng.integers(0, 256, (40, 30, 3), dtype=np.uint8)
    items = Items([image_module.fromarray(grey), image_module.fromarray(colour)])
    assert (shown(items, 0) == grey).all() and (items.pixels(1) == colour).all()
    assert max(decoded(items.picture(1, 20).data).shape) == 20
    file = io.BytesIO()
    image_module.fromarray(colour).save(file, "TIFF")  # which browsers do not show
    assert (shown(Items([file.getvalue()]), 0) == colour).all()


def test_texts(tmp_path):
    assert Items(["a", None, "b"]).caption(1) == "" and Items(np.array(["a", "b"])).caption(1) == "b"
    (tmp_path / "lines.txt").write_text("one\n\nthree\n", "utf-8")
    items = Items(tmp_path / "lines.txt")
    assert items.kind == "texts" and list(items.texts) == ["one", "", "three"]
    lines = ["plain", {"text": "of an object", "id": 3}, {"other": "é"}]
    (tmp_path / "lines.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    assert list(Items(tmp_path / "lines.jsonl").texts) == ["plain", "of an object", '{"other": "é"}']
    (tmp_path / "lines.jsonl").write_text('"a"\n{')
    with pytest.raises(ValueError, match="line 2 of .* is no JSON"):
        Items(tmp_path / "lines.jsonl")


def test_what_is_neither(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file or folder"):
        Items(tmp_path / "nothing")
    with pytest.raises(ValueError, match="holds no image"):
        Items(tmp_path)
    (tmp_path / "x.csv").write_text("1,2")
    with pytest.raises(ValueError, match="neither a folder of images nor"):
        Items(tmp_path / "x.csv")
    with pytest.raises(TypeError, match="hold a dict"):
        Items([{}])
    with pytest.raises(ValueError, match="channels, first or last"):
        Items(np.zeros((3, 5, 5, 2)))


def test_media_types_are_told_by_content():
    assert media_type(png(np.zeros((1, 1), np.uint8))) == "image/png"
    assert media_type(b"<svg onload='alert(1)'>") is None
