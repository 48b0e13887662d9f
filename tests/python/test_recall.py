"""kith.recall, by hand and beside a search."""

from __future__ import annotations

import numpy as np
import pytest

import kith


def test_by_hand():
    found, truth = [[0, 1, 2], [5, 9, -1]], [[2, 1, 7, 8], [5, 6, 7, 8]]
    assert kith.recall(found, truth) == 3 / 6
    assert kith.recall(found, truth, k=1) == 1 / 2
    assert kith.recall(np.array(found, np.int32), np.array(truth, np.uint8), k=2) == 2 / 4


def test_of_searches(vectors):
    x, q = vectors(2000, 16), vectors(50, 16)
    true = kith.knn(q, x, k=10)
    index = kith.Index("IVF16,SQ4")
    index.train(x)
    index.add(x)
    few, all_lists = (kith.recall(index.search(q, k=10, probes=probes), true) for probes in (1, 16))
    by_hand = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(index.search(q, k=10, probes=1).ids, true.ids)])
    assert few == pytest.approx(by_hand) and 0 < few < all_lists < 1
    assert kith.recall(kith.knn_graph(x, k=5), kith.knn_graph(x, k=5)) == 1.0


@pytest.mark.parametrize(
    "found, truth, k, error, says",
    [
        ([[1, 2]], [[1, 2], [3, 4]], None, ValueError, "found ids have 1 rows and true ids 2"),
        ([[1, 2]], [[1, 2]], 3, ValueError, "k = 3; allowed are 1 to 2"),
        ([[1, 2]], [[1, -1]], None, ValueError, "row 0 of the true ids holds 1"),
        ([[1, 2]], [[1, 1]], None, ValueError, "holds 1 twice"),
        ([1, 2], [[1, 2]], None, ValueError, "found has 1 axes"),
        ([[1.0]], [[1]], None, TypeError, "found is float64"),
        ([[1]], [[1]], 1.5, TypeError, "k is a float"),
    ],
)
def test_what_is_refused(found, truth, k, error, says):
    with pytest.raises(error, match=says):
        kith.recall(found, truth, k=k)
