"""Vectors and ids in files."""

from __future__ import annotations

import os
from typing import Any, SupportsIndex, Union

import numpy as np
import numpy.typing as npt

from kith import _kith
from kith._arrays import DTYPE_NAMES, Matrix, VectorsLike, is_bfloat16, readable_in_place, to_numpy
from kith._errors import kind_of
from kith._options import flag, whole_number
from kith._other_files import read_other
from kith._other_names import answers_other_names

PathLike = Union[str, "os.PathLike[str]"]


def path_bytes(path: PathLike, name: str = "path") -> bytes:
    """The path as the system knows it."""
    try:
        encoded = os.fsencode(path)
    except TypeError:
        raise TypeError(f"{name} is {kind_of(path)}; it must be a path, a str or an os.PathLike") from None
    if not encoded:
        raise ValueError(f"{name} is empty; it must name a file")
    if b"\0" in encoded:
        raise ValueError(f"{name} is {path!r}, which holds a null character")
    return encoded


def index_file(path: PathLike, name: str = "path") -> tuple[bytes, bool]:
    """The path of an index to be written, and whether its name says FAISS's format; Kith's own is ``.kith``."""
    encoded = path_bytes(path, name)
    ending = os.path.splitext(encoded)[1]
    if ending not in (b".kith", b".faiss", b".index"):
        given = os.fsdecode(encoded)
        raise ValueError(
            f"{name} is {given!r}, which names no format of indexes: write '{given}.kith' for Kith's, '{given}.faiss' or "
            f"'{given}.index' for FAISS's"
        )
    return encoded, ending != b".kith"


@answers_other_names("kith.read_vectors()")
def read_vectors(
    path: PathLike,
    first: SupportsIndex = 0,
    count: SupportsIndex | None = None,
    *,
    dtype: npt.DTypeLike | None = None,
    mmap: bool = False,
) -> npt.NDArray[Any]:
    """Read vectors, or ids, from a file.

    The ending of its name tells the format: ``.fvecs``, ``.bvecs``, ``.ivecs``, ``.fbin``, ``.f16bin``, ``.bf16bin``,
    ``.u8bin``, ``.i8bin``, ``.ibin``, ``.npy``, ``.hdf5`` or ``.h5``, and ``idx3-ubyte`` with or without ``.gz``.
    ``"sift.hdf5::test"`` is the dataset ``test`` of an HDF5 file; without a name it is ``train``.

    What ``kith convert`` takes besides is read whole: ``.npy`` of float64, other integers or in Fortran order, ``.npz``, tables of
    numbers (``.csv``, ``.tsv``, ``.txt``) and ``.parquet`` (through pyarrow). ``"x.npz::name"`` and ``"x.parquet::column"`` name one of
    several. Numbers that are wider than float32 are rounded to it.

    Parameters
    ----------
    path : str or path-like
        The file.
    first : int, default 0
        The row to begin with.
    count : int, optional
        How many rows; to the end if not given.
    dtype : dtype or str, optional
        Convert vectors on the way: float32, float16, uint8, int8, or Kith's names ``"f32"``, ``"f16"``, ``"bf16"``,
        ``"u8"``, ``"i8"``. Values are converted exactly or rounded to nearest; one that the dtype cannot hold (1e9 in
        float16, 3.5 in uint8) is an error that names its row, column and value. Numpy has no bfloat16: ``"bf16"`` gives
        its bits as uint16, ``ml_dtypes.bfloat16`` that type. By default vectors come as they are stored, and bf16 as
        float32, which holds all of its values.
    mmap : bool, default False
        Map the file instead of reading it: the array is read-only, its pages come from the disk when they are touched,
        and rows of ``.fvecs`` and ``.bvecs`` files are apart by their headers. Ids come as they are stored, int32 or
        int64. Not for compressed files, nor with another dtype than the stored one. The file must keep its length while
        the array lives: where another program cuts it short, touching the lost rows ends this process.

    Returns
    -------
    numpy.ndarray
        (rows, columns): float32, float16, uint8 or int8 for vectors, int64 for ids. The array owns the memory that was
        read into: nothing is copied.

    Raises
    ------
    OSError
        The system refused: FileNotFoundError, PermissionError, ...
    CorruptFileError
        The file does not hold what its header promises.
    ValueError
        An unknown ending, rows that the file does not have, a value that `dtype` cannot hold.
    TypeError
        A dtype that is none of these.
    NotImplementedError
        What this build or Kith lacks: gzip without zlib, a filter of an HDF5 file.

    Examples
    --------
    >>> base = kith.read_vectors("base.fbin")                       # doctest: +SKIP
    >>> part = kith.read_vectors("base.fbin", first=1000, count=10)  # doctest: +SKIP
    >>> test = kith.read_vectors("sift.hdf5::test", dtype="f16")     # doctest: +SKIP
    """
    encoded = path_bytes(path)
    begin = whole_number(first, "first")
    rows = None if count is None else whole_number(count, "count")
    name = None if dtype is None else _dtype_name(dtype)
    other = read_other(os.fsdecode(encoded))
    if other is not None:
        if flag(mmap, "mmap"):
            raise ValueError(f"{os.fspath(path)} is read whole and cannot be mapped; kith convert makes .npy or .fbin of it")
        return _part_of(other, begin, rows, name, path)
    if flag(mmap, "mmap"):
        stored = _kith.stored_dtype(encoded)
        if name is not None and name != stored:
            raise ValueError(f"{os.fspath(path)} holds {stored}; with mmap nothing is converted: read it as {name}")
        if name is None and stored == "bf16":
            raise ValueError(f"{os.fspath(path)} holds bf16, which numpy lacks; with mmap give dtype='bf16' for its bits")
        return _as_asked(_kith.map_file(encoded, begin, rows), dtype)
    return _as_asked(_kith.read_vectors(encoded, begin, rows, name), dtype)


@answers_other_names("kith.write_vectors()")
def write_vectors(path: PathLike, array: VectorsLike, *, dtype: npt.DTypeLike | None = None) -> None:
    """Write vectors, or ids, to a file.

    A temporary file is filled beside the target and put in its place at the end: what was there before stays whole
    until then, also after an error or Ctrl-C.

    Parameters
    ----------
    path : str or path-like
        The target. The ending of its name tells the format: ``.fvecs`` and ``.fbin`` (float32), ``.f16bin`` (float16),
        ``.bf16bin``, ``.bvecs`` and ``.u8bin`` (uint8), ``.i8bin`` (int8), ``.ivecs`` and ``.ibin`` (ids that fit
        int32), ``.npy`` and ``.hdf5`` (all but bf16; ids as int64). ``"x.hdf5::test"`` names the dataset, ``train`` if
        none is named; the file will hold that one alone.
    array : array_like, (rows, columns)
        float32, float16, uint8, int8 or ``ml_dtypes.bfloat16`` vectors, or ids of any integer type. float64 is refused:
        rounding it is your decision, made with ``array.astype(numpy.float32)``.
    dtype : dtype or str, optional
        Convert vectors on the way, as `read_vectors` does. With ``"bf16"`` a uint16 array is taken for the bits.

    Raises
    ------
    OSError
        The system refused: no space left, no permission, ...
    TypeError
        A dtype that no format holds.
    ValueError
        An unknown ending, a dtype that this format does not hold, an id that is too large, a value that `dtype` cannot
        hold.

    Examples
    --------
    >>> kith.write_vectors("base.fbin", np.zeros((1000, 128), np.float32))  # doctest: +SKIP
    """
    target = path_bytes(path)
    values = to_numpy(array, "array")
    if values.ndim != 2:
        raise ValueError(f"array has {values.ndim} axes (shape {values.shape}); it must be 2-D, one vector per row")
    name = None if dtype is None else _dtype_name(dtype)
    bits = is_bfloat16(values.dtype) or (values.dtype == np.uint16 and name == "bf16")
    if bits or values.dtype in DTYPE_NAMES and not (values.dtype.kind in "iu" and _kith.holds_ids(target)):
        plain = values.view(np.uint16) if bits else values
        _kith.write_vectors(target, plain if readable_in_place(plain) else np.array(plain, order="C"), name, bits)
    elif values.dtype.kind in "iu":
        if name is not None:
            raise TypeError(f"array is {values.dtype}, which is for ids; dtype is for vectors")
        _kith.write_ids(target, _as_int64(values))
    else:
        raise TypeError(
            f"array is {values.dtype}; files hold float32, float16, uint8, int8 or integer ids: convert it with astype"
        )


def _part_of(whole: Matrix, first: int, count: int | None, dtype: str | None, path: PathLike) -> Matrix:
    """Rows of a file that was read whole."""
    rows = len(whole)
    end = rows if count is None else first + count
    if not 0 <= first <= end <= rows:
        raise ValueError(f"rows {first} to {end} of {os.fspath(path)!r}, which has {rows}")
    if dtype is not None and dtype != DTYPE_NAMES.get(whole.dtype):
        raise ValueError(f"{os.fspath(path)!r} is read as {whole.dtype}; convert that with astype, or the file by kith convert --dtype")
    return whole if end - first == rows else whole[first:end].copy()


def _dtype_name(dtype: npt.DTypeLike) -> str:
    if isinstance(dtype, str) and dtype in ("f32", "f16", "bf16", "u8", "i8"):
        return dtype
    given = np.dtype(dtype)
    if is_bfloat16(given):
        return "bf16"
    name = DTYPE_NAMES.get(given)
    if name is None:
        raise TypeError(f"dtype is {given}; vectors are float32, float16, uint8, int8 or 'bf16'")
    return name


def _as_asked(array: Matrix, dtype: npt.DTypeLike | None) -> Matrix:
    if dtype is not None and not isinstance(dtype, str) and is_bfloat16(np.dtype(dtype)):
        return array.view(dtype)
    return array.view(np.int64) if array.dtype == np.int64 else array  # numpy's usual name for these eight bytes


def _as_int64(values: Matrix) -> npt.NDArray[np.int64]:
    if values.dtype == np.uint64 and values.size > 0 and values.max() > np.iinfo(np.int64).max:
        raise ValueError(f"array holds the id {values.max()}; ids are int64")
    return np.ascontiguousarray(values, dtype=np.int64)
