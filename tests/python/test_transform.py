"""Transforms from Python: shapes and kinds of arrays, the way back, pickles, errors."""

import copy
import pickle

import kith
import numpy as np
import pytest
from kith._training_time import warn_of_long_training


@pytest.fixture(name="x")
def _x():
    rng = np.random.default_rng(3)
    mixed = rng.normal(size=(300, 12)) * 0.8 ** np.arange(12) @ np.linalg.qr(rng.normal(size=(12, 12)))[0]
    return (mixed + 2).astype(np.float32)


def test_pca_is_that_of_numpy(x):
    pca = kith.PCA(4).train(x)
    assert (pca.dimension_in, pca.dimension_out, pca.trained) == (12, 4, True)
    np.testing.assert_allclose(pca.mean, x.mean(0, dtype=np.float64), rtol=1e-6)
    values, vectors = np.linalg.eigh(np.cov(x.T.astype(np.float64)))
    axes = vectors[:, ::-1][:, :4].T
    assert np.allclose(np.abs((axes * pca.components).sum(1)), 1, atol=1e-5)
    found = pca.apply(x)
    assert found.dtype == np.float32
    assert np.allclose(found.var(0, ddof=1), values[::-1][:4], rtol=1e-4)
    lost = ((pca.reverse(found) - x) ** 2).sum() / (len(x) - 1)
    assert np.isclose(lost, values[:-4].sum(), rtol=1e-3)


def test_pca_of_fewer_rows_than_columns():
    few = np.random.default_rng(0).standard_normal((50, 200), dtype=np.float32)
    pca = kith.PCA(8).train(few)
    values = np.linalg.eigvalsh(np.cov(few.T.astype(np.float64)))[::-1][:8]
    assert np.allclose(pca.apply(few).var(0, ddof=1), values, rtol=1e-4)


def test_values_are_float64_sums_rounded_once(x):
    rotation = kith.RandomRotation(seed=5).train(x)
    exact = x.astype(np.float64) @ rotation.rotation.T.astype(np.float64)
    assert (np.abs(rotation.apply(x) - exact) <= np.spacing(np.abs(exact).astype(np.float32)) / 2 * 1.001).all()


@pytest.mark.parametrize(("steps", "columns"), [("RR", 12), ("RR20", 20), ("OPQ3", 12), ("OPQ5_20", 20), ("Centre", 12)])
def test_distances_are_kept(x, steps, columns):
    transform = kith.Transform(steps).train(x)
    y = transform.apply(x)
    assert y.shape == (300, columns)
    np.testing.assert_allclose(kith.pairwise_distances(y[:20]), kith.pairwise_distances(x[:20]), atol=1e-5)
    np.testing.assert_allclose(transform.reverse(y), x, atol=1e-5)


def test_steps_follow_each_other(x):
    transform = kith.Transform("L2norm,PCA6,Pad8").train(x)
    assert [part["name"] for part in transform.learnt] == ["L2norm", "Centre", "PCA", "Pad"]
    y = transform.apply(x)
    assert y.shape == (300, 8)
    assert not y[:, 6:].any()
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    np.testing.assert_allclose(kith.PCA(6).train(unit).apply(unit), y[:, :6], atol=1e-5)
    assert repr(transform) == "kith.Transform('L2norm,PCA6,Pad8')"


def test_opq_loses_less_than_codes_of_the_columns_as_they_are(x):
    assert kith.OPQ(3, 6).train(x).rotation.shape == (6, 12)
    rotation = kith.OPQ(4).train(x).rotation
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(12), atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "uint8", "int8", "float64", "int32"])
def test_any_dtype(x, dtype):
    given = (x * 20).clip(0, 100).astype(dtype)
    transform = kith.PCA(3).train(given)
    np.testing.assert_array_equal(transform.apply(given), transform.apply(given.astype(np.float32)))


def test_a_file_trains_the_same_bytes(x, tmp_path):
    path = tmp_path / "x.fvecs"
    kith.write_vectors(path, x)
    np.testing.assert_array_equal(kith.PCA(5).train(path).components, kith.PCA(5).train(x).components)


def test_threads_and_limits_change_nothing(x):
    one = kith.OPQ(4, seed=2).train(x, threads=1)
    many = kith.OPQ(4, seed=2).train(x, threads=3, memory_limit=50_000_000)
    np.testing.assert_array_equal(one.rotation, many.rotation)
    np.testing.assert_array_equal(one.apply(x), many.apply(x, threads=3, memory_limit=5_000_000))
    with pytest.raises(MemoryError):
        one.apply(x, memory_limit=100)


def test_pickles_and_copies(x):
    for transform in (kith.PCA(4), kith.Transform("L2norm,OPQ2_4", seed=3)):
        assert not pickle.loads(pickle.dumps(transform)).trained
        transform.train(x)
        for other in (pickle.loads(pickle.dumps(transform)), copy.deepcopy(transform)):
            assert type(other) is type(transform)
            np.testing.assert_array_equal(other.apply(x), transform.apply(x))


def test_what_is_wrong_is_said(x):
    with pytest.raises(ValueError, match="unknown transform \"ABC\".*PCA64"):
        kith.Transform("L2norm,ABC")
    with pytest.raises(ValueError, match="it can only make fewer"):
        kith.PCA(13).train(x)
    with pytest.raises(ValueError, match="the nearest that do are 4 and 6"):
        kith.OPQ(5).train(x)
    with pytest.raises(ValueError, match="at least one"):
        kith.PCA(2).train(x[:0])
    with pytest.raises(RuntimeError, match="train it first"):
        kith.PCA(2).apply(x)
    transform = kith.PCA(2).train(x)
    with pytest.raises(ValueError, match="the transform takes 12"):
        transform.apply(x[:, :5])
    bad = x.copy()
    bad[7, 3] = np.nan
    with pytest.raises(ValueError, match="row 7"):
        transform.apply(bad)
    with pytest.raises(ValueError, match="row 7"):
        kith.PCA(2).train(bad)
    assert np.isnan(kith.Transform("RR", check_finite=False).train(x).apply(bad)[7]).all()


@pytest.mark.parametrize(
    "made", [kith.PCA(3, seed=5), kith.OPQ(4, 8), kith.RandomRotation(20), kith.Transform("Centre,L2norm", check_finite=False)]
)
def test_a_file_gives_it_back(made, x, tmp_path):
    path = tmp_path / "transform.kith"
    made.train(x).save(path)
    for read in (type(made).load(path), kith.Transform.load(str(path), device="cpu")):
        assert read.steps == made.steps
        np.testing.assert_array_equal(read.apply(x), made.apply(x))
        again = tmp_path / "again.kith"
        read.save(again)
        assert again.read_bytes() == path.read_bytes()
    assert isinstance(pickle.loads(pickle.dumps(type(made).load(path))), type(made))


def test_files_that_hold_something_else(x, tmp_path):
    path = tmp_path / "transform.kith"
    with pytest.raises(RuntimeError, match="trained"):
        kith.PCA(3).save(path)
    kith.Transform("L2norm,PCA3").train(x).save(path)
    with pytest.raises(ValueError, match=r"load it with kith\.Transform\.load"):
        kith.PCA.load(path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(kith.CorruptFileError):
        kith.Transform.load(path)


def test_training_that_takes_minutes_is_warned_of() -> None:
    many = np.broadcast_to(np.float32(0), (100_000, 768))
    long = [("OPQ96,IVF447,PQ96", many), ("OPQ96_192,PQ96", many), ("L2norm, OPQ96", many), ("PCA700,OPQ100", many)]
    short = [("IVF447,PQ96", many), ("PCA256,OPQ32,PQ32", many), ("OPQ16_64,PQ16", many[:, :128]), ("OPQ96", many[:1000])]
    for steps, x in long:
        columns = 700 if "700" in steps else 768
        with pytest.warns(UserWarning, match=rf"OPQ of {columns} columns trains for some \d+ minutes on 1 thread of.*progress=True"):
            warn_of_long_training(steps, x, "cpu", 1, False)
        warn_of_long_training(steps, x, "cpu", 1, lambda *_: None)
    for steps, x in short:
        warn_of_long_training(steps, x, "cpu", 1, False)
    warn_of_long_training("OPQ96", ["a.npy"], "cpu", 1, False)


@pytest.mark.filterwarnings("error")
def test_a_training_warns_where_it_was_called() -> None:
    x = np.broadcast_to(np.float32(0), (70_000, 1024))
    for train in (kith.Index("OPQ64,PQ64", device="cpu").train, kith.OPQ(64, device="cpu").train):
        with pytest.raises(UserWarning, match="trains for some"):
            train(x, threads=1)
