"""kith.sklearn: scikit-learn's own checks, and the results of its own estimators."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("sklearn")
from sklearn import cluster as their_clusters  # noqa: E402
from sklearn import neighbors as theirs  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.exceptions import ConvergenceWarning  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

from kith import sklearn as ours  # noqa: E402

PAIRS = [("euclidean", "euclidean"), ("minkowski", "minkowski"), ("manhattan", "manhattan"), ("cityblock", "cityblock"),
         ("chebyshev", "chebyshev"), ("cosine", "cosine"), ("sqeuclidean", "sqeuclidean"), ("l1", "manhattan"),
         ("l2", "euclidean"), ("linf", "chebyshev")]


ESTIMATORS = [
    ours.NearestNeighbors(),
    ours.KNeighborsTransformer(),
    ours.KNeighborsTransformer(mode="connectivity"),
    ours.RadiusNeighborsTransformer(radius=3.0),
    ours.KNeighborsClassifier(),
    ours.KNeighborsClassifier(weights="distance"),
    ours.KNeighborsRegressor(),
    ours.KNeighborsRegressor(weights="distance"),
    ours.KMeans(),
    ours.KMeans(n_clusters=2, n_init=2, max_iter=5),
]


def expected_to_fail(estimator):
    """Where scikit-learn's own KMeans fails too.

    The check compares weights with rows repeated and shuffled. First centres are drawn by row numbers, so that other rows
    are drawn, and a fit from another start may end elsewhere (two clusters of the check's dense rows end at the same
    place). From given centres both are the same: see test_kmeans_weights_are_rows_repeated. scikit-learn fits sparse
    matrices.
    """
    if not isinstance(estimator, ours.KMeans):
        return {}
    why = "weights are not rows repeated to a start that draws by row numbers"
    kinds = ["sparse"] if estimator.n_clusters == 2 else ["dense", "sparse"]
    return {f"check_sample_weight_equivalence_on_{kind}_data": why for kind in kinds}


@pytest.mark.filterwarnings("default")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_to_fail)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def both(x, metric="euclidean", **parameters):
    mine = ours.NearestNeighbors(metric=metric, **parameters).fit(x)
    return mine, theirs.NearestNeighbors(algorithm="brute", metric=dict(PAIRS)[metric], **parameters).fit(x)


@pytest.mark.parametrize("metric", [name for name, _ in PAIRS])
@pytest.mark.parametrize("queries", [True, False])
def test_kneighbors(metric, queries, vectors):
    x = vectors(150, 8)
    q = vectors(20, 8) if queries else None
    mine, peer = both(x, metric, n_neighbors=6)
    distances, ids = mine.kneighbors(q)
    true_distances, true_ids = peer.kneighbors(q)
    np.testing.assert_allclose(distances, true_distances, rtol=1e-4, atol=1e-5)
    assert (ids == true_ids).mean() > 0.99  # theirs orders near ties by rounding
    assert (mine.kneighbors(q, 3, return_distance=False) == ids[:, :3]).all()
    for mode in ("connectivity", "distance"):
        found, true = mine.kneighbors_graph(q, mode=mode), peer.kneighbors_graph(q, mode=mode)
        assert found.shape == true.shape
        np.testing.assert_allclose(found.toarray(), true.toarray(), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("metric, radius", [("euclidean", 3.0), ("manhattan", 7.0), ("chebyshev", 1.5), ("cosine", 0.5)])
@pytest.mark.parametrize("queries", [True, False])
def test_radius_neighbors(metric, radius, queries, vectors):
    x = vectors(150, 8)
    q = vectors(20, 8) if queries else None
    mine, peer = both(x, metric, radius=radius)
    distances, ids = mine.radius_neighbors(q)
    true_distances, true_ids = peer.radius_neighbors(q, sort_results=True)
    assert distances.dtype == ids.dtype == object and ids.shape == true_ids.shape
    for found, true, near, far in zip(ids, true_ids, distances, true_distances):
        assert set(found) == set(true)
        np.testing.assert_allclose(near, far, rtol=1e-4, atol=1e-5)
    assert all((a == b).all() for a, b in zip(mine.radius_neighbors(q, radius, return_distance=False), ids))
    for mode in ("connectivity", "distance"):
        found, true = mine.radius_neighbors_graph(q, mode=mode), peer.radius_neighbors_graph(q, mode=mode)
        np.testing.assert_allclose(found.toarray(), true.toarray(), rtol=1e-4, atol=1e-3)


def test_a_fitted_row_is_not_its_own_neighbour():
    x = np.zeros((30, 2), np.float32)
    mine = ours.NearestNeighbors(n_neighbors=3).fit(x)
    assert (mine.kneighbors(return_distance=False) != np.arange(30)[:, None]).all()
    assert all(i not in found and len(found) == 29 for i, found in enumerate(mine.radius_neighbors(return_distance=False)))


@pytest.mark.parametrize("mode", ["distance", "connectivity"])
def test_transformer(mode, vectors):
    x = vectors(90, 5)
    mine = ours.KNeighborsTransformer(n_neighbors=4, mode=mode)
    peer = theirs.KNeighborsTransformer(n_neighbors=4, mode=mode, algorithm="brute")
    found, true = mine.fit_transform(x), peer.fit_transform(x)
    assert found.nnz == true.nnz == 90 * (4 + (mode == "distance"))
    np.testing.assert_allclose(found.toarray(), true.toarray(), rtol=1e-4, atol=1e-3)
    assert mine.get_feature_names_out()[1] == "kneighborstransformer1"


def test_in_a_pipeline(vectors):
    x = np.vstack([vectors(40, 5), vectors(40, 5) + 20])
    y = np.repeat([0, 1], 40)
    pipeline = make_pipeline(
        ours.KNeighborsTransformer(n_neighbors=5), theirs.KNeighborsClassifier(n_neighbors=5, metric="precomputed")
    )
    assert (pipeline.fit(x, y).predict(x) == y).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.uint8, np.int8, np.int64])
def test_dtypes(dtype, vectors):
    x = (vectors(60, 5) * 20).clip(0, 100).astype(dtype)
    mine, peer = both(x, n_neighbors=3)
    np.testing.assert_allclose(mine.kneighbors(x)[0], peer.kneighbors(x)[0], atol=1e-2, rtol=1e-3)
    kept_in_place = dtype not in (np.float64, np.int64)
    assert np.shares_memory(mine._rows, x) == kept_in_place


@pytest.mark.parametrize("weights", ["uniform", "distance", None, lambda distances: 1 / (1 + distances**2)])
@pytest.mark.parametrize("columns", [1, 3])
def test_classifier(weights, columns, vectors, rng):
    x, queries = vectors(300, 6), vectors(80, 6)
    y = rng.integers(0, 4, (300, columns)) if columns > 1 else np.array(list("abcd"))[rng.integers(0, 4, 300)]
    mine = ours.KNeighborsClassifier(7, weights=weights).fit(x, y)
    peer = theirs.KNeighborsClassifier(7, weights=weights).fit(x, y)
    assert mine.backend_ == "kith"
    assert (mine.predict(queries) == peer.predict(queries)).all()
    assert mine.predict(queries).dtype == peer.predict(queries).dtype
    np.testing.assert_allclose(mine.predict_proba(queries), peer.predict_proba(queries), rtol=1e-5)
    assert (mine.predict(None) == peer.predict(None)).all()  # of the fitted vectors, themselves left out
    if columns == 1:  # scikit-learn scores no other
        assert mine.score(queries, mine.predict(queries)) == 1.0


@pytest.mark.parametrize("weights", ["uniform", "distance", lambda distances: np.exp(-distances)])
def test_regressor(weights, vectors, rng):
    x, queries, y = vectors(300, 6), vectors(80, 6), rng.normal(size=(300, 2))
    mine = ours.KNeighborsRegressor(7, weights=weights, metric="manhattan").fit(x, y)
    peer = theirs.KNeighborsRegressor(7, weights=weights, metric="manhattan").fit(x, y)
    np.testing.assert_allclose(mine.predict(queries), peer.predict(queries), rtol=1e-4, atol=1e-5)
    if not callable(weights):
        assert pickle.loads(pickle.dumps(mine)).predict(queries).tobytes() == mine.predict(queries).tobytes()


@pytest.mark.parametrize("p, metric", [(1, "manhattan"), (2, "euclidean"), (np.inf, "chebyshev")])
@pytest.mark.parametrize("algorithm", ["auto", "brute", "kd_tree", "ball_tree"])
def test_parameters_that_change_nothing(p, metric, algorithm, vectors):
    x = vectors(50, 4)
    plain = ours.NearestNeighbors(metric=metric).fit(x).kneighbors(x)
    same = ours.NearestNeighbors(algorithm=algorithm, leaf_size=5, p=p, n_jobs=2).fit(x)
    assert same.backend_ == "kith" and same.effective_metric_ == metric
    for a, b in zip(plain, same.kneighbors(x)):
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize(
    "parameters", [{"metric": "canberra"}, {"p": 3}, {"metric": "precomputed"}, {"metric": lambda a, b: abs(a - b).max()}]
)
def test_scikit_learn_searches_where_kith_cannot(parameters, vectors):
    x = np.abs(vectors(30, 30))
    x = (x + x.T) * (1 - np.eye(30, dtype=np.float32))  # also distances
    mine = ours.NearestNeighbors(n_neighbors=3, **parameters).fit(x)
    peer = theirs.NearestNeighbors(n_neighbors=3, **parameters).fit(x)
    assert mine.backend_ == "scikit-learn"
    for a, b in zip(mine.kneighbors(), peer.kneighbors()):
        assert (a == b).all()
    again = pickle.loads(pickle.dumps(mine)) if not callable(parameters.get("metric")) else mine
    assert (again.radius_neighbors_graph(radius=1.0) != peer.radius_neighbors_graph(radius=1.0)).nnz == 0
    mine.set_params(metric="euclidean", p=2, metric_params=None).fit(x)
    assert mine.backend_ == "kith"


def test_sparse_vectors(vectors):
    sparse = pytest.importorskip("scipy.sparse")
    x = np.maximum(vectors(60, 5), 0)
    for model in (ours.NearestNeighbors(n_neighbors=2), ours.KMeans(3, random_state=0)):
        dense, thin = clone(model).fit(x), clone(model).fit(sparse.csr_array(x))
        assert (dense.backend_, thin.backend_) == ("kith", "scikit-learn")
    search = ours.NearestNeighbors(n_neighbors=2).fit(x)
    for a, b in zip(search.kneighbors(sparse.csr_array(x)), search.kneighbors(x)):
        assert a.tobytes() == b.tobytes()
    clusters = ours.KMeans(3, random_state=0).fit(x)
    assert (clusters.predict(sparse.csr_array(x)) == clusters.labels_).all()
    assert clusters.transform(sparse.csr_array(x)).tobytes() == clusters.transform(x).tobytes()
    with pytest.raises(ValueError, match="device is 'cuda:0', but X is sparse"):
        ours.KMeans(3, device="cuda:0").fit(sparse.csr_array(x))


def test_fitted_on_another_estimator(vectors):
    x = vectors(40, 3)
    first = ours.NearestNeighbors(n_neighbors=4).fit(x)
    again = ours.KNeighborsTransformer(n_neighbors=4, mode="connectivity").fit(first)
    assert (again.transform(x) != first.kneighbors_graph(x)).nnz == 0


def test_hamming_counts_bits(vectors):
    x = vectors(60, 5, np.uint8)
    found = ours.NearestNeighbors(metric="hamming", n_neighbors=4).fit(x).kneighbors(x[:3])[0]
    bits = np.unpackbits(x, axis=1).astype(int)
    true = np.sort(np.abs(bits[:3, None] - bits[None]).sum(axis=2), axis=1)[:, :4]
    assert (found == true).all()


def test_hamming_of_bools_is_the_share_of_scikit_learn(vectors):
    x = vectors(60, 16) > 0
    mine = ours.NearestNeighbors(metric="hamming", n_neighbors=4).fit(x)
    assert mine.backend_ == "scikit-learn"
    found, true = mine.kneighbors(x[:5]), theirs.NearestNeighbors(metric="hamming", n_neighbors=4).fit(x).kneighbors(x[:5])
    np.testing.assert_array_equal(found[0], true[0])


def test_copies(vectors):
    x = vectors(60, 5)
    mine = ours.NearestNeighbors(n_neighbors=3, n_jobs=1).fit(x)
    again = pickle.loads(pickle.dumps(mine))
    assert (again.kneighbors(x)[1] == mine.kneighbors(x)[1]).all()
    assert pickle.loads(pickle.dumps(clone(mine))).n_neighbors == 3


@pytest.mark.parametrize(
    "parameters, error, says",
    [
        ({"metric": "jacard"}, ValueError, "jacard"),
        ({"algorithm": "quick"}, ValueError, "algorithm"),
        ({"metric": "jaccard", "device": "cuda"}, ValueError, "device is 'cuda'.*jaccard.*scikit-learn"),
        ({"metric": None}, ValueError, "None"),
        ({"n_neighbors": 0}, ValueError, "n_neighbors"),
        ({"n_neighbors": 2.0}, TypeError, "n_neighbors"),
        ({"n_jobs": 0}, ValueError, "n_jobs"),
        ({"device": "tpu"}, ValueError, "device|tpu"),
    ],
)
def test_parameters_that_are_refused(parameters, error, says, vectors):
    with pytest.raises(error, match=says):
        ours.NearestNeighbors(**parameters).fit(vectors(20, 3))


def test_calls_that_are_refused(vectors):
    x = vectors(20, 3)
    mine = ours.NearestNeighbors().fit(x)
    with pytest.raises(ValueError, match="n_neighbors <= n_samples_fit"):
        mine.kneighbors(x, 21)
    with pytest.raises(ValueError, match="n_neighbors < n_samples_fit"):
        mine.kneighbors(n_neighbors=20)
    with pytest.raises(ValueError, match="mode"):
        mine.kneighbors_graph(x, mode="both")
    with pytest.raises(ValueError, match="mode"):
        ours.KNeighborsTransformer(mode="both").fit(x)


def blobs(vectors, rows=100):
    return np.concatenate([vectors(rows, 4) + 8 * centre for centre in range(3)]), np.repeat(np.arange(3), rows)


@pytest.mark.parametrize("init", ["k-means++", "random", "given"])
def test_kmeans(init, vectors):
    x, labels = blobs(vectors)
    start = x[[0, 100, 200]] if init == "given" else init
    mine = ours.KMeans(3, init=start, n_init="auto", random_state=1).fit(x)
    peer = their_clusters.KMeans(3, init=start, n_init="auto" if init == "given" else 10, random_state=1).fit(x)
    assert mine.inertia_ == pytest.approx(peer.inertia_, rel=1e-4)
    np.testing.assert_allclose(np.sort(mine.cluster_centers_, axis=0), np.sort(peer.cluster_centers_, axis=0), atol=1e-4)
    assert all(np.unique(mine.labels_[labels == one]).size == 1 for one in range(3))
    assert mine.labels_.dtype == np.int32 and 1 <= mine.n_iter_ <= 300
    assert (mine.predict(x) == mine.labels_).all()
    assert mine.score(x) == pytest.approx(-mine.inertia_, rel=1e-5)
    distances = mine.transform(x)
    np.testing.assert_allclose(distances, np.linalg.norm(x[:, None] - mine.cluster_centers_, axis=2), rtol=1e-4)
    assert (distances.argmin(axis=1) == mine.labels_).all()
    assert mine.get_feature_names_out().tolist() == ["kmeans0", "kmeans1", "kmeans2"]


def test_kmeans_from_a_callable(vectors):
    x, _ = blobs(vectors)
    calls = []

    def init(data, clusters, random_state):
        calls.append(data.shape)
        return data[random_state.choice(len(data), clusters, replace=False)]

    mine = ours.KMeans(3, init=init, n_init=4, random_state=1).fit(x)
    assert calls == [x.shape] * 4 and mine.inertia_ == pytest.approx(ours.KMeans(3, random_state=1).fit(x).inertia_)
    with pytest.raises(ValueError, match="initial centers.*number of clusters 3"):
        ours.KMeans(3, init=lambda data, clusters, random_state: data[:2]).fit(x)


@pytest.mark.parametrize("dtype, wanted", [(np.float64, np.float64), (np.int64, np.float64), (np.float32, np.float32)])
def test_kmeans_centres_have_the_precision_of_the_vectors(dtype, wanted, vectors):
    x = (vectors(50, 3) * 20).astype(dtype)
    mine = ours.KMeans(4, random_state=0, copy_x=False, algorithm="elkan").fit(x)
    assert mine.cluster_centers_.dtype == wanted
    assert (mine.predict(x) == mine.labels_).all()


def test_kmeans_warns_of_fewer_clusters_than_asked_for():
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(2\).*n_clusters \(3\)") as caught:
        ours.KMeans(3, random_state=0).fit(np.repeat([[0.0], [1.0]], 5, axis=0))
    assert caught[0].filename == __file__


def test_kmeans_prints_what_it_does(vectors, capsys):
    ours.KMeans(3, random_state=0, verbose=1).fit(blobs(vectors)[0])
    assert "Iteration 0, inertia" in capsys.readouterr().out


def test_kmeans_takes_bfloat16_centres(vectors):
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    x, _ = blobs(vectors)
    start = x[[0, 100, 200]].astype(bfloat16)
    mine, same = (ours.KMeans(3, init=init, max_iter=1).fit(x) for init in (start, start.astype(np.float32)))
    assert mine.cluster_centers_.tobytes() == same.cluster_centers_.tobytes()
    mine.cluster_centers_, same.cluster_centers_ = start, start.astype(np.float32)  # as users set them
    assert (mine.predict(x) == same.predict(x)).all() and (mine.transform(x) == same.transform(x)).all()


def test_kmeans_warns_where_it_was_called(vectors):
    x = vectors(3000, 12)
    x[[1, 3, 5], [0, 1, 2]] = 3e38
    with pytest.warns(RuntimeWarning, match="overflow") as caught:
        ours.KMeans(2, random_state=0).fit(x)
    assert {warning.filename for warning in caught} == {__file__}


def test_kmeans_weights(vectors):
    x, labels = blobs(vectors)
    weights = np.where(labels == 0, 5.0, 1.0)
    start = x[[0, 100, 200]]
    mine = ours.KMeans(3, init=start).fit(x, sample_weight=weights)
    peer = their_clusters.KMeans(3, init=start).fit(x, sample_weight=weights)
    np.testing.assert_allclose(mine.cluster_centers_, peer.cluster_centers_, atol=1e-4)
    assert mine.inertia_ == pytest.approx(peer.inertia_, rel=1e-4)
    assert mine.score(x, sample_weight=weights) == pytest.approx(-mine.inertia_, rel=1e-5)


def test_kmeans_weights_are_rows_repeated(vectors, rng):
    x = vectors(300, 4)
    weights = rng.integers(0, 4, 300)
    repeated = np.repeat(x, weights, axis=0)[rng.permutation(weights.sum())]
    start = x[:5]
    mine = ours.KMeans(5, init=start, tol=0).fit(x, sample_weight=weights)
    other = ours.KMeans(5, init=start, tol=0).fit(repeated)
    np.testing.assert_allclose(mine.cluster_centers_, other.cluster_centers_, rtol=1e-5)
    assert mine.inertia_ == pytest.approx(other.inertia_, rel=1e-5)
    assert (mine.predict(repeated) == other.labels_).all()


def test_kmeans_looks_at_as_many_rows_as_it_is_told(vectors):
    x = vectors(5000, 6)
    one, other = (ours.KMeans(6, random_state=3, init_points_per_centre=n).fit(x) for n in (None, 10))
    assert one.cluster_centers_.tobytes() != other.cluster_centers_.tobytes()


def test_kmeans_is_reproducible(vectors):
    x, _ = blobs(vectors)
    one, other = (ours.KMeans(7, random_state=5, n_jobs=jobs).fit(x) for jobs in (1, 2))
    assert one.cluster_centers_.tobytes() == other.cluster_centers_.tobytes()
    again = pickle.loads(pickle.dumps(one))
    assert (again.predict(x) == one.labels_).all()


@pytest.mark.parametrize(
    "parameters, error, says",
    [
        ({"n_clusters": 21}, ValueError, "n_samples=20 should be >= n_clusters=21"),
        ({"n_clusters": 0}, ValueError, "n_clusters"),
        ({"init": "best"}, ValueError, "k-means"),
        ({"init": np.zeros((2, 4), np.float32)}, ValueError, "initial centers.*number of features"),
        ({"n_init": "many"}, ValueError, "n_init"),
        ({"max_iter": 0}, ValueError, "max_iter"),
        ({"tol": "small"}, TypeError, "tol"),
    ],
)
def test_kmeans_parameters_that_are_refused(parameters, error, says, vectors):
    with pytest.raises(error, match=says):
        ours.KMeans(**{"n_clusters": 2, **parameters}).fit(vectors(20, 3))


def test_kith_alone_loads_neither_scikit_learn_nor_scipy():
    program = "import sys, kith; print([name for name in ('sklearn', 'scipy') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "[]\n"


def test_needs_no_import_of_its_own():
    program = "import kith; print(kith.sklearn.KNeighborsTransformer(15).n_neighbors); kith.sklaern"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "15\n" and "no attribute 'sklaern'" in done.stderr


def test_without_scikit_learn():
    program = "import sys; sys.modules['sklearn'] = None\ntry: import kith.sklearn\nexcept ImportError as error: print(error)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "pip install scikit-learn" in done.stdout, done.stderr
