"""out=: results in the caller's arrays."""

from __future__ import annotations

import numpy as np
import pytest

import kith


def arrays(*shape):
    return np.empty(shape, np.int64), np.empty(shape, np.float32)


def searches(base):
    index = kith.Index()
    index.add(base)
    return [lambda q, **given: kith.knn(q, base, k=4, **given), lambda q, **given: index.search(q, k=4, **given)]


def test_filled_and_returned(vectors):
    queries, base = vectors(3, 5), vectors(60, 5)
    for search in searches(base):
        out = arrays(3, 4)
        found = search(queries, out=out)
        true = search(queries)
        assert found.ids is out[0] and found.distances is out[1]
        assert (found.ids == true.ids).all() and (found.distances == true.distances).all()


def test_one_query(vectors):
    query, base = vectors(1, 5)[0], vectors(60, 5)
    for search in searches(base):
        out = arrays(4)
        assert search(query, out=out).ids is out[0]
        assert (out[0] == search(query).ids).all()


def test_no_queries(vectors):
    out = arrays(0, 4)
    assert kith.knn(np.empty((0, 5), np.float32), vectors(9, 5), k=4, out=out).ids is out[0]


def read_only(array):
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "out, error, says",
    [
        (arrays(3, 5), ValueError, "3 x 5"),
        (arrays(2, 4), ValueError, "2 x 4"),
        (arrays(4), ValueError, "shape"),
        ((np.empty((3, 4), np.int32), np.empty((3, 4), np.float32)), TypeError, "int64"),
        ((np.empty((3, 4), np.int64), np.empty((3, 4), np.float64)), TypeError, "float32"),
        ((np.empty((3, 8), np.int64)[:, ::2], np.empty((3, 4), np.float32)), ValueError, "contiguous"),
        ((read_only(np.empty((3, 4), np.int64)), np.empty((3, 4), np.float32)), ValueError, "writable"),
        ((np.empty((3, 4), np.int64), read_only(np.empty((3, 4), np.float32))), ValueError, "writable"),
        (np.empty((3, 4), np.int64), TypeError, "tuple"),
        ((np.empty((3, 4), np.int64),), TypeError, "tuple"),
        (([0], [0.0]), TypeError, "list"),
    ],
)
def test_refused(out, error, says, vectors):
    for search in searches(vectors(60, 5)):
        with pytest.raises(error, match=says):
            search(vectors(3, 5), out=out)


def test_may_not_lie_in_the_vectors(vectors):
    queries, base = vectors(3, 4), vectors(60, 4)
    ids, distances = arrays(3, 4)
    with pytest.raises(ValueError, match="share"):
        kith.knn(queries, base, k=4, out=(ids, queries))
    with pytest.raises(ValueError, match="share"):
        kith.knn(queries, base, k=4, out=(ids, base[:3]))
    with pytest.raises(ValueError, match="share"):
        kith.knn(queries, base, k=4, out=(ids, ids.view(np.float32).reshape(-1)[:12].reshape(3, 4)))


def test_may_not_lie_in_what_an_index_borrowed(vectors):
    queries, base, whole = vectors(3, 4), vectors(60, 4), vectors(70, 4)
    index = kith.Index(prepare=False)
    index.add(whole[:60], copy=False)
    index.add(base)
    ids, _ = arrays(3, 4)
    with pytest.raises(ValueError, match="share"):
        index.search(queries, k=4, out=(ids, whole[3:6]))
    index.search(queries, k=4, out=(ids, whole[60:63]))
    index.search(queries, k=4, out=(ids, base[:3]))  # a copy was added: nothing is read there
