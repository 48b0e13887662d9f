"""Vectors that are read piece by piece: patterns and lists of files, sliced rows, Parquet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kith

Rows = np.ndarray[Any, np.dtype[np.float32]]


@pytest.fixture
def rows() -> Rows:
    return np.random.default_rng(3).standard_normal((800, 8)).astype(np.float32)


@pytest.fixture
def folder(tmp_path: Path, rows: Rows) -> Path:
    for number, (first, end) in enumerate([(0, 200), (200, 200), (200, 201), (201, 800)]):
        np.save(tmp_path / f"part-{number}.npy", rows[first:end])
    return tmp_path


class Sliced:
    """What h5py and zarr have: a shape, a dtype and slices; it counts what was asked for."""

    def __init__(self, rows: Any) -> None:
        self._rows, self.shape, self.dtype, self.most = rows, rows.shape, rows.dtype, 0

    def __getitem__(self, part: slice) -> Any:
        self.most = max(self.most, part.stop - part.start)
        return self._rows[part]


def h5py_dataset(folder: Path, rows: Rows) -> Any:
    h5py = pytest.importorskip("h5py")
    return h5py.File(folder / "rows.h5", "w").create_dataset("x", data=rows, chunks=(64, 8))


def zarr_array(folder: Path, rows: Rows) -> Any:
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(str(folder / "rows.zarr"), shape=rows.shape, chunks=(64, 8), dtype="f4")
    array[:] = rows
    return array


def parquet_files(folder: Path, rows: Rows) -> Any:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    for number, (first, end) in enumerate([(0, 350), (350, 800)]):
        lists = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(rows[first:end].ravel()), 8)
        table = pyarrow.table({"id": pyarrow.array(range(end - first)), "vectors": lists})
        parquet.write_table(table, folder / f"rows-{number}.parquet", row_group_size=100)
    return str(folder / "rows-*.parquet")


def memory_map(folder: Path, rows: Rows) -> Any:
    np.save(folder / "rows.npy", rows)
    return np.load(folder / "rows.npy", mmap_mode="r")


SOURCES: dict[str, Callable[[Path, Rows], Any]] = {
    "pattern": lambda folder, rows: str(folder / "part-*.npy"),
    "list": lambda folder, rows: sorted(folder.glob("part-*.npy")),
    "sliced": lambda folder, rows: Sliced(rows),
    "memmap": memory_map,
    "h5py": h5py_dataset,
    "zarr": zarr_array,
    "parquet": parquet_files,
}


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest, folder: Path, rows: Rows) -> Any:
    return SOURCES[request.param](folder, rows)


def test_searches_are_those_of_the_rows(source: Any, rows: Rows) -> None:
    found, truth = kith.knn(source, source, k=5), kith.knn(rows, rows, k=5)
    assert np.array_equal(found.ids, truth.ids) and np.array_equal(found.distances, truth.distances)
    near, true_near = kith.range_search(source, source, 1.5), kith.range_search(rows, rows, 1.5)
    assert np.array_equal(near.ids, true_near.ids)


def test_what_is_learnt_is_what_the_rows_teach(source: Any, rows: Rows) -> None:
    model, truth = kith.KMeans(5).fit(source), kith.KMeans(5).fit(rows)
    assert np.array_equal(model.cluster_centers_, truth.cluster_centers_)
    assert np.array_equal(model.predict(source), truth.predict(rows))
    codes = kith.ProductQuantizer(4, bits=4).train(source).encode(rows)
    assert np.array_equal(codes, kith.ProductQuantizer(4, bits=4).train(rows).encode(rows))


@pytest.mark.parametrize("kind", ["product", "scalar", "local search", "residual"])
def test_codes_of_a_source_are_those_of_the_rows(source: Any, rows: Rows, kind: str) -> None:
    made: dict[str, Callable[[], Any]] = {
        "product": lambda: kith.ProductQuantizer(4, bits=4),
        "scalar": lambda: kith.ScalarQuantizer(8),
        "local search": lambda: kith.LocalSearchQuantizer(3, bits=4, rounds=2, train_search_rounds=2, device="cpu"),
        "residual": lambda: kith.ResidualQuantizer(3, bits=4),
    }
    quantizer, truth = made[kind]().train(source), made[kind]().train(rows)
    codes = quantizer.encode(source)
    assert isinstance(codes, np.ndarray) and codes.dtype == np.uint8
    assert np.array_equal(codes, truth.encode(rows))


def test_local_search_takes_rounds_and_rows_of_files(folder: Path, rows: Rows) -> None:
    quantizer = kith.LocalSearchQuantizer(3, bits=4, rounds=2, train_search_rounds=2).train(rows)
    given: dict[str, Any] = {"rounds": 3, "first_row": 11, "seed": 4, "start": "random"}
    source = str(folder / "part-*.npy")
    assert np.array_equal(quantizer.encode(source, **given), quantizer.encode(rows, **given))
    few = {**given, "memory_limit": 400_000}
    assert np.array_equal(quantizer.encode(source, **few), quantizer.encode(rows, **given))
    with pytest.raises(ValueError, match="codes as start go with an array"):
        quantizer.encode(source, start=quantizer.encode(rows))


def test_encoding_needs_the_columns_of_the_training(folder: Path, rows: Rows) -> None:
    quantizer = kith.ScalarQuantizer(8)
    with pytest.raises(RuntimeError, match="not trained"):
        quantizer.encode(str(folder / "part-*.npy"))
    quantizer.train(rows[:, :5])
    with pytest.raises(ValueError, match="holds rows of 8 columns"):
        quantizer.encode(str(folder / "part-*.npy"))


def test_an_index_of_a_source(source: Any, rows: Rows) -> None:
    index, truth = kith.Index("IVF4,PQ4x4"), kith.Index("IVF4,PQ4x4")
    index.train(source)
    index.add(source)
    truth.train(rows)
    truth.add(rows)
    assert np.array_equal(index.search(rows[:20], 3).ids, truth.search(rows[:20], 3).ids)


def test_the_graph_of_a_source(source: Any, rows: Rows) -> None:
    graph, truth = kith.knn_graph(source, k=5), kith.knn_graph(rows, k=5)
    assert np.array_equal(graph.ids, truth.ids) and np.array_equal(graph.distances, truth.distances)
    assert isinstance(graph.ids, np.ndarray)


def test_sliced_rows_are_read_by_pieces(rows: Rows) -> None:
    many = np.tile(rows, (50, 1))
    source = Sliced(many)
    found = kith.knn(rows, source, k=3, memory_limit=400_000)
    assert np.array_equal(found.ids, kith.knn(rows, many, k=3).ids)
    assert 0 < source.most < len(many)


def test_float64_slices_are_an_array(rows: Rows) -> None:
    wide = Sliced(rows.astype(np.float64))
    with pytest.raises(ValueError):  # it has no __array__, and rows in float64 are not read by pieces
        kith.KMeans(5).fit(wide)


def test_what_the_object_raises_is_told_with_its_rows(rows: Rows) -> None:
    class Broken(Sliced):
        def __getitem__(self, part: slice) -> Any:
            if part.stop > 300:
                raise RuntimeError("the store is gone")
            return super().__getitem__(part)

    with pytest.raises(OSError, match="of a .* Broken: RuntimeError: the store is gone"):
        kith.KMeans(5).fit(Broken(rows))
    short = Sliced(rows[:10])
    short.shape = (800, 8)
    with pytest.raises(OSError, match="it gave"):
        kith.KMeans(5).fit(short)


def test_what_ends_the_program_is_no_error_of_the_file(rows: Rows) -> None:
    class Interrupted(Sliced):
        def __getitem__(self, part: slice) -> Any:
            if part.stop > 300:
                raise KeyboardInterrupt
            return super().__getitem__(part)

    with pytest.raises(KeyboardInterrupt):
        kith.KMeans(5).fit(Interrupted(rows))
    with pytest.raises(KeyboardInterrupt):
        kith.knn(rows[:3], Interrupted(rows), k=2)


def test_errors_name_the_file_and_the_row_in_it(folder: Path, rows: Rows) -> None:
    bad = rows[201:].copy()
    bad[17, 3] = np.nan
    np.save(folder / "part-3.npy", bad)
    for work in (
        lambda x: kith.knn(x, x, k=3),
        lambda x: kith.KMeans(3).fit(x),
        lambda x: kith.knn_graph(x, k=3),
        lambda x: kith.Index("Flat").add(x),
        lambda x: kith.ScalarQuantizer(8).train(rows).encode(x),
    ):
        with pytest.raises(ValueError, match=r"row 218 \(row 17 of '.*part-3.npy'\)"):
            work(str(folder / "part-*.npy"))


def test_files_that_differ_and_patterns_without_files(folder: Path, rows: Rows) -> None:
    np.save(folder / "part-9.npy", rows[:4, :5])
    with pytest.raises(ValueError, match="part-9.npy' holds 4 x 5 f32"):
        kith.KMeans(3).fit(str(folder / "part-*.npy"))
    with pytest.raises(OSError, match="no file matches"):
        kith.KMeans(3).fit(str(folder / "none-*.npy"))
    with pytest.raises(TypeError, match="two paths"):
        kith.knn(rows, str(folder / "part-*.npy"), k=3)


def test_parquet_columns(folder: Path, rows: Rows) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    one = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(rows.ravel()), 8)
    two = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(rows[:, :4].ravel()), 4)
    parquet.write_table(pyarrow.table({"a": one, "b": two}), folder / "two.parquet")
    with pytest.raises(ValueError, match="several columns of vectors"):
        kith.KMeans(3).fit(str(folder / "two.parquet"))
    named = kith.KMeans(3).fit(str(folder / "two.parquet") + "::b")
    assert np.array_equal(named.cluster_centers_, kith.KMeans(3).fit(np.ascontiguousarray(rows[:, :4])).cluster_centers_)
    with pytest.raises(ValueError, match="has not column 'c'"):
        kith.KMeans(3).fit(str(folder / "two.parquet") + "::c")


def test_parquet_as_pandas_writes_it(tmp_path, rng):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    x = rng.standard_normal((500, 6))
    frame = pandas.DataFrame({"id": range(500), "v": list(x), "tags": [[i, i + 1] for i in range(500)]})
    frame.to_parquet(tmp_path / "x.parquet", row_group_size=100)
    found = kith.knn(str(tmp_path / "x.parquet"), str(tmp_path / "x.parquet"), k=3)
    narrow = x.astype(np.float32)
    assert (found.ids == kith.knn(narrow, narrow, k=3).ids).all()
    whole = str(tmp_path / "x.parquet::tags")  # whole numbers, where they are asked for
    assert (kith.knn(whole, whole, k=1).distances == 0).all()


def test_parquet_lists_that_are_no_vectors(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    def written(values, kind=None):
        path = tmp_path / "x.parquet"
        parquet.write_table(arrow.table({"v": arrow.array(values, kind)}), path)
        return str(path)

    for values, says in (
        ([[1.0, 2.0], [3.0]], "1 numbers in row 1 of row group 0, and 2 in the first"),
        ([[1.0, 2.0], None], "missing values"),
        ([[1.0, None]], "missing values"),
        ([[1.0, 1e300]], "beyond float32"),
        ([[]], "no first vector"),
    ):
        path = written(values, arrow.list_(arrow.float64()))
        with pytest.raises((ValueError, OSError), match=says):
            kith.knn(path, path, k=1)
    path = written(["a", "b"])
    with pytest.raises(ValueError, match=r"a column of lists of numbers; it has v \(string\)"):
        kith.knn(path, path, k=1)
