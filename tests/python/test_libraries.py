"""Arrays of torch and jax on the host: taken where they lie, and answered in kind."""

from __future__ import annotations

import numpy as np
import pytest

import kith
from kith._arrays import as_vectors


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def jax():
    jax = pytest.importorskip("jax")
    with jax.default_device(jax.devices("cpu")[0]):  # also where it sees a GPU
        yield jax


def test_torch_in_torch_out(torch, vectors):
    queries, base = vectors(5, 6), vectors(80, 6)
    true = kith.knn(queries, base, k=3)
    index = kith.Index()
    index.add(torch.from_numpy(base))
    for found in (
        kith.knn(torch.from_numpy(queries), base, k=3),
        kith.knn(torch.from_numpy(queries), torch.from_numpy(base), k=3),
        index.search(torch.from_numpy(queries), k=3),
    ):
        assert isinstance(found, kith.Neighbors)
        assert isinstance(found.ids, torch.Tensor) and found.ids.dtype == torch.int64
        assert isinstance(found.distances, torch.Tensor) and found.distances.dtype == torch.float32
        assert (found.ids.numpy() == true.ids).all() and (found.distances.numpy() == true.distances).all()
    alone = kith.knn(torch.from_numpy(queries[2]), base, k=3)
    assert isinstance(alone.ids, torch.Tensor) and (alone.ids.numpy() == true.ids[2]).all()
    assert isinstance(kith.knn(queries, torch.from_numpy(base), k=3).ids, np.ndarray)


def test_torch_is_not_copied(torch, vectors):
    x = vectors(9, 4)
    taken, copied = as_vectors(torch.from_numpy(x), "x")
    assert np.shares_memory(taken, x) and not copied


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "uint8", "int8"])
def test_torch_dtypes(torch, dtype, rng):
    x = torch.from_numpy(rng.integers(0, 100, (40, 6)).astype(np.float32))
    true = kith.knn(x.numpy(), x.numpy(), k=4)
    given = x.to(getattr(torch, dtype))
    assert not as_vectors(given, "x")[1]
    found = kith.knn(given, given, k=4)
    assert (found.ids.numpy() == true.ids).all() and (found.distances.numpy() == true.distances).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda torch, x: x.double(),
        lambda torch, x: x.to(torch.int16),
        lambda torch, x: x.T.contiguous().T,
        lambda torch, x: x.repeat_interleave(2, dim=1)[:, ::2],
        lambda torch, x: torch.complex(x, -x).conj().imag,  # torch keeps a sign for later
    ],
    ids=["float64", "int16", "columns", "every other column", "negative view"],
)
def test_torch_converted(torch, make, rng):
    x = torch.from_numpy(rng.integers(0, 100, (40, 6)).astype(np.float32))
    found = kith.knn(make(torch, x), x, k=4)
    assert (found.ids.numpy() == kith.knn(x.numpy(), x.numpy(), k=4).ids).all()


def test_torch_refused(torch):
    base = np.ones((4, 3), np.float32)
    for given, says in (
        (torch.ones(2, 3, requires_grad=True), "detach"),
        (torch.nn.Parameter(torch.ones(2, 3)), "detach"),
        (torch.ones(2, 3).to_sparse(), "to_dense"),
        (torch.ones(2, 3, dtype=torch.bool), "bool"),
        (torch.ones(2, 3, device="meta"), "GPU|DLPack|meta"),
    ):
        with pytest.raises((TypeError, ValueError), match=says):
            kith.knn(given, base)
        with pytest.raises((TypeError, ValueError), match=says):
            kith.Index().add(given)


def test_torch_out(torch, vectors):
    queries, base = vectors(5, 6), vectors(80, 6)
    true = kith.knn(queries, base, k=3)
    out = torch.empty(5, 3, dtype=torch.int64), torch.empty(5, 3)
    found = kith.knn(torch.from_numpy(queries), base, k=3, out=out)
    assert found.ids is out[0] and found.distances is out[1]
    assert (out[0].numpy() == true.ids).all() and (out[1].numpy() == true.distances).all()
    for wrong, error, says in (
        ((torch.empty(5, 3, dtype=torch.int32), out[1]), TypeError, "int64"),
        ((out[0], torch.empty(5, 3, dtype=torch.float64)), TypeError, "float32"),
        ((torch.empty(3, 5, dtype=torch.int64).T, out[1]), ValueError, "contiguous"),
        ((out[0], torch.empty(5, 3, requires_grad=True)), TypeError, "detach"),
    ):
        with pytest.raises(error, match=says):
            kith.knn(queries, base, k=3, out=wrong)


def test_torch_elsewhere(torch, vectors):
    base = vectors(60, 4)
    x = torch.from_numpy(base)
    found, true = kith.range_search(x[:3], x, radius=1.5), kith.range_search(base[:3], base, radius=1.5)
    for mine, theirs in zip(found, true):
        assert isinstance(mine, torch.Tensor) and (mine.numpy() == theirs).all()
    assert isinstance(kith.pairwise_distances(x), torch.Tensor)
    graph, same = kith.knn_graph(x, k=3), kith.knn_graph(base, k=3)
    assert isinstance(graph.ids, torch.Tensor) and (graph.ids.numpy() == same.ids).all()
    assert isinstance(graph.distances, torch.Tensor) and (graph.distances.numpy() == same.distances).all()
    assert isinstance(graph.to_host().ids, np.ndarray) and (graph.to_csr() != same.to_csr()).nnz == 0
    for mine, theirs in zip(graph.to_umap(), same.to_umap()):
        assert isinstance(mine, np.ndarray) and mine.dtype == theirs.dtype and (mine == theirs).all()
    with pytest.raises(TypeError, match="int16"):
        kith.KnnGraph(graph.ids.to(torch.int16), graph.distances)
    with pytest.raises(TypeError, match="two libraries"):
        kith.KnnGraph(graph.ids, same.distances)
    model = kith.KMeans(3).fit(x)
    labels, distances = model.assign(x)
    assert isinstance(labels, torch.Tensor) and (labels.numpy() == model.labels_).all()
    assert isinstance(distances, torch.Tensor) and isinstance(model.transform(x), torch.Tensor)
    assert (kith.KMeans(3).fit_predict(x).numpy() == model.labels_).all()
    kept = kith.knn(base[:2], base, k=2, filter=torch.arange(60) % 2 == 0)
    assert (kept.ids % 2 == 0).all()


def test_jax_in_jax_out(jax, vectors):
    queries, base = vectors(5, 6), vectors(80, 6)
    true = kith.knn(queries, base, k=3)
    found = kith.knn(jax.numpy.asarray(queries), jax.numpy.asarray(base), k=3)
    assert isinstance(found.ids, jax.Array) and isinstance(found.distances, jax.Array)
    assert (np.asarray(found.ids) == true.ids).all() and (np.asarray(found.distances) == true.distances).all()
    small = jax.numpy.asarray(queries, dtype=jax.numpy.bfloat16)
    wide = np.asarray(small.astype("float32"))
    assert (np.asarray(kith.knn(small, base, k=3).ids) == kith.knn(wide, base, k=3).ids).all()
    with pytest.raises(TypeError, match="int64"):
        kith.knn(queries, base, k=3, out=(jax.numpy.zeros((5, 3), int), jax.numpy.zeros((5, 3))))
