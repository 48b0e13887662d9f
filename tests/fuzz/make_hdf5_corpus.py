"""Makes HDF5 files with h5py for the tests: one for each way in which a matrix is stored.

    python tests/fuzz/make_hdf5_corpus.py TESTS_FOLDER

The small ones go to fuzz/corpus/hdf5 there, as seeds for the fuzzer; those of many chunks, with which it would be slow,
to io/hdf5/many_chunks. Most hold 6 x 4 float32 values, counted from -5 along the rows, as `train`; those with more
chunks uint8 values, counted from 0.
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Callable
from typing import Any

import h5py
import numpy as np

VALUES = np.arange(-5, 19, dtype=np.float32).reshape(6, 4)
MANY = np.arange(1200, dtype=np.uint8).reshape(300, 4)
OLD, V108, LATEST = ("earliest", "v108"), ("v108", "v108"), ("v110", "latest")


def dataset(**options: Any) -> Callable[[h5py.File], None]:
    data = options.pop("data", VALUES)
    return lambda file: file.create_dataset("train", data=data, **options)


def early() -> Callable[[h5py.File], None]:
    """With its place taken at once, which lets the chunks lie without an index."""

    def make(file: h5py.File) -> None:
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_chunk((4, 3))
        properties.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        space = h5py.h5s.create_simple(VALUES.shape)
        made = h5py.h5d.create(
            file.id, b"train", h5py.h5t.IEEE_F32LE, space, properties
        )
        made.write(h5py.h5s.ALL, h5py.h5s.ALL, VALUES)

    return make


def sparse(file: h5py.File) -> None:
    """Only the second row of chunks is there; the rest is the fill value."""
    train = file.create_dataset(
        "train", VALUES.shape, "f4", chunks=(2, 4), fillvalue=7, compression="gzip"
    )
    train[2:4] = VALUES[2:4]


def links(count: int) -> Callable[[h5py.File], None]:
    def make(file: h5py.File) -> None:
        for i in range(count):
            file[f"link{i:03}"] = h5py.SoftLink("/train")
        file["train"] = VALUES

    return make


def nested(file: h5py.File) -> None:
    file["a/b/data"] = VALUES
    file["a/link"] = h5py.SoftLink("b/data")
    file["train"] = h5py.SoftLink("/a/link")
    file["circle"] = h5py.SoftLink("circle")


def ordered(file: h5py.File) -> None:
    group = file.create_group("a", track_order=True)
    group["data"] = VALUES
    file["train"] = group["data"]


def attributes(file: h5py.File) -> None:
    """So many that the object header goes on elsewhere."""
    train = file.create_dataset("train", data=VALUES)
    for i in range(12):
        train.attrs[f"attribute{i}"] = np.arange(4)


def root_attributes(count: int) -> Callable[[h5py.File], None]:
    def make(file: h5py.File) -> None:
        file["train"] = VALUES
        for i in range(count):
            file.attrs[f"attribute{i}"] = i

    return make


def of_type(stored: h5py.h5t.TypeID) -> Callable[[h5py.File], None]:
    """Values that numpy may have no type for; they are never written."""

    def make(file: h5py.File) -> None:
        h5py.h5d.create(file.id, b"train", stored, h5py.h5s.create_simple(VALUES.shape))

    return make


def bfloat16() -> h5py.h5t.TypeID:
    stored = h5py.h5t.IEEE_F16LE.copy()
    stored.set_fields(15, 7, 8, 0, 7)
    stored.set_ebias(127)
    return stored


def seven_bits() -> h5py.h5t.TypeID:
    stored = h5py.h5t.STD_U8LE.copy()
    stored.set_precision(7)
    return stored


def committed(file: h5py.File) -> None:
    file["type"] = np.dtype("f4")
    file.create_dataset("train", data=VALUES, dtype=file["type"])


def virtual(file: h5py.File) -> None:
    layout = h5py.VirtualLayout(shape=VALUES.shape, dtype="f4")
    layout[:] = h5py.VirtualSource("other.hdf5", "train", shape=VALUES.shape)
    file.create_virtual_dataset("train", layout)


def make_of_widths(
    path: pathlib.Path, versions: tuple[str, str], widths: tuple[int, int]
) -> None:
    creation = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    creation.set_sizes(*widths)
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    bounds = {
        "earliest": h5py.h5f.LIBVER_EARLIEST,
        "v108": h5py.h5f.LIBVER_V18,
        "v110": h5py.h5f.LIBVER_V110,
    }
    access.set_libver_bounds(
        *(bounds.get(version, h5py.h5f.LIBVER_LATEST) for version in versions)
    )
    with h5py.File(
        h5py.h5f.create(bytes(path), h5py.h5f.ACC_TRUNC, fcpl=creation, fapl=access)
    ) as file:
        file.create_dataset("train", data=VALUES, chunks=(4, 3))


SEEDS: dict[str, tuple[tuple[str, str], Callable[[h5py.File], None]]] = {
    "v0_shuffle": (OLD, dataset(chunks=(4, 3), compression="gzip", shuffle=True)),
    "v0_fletcher": (
        OLD,
        dataset(chunks=(4, 3), compression="gzip", shuffle=True, fletcher32=True),
    ),
    "v0_lzf": (OLD, dataset(chunks=(4, 3), compression="lzf")),
    "v0_scale_offset": (
        OLD,
        dataset(data=VALUES.astype("i4"), chunks=(4, 3), scaleoffset=0),
    ),
    "v0_many_links": (OLD, links(40)),
    "v0_sparse": (OLD, sparse),
    "v0_nested": (OLD, nested),
    "v0_ordered": (OLD, ordered),
    "v0_attributes": (OLD, attributes),
    "v0_committed": (OLD, committed),
    "v0_root_attribute": (OLD, root_attributes(1)),
    "v3_root_attributes": (LATEST, root_attributes(12)),
    "v0_bfloat16": (OLD, of_type(bfloat16())),
    "v0_seven_bits": (OLD, of_type(seven_bits())),
    "v0_u32": (OLD, of_type(h5py.h5t.STD_U32LE)),
    "v2_gzip": (V108, dataset(chunks=(4, 3), compression="gzip")),
    "v3_plain": (LATEST, dataset()),
    "v3_single_chunk": (LATEST, dataset(chunks=(6, 4))),
    "v3_single_gzip": (LATEST, dataset(chunks=(6, 4), compression="gzip")),
    "v3_implicit": (LATEST, early()),
    "v3_fixed_array": (LATEST, dataset(chunks=(4, 3))),
    "v3_fixed_gzip": (
        LATEST,
        dataset(chunks=(4, 3), compression="gzip", shuffle=True, fletcher32=True),
    ),
    "v3_extensible": (LATEST, dataset(chunks=(4, 3), maxshape=(None, 4))),
    "v3_tree": (LATEST, dataset(chunks=(4, 3), maxshape=(None, None))),
    "v3_sparse": (LATEST, sparse),
    "v3_nested": (LATEST, nested),
    "v3_many_links": (LATEST, links(20)),
    "v3_attributes": (LATEST, attributes),
    "v3_virtual": (LATEST, virtual),
    "v0_two_levels": (OLD, dataset(data=np.resize(MANY, (70, 1)), chunks=(1, 1))),
    "v3_data_block": (
        LATEST,
        dataset(data=np.resize(MANY, (70, 1)), chunks=(1, 1), maxshape=(None, 1)),
    ),
    "v3_inner_node": (
        LATEST,
        dataset(data=np.resize(MANY, (90, 1)), chunks=(1, 1), maxshape=(None, None)),
    ),
}

# Bytes of addresses and of lengths, where these are not the same.
WIDTHS: dict[str, tuple[tuple[str, str], tuple[int, int]]] = {
    "v0_offsets_8_lengths_4": (OLD, (8, 4)),
    "v0_offsets_4_lengths_8": (OLD, (4, 8)),
    "v0_offsets_2_lengths_8": (OLD, (2, 8)),
    "v3_offsets_4_lengths_2": (LATEST, (4, 2)),
}

MANY_CHUNKS: dict[str, tuple[tuple[str, str], Callable[[h5py.File], None]]] = {
    "v0_tree": (OLD, dataset(data=MANY, chunks=(1, 2))),
    "v3_fixed_pages": (LATEST, dataset(data=np.resize(MANY, (1200, 2)), chunks=(1, 2))),
    "v3_extensible": (LATEST, dataset(data=MANY, chunks=(1, 1), maxshape=(4000, None))),
    "v3_tree": (LATEST, dataset(data=MANY, chunks=(1, 1), maxshape=(None, None))),
}


def main() -> None:
    tests = pathlib.Path(sys.argv[1])
    folder = tests / "fuzz/corpus/hdf5"
    for into, files in ((folder, SEEDS), (tests / "io/hdf5/many_chunks", MANY_CHUNKS)):
        into.mkdir(parents=True, exist_ok=True)
        for name, (versions, make) in files.items():
            with h5py.File(into / name, "w", libver=versions) as file:
                make(file)
    for name, (versions, widths) in WIDTHS.items():
        make_of_widths(folder / name, versions, widths)
    # h5py cannot be asked for version 1 of the superblock: version 0 with one field more, which takes the place of what
    # the root group's entry keeps to save a look elsewhere.
    old = (folder / "v0_shuffle").read_bytes()
    (folder / "v1_shuffle").write_bytes(
        old[:8] + b"\x01" + old[9:24] + b"\x20\0\0\0" + old[24:92] + old[96:]
    )
    # One bit of the elements that a chunk has by its filter, which libhdf5 2.0.0 believes.
    crash = bytearray((folder / "v0_scale_offset").read_bytes())
    crash[crash.index(b"scaleoffset") + 26] ^= 0x80
    (folder / "crashes_libhdf5").write_bytes(crash)


if __name__ == "__main__":
    main()
