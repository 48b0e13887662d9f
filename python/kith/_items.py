"""What vectors stand for, for eyes: an image or a text for each row.

`kith.show` and `kith.explore` draw from it. Images come as arrays, files, encoded bytes or PIL's; each is looked at when it is
asked for, so that a folder of a million images opens at once and a broken one spoils no other.
"""

from __future__ import annotations

import io
import json
import os
import threading
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kith._errors import kind_of
from kith._libraries import library_of
from kith._png import png

IMAGE_ENDINGS = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff"})
_SAMPLE = 256  # images whose values tell the range of all
_LARGEST_FILE = 64 << 20
_MOST_PIXELS = 64_000_000  # of an image that is decoded
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "PPM", "AVIF")  # that need no program of their own, as EPS does
_decoding = threading.BoundedSemaphore(4)  # large images want memory


class ItemError(ValueError):
    """An item that cannot be shown, and why, in words for the page or the picture."""


class Picture(NamedTuple):
    """An image as a browser takes it."""

    data: bytes
    media_type: str


class Items:
    """Images or texts, one for each row.

    Parameters
    ----------
    given : array_like, sequence, or path
        Images: an array (rows, height, width), (rows, height, width, 1, 3 or 4) or (rows, 1, 3 or 4, height, width), or of vectors of
        pixels, (rows, height * width), if they are square or `shape` says what they are; a sequence of such images, whose
        sizes may differ, of PIL's, of encoded files as bytes, or of paths. Texts: a sequence or an array of str. A path is a
        folder of images, in the order of their names, a .txt file of a text a line, or a .jsonl file of a text, or an
        object with a "text", a line. None in a sequence is a missing item.
    name : str
        What the caller calls them, for errors.
    shape : tuple of int, optional
        (height, width) or (height, width, channels) of images given as vectors.
    """

    def __init__(self, given: Any, name: str = "items", shape: tuple[int, ...] | None = None) -> None:
        self.texts: Sequence[str] | None = None
        self._each: Sequence[Any] | None = None  # images of any kind and size
        self._array: npt.NDArray[Any] | None = None  # or all in one array
        self._range: tuple[float, float] | None = None
        self._loading = threading.Lock()
        if isinstance(given, (str, os.PathLike)):
            given = _from_path(Path(given), name)
        if isinstance(given, (dict, set)) or not (hasattr(given, "__iter__") or hasattr(given, "__getitem__") or _is_array(given)):
            raise TypeError(
                f"{name} is {kind_of(given)}; give images (an array, or a list of arrays, PIL's, files as paths or bytes) "
                "or texts"
            )
        array = _one_array(given)
        if array is None:
            self._take_sequence(list(given) if not isinstance(given, Sequence) else given, name, shape)
        elif array.dtype.kind in "UO" and array.ndim == 1:
            self._take_sequence(array.tolist(), name, shape)
        else:
            self._array = images_of(array, name, shape)

    def _take_sequence(self, given: Sequence[Any], name: str, shape: tuple[int, ...] | None) -> None:
        first = next((item for item in given if item is not None), "")
        if isinstance(first, str) and not _are_files(given):
            self.texts = _Texts(given, name)
        elif isinstance(first, (list, tuple, int, float)):  # nested lists of numbers
            try:
                pixels = np.asarray(given)
            except ValueError:
                raise ValueError(f"{name} are lists of different lengths; give an array for each image") from None
            self._array = images_of(pixels, name, shape)
        elif isinstance(first, (str, os.PathLike, bytes, np.ndarray)) or hasattr(first, "__array_interface__"):
            self._each = given
        else:
            raise TypeError(
                f"{name} hold a {type(first).__name__}; they must be images (arrays, PIL's, files as paths or bytes) or texts"
            )

    def __len__(self) -> int:
        held = self.texts if self.texts is not None else self._each if self._each is not None else self._array
        assert held is not None
        return len(held)

    @property
    def kind(self) -> str:
        """``"texts"`` or ``"images"``."""
        return "images" if self.texts is None else "texts"

    @property
    def image_shape(self) -> tuple[int, ...] | None:
        """The shape of every image, where one array holds them all."""
        return None if self._array is None else tuple(self._array.shape[1:])

    def caption(self, row: int) -> str:
        """The text of a row, or the name of its file, or nothing."""
        if self.texts is not None:
            return self.texts[row]
        given = None if self._each is None else self._each[row]
        return Path(given).name if isinstance(given, (str, os.PathLike)) else ""

    def captions(self) -> Iterator[str]:
        """Those of all rows, one after the other."""
        return iter(self.texts) if self.texts is not None else map(self.caption, range(len(self)))

    def pixels(self, row: int) -> npt.NDArray[Any]:
        """The image of a row as (height, width) or (height, width, 3 or 4), with the values that it was given with.

        ItemError for one that is missing or broken.
        """
        if self._array is not None:
            return np.asarray(self._array[row])
        given = self._image_given(row)
        if isinstance(given, np.ndarray):
            return np.asarray(images_of(given[np.newaxis], f"item {row}", None)[0])
        if isinstance(given, bytes):
            given = opened(given, f"item {row}")
        return _plain(given)

    def picture(self, row: int, side: int | None = None) -> Picture:
        """The image of a row for a browser, at most `side` pixels wide and high where Pillow can make it smaller.

        ItemError for one that is missing or broken.
        """
        if self._array is None:
            given = self._image_given(row)
            if isinstance(given, bytes):
                return _encoded(given, side, f"item {row}")
            if hasattr(given, "thumbnail"):
                with self._loading:  # one that PIL has not read yet can be read by one thread alone
                    given.load()
                return _shrunk(given, side)
        return Picture(png(self._as_bytes(self.pixels(row))), "image/png")

    def _image_given(self, row: int) -> Any:
        """What stands for an image: its file's bytes, its array, or PIL's image."""
        assert self._each is not None
        given = self._each[row]
        if given is None:
            raise ItemError(f"item {row} is missing")
        if isinstance(given, (str, os.PathLike)):
            return _read_file(Path(given))
        return given

    def _as_bytes(self, image: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
        """Grey values and colours from 0 to 255; one range for all images, so that they can be compared."""
        if image.dtype == np.uint8:
            return np.ascontiguousarray(image)
        if image.dtype == np.bool_:
            return image.astype(np.uint8) * np.uint8(255)
        if self._range is None:
            self._range = value_range(image if self._array is None else self._array)
        low, high = self._range
        with np.errstate(invalid="ignore", over="ignore"):
            scaled = (image.astype(np.float64) - low) * (255 / (high - low))
        grey: npt.NDArray[np.uint8] = np.nan_to_num(np.clip(np.rint(scaled), 0, 255)).astype(np.uint8)
        return grey


def _is_array(given: Any) -> bool:
    return hasattr(given, "__array__") or hasattr(given, "__dlpack__") or hasattr(given, "__array_interface__")


def images_of(array: npt.NDArray[Any], name: str, shape: tuple[int, ...] | None) -> npt.NDArray[Any]:
    """The images in an array as (rows, height, width) or (rows, height, width, 3 or 4); ValueError if there are none."""
    if array.dtype.kind not in "fiub" or array.ndim not in (2, 3, 4):
        raise ValueError(f"{name} are {array.dtype} of shape {array.shape}; give images, vectors of pixels, or texts")
    if 0 in array.shape[1:]:
        raise ValueError(f"{name} have shape {array.shape}, without a pixel; give images, vectors of pixels, or texts")
    if shape is not None:
        values = int(np.prod(array.shape[1:]))
        if int(np.prod(shape)) != values:
            raise ValueError(f"shape is {shape}, and {name} have {values} values each")
        return images_of(array.reshape(len(array), *shape), name, None)
    if array.ndim == 2:
        side = round(array.shape[1] ** 0.5)
        if side * side != array.shape[1]:
            raise ValueError(
                f"{name} have {array.shape[1]} values each, which is no square: say what they are with shape="
            )
        return array.reshape(-1, side, side)
    if array.ndim == 4 and array.shape[3] not in (1, 3, 4):
        if array.shape[1] not in (1, 3, 4):
            raise ValueError(f"{name} have shape {array.shape}; images have 1, 3 or 4 channels, first or last")
        array = np.moveaxis(array, 1, 3)  # as torch keeps them
    return array[..., 0] if array.ndim == 4 and array.shape[3] == 1 else array


def value_range(array: npt.NDArray[Any]) -> tuple[float, float]:
    """What black and white are: 0 and 1, 0 and 255, or the least and largest value, whichever holds the values."""
    step = max(1, len(array) // _SAMPLE)
    sample = array[::step].astype(np.float64)
    finite = sample[np.isfinite(sample)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    if low >= 0 and high <= 255:
        return 0.0, 255.0
    return low, high if high > low else low + 1


def opened(data: bytes, name: str, side: int | None = None) -> Any:
    """PIL's image of an encoded file, at most about `side` pixels wide and high, if given.

    ItemError if it is broken or too large, or if Pillow is not installed.
    """
    try:
        images: Any = import_module("PIL.Image")
        operations: Any = import_module("PIL.ImageOps")
    except ImportError:
        raise ItemError(f"{name}: reading image files needs Pillow: pip install pillow") from None
    try:
        with _decoding:
            images.init()
            image = images.open(io.BytesIO(data), formats=[one for one in _FORMATS if one in images.OPEN])
            if side is not None and not image.info.get("progressive"):
                image.draft(None, (side, side))  # a JPEG is decoded smaller at once
            if image.width * image.height > _MOST_PIXELS:
                raise ItemError(f"{name} has {image.width} x {image.height} pixels; images of up to {_MOST_PIXELS // 10**6} million are shown")
            if side is not None:
                image = _smaller(image, side)
            image.load()
        return operations.exif_transpose(image)
    except ItemError:
        raise
    except images.UnidentifiedImageError:  # whose words name an object in memory
        raise ItemError(f"{name} is no image that Pillow can read") from None
    except Exception as error:  # Pillow raises a dozen kinds for broken files
        raise ItemError(f"{name} is no image that Pillow can read: {error}") from None


def _encoded(data: bytes, side: int | None, name: str) -> Picture:
    """A file as it is, where a browser knows it and it is small; else what Pillow makes of it."""
    known = media_type(data)
    if known is not None and (side is None or len(data) <= 100 * side):
        return Picture(data, known)
    try:
        return _shrunk(opened(data, name, side), side)
    except ItemError:
        if known is None:
            raise
        return Picture(data, known)  # the browser may do better


def media_type(data: bytes) -> str | None:
    """What kind of image a browser would see in these bytes. None for others, SVG among them: it can hold scripts."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return "image/bmp" if data[:2] == b"BM" else None


def _shrunk(image: Any, side: int | None) -> Picture:
    return Picture(png(_plain(image if side is None else _smaller(image, side))), "image/png")


def _plain(image: Any) -> npt.NDArray[Any]:
    """The values of PIL's image, from 0 to 255: grey, colours, or colours and how opaque they are."""
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        return _eight_bits(np.asarray(image))
    if image.mode == "P" or "A" in image.mode or "a" in image.mode:
        return np.asarray(image.convert("RGBA"))
    return np.asarray(image.convert("L" if image.mode in ("1", "L") else "RGB"))


def _eight_bits(values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Grey values that Pillow would cut at 255: of 16 bits, or of any range."""
    low, high = 0.0, 65535.0
    if values.dtype.kind == "f" or values.size and (values.min() < 0 or values.max() > 65535):
        low, high = value_range(values[np.newaxis])
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = (values.astype(np.float64) - low) * (255 / (high - low))
    grey: npt.NDArray[np.uint8] = np.nan_to_num(np.clip(np.rint(scaled), 0, 255)).astype(np.uint8)
    return grey


def _smaller(image: Any, side: int) -> Any:
    """The image, at most `side` pixels wide and high; the given one stays as it is."""
    if max(image.size) <= side:
        return image
    if image.mode in ("1", "P", "PA"):  # their values cannot be mixed
        image = image.convert("L" if image.mode == "1" else "RGBA")
    share = side / max(image.size)
    return image.resize(tuple(max(1, round(length * share)) for length in image.size), reducing_gap=2.0)


def _read_file(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if size > _LARGEST_FILE:
            raise ItemError(f"{path.name} has {size >> 20} MiB; images up to {_LARGEST_FILE >> 20} MiB are shown")
        data = path.read_bytes()
    except OSError as error:
        raise ItemError(f"{path.name}: {error.strerror}") from None
    if not data:
        raise ItemError(f"{path.name} is empty")
    return data


class _Texts(Sequence[str]):
    """The given texts, made str one by one: a million of them are not copied."""

    def __init__(self, given: Sequence[Any], name: str) -> None:
        self._given = given
        self._name = name

    def __len__(self) -> int:
        return len(self._given)

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return [self[each] for each in range(*row.indices(len(self)))]
        text = self._given[row]
        return "" if text is None else str(text)

    def __iter__(self) -> Iterator[str]:
        return ("" if text is None else str(text) for text in self._given)


def _one_array(given: Any) -> npt.NDArray[Any] | None:
    """The array that `given` is, of whichever library; None for a sequence of items."""
    if not hasattr(given, "shape"):
        return None
    return np.asarray(library_of(given).to_host(given))


def _are_files(given: Sequence[Any]) -> bool:
    """Whether texts are the names of image files, all of them."""
    return all(item is None or Path(str(item)).suffix.lower() in IMAGE_ENDINGS for item in given)


def _from_path(path: Path, name: str) -> Sequence[Any]:
    """The items in a folder of images, or in a file of texts."""
    if path.is_dir():
        found = sorted(
            (Path(entry.path) for entry in os.scandir(path) if Path(entry.name).suffix.lower() in IMAGE_ENDINGS),
            key=lambda file: file.name,
        )
        if not found:
            raise ValueError(f"{name}: the folder {os.fspath(path)!r} holds no image ({', '.join(sorted(IMAGE_ENDINGS))})")
        return found
    if not path.exists():
        raise FileNotFoundError(f"{name}: there is no file or folder {os.fspath(path)!r}")
    ending = path.suffix.lower()
    if ending == ".txt":
        return path.read_text("utf-8", "replace").removesuffix("\n").split("\n")
    if ending == ".jsonl":
        return [_text_of(line, number, path, name) for number, line in enumerate(_lines(path), 1)]
    raise ValueError(f"{name}: {os.fspath(path)!r} is neither a folder of images nor a .txt or .jsonl file of texts")


def _lines(path: Path) -> Iterator[str]:
    with open(path, encoding="utf-8", errors="replace") as file:
        yield from (line for line in file if line.strip())


def _text_of(line: str, number: int, path: Path, name: str) -> str:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{name}: line {number} of {os.fspath(path)!r} is no JSON: {error}") from None
    if isinstance(value, dict):
        value = next((value[key] for key in ("text", "content", "title", "body") if key in value), value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
