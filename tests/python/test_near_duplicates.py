"""kith.near_duplicates: groups, what is kept, and that the graph finds what all pairs would."""

from __future__ import annotations

import numpy as np
import pytest

import kith


def test_planted_copies_are_found(rng):
    x = rng.standard_normal((3000, 16), dtype=np.float32)
    copies = rng.choice(3000, 300, replace=False)
    both = np.concatenate([x, x[copies] + np.float32(0.001)])
    for exact in (False, True):
        found = kith.near_duplicates(both, radius=0.05, exact=exact)
        assert len(found) == 300 and found.keep.tolist() == list(range(3000))
        assert found.dropped.tolist() == list(range(3000, 3300))
        np.testing.assert_array_equal(found.labels[3000:], found.labels[copies])
        assert sorted(group.tolist() for group in found.groups()) == sorted([int(c), 3000 + i] for i, c in enumerate(copies))


def test_groups_come_largest_first():
    found = kith.near_duplicates(np.array([[0], [5], [0.1], [5.1], [9], [5.2]], np.float32), 0.15)
    assert [group.tolist() for group in found.groups()] == [[1, 3, 5], [0, 2]]
    assert repr(found) == "kith.NearDuplicates(rows=6, groups=2, keep=3)"


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.uint8, np.int8])
@pytest.mark.parametrize("metric", ["l2", "cosine", "linf"])
def test_every_dtype_and_metric(rng, dtype, metric):
    x = rng.integers(0, 100, (200, 4)).astype(dtype)
    x[150:] = x[:50]
    found = kith.near_duplicates(x, 0, metric, exact=True)
    assert (found.labels[150:] == found.labels[:50]).all()


def test_nothing_depends_on_threads_or_limits(rng):
    x = rng.standard_normal((500, 8), dtype=np.float32)
    whole = kith.near_duplicates(x, 1.5).labels
    assert (kith.near_duplicates(x, 1.5, threads=1).labels == whole).all()
    assert (kith.near_duplicates(x, 1.5, memory_limit="64M").labels == whole).all()
    with pytest.raises(MemoryError, match="not enough memory|limit"):
        kith.near_duplicates(x, 1.5, memory_limit=1000)


def test_what_is_refused():
    x = np.eye(3, dtype=np.float32)
    with pytest.raises(ValueError, match="inner_product is no distance"):
        kith.near_duplicates(x, 1, "inner_product")
    with pytest.raises(ValueError, match="radius"):
        kith.near_duplicates(x, -1)
    with pytest.raises(TypeError, match="Kith's way is radius"):
        kith.near_duplicates(x, 1, threshold=1)
    with pytest.raises(ValueError, match="NaN|nan|finite"):
        kith.near_duplicates(x * np.nan, 1)
