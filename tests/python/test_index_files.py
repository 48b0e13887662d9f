"""Indexes in files: saved and loaded, pickled and copied, FAISS's format, offsets of float64."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from conftest import probing

import kith
from test_compressed_index import made, same

# Few rows train well enough to be searched.
pytestmark = pytest.mark.filterwarnings("ignore:.*(train well|better lists)")


@pytest.mark.parametrize(
    "call",
    [
        lambda path, x: kith.knn(x, path),
        lambda path, x: kith.range_search(path, path, 1.0),
        lambda path, x: kith.knn_graph(path, k=3),
        lambda path, x: kith.KMeans(2).fit(path),
        lambda path, x: kith.Index().add(path),
        lambda path, x: kith.read_vectors(path),
        lambda path, x: kith.write_vectors(path, x),
    ],
)
def test_an_index_is_no_file_of_vectors(call, vectors, tmp_path):
    index, path = kith.Index(), tmp_path / "x.kith"
    index.add(vectors(20, 4))
    index.save(path)
    with pytest.raises((TypeError, ValueError), match=r"\.kith file.* (not|no) vectors.*kith\.load"):
        call(path, vectors(3, 4))


@pytest.mark.parametrize("ways", [lambda x: pickle.loads(pickle.dumps(x)), copy.copy, copy.deepcopy])
@pytest.mark.parametrize("factory", ["Flat", "IVF8,PQ4", "OPQ4,IVF4,PQ4,RFlat"])
def test_pickled_and_copied(ways, factory, vectors):
    x = vectors(500, 16)
    index = made(factory, x, "cosine" if factory == "Flat" else "l2", ids=np.arange(500) + 9, device="cpu")
    twin = ways(index)
    assert (twin.factory, twin.metric, twin.device, len(twin)) == (index.factory, index.metric, "cpu", 500)
    assert same(twin.search(x[:20], k=7), index.search(x[:20], k=7))
    twin.add(x[:1])
    assert len(index) == 500 and len(twin) == 501  # nothing is shared
    assert (twin.search(x[0], k=2).ids == [9, 509]).all()


def test_an_index_before_its_first_vectors(tmp_path):
    untrained = pickle.loads(pickle.dumps(kith.Index("IVF,SQ8", "cosine", "cpu", False, expected_rows=400, seed=3)))
    assert (untrained.factory, untrained.metric, untrained.device) == ("IVF,SQ8", "cosine", "cpu")
    assert not untrained.trained
    untrained.train(np.random.default_rng(1).standard_normal((900, 4), dtype=np.float32))
    assert untrained.info().lists == 20
    empty = kith.Index("Flat", "l1")
    empty.save(tmp_path / "x.kith")
    again = kith.load(tmp_path / "x.kith")
    assert (again.factory, again.metric, again.dimension, len(again)) == ("Flat", "l1", 0, 0)
    again.add(np.ones((2, 3), np.uint8))
    assert again.dtype == "u8"


@pytest.mark.parametrize("factory", ["Flat", "IVF4,Flat"])
def test_offsets_of_float64_survive(factory, rng, tmp_path):
    """Times of this century differ in digits that float32 has not."""
    x = 1.7e9 + rng.random((300, 3)) * 10
    index = made(factory, x, "l2")
    true = kith.knn(x[:20], x, k=5)
    assert same(index.search(x[:20], k=5, **probing(index, 4)), true)
    assert np.abs(index.reconstruct([3, 4]) - x[[3, 4]]).max() < 1e-5  # float32 would be off by up to 64
    index.save(tmp_path / "x.kith")
    for again in (kith.load(tmp_path / "x.kith"), pickle.loads(pickle.dumps(index))):
        assert same(again.search(x[:20], k=5, **probing(again, 4)), true)
        again.add(x[:1])
        assert again.search(x[0], k=2, **probing(again, 4)).ids.tolist() == [0, 300]
    with pytest.raises(ValueError, match="offset.*FAISS"):
        kith.write_faiss(index, tmp_path / "x.faiss")
    kith.write_vectors(tmp_path / "more.fbin", x.astype(np.float32))
    with pytest.raises(ValueError, match="offset.*more.fbin"):
        index.add(tmp_path / "more.fbin")
    assert len(index) == 300


def test_training_fixes_the_offset(rng):
    x = 1.7e9 + rng.random((300, 3)) * 10
    index = kith.Index("IVF4,Flat")
    index.train(x)
    index.add(x[:1])  # from one row alone no offset could be told
    index.add(x[1:])
    assert same(index.search(x[:20], k=5, probes=4), kith.knn(x[:20], x, k=5))


def test_wrong_files(vectors, tmp_path):
    x = vectors(200, 8)
    path = tmp_path / "x.kith"
    made("IVF4,SQ8", x).save(path)
    whole = path.read_bytes()
    for content in (whole[:100], whole[: len(whole) // 2], whole[:-1]):
        path.write_bytes(content)
        with pytest.raises(kith.CorruptFileError, match="x.kith"):
            kith.load(path)
    path.write_bytes(whole[:9000] + bytes([whole[9000] ^ 1]) + whole[9001:])
    with pytest.raises(kith.CorruptFileError, match="x.kith"):
        kith.load(path)
    path.write_bytes(b"")
    with pytest.raises((kith.CorruptFileError, ValueError)):
        kith.load(path)
    with pytest.raises(FileNotFoundError):
        kith.load(tmp_path / "none.kith")
    with pytest.raises(FileNotFoundError):
        kith.read_faiss(tmp_path / "none.faiss")


def test_a_save_that_fails_leaves_the_file_before(vectors, tmp_path):
    x = vectors(200, 8)
    path = tmp_path / "x.kith"
    made("IVF4,SQ8", x).save(path)
    before = path.read_bytes()
    with pytest.raises(RuntimeError, match="trained"):
        kith.Index("IVF4,SQ8").save(path)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["x.kith"]


@pytest.mark.parametrize("factory", ["Flat", "SQ8", "PQ4", "IVF4,Flat", "IVF4,SQ8", "IVF4,PQ4", "PCA6,IVF4,PQ3"])
def test_faiss_files_both_ways(factory, vectors, tmp_path):
    x = vectors(400, 8)
    index = made(factory, x, ids=None)
    path = tmp_path / "x.faiss"
    kith.write_faiss(index, path)
    again = kith.read_faiss(path)
    assert len(again) == 400 and again.metric == "sqeuclidean"
    assert same(again.search(x[:20], k=5, **probing(again, 4)), index.search(x[:20], k=5, **probing(index, 4)))
    with pytest.raises(ValueError, match="kith.read_faiss"):
        kith.load(path)
    index.save(tmp_path / "again.faiss")  # the name says which format
    assert (tmp_path / "again.faiss").read_bytes() == path.read_bytes()
    index.save(tmp_path / "x.kith")
    with pytest.raises(ValueError, match="kith.load"):
        kith.read_faiss(tmp_path / "x.kith")


def test_what_faiss_lacks(vectors, tmp_path):
    x = vectors(100, 8)
    with pytest.raises(NotImplementedError, match="cosine"):
        kith.write_faiss(made("IVF4,Flat", x, "cosine"), tmp_path / "x.faiss")
    with pytest.raises(TypeError, match="path comes second"):
        kith.write_faiss(tmp_path / "x.faiss", kith.Index())


def test_faiss_reads_it(vectors, tmp_path):
    faiss = pytest.importorskip("faiss")
    x = vectors(2000, 16)
    index = made("IVF8,PQ4", x)
    kith.write_faiss(index, tmp_path / "x.faiss")
    theirs = faiss.read_index(str(tmp_path / "x.faiss"))
    theirs.nprobe = 8
    distances, ids = theirs.search(x[:50], 5)
    found = index.search(x[:50], k=5, probes=8)
    assert np.mean(ids == found.ids) > 0.98  # save among equal distances
    np.testing.assert_allclose(distances, found.distances, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("make", [lambda: kith.ProductQuantizer(4), lambda: kith.ProductQuantizer(8, bits=5),
                                  lambda: kith.ScalarQuantizer(bits=6), lambda: kith.ScalarQuantizer(bits=16)])
def test_quantizers(make, vectors, tmp_path):
    x = vectors(600, 16)
    quantizer, path = make(), tmp_path / "q.kith"
    with pytest.raises(RuntimeError, match="must be trained before it is saved"):
        quantizer.save(path)
    quantizer.train(x).save(path)
    again = type(quantizer).load(path)
    assert repr(again) == repr(quantizer) and again.code_bytes == quantizer.code_bytes
    assert (again.encode(x) == quantizer.encode(x)).all()
    assert (again.decode(quantizer.encode(x)) == quantizer.decode(quantizer.encode(x))).all()
    other = kith.ScalarQuantizer if isinstance(quantizer, kith.ProductQuantizer) else kith.ProductQuantizer
    with pytest.raises(ValueError, match=f"kith.{type(quantizer).__name__}.load reads it"):
        other.load(path)
    with pytest.raises(ValueError, match="holds a quantizer"):
        kith.load(path)


@pytest.mark.parametrize(
    "name, head, says",
    [
        ("x.fbin", b"", "a file of vectors"),
        ("ids.ibin", b"", "a file of ids"),
        ("x.npy", b"\x93NUMPY", "a numpy array"),
        ("x.csv", b"1,2\n3,4\n", "a table"),
        ("x.dat", b"\x89PNG\r\n\x1a\n", "an image"),
        ("x.dat", b"\xff\xd8\xff\xe0", "an image"),
        ("x.npz", b"PK\x03\x04", "a zip archive"),
    ],
)
def test_files_of_another_kind_are_named(name, head, says, tmp_path):
    (tmp_path / name).write_bytes(head + bytes(40))
    for read, wanted in ((kith.load, "not a .kith file"), (kith.read_faiss, "not an index of FAISS's")):
        with pytest.raises(ValueError, match=f"{says}.*, {wanted}") as told:
            read(tmp_path / name)
        assert not isinstance(told.value, kith.CorruptFileError)


def test_other_folders_of_kith_say_how_to_open_them(tmp_path):
    (tmp_path / "graph").mkdir()
    (tmp_path / "graph" / "report.json").write_text("{}")
    with pytest.raises(ValueError, match=r"k-NN graph: read it with kith.KnnGraph.load\(path\)"):
        kith.load(tmp_path / "graph")
    if kith._kith.has_collections:
        kith.open(tmp_path / "films", dimension=4).close()
        with pytest.raises(ValueError, match=r"collection: open it with kith.open\(path\)"):
            kith.load(tmp_path / "films")
