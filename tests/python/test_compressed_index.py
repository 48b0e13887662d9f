"""kith.Index with codes and lists: what is found, ids, removal, and what is said of wrong input."""

from __future__ import annotations

import threading
from functools import partial

import numpy as np
import pytest
from conftest import probing

import kith

# Few rows train well enough to be searched.
pytestmark = pytest.mark.filterwarnings("ignore:.*(train well|better lists)")

FACTORIES = ["SQ8", "SQ4", "SQfp16", "PQ4", "PQ8x4", "IVF8,Flat", "IVF8,SQ8", "IVF8,PQ4", "PCA12,IVF8,SQ8"]
FACTORIES += ["OPQ4_8,IVF8,PQ4", "PCAR8,IVF8,PQ4", "L2norm,IVF8,Flat", "IVF8,PQ4x4,RFlat", "IVF8,PQ4,Refine(SQ8)", "RR,Flat", "IDMap,IVF8,PQ4x4fs"]
FACTORIES += ["LSQ3x4", "IVF8,LSQ2x4", "RQ3x4"]
NORMS = ["RQ2x8_Ncqint8", "IVF8,RQ3x4_Nqint8", "IVF8,LSQ2x4_Nfloat"]
SIGNS = ["RaBitQ", "RR,IVF8,RaBitQ,RFlat"]
ALL = 1 << 20


def made(factory, x, metric="sqeuclidean", ids=None, **more):
    index = kith.Index(factory, metric=metric, **more)
    index.train(x)
    index.add(x, ids=ids)
    return index


def same(a, b):
    return a.ids.tobytes() == b.ids.tobytes() and a.distances.tobytes() == b.distances.tobytes()


@pytest.mark.parametrize("metric", ["l2", "sqeuclidean", "inner_product", "cosine"])
@pytest.mark.parametrize("factory", ["SQ8", "PQ4", "IVF8,Flat", "IVF8,SQ6", "IVF8,PQ4"])
def test_all_lists_give_knn_over_the_decoded_vectors(factory, metric, vectors):
    x, queries = vectors(700, 16), vectors(20, 16)
    index = made(factory, x, metric)
    decoded = index.reconstruct(np.arange(700))
    assert same(index.search(queries, k=9, **probing(index, ALL)), kith.knn(queries, decoded, k=9, metric=metric))


@pytest.mark.parametrize("factory", NORMS)
def test_norms_of_additive_codes(factory, vectors):
    x, queries = vectors(700, 16), vectors(20, 16)
    index = made(factory, x)
    assert index.info().code_bytes > made(factory[: factory.index("_N")], x).info().code_bytes
    decoded = index.reconstruct(np.arange(700)).astype(np.float64)
    for some in (queries, queries[:1]):  # products and lookups
        found = index.search(some, k=9, **probing(index, ALL))
        exact = ((some[:, None, :].astype(np.float64) - decoded[found.ids]) ** 2).sum(axis=2)
        norms = (decoded**2).sum(axis=1)
        tolerance = 1e-4 if factory.endswith("_Nfloat") else np.ptp(norms) / 20
        assert np.abs(found.distances - exact).max() < tolerance
    raises(ValueError, "inner_product alone", kith.Index, "LSQ2x4_Nnone", metric="l2")
    raises(ValueError, "LSQ2x4_Nqint8", kith.Index, "LSQ2x4_Nqint4")


@pytest.mark.parametrize("factory", FACTORIES + NORMS + SIGNS)
def test_every_kind(factory, vectors, tmp_path):
    x = vectors(600, 16)
    index = kith.Index(factory, metric="sqeuclidean")
    assert not index.trained and index.dimension == 0 and index.dtype is None
    assert "not trained" in repr(index)
    index.train(x)
    assert index.trained and len(index) == 0 and index.dimension == 16
    index.add(x[:300])
    index.add(x[300:])
    found = index.search(x[:40], k=10, **probing(index, 8))
    assert found.ids.shape == (40, 10)
    assert (found.ids == np.arange(40)[:, None]).any(axis=1).mean() > 0.9  # codes of 2 bytes are coarse
    index.save(tmp_path / "x.kith")
    again = kith.load(tmp_path / "x.kith")
    assert again.factory == factory and again.metric == "sqeuclidean" and len(again) == 600
    assert same(again.search(x[:40], k=10, **probing(again, 8)), found)
    assert index.remove(np.arange(0, 600, 2)) == 300
    assert (index.search(x[:40], k=10, **probing(index, ALL)).ids % 2 == 1).all()
    assert index.reconstruct([1, 3]).shape == (2, 16)


def test_probes(vectors):
    x = vectors(2000, 8)
    index = made("IVF50,Flat", x)
    true = kith.knn(x[:100], x, k=10, metric="sqeuclidean")
    hits = [np.mean(index.search(x[:100], k=10, probes=p).ids == true.ids) for p in (1, 8, 50)]
    assert hits[0] < hits[1] < hits[2] == 1.0
    assert same(index.search(x[:100], k=10, probes=1000), true)
    default = index.search(x[:100], k=10)  # the root of 50, rounded up
    assert same(default, index.search(x[:100], k=10, probes=8))
    # one list holds some 40 vectors: more are looked at until there are k
    assert (index.search(x[:3], k=1500, probes=1).ids >= 0).all()
    narrow, wide = (index.range_search(x[:100], 2.0, probes=p) for p in (1, 50))
    assert narrow.offsets[-1] < wide.offsets[-1] == kith.range_search(x[:100], x, 2.0, metric="sqeuclidean").offsets[-1]


def test_refine(vectors):
    x = vectors(1500, 16)
    index = made("IVF8,PQ4x4,RFlat", x)
    true = kith.knn(x[:50], x, k=5, metric="sqeuclidean")
    few, many = (np.mean(index.search(x[:50], k=5, probes=8, refine=r).ids == true.ids) for r in (1, 100))
    assert few < many
    every = index.search(x[:50], k=5, probes=8, refine=300)
    assert same(every, true)


def test_ids(vectors):
    x = vectors(300, 8)
    names = np.random.default_rng(1).permutation(10_000)[:300]
    index = made("IVF4,Flat", x, ids=names)
    assert (index.search(x, k=1, probes=4).ids[:, 0] == names).all()
    assert (index.reconstruct(names[[5, 2]]) == x[[5, 2]]).all()
    assert (index.reconstruct(int(names[7])) == x[7]).all()
    index.add(x[:1] + 100)
    assert index.search(x[0] + 100, k=1, probes=4).ids[0] == names.max() + 1
    assert index.remove([names[3], names[3], 999_999]) == 1
    assert index.remove(int(names[4])) == 1
    assert len(index) == 299
    assert index.search(x[3], k=1, probes=4).ids[0] != names[3]
    index.add(x[3:4], ids=[names[3]])
    assert index.search(x[3], k=1, probes=4).ids[0] == names[3]
    found = index.range_search(x[3:4], 0.0, probes=4)
    assert found.ids.tolist() == [names[3]]


def test_given_ids_never_repeat(vectors):
    x = vectors(10, 4)
    index = kith.Index()
    index.add(x)
    assert index.remove([8, 9]) == 2
    index.add(x[:1] + 50)
    assert index.search(x[0] + 50, k=1).ids[0] == 10


@pytest.mark.parametrize("factory", ["Flat", "IVF4,SQ8"])
def test_filters(factory, vectors):
    x = vectors(200, 8)
    names = np.arange(200) * 3 + 7
    index = made(factory, x, ids=names)
    index.remove(names[:50])
    left = names[50:]
    some = left[[3, 60, 100]]
    by_id = index.search(x[:9], k=5, **probing(index, 4), filter=some)
    assert set(by_id.ids[:, :3].ravel()) == set(some.tolist()) and (by_id.ids[:, 3:] == -1).all()
    mask = np.isin(left, some)  # of the vectors that are there, in the order of add
    assert same(index.search(x[:9], k=5, **probing(index, 4), filter=mask), by_id)
    assert same(index.search(x[:9], k=5, **probing(index, 4), filter=np.packbits(mask, bitorder="little")), by_id)
    within = index.range_search(x[:9], 1e9, **probing(index, 4), filter=some.tolist())
    assert (np.diff(within.offsets) == 3).all()
    with pytest.raises(ValueError, match="150"):
        index.search(x[:9], filter=np.ones(200, bool))
    unknown = [int(names[0]), *some.tolist(), -1]
    assert same(index.search(x[:9], k=5, **probing(index, 4), filter=unknown), by_id)
    assert (np.diff(index.range_search(x[:9], 1e9, **probing(index, 4), filter=unknown).offsets) == 3).all()
    for search in (partial(index.search, x[:9]), partial(index.range_search, x[:9], 1.0)):
        with pytest.raises(ValueError, match=f"{names[0]}.* is not in the index"):
            search(filter=unknown, filter_strict=True)
        with pytest.raises(TypeError, match="filter_strict"):
            search(filter=unknown, filter_strict="yes")


def test_files_larger_than_memory(vectors, tmp_path):
    x = vectors(30_000, 32)
    kith.write_vectors(tmp_path / "x.fbin", x)
    kith.write_vectors(tmp_path / "names.ibin", np.arange(30_000)[::-1, None])
    whole = made("IVF16,PQ8", x, ids=np.arange(30_000)[::-1])
    limited = kith.Index("IVF16,PQ8", metric="sqeuclidean")
    limited.train(str(tmp_path / "x.fbin"))
    limited.add(tmp_path / "x.fbin", ids=kith.read_vectors(tmp_path / "names.ibin").ravel(), memory_limit=x.nbytes // 2)
    assert same(limited.search(x[:50], k=10, probes=4), whole.search(x[:50], k=10, probes=4))
    flat = kith.Index(metric="sqeuclidean")
    flat.add(tmp_path / "x.fbin")
    assert same(flat.search(x[:5], k=3), kith.knn(x[:5], x, k=3, metric="sqeuclidean"))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.uint8, np.int8, np.float64, np.int32])
def test_dtypes(dtype, rng):
    x = rng.integers(0, 100, (500, 12)).astype(dtype)
    index = made("IVF8,Flat", x)
    found = index.search(x[:30], k=4, probes=8)
    assert same(found, kith.knn(x[:30], x, k=4, metric="sqeuclidean"))
    expected = {"float16": "f16", "uint8": "u8", "int8": "i8"}.get(np.dtype(dtype).name, "f32")
    assert index.dtype == index.info().dtype == expected


def test_info(vectors):
    x = vectors(640, 16)
    index = made("IVF8,PQ4", x, ids=np.arange(640) + 5)
    info = index.info()
    assert (info.factory, info.metric, info.trained) == ("IVF8,PQ4", "sqeuclidean", True)
    assert (info.size, info.dimension, info.lists, info.code_bytes) == (640, 16, 8, 4)
    assert 80 <= info.longest_list <= 640 and 1 <= info.imbalance <= 8 and 1 <= info.filled_lists <= info.lists
    assert info.host_bytes == sum(info.parts.values()) and info.parts["ids"] >= 640 * 8
    assert "lists=8" in repr(info) and "'ids'" in repr(info)
    flat = made("Flat", x).info()
    assert (flat.size, flat.lists) == (640, 0) and flat.parts["vectors"] == x.nbytes
    assert sum(flat.parts.values()) == flat.host_bytes and set(flat.parts) <= {"vectors", "copy for searches"}
    empty = kith.Index().info()
    assert (empty.size, empty.lists, empty.trained) == (0, 0, True)


def test_a_seed_makes_an_index(vectors):
    x = vectors(900, 8)
    a, b, c = (made("IVF16,PQ4", x, seed=seed).search(x[:50], k=5) for seed in (1, 1, 2))
    assert same(a, b) and not same(a, c)


def test_lists_by_the_root(vectors):
    x = vectors(900, 4)
    assert made("IVF,SQ8", x).info().lists == 30
    assert made("IVF,SQ8", x, expected_rows=2500).info().lists == 50


def raises(error, says, call, *arguments, **more):
    with pytest.raises(error, match=says):
        call(*arguments, **more)


def test_the_wrong_order(vectors, tmp_path):
    x = vectors(400, 8)
    index = kith.Index("IVF4,SQ8")
    raises(RuntimeError, "must be trained before vectors are added: call train", index.add, x)
    raises(RuntimeError, "must be trained before it is searched", index.search, x)
    raises(RuntimeError, "must be trained before it is saved", index.save, tmp_path / "x.kith")
    index.train(x)
    index.train(x[:300])  # replaces the first
    index.add(x)
    raises(RuntimeError, "holds 400 vectors, coded as it was trained", index.train, x)
    assert len(index) == 400


def test_flat_needs_no_training(vectors):
    x = vectors(40, 8)
    index = kith.Index()
    assert index.trained
    index.train(x)
    assert index.dimension == 0
    raises(ValueError, "axes", index.train, x[0])
    index.add(x.astype(np.float16))  # training fixed nothing
    assert index.dtype == "f16"


@pytest.mark.parametrize(
    "factory, says",
    [
        ("IVF4,PQx", "unknown part 'PQx' of the index 'IVF4,PQx'; known are.*PQm"),
        ("IVF4,HNSW32", "no part 'HNSW32'.*Graph64"),
        ("IVF4", "does not say what is kept of a vector"),
        ("SQ5", "5 bits; there are 8, 6, 4"),
        ("PQ4x9", "9 bits; codes have 4 to 8"),
        ("", "unknown part ''"),
    ],
)
def test_factory_strings_that_are_refused(factory, says):
    raises(ValueError, says, kith.Index, factory)


def test_vectors_that_are_refused(vectors):
    x = vectors(400, 10)
    raises(ValueError, "4 sub-vectors do not divide 10 columns; take 2 or 5.*OPQ", kith.Index("PQ4").train, x)
    raises(ValueError, "400 training rows for 500 centres", kith.Index("IVF500,Flat").train, x)
    raises(ValueError, "100 rows cannot train 256 codewords", kith.Index("PQ5").train, x[:100])
    broken = x.copy()
    broken[123, 4] = np.nan
    raises(ValueError, "123", kith.Index("IVF4,SQ8").train, broken)
    index = made("IVF4,SQ8", x)
    raises(ValueError, "123", index.add, broken)
    raises(ValueError, "9", index.add, x[:, :9])
    raises(ValueError, "9", index.search, x[:, :9])
    assert len(index) == 400
    for metric in ("l1", "linf", "hamming"):
        raises(NotImplementedError, f"metric {metric} with inverted lists or codes.*cosine", kith.Index, "IVF4,SQ8", metric)


def test_ids_that_are_refused(vectors):
    x = vectors(400, 8)
    index = made("IVF4,SQ8", x)
    for ids, error, says in [
        ([1, 2], ValueError, "2 ids were given for 3 vectors"),
        ([500, 500, 501], ValueError, "500"),
        ([500, 501, 7], ValueError, "7"),
        ([500, -1, 501], ValueError, "id -1 of row 1.*nothing was added"),
        ([0.5, 1, 2], TypeError, "ids is float64"),
        ([True, False, True], TypeError, "flatnonzero"),
        ([[500, 501, 502]], ValueError, "2 axes"),
        (np.array([2**63, 1, 2], np.uint64), ValueError, "int64"),
    ]:
        raises(error, says, index.add, x[:3], ids)
        assert len(index) == 400
    raises(ValueError, "no vector with the id 400", index.reconstruct, [0, 400])
    assert index.remove([]) == 0 and index.remove([400, 401]) == 0
    assert index.reconstruct([]).shape == (0, 8)


@pytest.mark.parametrize(
    ("factory", "used"),
    [("Flat", ()), ("PQ4", ()), ("PQ4,RFlat", ("refine",)), ("IVF4,SQ8", ("probes",)), ("Graph16", ("beam", "width", "refine"))],
)
def test_parameters_of_other_kinds_are_refused_by_name(factory, used, vectors):
    x = vectors(300, 8)
    index = made(factory, x)
    for name in ("probes", "beam", "width", "refine"):
        if name in used:
            index.search(x[:3], k=2, **{name: 4})
        else:
            raises(ValueError, rf"{name} = 4 is for .*; the index '{factory}' takes", index.search, x[:3], k=2, **{name: 4})
    if "probes" not in used:
        raises(ValueError, "probes = 4 is for indexes with lists", index.range_search, x[:3], 1.0, probes=4)
        raises(ValueError, "probes = 4 is for indexes with lists", index.knn_graph, x, k=2, probes=4)


@pytest.mark.parametrize("name", ["probes", "refine"])
def test_counts_that_are_refused(name, vectors):
    x = vectors(100, 8)
    index = made("IVF4,SQ8,RFlat", x)
    for value, error in [(0, ValueError), (-1, ValueError), (1.5, TypeError), (True, TypeError), (2**70, ValueError)]:
        raises(error, name, index.search, x[:2], **{name: value})


def test_names_of_other_libraries(vectors):
    x = vectors(300, 8)
    index = made("IVF4,SQ8", x)
    raises(TypeError, r"search\(\) has no argument 'nprobe'; Kith's way is probes", index.search, x, nprobe=8)
    raises(TypeError, "'k_factor'; Kith's way is refine", index.search, x, k_factor=2)
    raises(TypeError, "'nprobe'; Kith's way is probes", index.range_search, x, 1.0, nprobe=8)
    raises(TypeError, "'space'; Kith's way is metric", kith.Index, space="l2", dim=8)
    raises(TypeError, "'nlist'; Kith's way is the factory string", kith.Index, nlist=16)
    raises(TypeError, r"'check_finite'; Kith's way is kith.Index\(..., check_finite=False\)", index.add, x, check_finite=False)
    raises(AttributeError, r"'IndexFlatIP'; Kith's way is kith.Index\('Flat', metric='inner_product'\)", getattr, kith, "IndexFlatIP")
    raises(AttributeError, "no attribute 'knnn'; Kith's way is kith.knn$", getattr, kith, "knnn")
    raises(TypeError, "'frobs'; it has queries, k", index.search, x, frobs=8)
    raises(AttributeError, r"'IndexHNSWFlat'; Kith's way is kith.Index\('Graph64'\)", getattr, kith, "IndexHNSWFlat")
    raises(AttributeError, r"'merge_from'; Kith's way is index.merge", lambda: index.merge_from)
    raises(AttributeError, r"'upsert'; Kith's way is index.add\(x, ids, replace=True\)", lambda: index.upsert)
    raises(TypeError, "'upsert'; Kith's way is replace=True", index.add, x, upsert=True)
    raises(TypeError, "'n_clusters'; Kith's way is clusters", kith.KMeans, n_clusters=3)
    raises(TypeError, "'random_state'; Kith's way is seed", kith.KMeans, 3, random_state=0)
    raises(TypeError, "'n_neighbors'; Kith's way is k", kith.knn, x, x, n_neighbors=3)
    raises(TypeError, "'ef'; Kith's way is beam", index.search, x, ef=3)
    raises(TypeError, "'metrik'; did you mean 'metric'", kith.knn, x, x, metrik="l1")
    raises(TypeError, "'xyz'; it has queries, base, k", kith.knn, x, x, xyz=1)
    raises(AttributeError, r"kith.PCA has no attribute 'fit'; Kith's way is train", lambda: kith.PCA(2).fit)
    raises(AttributeError, r"kith.KMeans has no attribute 'centroids'; Kith's way is cluster_centers_", lambda: kith.KMeans(2).centroids)
    raises(AttributeError, "call fit first", lambda: kith.KMeans(2).cluster_centers_)
    raises(AttributeError, r"'ntotal'; Kith's way is len\(index\)", lambda: index.ntotal)
    raises(AttributeError, r"'add_with_ids'; Kith's way is index.add\(x, ids=ids\)", lambda: index.add_with_ids(x, x))
    raises(AttributeError, "no attribute 'frobs'; it has add, ", lambda: index.frobs)
    with pytest.raises(AttributeError, match=r"'nprobe'; Kith's way is index.search\(queries, probes=...\)"):
        index.nprobe = 16
    assert not hasattr(index, "is_trained")


def test_a_limit_that_is_too_small(vectors):
    x = vectors(20_000, 32)
    index = made("IVF8,SQ8", x[:2000])
    raises(MemoryError, "bytes|KiB|MiB", index.add, x, memory_limit=1000)
    assert len(index) == 2000


@pytest.mark.parametrize("factory", ["Flat", "IVF8,SQ8,RFlat"])
def test_removed_vectors_are_marked_until_compact(factory, vectors):
    x = vectors(300, 8)
    index = made(factory, x)
    assert index.remove([7, 9, 7]) == 2
    assert index.info().dead == 2 / 300 and index.info().size == len(index) == 298
    mask = np.arange(298) % 3 > 0
    marked = index.search(x[:20], k=4, filter=mask)
    index.compact()
    assert index.info().dead == 0
    assert same(index.search(x[:20], k=4, filter=mask), marked)
    assert 7 not in marked.ids
    with pytest.raises(TypeError):
        index.compact(now=True)


def test_searches_while_another_thread_adds_and_removes(vectors):
    """Vectors 0..99 stay all the time, and are found at distance 0 in every version."""
    x = vectors(3000, 16)
    index = made("IVF8,Flat", x[:100])
    stop, wrong = threading.Event(), []

    def search(seed):
        rng = np.random.default_rng(seed)
        while not stop.is_set():
            rows = rng.integers(0, 100, 5)
            found = index.search(x[rows], k=3, probes=8, threads=1)
            if not ((found.ids[:, 0] == rows).all() and (found.distances[:, 0] == 0).all()):
                wrong.append(found)
            index.range_search(x[rows], 0.0, probes=8, threads=1)
            index.reconstruct(rows)

    searchers = [threading.Thread(target=search, args=(i,)) for i in range(4)]
    for searcher in searchers:
        searcher.start()
    try:
        for first in range(100, 3000, 100):
            index.add(x[first : first + 100], ids=np.arange(first, first + 100))
            if first > 500:
                assert index.remove(np.arange(first - 400, first - 300)) == 100
    finally:
        stop.set()
        for searcher in searchers:
            searcher.join()
    assert not wrong and len(index) == 600


def test_a_view_on_another_device(vectors):
    index = made("SQ8", vectors(50, 8))
    other = index.to("cpu")
    assert other is not index and other.device == "cpu" and index.device == "auto"
    raises(ValueError, "gpu", index.to, "gpu")


@pytest.mark.parametrize("factory", ["Flat", "IVF4,Flat", "IVF4,PQ2x4,RFlat"])
def test_any_order_of_adds_and_removals(factory, rng):
    """Against a dict of id and vector, in the order of add."""
    x = rng.standard_normal((400, 4), dtype=np.float32)
    index = kith.Index(factory, metric="sqeuclidean")
    index.train(x)
    held, largest = {}, -1
    for _ in range(60):
        count = int(rng.integers(0, 30))
        rows = rng.standard_normal((count, 4), dtype=np.float32)
        if rng.random() < 0.5:
            ids = [i for i in rng.permutation(5000)[:count].tolist() if i not in held]
            rows = rows[: len(ids)]
            index.add(rows, ids=ids)
        else:
            ids = list(range(largest + 1, largest + 1 + count))
            index.add(rows)
        held.update(zip(ids, rows))
        largest = max([largest, *ids])
        gone = [i for i in held if rng.random() < 0.2] + [9999]
        assert index.remove(gone) == len(gone) - 1
        for i in gone[:-1]:
            del held[i]
        assert len(index) == len(held)
        if held:
            names = np.array(list(held))
            vectors = np.array(list(held.values()))
            again = {"refine": 1000} if "RFlat" in factory else {}
            found = index.search(x[:5], k=3, **probing(index, 4), **again)
            true = kith.knn(x[:5], vectors, k=3, metric="sqeuclidean")
            assert (found.ids == np.where(true.ids < 0, -1, names[true.ids])).all()
            if factory != "IVF4,PQ2x4,RFlat":
                assert (index.reconstruct(names) == vectors).all()


@pytest.mark.parametrize("factory", ["Flat,RFlat", "IDMap,Flat,RFlat", "Flat,Refine(SQ8)"])
def test_exact_search_behind_vectors_to_refine_with(factory, rng, tmp_path):
    x, queries = rng.standard_normal((400, 15)).astype(np.float32), rng.standard_normal((9, 15)).astype(np.float32)
    true = kith.knn(queries, x, k=5)
    index = kith.Index(factory)
    if "SQ8" in factory:
        index.train(x)
    index.add(x[:1])
    index.add(x[1:])
    found = index.search(queries, k=5, refine=80)
    if "SQ8" not in factory:
        assert (found.ids == true.ids).all() and (found.distances == true.distances).all()
    index.save(tmp_path / "index.kith")
    assert (kith.load(tmp_path / "index.kith").search(queries, k=5, refine=80).ids == found.ids).all()
    if "SQ8" not in factory:
        merged = kith.Index(factory)
        merged.merge(index)
        assert (merged.search(queries, k=5).ids == found.ids).all()


def test_every_call_takes_the_common_settings(rng, tmp_path):
    x = rng.standard_normal((900, 8)).astype(np.float32)
    common = {"threads": 1, "memory_limit": 2**28, "device_memory_limit": 2**28, "progress": False}
    index = kith.Index("IVF4,SQ8", device="cpu")
    index.train(x, **common)
    other = index.to("cpu", **common)
    index.add(x[:500], **common)
    other.add(x[500:], **common)
    index.merge(other, shift_ids=True, **common)
    assert index.remove([3, 4], **common) == 2
    assert index.reconstruct([7], **common).shape == (1, 8)
    index.save(tmp_path / "i.kith", **common)
    assert len(index) == len(kith.load(tmp_path / "i.kith")) == 898
    with pytest.raises(TypeError, match="to\\(\\)"):
        index.to("cpu", nprobe=3)
