"""kith.sklearn's estimators of density and radius, with scikit-learn's own as the judge."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest

import kith

sklearn = pytest.importorskip("sklearn")
from sklearn import cluster, neighbors  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.datasets import make_blobs, make_moons  # noqa: E402
from sklearn.metrics import adjusted_rand_score  # noqa: E402

import kith.sklearn as ours  # noqa: E402


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(1500, 6, centers=9, random_state=0)[0]


@pytest.mark.parametrize("eps", [1.0, 1.5, 2.0, 3.0, 30.0])
@pytest.mark.parametrize("min_samples", [1, 2, 5, 20])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_dbscan_has_scikit_learns_labels(blobs, eps, min_samples, metric):
    theirs = cluster.DBSCAN(eps=eps, min_samples=min_samples, metric=metric).fit(blobs)
    mine = ours.DBSCAN(eps=eps, min_samples=min_samples, metric=metric).fit(blobs)
    assert mine.backend_ == "kith"
    np.testing.assert_array_equal(mine.labels_, theirs.labels_)
    np.testing.assert_array_equal(mine.core_sample_indices_, theirs.core_sample_indices_)
    np.testing.assert_array_equal(mine.components_, theirs.components_)


def test_dbscan_by_weights(blobs, rng):
    weights = rng.random(len(blobs))
    theirs = cluster.DBSCAN(eps=2, min_samples=3).fit(blobs, sample_weight=weights)
    np.testing.assert_array_equal(ours.DBSCAN(eps=2, min_samples=3).fit(blobs, sample_weight=weights).labels_, theirs.labels_)


def test_dbscan_of_distances_is_scikit_learns(blobs):
    distances = kith.pairwise_distances(blobs[:200]).astype(np.float64)
    model = ours.DBSCAN(eps=2, metric="precomputed").fit(distances)
    assert model.backend_ == "scikit-learn"
    np.testing.assert_array_equal(model.labels_, cluster.DBSCAN(eps=2, metric="precomputed").fit(distances).labels_)


@pytest.mark.parametrize("settings", [{}, {"min_samples": 3}, {"min_cluster_size": 20}, {"cluster_selection_method": "leaf"}])
def test_hdbscan_finds_scikit_learns_clusters(blobs, settings):
    for x in (blobs, make_moons(1000, noise=0.08, random_state=0)[0]):
        theirs = cluster.HDBSCAN(copy=True, **settings).fit(x)
        mine = ours.HDBSCAN(**settings).fit(x)
        assert mine.backend_ == "kith"
        # Leaves hang on single edges, and equal ones may be others.
        assert adjusted_rand_score(theirs.labels_, mine.labels_) > (0.9 if "cluster_selection_method" in settings else 0.99)
        assert mine.probabilities_.shape == (len(x),)


def test_hdbscan_of_missing_values_is_scikit_learns(blobs):
    x = blobs.copy()
    x[3, 2] = np.nan
    model = ours.HDBSCAN().fit(x)
    assert model.backend_ == "scikit-learn" and model.labels_[3] == -3
    with pytest.raises(ValueError, match="device"):
        ours.HDBSCAN(device="cuda").fit(x)


def test_local_outlier_factor(blobs):
    theirs, mine = neighbors.LocalOutlierFactor(), ours.LocalOutlierFactor()
    np.testing.assert_array_equal(mine.fit_predict(blobs), theirs.fit_predict(blobs))
    assert mine.backend_ == "kith"
    np.testing.assert_allclose(mine.negative_outlier_factor_, theirs.negative_outlier_factor_, rtol=1e-4)
    new = blobs[:50] + 0.3
    theirs, mine = (kind(novelty=True).fit(blobs) for kind in (neighbors.LocalOutlierFactor, ours.LocalOutlierFactor))
    np.testing.assert_allclose(mine.score_samples(new), theirs.score_samples(new), rtol=1e-4)
    np.testing.assert_array_equal(mine.predict(new), theirs.predict(new))


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_predictions_within_a_radius(blobs, rng, weights):
    classes, values = rng.integers(0, 4, len(blobs)), rng.random(len(blobs))
    new = blobs[:100] + 0.1
    theirs = neighbors.RadiusNeighborsClassifier(2.5, weights=weights, outlier_label=0).fit(blobs, classes)
    mine = ours.RadiusNeighborsClassifier(2.5, weights=weights, outlier_label=0).fit(blobs, classes)
    assert mine.backend_ == "kith"
    np.testing.assert_array_equal(mine.predict(new), theirs.predict(new))
    theirs = neighbors.RadiusNeighborsRegressor(2.5, weights=weights).fit(blobs, values)
    mine = ours.RadiusNeighborsRegressor(2.5, weights=weights).fit(blobs, values)
    np.testing.assert_allclose(mine.predict(new), theirs.predict(new), rtol=1e-4)


@pytest.mark.parametrize("mode", ["distance", "connectivity"])
def test_the_graph_within_a_radius(blobs, mode):
    mine, peer = ours.RadiusNeighborsTransformer(radius=2.5, mode=mode), neighbors.RadiusNeighborsTransformer(radius=2.5, mode=mode)
    for new in (blobs, blobs[:100] + 0.1):
        found, true = mine.fit(blobs).transform(new), peer.fit(blobs).transform(new)
        assert mine.backend_ == "kith" and found.nnz == true.nnz
        assert abs(found - true).max() < 1e-5


@pytest.mark.parametrize("mode", ["distance", "connectivity"])
def test_an_approximate_graph_is_made_as_the_exact_one(blobs, mode):
    made = ours.KNNGraphTransformer(10, mode=mode, recall=0.99).fit_transform(blobs)
    exact = neighbors.KNeighborsTransformer(n_neighbors=10, mode=mode).fit_transform(blobs)
    assert made.shape == exact.shape and made.nnz == exact.nnz
    shared = made.astype(bool).multiply(exact.astype(bool)).nnz + (made.diagonal() == 0).sum() * (mode == "distance")
    assert shared >= 0.99 * (exact.nnz - len(blobs))
    assert ours.KNNGraphTransformer(10, mode=mode).fit(blobs).transform(blobs[:3]).shape == (3, len(blobs))


@pytest.mark.parametrize("model", [ours.DBSCAN(eps=2), ours.HDBSCAN(), ours.LocalOutlierFactor(), ours.KNNGraphTransformer(4)])
def test_clone_and_pickle(model, blobs):
    again = pickle.loads(pickle.dumps(clone(model).fit(blobs)))
    assert again.get_params() == model.get_params() and again.backend_ == "kith"


def test_what_a_tree_or_scikit_learn_does_better(rng):
    points = rng.random((10_000, 3))
    model = ours.NearestNeighbors(n_neighbors=3).fit(points)
    assert model.backend_ == "scikit-learn"
    np.testing.assert_array_equal(model.kneighbors(points[:20])[1], kith.knn(points[:20], points, 3).ids)
    assert ours.NearestNeighbors(algorithm="brute").fit(points).backend_ == "kith"
    assert ours.NearestNeighbors().fit(points[:100]).backend_ == "kith"
    shares = ours.NearestNeighbors(n_neighbors=2, metric="hamming").fit(rng.integers(0, 3, (50, 8)))
    assert shares.backend_ == "scikit-learn"
    bits = ours.NearestNeighbors(n_neighbors=2, metric="hamming").fit(rng.integers(0, 256, (50, 8), dtype=np.uint8))
    assert bits.backend_ == "kith"


@pytest.mark.parametrize("method", ["eom", "leaf"])
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("least", [2, 5, 30])
@pytest.mark.parametrize("most", [None, 300])
def test_labels_without_scikit_learns_private_module_are_the_same(blobs, method, single, least, most):
    settings = {"cluster_selection_method": method, "allow_single_cluster": single, "min_cluster_size": least, "max_cluster_size": most}
    for x in (blobs, make_moons(400, noise=0.08, random_state=0)[0], np.round(blobs[:300])):
        theirs = ours.HDBSCAN(**settings).fit(x)
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, "sklearn.cluster._hdbscan._tree", None)
            mine = ours.HDBSCAN(**settings).fit(x)
        np.testing.assert_array_equal(mine.labels_, theirs.labels_)
        np.testing.assert_allclose(mine.probabilities_, theirs.probabilities_)


def test_a_selection_epsilon_joins_clusters_that_split_below_it(blobs):
    fine = ours.HDBSCAN(min_cluster_size=5).fit(blobs)
    coarse = ours.HDBSCAN(min_cluster_size=5, cluster_selection_epsilon=2.5).fit(blobs)
    assert 1 <= coarse.labels_.max() <= fine.labels_.max()
    assert ours.HDBSCAN(cluster_selection_epsilon=1e6, allow_single_cluster=True).fit(blobs).labels_.max() == 0
