"""kith.KMeans: the same results however it is run, and the shapes and errors that people meet."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest

import kith


@pytest.fixture
def blobs(rng):
    """Vectors around ten far centres."""
    return (rng.integers(0, 10, (3000, 1)) * 50 + rng.standard_normal((3000, 12))).astype(np.float32)


def same(a, b):
    return a.cluster_centers_.tobytes() == b.cluster_centers_.tobytes() and a.labels_.tobytes() == b.labels_.tobytes()


def test_without_a_history_all_else_is_the_same(blobs):
    with_one = kith.KMeans(10, iterations=10, seed=1).fit(blobs)
    without = kith.KMeans(10, iterations=10, seed=1, history=False).fit(blobs)
    assert len(with_one.objective_history_) > 0 and without.objective_history_.shape == (0,)
    assert same(with_one, without) and with_one.inertia_ == without.inertia_ and with_one.n_iter_ == without.n_iter_
    with pytest.raises(TypeError, match="history"):
        kith.KMeans(10, history="no")


def test_finds_far_groups(blobs):
    model = kith.KMeans(10, iterations=10, seed=1).fit(blobs)
    assert model.cluster_centers_.shape == (10, 12) and model.cluster_centers_.dtype == np.float32
    assert model.labels_.shape == (3000,) and model.labels_.dtype == np.int32
    assert model.inertia_ < 1.1 * 3000 * 12
    assert len(model.objective_history_) == model.n_iter_ <= 10
    assert (np.diff(model.objective_history_) <= 1e-6 * model.inertia_).all()
    assert model.counts_.sum() == 3000
    for c in range(10):
        np.testing.assert_allclose(model.cluster_centers_[c], blobs[model.labels_ == c].mean(axis=0), rtol=1e-4)


def test_labels_are_the_nearest_centres(blobs):
    model = kith.KMeans(25, seed=3).fit(blobs)
    every = np.sqrt(((blobs[:, None].astype(np.float64) - model.cluster_centers_[None]) ** 2).sum(axis=2))
    labels, distances = model.assign(blobs)
    assert (labels == model.labels_).all() and (model.predict(blobs) == labels).all()
    np.testing.assert_allclose(distances, every.min(axis=1), rtol=1e-5)
    np.testing.assert_allclose(model.transform(blobs), every, rtol=1e-4, atol=1e-4)
    assert model.inertia_ == pytest.approx((every.min(axis=1) ** 2).sum(), rel=1e-5)


@pytest.mark.parametrize("make", [lambda x: x.astype(np.float64), np.asfortranarray, lambda x: np.repeat(x, 2, 0)[::2]])
def test_other_arrays_are_converted(make, blobs):
    assert same(kith.KMeans(5).fit(make(blobs)), kith.KMeans(5).fit(blobs))


@pytest.mark.parametrize("dtype", [np.float16, np.uint8, np.int8, "bfloat16"])
def test_every_dtype_gives_what_its_values_give(dtype, blobs):
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    x = (blobs / 6).clip(0, 100).astype(dtype)
    narrow, wide = kith.KMeans(5, seed=3).fit(x), kith.KMeans(5, seed=3).fit(x.astype(np.float32))
    assert same(narrow, wide) and (narrow.predict(x) == wide.labels_).all()
    given, same_values = kith.KMeans.of_centres(x[:5]), kith.KMeans.of_centres(x[:5].astype(np.float32))
    assert (given.cluster_centers_ == x[:5].astype(np.float32)).all()
    assert given.predict(x).tobytes() == same_values.predict(x).tobytes()


def test_threads_and_limits_change_nothing(blobs, tmp_path):
    path = tmp_path / "x.fbin"
    kith.write_vectors(path, blobs)
    truth = kith.KMeans(20, seed=5).fit(blobs, threads=1)
    assert same(kith.KMeans(20, seed=5).fit(blobs, threads=3), truth)
    assert same(kith.KMeans(20, seed=5).fit(path, memory_limit=480_000), truth)
    assert (truth.predict(path) == truth.labels_).all()
    with pytest.raises(MemoryError):
        kith.KMeans(20).fit(path, memory_limit=1000)


@pytest.mark.parametrize("scale", [1e25, 1e-24])
def test_extreme_scales(scale, blobs):
    x = (blobs.astype(np.float64) * scale).astype(np.float32)
    model = kith.KMeans(10, seed=1).fit(x)
    assert np.isfinite(model.inertia_) and np.unique(model.labels_).size == 10
    assert model.inertia_ == pytest.approx(kith.KMeans(10, seed=1).fit(blobs).inertia_ * scale**2, rel=0.01)
    assert (model.predict(x) == model.labels_).all()
    other = kith.KMeans.of_centres(model.cluster_centers_)
    assert (other.predict(x) == model.labels_).all()


def test_what_the_library_warns_of_is_a_warning(blobs):
    x = blobs.copy()
    x[[1, 3, 5], [0, 1, 2]] = 3e38
    with pytest.warns(RuntimeWarning, match="overflow") as caught:
        kith.KMeans(2).fit(x)
    assert caught[0].filename == __file__
    with pytest.raises(ValueError, match="shape"):
        kith.KMeans.of_centres(np.zeros(3))


def test_small_clusters_are_found(rng):
    """One cluster of 20,000 vectors and seven of 50."""
    middles = 100 * rng.standard_normal((8, 4))
    x = (np.repeat(middles, [20_000] + [50] * 7, axis=0) + rng.standard_normal((20_350, 4))).astype(np.float32)
    for seed in range(6):
        assert kith.KMeans(8, seed=seed).fit(x).inertia_ < 1.05 * 20_350 * 4
    few = kith.KMeans(8, init_points_per_centre=32).fit(x)
    assert not same(few, kith.KMeans(8).fit(x))


def test_spherical_does_not_depend_on_the_scale(rng):
    x = rng.standard_normal((3000, 10)).astype(np.float32)
    one, other = (kith.KMeans(12, iterations=100, spherical=True).fit(data) for data in (x, x * np.float32(1024)))
    assert one.n_iter_ == other.n_iter_ > 5 and same(one, other)
    by_bytes = kith.KMeans(12, iterations=100, spherical=True).fit((x * 20 + 100).clip(0, 255).astype(np.uint8))
    assert by_bytes.n_iter_ > 5


def test_given_centres_and_weights():
    x = np.array([[0.0], [2], [10], [20]], np.float32)
    model = kith.KMeans(2, init=[[0.0], [20.0]], tol=0).fit(x, sample_weight=[1, 3, 0, 2])
    assert model.cluster_centers_.tolist() == [[1.5], [20.0]] and model.labels_.tolist() == [0, 0, 0, 1]
    assert model.inertia_ == 1.5**2 + 3 * 0.5**2


def test_given_centres_are_those_at_the_time():
    x, start = np.array([[0.0], [2], [10], [20]], np.float32), np.array([[0.0], [20.0]], np.float32)
    model = kith.KMeans(2, init=start, tol=0)
    start[:] = start[::-1].copy()
    assert model.fit(x).cluster_centers_.tolist() == [[4.0], [20.0]]


def test_fit_predict_and_fit_transform(blobs):
    model = kith.KMeans(6, compute_labels=False)
    labels = model.fit_predict(blobs, threads=2)
    assert model.labels_.size == 0 and labels.shape == (3000,)
    assert kith.KMeans(6).fit_transform(blobs).shape == (3000, 6)


def test_partial_fit_sees_every_batch(blobs):
    model = kith.KMeans(10, seed=2)
    for batch in np.split(blobs, 10):
        assert model.partial_fit(batch) is model
    assert model.n_iter_ == 10 and model.counts_.sum() == 3000
    assert ((model.assign(blobs)[1] ** 2).sum()) < 1.3 * 3000 * 12


def test_mini_batches_and_spherical(blobs):
    assert kith.KMeans(10, batch_size=200, seed=1).fit(blobs).inertia_ < 2 * 3000 * 12
    unit = blobs / np.linalg.norm(blobs, axis=1, keepdims=True)
    model = kith.KMeans(10, spherical=True).fit(unit)
    np.testing.assert_allclose(np.linalg.norm(model.cluster_centers_, axis=1), 1, rtol=1e-6)
    assert model.inertia_ == pytest.approx(-model.assign(unit)[1].sum(), rel=1e-5)


@pytest.mark.parametrize(
    "arguments, error, says",
    [
        ({"clusters": 0}, ValueError, "clusters = 0"),
        ({"clusters": 2.5}, TypeError, "clusters"),
        ({"init": "best"}, ValueError, "kmeans\\+\\+"),
        ({"init": "given"}, ValueError, "array of centres"),
        ({"seed": -1}, ValueError, "seed"),
        ({"tol": "small"}, TypeError, "tol"),
        ({"tol": 10**400}, ValueError, "tol is too large"),
        ({"tol": float("inf")}, ValueError, "tol = inf; it must be a finite number"),
        ({"init_points_per_centre": -1}, ValueError, "init_points_per_centre = -1"),
        ({"clusters": 10**5000}, ValueError, "clusters has 16610 bits"),
        ({"spherical": 1}, TypeError, "spherical"),
        ({"device": "gpu"}, ValueError, "cuda:N"),
    ],
)
def test_arguments_that_are_refused(arguments, error, says):
    with pytest.raises(error, match=says):
        kith.KMeans(**arguments)


def test_data_that_are_refused(blobs):
    with pytest.raises(ValueError, match="cannot be split into 4000"):
        kith.KMeans(4000).fit(blobs)
    broken = blobs.copy()
    broken[17, 3] = np.nan
    with pytest.raises(ValueError, match="row 17"):
        kith.KMeans(3).fit(broken)
    with pytest.raises(ValueError, match="weights for 3000 rows"):
        kith.KMeans(3).fit(blobs, sample_weight=np.ones(2))
    with pytest.raises(ValueError, match="must be 3 x 12"):
        kith.KMeans(3, init=np.zeros((3, 4), np.float32)).fit(blobs)
    with pytest.raises(ValueError, match="no rows"):
        kith.KMeans(3).partial_fit(blobs[:0])
    with pytest.raises(RuntimeError, match="fit"):
        kith.KMeans(3).predict(blobs)


def test_progress_is_told_and_may_stop(blobs):
    stages = []
    kith.KMeans(5).fit(blobs, progress=lambda stage, done, total: stages.append(stage))
    assert {"survey", "kmeans++", "kmeans"} <= set(stages)

    def stop(stage, done, total):
        raise KeyError("enough")

    model = kith.KMeans(5)
    with pytest.raises(KeyError, match="enough"):
        model.fit(blobs, progress=stop)
    assert not hasattr(model, "cluster_centers_")


def test_predicts_while_it_is_fitted(blobs):
    model = kith.KMeans(20).fit(blobs)
    fitter = threading.Thread(target=lambda: [model.fit(blobs) for _ in range(10)])
    fitter.start()
    while fitter.is_alive():
        assert (model.predict(blobs[:50]) == model.labels_[:50]).all()
    fitter.join()


def test_before_the_first_fit(blobs):
    for call in (lambda model: model.predict(blobs), lambda model: model.transform(blobs)):
        with pytest.raises(RuntimeError, match="fit it first"):
            call(kith.KMeans(3))


def pickled(model):
    return [pickle.loads(pickle.dumps(model, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]


def results_of(model):
    names = ("cluster_centers_", "labels_", "counts_", "objective_history_")
    arrays = [(getattr(model, name).dtype, getattr(model, name).shape, getattr(model, name).tobytes()) for name in names]
    return [*arrays, model.inertia_, model.n_iter_]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"spherical": True},
        {"batch_size": 100, "iterations": 2},
        {"compute_labels": False},
        {"init": "random", "seed": 7},
    ],
)
def test_pickled_and_copied(arguments, blobs):
    """Whatever is called on a copy gives the bytes that the original gives, and neither moves the other."""
    fitted = kith.KMeans(6, **arguments).fit(blobs[:2000])
    began = kith.KMeans(6, **arguments).partial_fit(blobs[:500])
    for model in (fitted, began):
        before = results_of(model)
        made = [*pickled(model), copy.deepcopy(model), copy.copy(model)]
        assert all(results_of(other) == before for other in made)
        assert all(other.predict(blobs).tobytes() == model.predict(blobs).tobytes() for other in made)
        assert all(other.transform(blobs).tobytes() == model.transform(blobs).tobytes() for other in made)
        made[-1].partial_fit(blobs[::7])
        assert results_of(model) == before != results_of(made[-1])
        after = results_of(model.partial_fit(blobs[::7]))
        assert results_of(made[-1]) == after and results_of(made[0].partial_fit(blobs[::7])) == after


def test_pickled_before_the_first_fit(blobs):
    for init in ("kmeans++", blobs[:6].astype(np.float16), blobs[:6].tolist()):
        model = kith.KMeans(6, init=init, iterations=2)
        model.note = "mine"
        wanted = results_of(kith.KMeans(6, init=init, iterations=2).fit(blobs))
        for other in (*pickled(model), copy.deepcopy(model), copy.copy(model)):
            assert not hasattr(other, "labels_") and other.note == "mine"
            assert results_of(other.fit(blobs)) == wanted


def test_a_broken_pickle_is_refused(blobs):
    model = kith.KMeans(3).fit(blobs)
    state = model.__getstate__()
    centres, counts, labels, *rest = state["_fit"]
    for broken in ((centres[:2], counts, labels), (centres, counts[:2], labels), (centres, counts, labels + 1)):
        with pytest.raises(ValueError, match="snapshot"):
            kith.KMeans.__new__(kith.KMeans).__setstate__({**state, "_fit": (*broken, *rest)})


def test_labels_are_a_copy_of_the_fit_that_was_asked(blobs):
    model = kith.KMeans(5)
    with pytest.raises(AttributeError, match="call fit first"):
        _ = model.labels_
    true = model.fit(blobs).labels_.copy()
    assert model.labels_ is model.labels_
    model.labels_[:] = -1
    assert (pickle.loads(pickle.dumps(model)).labels_ == true).all()
    model.fit(blobs[:100])
    assert model.labels_.shape == (100,) and (model.labels_ >= 0).all()
