"""Indexes in files that are larger than memory, or stay on disk, or are several."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import kith

Rows = npt.NDArray[np.float32]


@pytest.fixture(scope="module")
def rows() -> Rows:
    return np.random.default_rng(3).standard_normal((20_000, 16), dtype=np.float32)


@pytest.fixture
def trained(rows: Rows) -> kith.Index:
    index = kith.Index("IVF32,SQ8", device="cpu")
    index.train(rows[:4000])
    return index


def same(a: Any, b: Any) -> bool:
    return bool(np.array_equal(a.ids, b.ids) and np.array_equal(a.distances, b.distances))


def test_a_file_under_a_limit_has_the_bytes_of_one_without(tmp_path: Path, rows: Rows, trained: kith.Index) -> None:
    for number, (first, end) in enumerate([(0, 9_000), (9_000, 20_000)]):
        np.save(tmp_path / f"part-{number}.npy", rows[first:end])
    whole = trained.to("cpu")
    whole.add(rows)
    whole.save(tmp_path / "whole.kith")
    source = str(tmp_path / "part-*.npy")
    trained.save_added(tmp_path / "limited.kith", source, memory_limit=8_000_000)
    assert (tmp_path / "limited.kith").read_bytes() == (tmp_path / "whole.kith").read_bytes()
    assert len(trained) == 0
    with pytest.raises(MemoryError):
        trained.save_added(tmp_path / "limited.kith", source, memory_limit=50_000)
    with pytest.raises(TypeError, match="is an array"):
        trained.save_added(tmp_path / "limited.kith", rows)  # type: ignore[arg-type]
    work = tmp_path / "work"
    for limit in (8_000_000, None):
        trained.save_added(tmp_path / "steps.kith", source, work=work, keep_work=limit is not None, memory_limit=limit)
        assert (tmp_path / "steps.kith").read_bytes() == (tmp_path / "whole.kith").read_bytes()
        assert any(work.iterdir()) == (limit is not None)
    with pytest.raises(ValueError, match="keep_work goes with work"):
        trained.save_added(tmp_path / "steps.kith", source, keep_work=True)
    assert not list(tmp_path.glob(".kith*"))


def test_the_training_is_a_step(tmp_path: Path, rows: Rows) -> None:
    np.save(tmp_path / "x.npy", rows)
    index = kith.Index("IVF16,PQ4", device="cpu")
    index.save_added(tmp_path / "steps.kith", tmp_path / "x.npy", work=tmp_path / "work", train=tmp_path / "x.npy")
    assert not index.trained
    index.train(tmp_path / "x.npy")
    index.add(tmp_path / "x.npy")
    index.save(tmp_path / "whole.kith")
    assert (tmp_path / "steps.kith").read_bytes() == (tmp_path / "whole.kith").read_bytes()
    with pytest.raises(TypeError, match="train is an array"):
        index.save_added(tmp_path / "steps.kith", tmp_path / "x.npy", train=rows)  # type: ignore[arg-type]


def test_searches_on_disk(tmp_path: Path, rows: Rows, trained: kith.Index) -> None:
    trained.add(rows)
    path = tmp_path / "x.kith"
    trained.save(path)
    options: list[dict[str, Any]] = [{"mmap": True}, {"lists": "disk"}, {"mmap": True, "verify": True}]
    for given in options:
        index = kith.load(path, device="cpu", **given)
        assert same(index.search(rows[:30], k=5, probes=4), trained.search(rows[:30], k=5, probes=4))
        assert same(index.search(rows[3], k=5), trained.search(rows[3], k=5))
        for change in (lambda: index.add(rows), lambda: index.remove([3]), lambda: index.train(rows)):
            with pytest.raises(RuntimeError, match="save_added"):
                change()
        index.save(tmp_path / "again.kith")
        assert (tmp_path / "again.kith").read_bytes() == path.read_bytes()
    with pytest.raises(ValueError, match="'host' or 'disk'"):
        kith.load(path, lists="ssd")  # type: ignore[arg-type]


def test_several_files_are_one_index(tmp_path: Path, rows: Rows, trained: kith.Index) -> None:
    whole, paths = trained.to("cpu"), []
    for number, (first, end) in enumerate([(0, 5_000), (5_000, 20_000)]):
        shard = trained.to("cpu")
        shard.add(rows[first:end])
        paths.append(tmp_path / f"shard-{number}.kith")
        shard.save(paths[-1])
        whole.merge(shard, shift_ids=True)
    whole.save(tmp_path / "whole.kith")
    for mmap in (False, True):
        for given in (str(tmp_path / "shard-*.kith"), paths):
            index = kith.load(given, device="cpu", mmap=mmap)
            assert len(index) == 20_000
            assert same(index.search(rows[:50], k=300, probes=1), whole.search(rows[:50], k=300, probes=1))
    kith.merge_files(paths, tmp_path / "merged.kith", shift_ids=True, memory_limit=4_000_000)
    assert (tmp_path / "merged.kith").read_bytes() == (tmp_path / "whole.kith").read_bytes()
    with pytest.raises(ValueError, match="shift_ids"):
        kith.merge_files(paths, tmp_path / "merged.kith")
    with pytest.raises(OSError, match="no file matches"):
        kith.load(str(tmp_path / "nothing-*.kith"))


def test_files_that_changed_since_they_were_loaded(tmp_path: Path, rows: Rows, trained: kith.Index) -> None:
    trained.add(rows[:5000])
    path = tmp_path / "x.kith"
    trained.save(path)
    np.save(tmp_path / "more.npy", rows[5000:6000])
    index = kith.load(path, device="cpu", mmap=True)
    index.save_added(path, tmp_path / "more.npy")
    once = path.read_bytes()
    with pytest.raises(RuntimeError, match="changed since it was loaded"):
        index.save_added(path, tmp_path / "more.npy")
    assert path.read_bytes() == once and len(kith.load(path)) == 6000


def test_indexes_without_vectors(tmp_path: Path, rows: Rows) -> None:
    empty, a, b = (tmp_path / f"{name}.kith" for name in ("empty", "a", "b"))
    kith.Index("Flat", device="cpu").save(empty)
    kith.load(empty, device="cpu", mmap=True).save(tmp_path / "again.kith")
    assert len(kith.load(tmp_path / "again.kith")) == 0
    for path, dtype in ((a, np.uint8), (b, np.int8)):
        index = kith.Index("Flat", device="cpu")
        index.add(np.arange(96, dtype=dtype).reshape(12, 8))
        index.save(path)
    with pytest.raises(ValueError, match="u8, the other of 8 of i8"):
        kith.load([empty, a, b], device="cpu", mmap=True)
    with pytest.raises(ValueError, match="u8, the other of 8 of i8"):
        kith.merge_files([empty, a, b], tmp_path / "all.kith", shift_ids=True)
    assert len(kith.load([empty, a], device="cpu", mmap=True)) == 12


def test_a_row_that_is_there_twice(tmp_path: Path, rows: Rows, trained: kith.Index) -> None:
    """A mapped file is not hashed at first: what filters find in it is counted."""
    trained.add(rows[:4000])
    path = tmp_path / "x.kith"
    trained.save(path)
    words = np.frombuffer(path.read_bytes()[: path.stat().st_size // 4 * 4], np.uint32).copy()
    begin = next(at for at in range(0, len(words) - 4000, 16) if np.array_equal(np.sort(words[at : at + 4000]), np.arange(4000)))
    listed = words[begin : begin + 4000]
    at = next(i for i in range(3999) if listed[i + 1] > listed[i] + 1)
    lost, twice = int(listed[at]), int(listed[at]) + 1
    listed[at] = twice
    damaged = bytearray(path.read_bytes())
    damaged[begin * 4 : (begin + 4000) * 4] = listed.tobytes()
    path.write_bytes(damaged)
    for row in (lost, twice):
        with pytest.raises(kith.CorruptFileError, match="twice, or not at all"):
            kith.load(path, device="cpu", mmap=True).search(rows[:2], k=1, probes=32, filter=[row])
    with pytest.raises(kith.CorruptFileError):
        kith.load(path)
