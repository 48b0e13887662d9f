"""kith.pairwise_distances, beside numpy and scipy."""

from __future__ import annotations

import numpy as np
import pytest

import kith
from kith import _kith
from conftest import METRICS, distances_of


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.uint8])
def test_every_distance(metric, dtype, vectors_for):
    x, y = vectors_for(metric, 23, 17, dtype), vectors_for(metric, 41, 17, dtype)
    found = kith.pairwise_distances(x, y, metric)
    assert found.dtype == np.float32 and found.shape == (23, 41) and found.flags.writeable
    np.testing.assert_allclose(found, distances_of(x, y, metric), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("metric", METRICS)
def test_those_of_knn(metric, vectors_for):
    x, y = vectors_for(metric, 5, 17), vectors_for(metric, 41, 17)
    nearest = kith.knn(x, y, k=41, metric=metric)
    found = np.take_along_axis(kith.pairwise_distances(x, y, metric), nearest.ids, axis=1)
    assert found.tobytes() == nearest.distances.tobytes()


@pytest.mark.parametrize(
    "metric, theirs",
    [("l2", "euclidean"), ("sqeuclidean", "sqeuclidean"), ("cosine", "cosine"), ("l1", "cityblock"), ("linf", "chebyshev")],
)
def test_scipy(metric, theirs, vectors):
    cdist = pytest.importorskip("scipy.spatial.distance").cdist
    x, y = vectors(23, 17), vectors(41, 17)
    np.testing.assert_allclose(kith.pairwise_distances(x, y, metric), cdist(x, y, theirs), rtol=1e-6, atol=1e-7)


def test_of_one_set(vectors):
    x = vectors(30, 5)
    found = kith.pairwise_distances(x)
    assert (found == found.T).all() and (found.diagonal() == 0).all()
    assert (found == kith.pairwise_distances(x, x.copy(), threads=1)).all()


def test_plain_arrays_take_a_short_way_to_the_same_result(vectors, monkeypatch):
    x = vectors(40, 7)
    others = {
        "f32": (x[:5], x),
        "f16": (x[:5].astype(np.float16), x.astype(np.float16)),
        "mixed": (vectors(5, 7, np.uint8), x),
        "rows apart": (x[:10:2], vectors(40, 20)[:, 3:10]),
        "none": (x[:0], x),
        "one set": (x, None),
    }
    for name, (rows, columns) in others.items():
        assert _kith.pairwise_distances_plain(rows, rows if columns is None else columns, "l2", "cpu", 1) is not None, name
        short = kith.pairwise_distances(rows, columns, device="cpu")
        with monkeypatch.context() as patch:
            patch.setattr(_kith, "pairwise_distances_plain", lambda *_: None)
            long = kith.pairwise_distances(rows, columns, device="cpu")
        assert short.dtype == long.dtype and short.shape == long.shape and short.tobytes() == long.tobytes(), name


def test_what_is_not_plain_takes_the_long_way(vectors):
    x = vectors(40, 8)
    for other in (x.astype(np.int64), x[:, ::2], x[::-1], x.tolist(), x[0], x.reshape(1, 40, 8)):
        assert _kith.pairwise_distances_plain(other, x, "l2", "cpu", 1) is None
        assert _kith.pairwise_distances_plain(x, other, "l2", "cpu", 1) is None
    for metric, device, threads in ((b"l2", "cpu", 1), ("l2", None, 1), ("l2", "cpu", 1.0), ("l2", "cpu", -1)):
        assert _kith.pairwise_distances_plain(x, x, metric, device, threads) is None
    many = np.zeros((_kith.MOST_NUMPY_BYTES // 4 // 40 + 1, 8), np.float32)
    assert _kith.pairwise_distances_plain(many, x, "l2", "cpu", 1) is None  # much to write: Kith's own memory


@pytest.mark.parametrize("queries", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
@pytest.mark.parametrize("metric", ["l2", "inner_product", "cosine", "l1", "linf", "chi_square"])
def test_few_rows_as_many(queries, dtype, metric, vectors_for):
    for cols in (1, 2, 3, 7, 8, 9, 15, 16, 17, 21, 33, 40):
        x, y = vectors_for(metric, 12, cols, dtype), vectors_for(metric, 30, cols, dtype)
        found = kith.pairwise_distances(x[:queries], y, metric, device="cpu")  # row by row, and all in blocks
        assert found.tobytes() == kith.pairwise_distances(x, y, metric, device="cpu")[:queries].tobytes(), cols


def test_empty(vectors):
    x = vectors(3, 5)
    assert kith.pairwise_distances(x[:0], x).shape == (0, 3)
    assert kith.pairwise_distances(x, x[:0]).shape == (3, 0)


def test_out(vectors):
    x, y = vectors(6, 5), vectors(9, 5)
    out = np.empty((6, 9), np.float32)
    assert kith.pairwise_distances(x, y, out=out) is out
    assert (out == kith.pairwise_distances(x, y)).all()


@pytest.mark.parametrize(
    "out, error, says",
    [
        (np.empty((6, 8), np.float32), ValueError, "6 x 8"),
        (np.empty((6, 9)), TypeError, "float64"),
        (np.empty(54, np.float32), ValueError, "2-D"),
        (np.empty((9, 6), np.float32).T, ValueError, "contiguous"),
        ([[0.0]], TypeError, "list"),
    ],
)
def test_out_that_is_refused(out, error, says, vectors):
    with pytest.raises(error, match=says):
        kith.pairwise_distances(vectors(6, 5), vectors(9, 5), out=out)


def test_out_may_not_lie_in_the_vectors(vectors):
    x = vectors(5, 5)
    with pytest.raises(ValueError, match="shares"):
        kith.pairwise_distances(x, out=x)


def test_refused(vectors):
    with pytest.raises(ValueError, match="5"):
        kith.pairwise_distances(vectors(6, 5), vectors(9, 4))
    with pytest.raises(ValueError, match="metric"):
        kith.pairwise_distances(vectors(6, 5), metric="euclid")
    with pytest.raises(MemoryError):
        kith.pairwise_distances(vectors(3000, 5), memory_limit=1 << 20)


def test_hamming_names_the_argument_that_holds_no_bytes(vectors):
    x = vectors(5, 3)
    bits = np.zeros((4, 3), np.uint8)
    with pytest.raises(ValueError, match="the rows of x are f32; hamming counts"):
        kith.pairwise_distances(x, bits, "hamming")
    with pytest.raises(ValueError, match="the rows of y are f32; hamming counts"):
        kith.pairwise_distances(bits, x, "hamming")


def test_results_that_the_machine_is_asked_for_are_given() -> None:
    x = np.arange(8200, dtype=np.float32).reshape(-1, 1)
    assert 4 * len(x) ** 2 >= 256 << 20  # from there on the machine must have the memory
    distances = kith.pairwise_distances(x, x, "l1")
    assert distances[5, 8199] == 8194 and distances[8199, 0] == 8199
