"""float64 and wide integers: what is subtracted before they become float32, and when that is warned of."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest

import kith
from conftest import distances_of
from kith import _kith

SHIFTABLE = ["l2", "sqeuclidean", "l1", "linf"]
OTHERS = ["inner_product", "cosine", "chi_square"]


@pytest.fixture(autouse=True)
def warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture
def times(rng):
    """An hour in seconds since 1970, which float32 rounds to two minutes, and places in a city, to half a metre."""
    day = 1.7e9 + rng.uniform(0, 3600, (600, 1))
    place = np.array([48.85, 2.35]) + rng.normal(0, 0.002, (600, 2))
    return np.hstack([day, place * 1e5])


@pytest.mark.parametrize("metric", SHIFTABLE)
def test_an_offset_changes_no_answer(metric, times):
    queries = times[:40] + 0.25
    true = distances_of(queries, times, metric)
    nearest = np.argsort(true, axis=1, kind="stable")[:, :5]
    found = kith.knn(queries, times, k=5, metric=metric)
    assert (found.ids == nearest).all()
    np.testing.assert_allclose(found.distances, np.take_along_axis(true, nearest, axis=1), rtol=1e-4)
    np.testing.assert_allclose(kith.pairwise_distances(queries, times, metric), true, rtol=1e-4)
    radius = float(np.median(true))
    within = kith.range_search(queries, times, radius, metric)
    assert abs(within.ids.size - np.count_nonzero(true <= radius)) <= 2
    np.fill_diagonal(true := distances_of(times, times, metric), np.inf)
    graph = kith.knn_graph(times, k=3, metric=metric)
    np.testing.assert_allclose(graph.distances, np.sort(true, axis=1)[:, :3], rtol=1e-3, atol=1e-3)


def test_without_the_offset_answers_would_change(times):
    """What the tests here would not see if they could not fail."""
    rounded = times.astype(np.float32)
    true = np.argsort(distances_of(times[:40], times, "l2"), axis=1, kind="stable")[:, :5]
    assert (kith.knn(rounded[:40], rounded, k=5).ids != true).mean() > 0.2


@pytest.mark.parametrize("make", [list, np.array], ids=["list", "array"])
def test_integers_beyond_2_to_the_24(make):
    found = kith.knn(make([[2**24 + 1]]), make([[2**24], [2**24 + 1]]), k=1)
    assert (found.ids.item(), found.distances.item()) == (1, 0)
    assert kith.knn(make([[2**24 + 1]]), make([[2**24]]), k=1).distances.item() == 1
    assert kith.knn(make([[10**15 + 3]]), make([[10**15], [10**15 + 5]]), k=2).distances.tolist() == [[2, 3]]
    index = kith.Index()
    index.add(make([[2**24]]))
    assert index.search(make([[2**24 + 1]]), k=1).distances.item() == 1


def test_integers_that_float64_cannot_hold():
    for value in (2**53 + 2, -(2**60)):
        with pytest.raises(ValueError, match=f"holds the integer {value}; float64 holds those up to 2"):
            kith.knn([[0]], [[value]])
    with pytest.raises(ValueError, match="more than 64 bits"):
        kith.knn([[0]], [[2**70]])


def test_a_number_beyond_float32():
    base = np.zeros((5, 3))
    base[3, 1] = 1e300
    with pytest.raises(ValueError, match=r"base holds 1e\+300 in row 3, column 1, which is beyond float32's range"):
        kith.knn(base[:1], base)
    with pytest.raises(ValueError, match="base holds 1e"):
        kith.knn(base[:1], base, metric="cosine")


@pytest.mark.parametrize("metric", SHIFTABLE + OTHERS)
@pytest.mark.parametrize("spread", ["normal", "uniform", "lognormal", "sparse", "whole numbers", "small", "imputed"])
def test_everyday_float64_is_as_float32(metric, spread, rng):
    """No offset, no warning, and the bytes of x.astype(float32)."""
    x = rng.uniform(0, 1, (3000, 6))
    if spread == "normal":
        x = rng.normal(5, 1, x.shape)
    elif spread == "lognormal":
        x = rng.lognormal(0, 3, x.shape)
    elif spread == "sparse":
        x *= rng.uniform(0, 1, x.shape) < 0.1
    elif spread == "whole numbers":
        x = rng.integers(0, 256, x.shape).astype(np.float64)
    elif spread == "small":
        x *= 1e-20
    elif spread == "imputed":
        x[rng.uniform(0, 1, x.shape) < 0.3] = 0.49
    if metric == "chi_square":
        x = np.abs(x)
    wide, narrow = (kith.knn(y[:50], y, k=5, metric=metric) for y in (x, x.astype(np.float32)))
    assert wide.ids.tobytes() == narrow.ids.tobytes() and wide.distances.tobytes() == narrow.distances.tobytes()


@pytest.mark.parametrize("metric", OTHERS)
def test_metrics_that_allow_no_offset_warn(metric, times):
    with pytest.warns(kith.PrecisionWarning, match="base: float32.*base.astype") as caught:
        kith.knn(times[:3], times, metric=metric)
    assert len(caught) == 1 and caught[0].filename == __file__
    with pytest.warns(kith.PrecisionWarning, match="x: float32"):
        kith.knn_graph(times, metric=metric)
    with pytest.warns(kith.PrecisionWarning) as caught:
        kith.Index(metric=metric).add(times)
    assert len(caught) == 1 and caught[0].filename == __file__
    kith.knn(times[:3], times.astype(np.float32), metric=metric)  # who rounds knows it


def test_what_no_offset_can_mend_is_warned_of(rng):
    two_ages = np.vstack([rng.uniform(0, 86400, (300, 1)), 1.7e9 + rng.uniform(0, 86400, (300, 1))])
    with pytest.warns(kith.PrecisionWarning):
        kith.knn(two_ages[:2], two_ages)
    with pytest.warns(kith.PrecisionWarning):
        kith.knn([[0.0]], rng.uniform(0, 1, (1000, 1)) * 1e-44)  # less than float32's steps near 0
    crowded = rng.uniform(0, 1, (1_000_000, 1))  # neighbours are a few steps of float32 apart
    with pytest.warns(kith.PrecisionWarning):
        kith.knn(crowded[:2], crowded)
    kith.knn(crowded[:2], crowded[:10_000])


def test_exact_values_stay_as_they_are(rng):
    """An offset must not round what was exact."""
    x = np.array([[1e9, 0], [1e9 + 64, 0], [1e9 + 128, 0.1]]).astype(np.float32).astype(np.float64)
    assert kith.pairwise_distances(x).tobytes() == kith.pairwise_distances(x.astype(np.float32)).tobytes()


def test_shifted_data_have_the_same_bytes(rng):
    x = rng.integers(0, 1000, (400, 3)) / 8.0
    near, far = (kith.knn_graph(x + offset, k=4) for offset in (1e9, -3e12))
    assert near.ids.tobytes() == far.ids.tobytes() and near.distances.tobytes() == far.distances.tobytes()


def test_an_index_fixes_its_offset_at_the_first_add(times):
    index = kith.Index()
    index.add(times[:300])
    index.add(times[300:])
    queries = times[:30] + 0.25
    whole = kith.knn(queries, times, k=5)
    found = index.search(queries, k=5)
    assert (found.ids == whole.ids).all()
    np.testing.assert_allclose(found.distances, whole.distances, rtol=1e-3)
    assert (index.range_search(queries[0], 0.5).ids == [0]).all()
    # float32 vectors and queries are shifted with it; the values that they hold are found again.
    rounded = times[:5].astype(np.float32)
    index.add(rounded)
    assert index.search(rounded, k=1).ids[:, 0].tolist() == [600, 601, 602, 603, 604]
    with pytest.raises(ValueError, match="an index whose first vectors were such"):
        index.add(rounded, copy=False)
    with pytest.raises(ValueError, match="columns"):
        index.search(times[:2, :2], k=1)
    with pytest.warns(kith.PrecisionWarning):
        index.add(times - 1e12)


def test_a_first_add_that_fails_fixes_nothing(times):
    index = kith.Index()
    broken = times.copy()
    broken[7, 1] = np.nan
    with pytest.raises(ValueError, match="row 7"):
        index.add(broken)
    index.add(np.zeros((2, 5), np.float32), copy=False)
    assert index.dimension == 5 and index.search(np.ones(5), k=1).distances.item() == pytest.approx(5**0.5)


def test_first_adds_at_once(times):
    for _ in range(20):
        index, start = kith.Index(prepare=False), threading.Barrier(4)

        def add(part, index=index, start=start):
            start.wait()
            index.add(part)

        threads = [threading.Thread(target=add, args=(part,)) for part in np.array_split(times, 4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = index.search(times[:20] + 0.01, k=1)
        np.testing.assert_allclose(found.distances[:, 0], 0.01 * 3**0.5, rtol=0.15)


class Late:
    """Queries during whose conversion another thread could have added the first vectors; so they are added there."""

    def __init__(self, queries, index, x):
        self.queries, self.index, self.x = queries, index, x

    def __array__(self, dtype=None, copy=None):
        if len(self.index) == 0:
            self.index.add(self.x)
        return self.queries


def test_the_first_vectors_come_during_a_search(times):
    queries = times[:30] + 0.25
    true = kith.knn(queries, times, k=5)
    index = kith.Index(prepare=False)
    found = index.search(Late(queries, index, times), k=5)
    assert (found.ids == true.ids).all() and (found.distances == true.distances).all()
    index, out = kith.Index(prepare=False), (np.empty((30, 5), np.int64), np.empty((30, 5), np.float32))
    index.search(Late(queries, index, times), k=5, out=out)
    assert (out[0] == true.ids).all()
    index = kith.Index(prepare=False)
    within = index.range_search(Late(queries, index, times), 0.5)
    assert within.ids.tolist() == kith.range_search(queries, times, 0.5).ids.tolist() != []


def test_sklearn(times):
    pytest.importorskip("sklearn")
    import pickle

    from kith.sklearn import KNeighborsTransformer, NearestNeighbors

    model = NearestNeighbors(n_neighbors=4, radius=3.0).fit(times)
    true = distances_of(times[:30] + 0.25, times, "l2")
    for estimator in (model, pickle.loads(pickle.dumps(model))):
        distances, ids = estimator.kneighbors(times[:30] + 0.25)
        assert (ids == np.argsort(true, axis=1, kind="stable")[:, :4]).all()
        np.testing.assert_allclose(distances, np.sort(true, axis=1)[:, :4], rtol=1e-3)
    others = distances_of(times, times, "l2")
    np.fill_diagonal(others, np.inf)
    np.testing.assert_allclose(model.kneighbors()[0], np.sort(others, axis=1)[:, :4], rtol=1e-3, atol=1e-3)
    assert [len(ids) for ids in model.radius_neighbors(times[:3], return_distance=False)] == [
        np.count_nonzero(row <= 3) for row in distances_of(times[:3], times, "l2")
    ]
    assert KNeighborsTransformer(3).fit_transform(times).shape == (600, 600)
    assert (NearestNeighbors(n_neighbors=1).fit([[2**24], [2**24 + 1]]).kneighbors([[2**24 + 1]])[1] == [[1]]).all()


@pytest.fixture
def groups(rng):
    """Three groups of times, minutes apart: float32 holds them at two values."""
    true = np.repeat([0, 1, 2], 100)
    return 1.7e9 + 90.0 * true[:, np.newaxis] + rng.uniform(0, 10, (300, 1)), true


def agree(labels, true):
    return len(set(zip(np.asarray(labels).tolist(), true.tolist(), strict=True))) == 3


def test_kmeans(groups, tmp_path):
    import pickle

    x, true = groups
    model = kith.KMeans(3, seed=1).fit(x)
    means = np.sort([x[true == i].mean() for i in range(3)])
    assert agree(model.labels_, true) and model.cluster_centers_.dtype == np.float64
    np.testing.assert_allclose(np.sort(model.cluster_centers_[:, 0]), means, atol=0.01, rtol=0)
    for fitted in (model, pickle.loads(pickle.dumps(model))):
        assert (fitted.predict(x) == model.labels_).all()
        distances = np.abs(x - fitted.cluster_centers_.T)
        np.testing.assert_allclose(fitted.transform(x), distances, atol=0.01)
    kith.write_vectors(tmp_path / "x.fbin", x.astype(np.float32))
    with pytest.raises(ValueError, match="read_vectors"):
        model.predict(tmp_path / "x.fbin")
    started = kith.KMeans(3, init=means[:, np.newaxis]).fit(x)
    np.testing.assert_allclose(started.cluster_centers_[:, 0], means, atol=0.01, rtol=0)
    model.fit(x - 1.7e9)  # another offset, or none, after the first
    assert agree(model.labels_, true) and (model.predict(x - 1.7e9) == model.labels_).all()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_kmeans_from_narrow_centres(dtype, rng):
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    middles = 2.0**24 + 2.0**17 * np.arange(3)[:, np.newaxis]  # which both hold
    x = np.repeat(middles, 100, axis=0) + rng.integers(0, 160, (300, 1)) / 16
    start = middles.astype(dtype)
    assert (start.astype(np.float64) == middles).all()
    true = kith.KMeans(3, init=middles, iterations=1).fit(x)
    assert true.cluster_centers_.dtype == np.float64 and agree(true.labels_, np.repeat([0, 1, 2], 100))
    for model in (kith.KMeans(3, init=start, iterations=1).fit(x), kith.KMeans(3, init=start).partial_fit(x)):
        assert (model.cluster_centers_ == true.cluster_centers_).all()


def test_kmeans_in_parts(groups):
    x, true = groups
    mixed = np.random.default_rng(1).permutation(300)
    model = kith.KMeans(3, seed=3)
    for part in np.array_split(mixed, 5):
        model.partial_fit(x[part])
    assert agree(model.predict(x), true) and model.cluster_centers_.dtype == np.float64


def test_kmeans_of_everyday_float64_is_as_of_float32(rng):
    x = rng.normal(5, 1, (500, 4))
    wide, narrow = (kith.KMeans(6, seed=2).fit(y) for y in (x, x.astype(np.float32)))
    assert wide.cluster_centers_.tobytes() == narrow.cluster_centers_.tobytes() and wide.inertia_ == narrow.inertia_


def test_sklearn_kmeans(groups):
    pytest.importorskip("sklearn")
    from kith.sklearn import KMeans

    x, true = groups
    model = KMeans(3, random_state=0).fit(x)
    assert agree(model.labels_, true) and (model.predict(x) == model.labels_).all()
    np.testing.assert_allclose(model.transform(x), np.abs(x - model.cluster_centers_.T), atol=0.01)
    assert model.score(x) == pytest.approx(-model.inertia_, rel=1e-3)
    again = KMeans(3, init=model.cluster_centers_).fit(x)
    np.testing.assert_allclose(again.cluster_centers_, model.cluster_centers_, atol=0.01, rtol=0)


def offset_of(x, metric="l2"):
    return _kith.narrowed(x, "x", metric, None)[1]


def test_the_offset_is_a_value_of_each_column(times):
    offset = offset_of(times)
    assert all(value in column for value, column in zip(offset, times.T, strict=True))
    assert offset_of(times[:0]) is None
    with pytest.warns(kith.PrecisionWarning):
        assert offset_of(times, "cosine") is None
    assert offset_of(np.array([[0.0, 1e9 + 1], [1.0, 1e9 + 2]])) == [0, 1e9 + 1]
    rows, none = _kith.narrowed(times, "x", None, None)
    assert rows.tobytes() == times.astype(np.float32).tobytes() and none is None
    shifted, same = _kith.narrowed(times.astype(np.float32), "x", None, offset)
    assert shifted.tobytes() == (times.astype(np.float32) - np.array(offset)).astype(np.float32).tobytes()
    assert same == offset
    narrow = times.astype(np.float32)
    assert _kith.narrowed(narrow, "x", "l2", None)[0] is narrow


def test_rows_that_are_not_finite_do_not_count(times):
    broken = np.vstack([np.full((1, 3), np.inf), times, np.full((1, 3), np.nan)])
    assert offset_of(broken[:201]) == offset_of(times[:200])  # so few are looked at all
    assert offset_of(broken[:1]) is None
    with pytest.raises(ValueError, match="row 0"):
        kith.knn(times[:1], broken)
    assert kith.knn(times[:1], broken, k=1, check_finite=False).ids.item() == 1


@pytest.mark.parametrize("factory", ["Flat", "SQ8"])
def test_narrow_vectors_are_warned_of_where_the_offset_of_wide_ones_drowns_them(factory, rng):
    wide = rng.standard_normal((600, 6)) + 1e9
    near_zero = rng.standard_normal((100, 6)).astype(np.float32)
    index = kith.Index(factory)
    if factory != "Flat":
        index.train(wide)
    index.add(wide)
    with pytest.warns(kith.PrecisionWarning, match="cannot tell these values apart"):
        index.add(near_zero)
