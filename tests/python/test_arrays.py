"""Which arrays are taken as they lie, which are converted, which are refused."""

from __future__ import annotations

import ctypes
import gc
import tracemalloc
import weakref

import numpy as np
import pytest

import kith
from kith._arrays import as_queries, as_vectors


class Foreign:
    """An array of another library: DLPack and nothing else."""

    def __init__(self, array, device=(1, 0)):
        self.array, self.device = array, device

    def __dlpack__(self, **arguments):
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.device


class Sparse:
    """What tells a sparse matrix from a dense one."""

    shape = (2, 3)

    def tocsr(self):
        return self


def in_place(rows, cols, dtype):
    whole = (np.arange(3 * rows * cols) % 101).astype(dtype).reshape(rows, 3 * cols)
    yield "contiguous", np.ascontiguousarray(whole[:, :cols])
    yield "rows apart", whole[:, cols : 2 * cols]
    yield "every other row", np.ascontiguousarray(whole[:, :cols])[::2]
    locked = np.ascontiguousarray(whole[:, :cols])
    locked.flags.writeable = False
    yield "read-only", locked


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.uint8, np.int8])
def test_taken_as_they_lie(dtype):
    for name, array in in_place(6, 5, dtype):
        taken, copied = as_vectors(array, "x")
        assert taken is array and not copied, name


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.uint8, np.int8])
def test_no_copy_on_the_way_to_the_library(dtype):
    """tracemalloc sees numpy's memory, so a copy in Python or in the bindings would show."""
    for name, base in in_place(20000, 64, dtype):
        kith.knn(base[:2], base, k=3)
        tracemalloc.start()
        try:
            kith.knn(base[:2], base, k=3)
            kith.knn(base[0], Foreign(base) if base.flags.writeable else base, k=3)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < base.nbytes / 8, (name, peak)


def test_what_a_copy_would_look_like_to_that_test():
    base = np.ones((20000, 64), np.int32)
    tracemalloc.start()
    try:
        kith.knn(base[:2], base, k=3)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak > base.nbytes / 4


@pytest.mark.parametrize(
    "name, make",
    [
        ("float64", lambda x: x.astype(np.float64)),
        ("long double", lambda x: x.astype(np.longdouble)),
        ("other byte order", lambda x: x.astype(">f4")),
        ("int16", lambda x: x.astype(np.int16)),
        ("uint16", lambda x: x.astype(np.uint16)),
        ("int32", lambda x: x.astype(np.int32)),
        ("uint32", lambda x: x.astype(np.uint32)),
        ("int64", lambda x: x.astype(np.int64)),
        ("uint64", lambda x: x.astype(">u8")),
        ("Fortran order", np.asfortranarray),
        ("reversed rows", lambda x: np.ascontiguousarray(x[::-1])[::-1]),
        ("reversed columns", lambda x: np.ascontiguousarray(x[:, ::-1])[:, ::-1]),
        ("every other column", lambda x: np.repeat(x, 2, axis=1)[:, ::2]),
        ("unaligned", lambda x: unaligned(x)),
        ("list", lambda x: x.tolist()),
        ("list of ints", lambda x: x.astype(int).tolist()),
        ("tuple of arrays", tuple),
        ("DLPack", Foreign),
        ("matrix", lambda x: x.view(np.matrix)),
    ],
)
@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_converted(name, make, rng):
    x = rng.integers(0, 100, (30, 5)).astype(np.float32)
    true = kith.knn(x, x, k=4)
    found = kith.knn(make(x), make(x), k=4)
    assert (found.ids == true.ids).all() and (found.distances == true.distances).all()
    alone = kith.knn(make(x[3:4])[0], x, k=4) if name not in ("DLPack", "matrix") else kith.knn(x[3], make(x), k=4)
    assert alone.ids.shape == (4,) and (alone.ids == true.ids[3]).all()


def unaligned(x):
    raw = np.empty(x.nbytes + 1, np.uint8)
    array = raw[1:].view(np.float32).reshape(x.shape)
    array[:] = x
    assert not array.flags.aligned
    return array


def test_broadcast_rows_are_copied():
    base = np.broadcast_to(np.ones(4, np.float32), (10, 4))
    assert (kith.knn(base[:1], base, k=10).distances == 0).all()


@pytest.mark.parametrize(
    "array, says",
    [
        (np.ones((2, 3), bool), "bool"),
        ([[True, False, True]], "bool"),
        (np.ones((2, 3), np.complex64), "complex"),
        (np.ones((2, 3), object), "object"),
        ([["1", "2", "3"]], "<U1"),
        (np.zeros((2, 3), "M8[s]"), "datetime"),
        (np.zeros((2, 3), [("a", "f4")]), "a"),
        (np.ma.ones((2, 3), np.float32), "masked"),
        (Sparse(), "toarray"),
        (Foreign(np.ones((2, 3), np.float32), device=(10, 0)), "GPU"),
        (Foreign(np.ones((2, 3), np.float32), device=None), "__dlpack_device__"),
        (Foreign(np.ones((2, 3), np.float32), device="cuda"), "__dlpack_device__"),
        (Foreign(np.ones((2, 3), np.float32), device=(2, "0")), "__dlpack_device__"),
        (Foreign(np.ones((2, 3), np.float32), device=(2, 2**40)), "__dlpack_device__"),
        (b"abc", "read_vectors"),
    ],
)
def test_refused(array, says):
    base = np.ones((4, 3), np.float32)
    with pytest.raises(TypeError, match=says):
        kith.knn(array, base)
    with pytest.raises(TypeError, match=says):
        kith.knn(base, array)
    with pytest.raises(TypeError, match=says):
        kith.Index().add(array)


def test_scipy_sparse():
    sparse = pytest.importorskip("scipy.sparse")
    for make in (sparse.csr_matrix, sparse.csr_array, sparse.coo_array, sparse.lil_matrix):
        with pytest.raises(TypeError, match="toarray"):
            kith.knn(make((2, 3), dtype=np.float32), np.ones((4, 3), np.float32))


def test_dlpack_that_numpy_cannot_take():
    class Bfloat16:
        def __dlpack__(self, **arguments):
            raise BufferError("bfloat16 is not supported")

        def __dlpack_device__(self):
            return (1, 0)

    with pytest.raises(TypeError, match="Bfloat16.*bfloat16 is not supported"):
        kith.knn(Bfloat16(), np.ones((4, 3), np.float32))


def test_dlpack_is_not_copied():
    x = np.ones((5, 3), np.float32)
    taken, copied = as_vectors(Foreign(x), "x")
    assert np.shares_memory(taken, x) and not copied


class ForeignBfloat16(Foreign):
    """What torch and jax give for bfloat16: the same memory under a dtype that numpy does not know."""

    def __dlpack__(self, **arguments):
        if arguments.get("max_version"):  # numpy, which would refuse the dtype
            raise BufferError("bfloat16 is not supported")
        capsule = self.array.view(np.uint16).__dlpack__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        # DLTensor: data (8 bytes), device (8), ndim (4), then the dtype's code; 4 is bfloat16.
        ctypes.c_uint8.from_address(pointer(capsule, b"dltensor") + 20).value = 4
        return capsule


def test_float8_is_not_among_what_is_converted():
    x = np.ones((2, 3), pytest.importorskip("ml_dtypes").float8_e4m3fn)
    with pytest.raises(TypeError, match="queries is float8_e4m3fn; .* converts float64, longdouble and other integers"):
        kith.knn(x, x.astype(np.float32))
    assert kith.knn(x.astype(np.float32), x.astype(np.longdouble), k=1).distances.max() == 0


@pytest.mark.parametrize("make", [lambda x: x, ForeignBfloat16], ids=["ml_dtypes", "DLPack"])
def test_bfloat16(make, vectors):
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    x = vectors(40, 6).astype(bfloat16)
    taken, copied = as_vectors(make(x), "x")
    assert taken.dtype == np.uint16 and np.shares_memory(taken, x) and not copied
    wide = x.astype(np.float32)
    true, found = kith.knn(wide, wide, k=4), kith.knn(make(x), make(x), k=4)
    assert (found.ids == true.ids).all() and (found.distances == true.distances).all()
    index = kith.Index(prepare=False)
    index.add(make(x), copy=False)
    assert (index.search(make(x), k=4).ids == true.ids).all()


def test_bfloat16_in_columns_is_copied(vectors):
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    x = np.asfortranarray(vectors(40, 6).astype(bfloat16))
    assert as_vectors(x, "x")[1]
    wide = x.astype(np.float32)
    assert (kith.knn(x, x, k=4).ids == kith.knn(wide, wide, k=4).ids).all()


def test_bfloat16_that_was_let_go(vectors):
    """The bits keep the array alive through DLPack."""
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    x = vectors(400, 60).astype(bfloat16)
    index, first = kith.Index(prepare=False), x[:3].copy()
    index.add(ForeignBfloat16(x), copy=False)
    alive = weakref.ref(x)
    del x
    gc.collect()
    assert alive() is not None and (index.search(first, k=1).ids[:, 0] == np.arange(3)).all()
    del index
    gc.collect()
    assert alive() is None


def test_none():
    for call in (lambda: kith.knn(None, np.ones((4, 2), np.float32)), lambda: kith.Index().add(None)):
        with pytest.raises(TypeError, match="is None; it must be an array"):
            call()


def test_ragged_list():
    with pytest.raises(ValueError, match="queries is no matrix, its rows have different lengths"):
        kith.knn([[1.0, 2.0], [3.0]], np.ones((4, 2), np.float32))


@pytest.mark.parametrize("shape, single", [((4,), True), ((1, 4), False)])
def test_single_query_is_known_by_its_axes(shape, single):
    matrix, alone = as_queries(np.ones(shape, np.float32))
    assert matrix.shape == (1, 4) and alone is single


def test_an_index_given_as_vectors_is_called_by_its_name():
    x = np.ones((5, 3), np.float32)
    index = kith.Index()
    index.add(x)
    for call in (lambda: kith.knn(x, index), lambda: kith.knn_graph(index), lambda: index.add(index)):
        with pytest.raises(TypeError, match=r"is a kith\.Index, not an array of vectors; it is searched with"):
            call()


def test_vectors_of_merged_and_extended_graphs_have_their_names(tmp_path):
    x = np.random.default_rng(1).standard_normal((30, 3)).astype(np.float32)
    graph = kith.knn_graph(x, 4)
    with pytest.raises(ValueError, match="^x2 names a file: give out"):
        kith.merge_graphs(graph, x, graph, "x.fbin")
    with pytest.raises(ValueError, match="^new names a file: give out"):
        kith.extend_graph(graph, x, tmp_path / "new.kith")
    with pytest.raises(ValueError, match="^x2 has 0 axes"):
        kith.merge_graphs(graph, x, graph, {})
