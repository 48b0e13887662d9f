"""kith.LocalSearchQuantizer and kith.ResidualQuantizer: sums of codewords, and what people meet."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import kith


@pytest.fixture
def x(rng):
    return rng.standard_normal((900, 10)).astype(np.float32)


def local(**options):
    return kith.LocalSearchQuantizer(3, bits=4, rounds=4, train_search_rounds=2, **options)


def sums(codebooks, codes, bits=4):
    """Codewords added up, from packed codes."""
    unpacked = np.unpackbits(codes, axis=1, bitorder="little")[:, : len(codebooks) * bits]
    numbers = np.packbits(unpacked.reshape(len(codes), -1, bits), axis=2, bitorder="little")[:, :, 0]
    total = codebooks[0][numbers[:, 0]]
    for book, column in zip(codebooks[1:], numbers.T[1:]):
        total = total + book[column]
    return total


@pytest.mark.parametrize("make", [local, lambda: kith.ResidualQuantizer(3, bits=4)])
def test_codes_are_sums_of_codewords(x, make):
    quantizer = make().train(x)
    assert quantizer.codebooks.shape == (3, 16, 10) and quantizer.codebooks.dtype == np.float32
    assert (quantizer.bits, quantizer.dimension, quantizer.code_bytes, quantizer.trained) == (4, 10, 2, True)
    codes = quantizer.encode(x)
    assert codes.shape == (900, 2) and codes.dtype == np.uint8 and (codes[:, 1] < 16).all()
    decoded = quantizer.decode(codes)
    np.testing.assert_array_equal(decoded, sums(quantizer.codebooks, codes))
    assert ((decoded - x) ** 2).mean() < 0.6 * (x**2).mean()


@pytest.mark.parametrize("make", [local, lambda: kith.ResidualQuantizer(3, bits=4)])
def test_lookup_tables_add_up_to_inner_products(x, make):
    quantizer = make().train(x)
    table = quantizer.lookup_table(x[7:9])
    assert table.shape == (2, 3, 16) and table.dtype == np.float32
    np.testing.assert_allclose(table, np.einsum("qd,bwd->qbw", x[7:9], quantizer.codebooks), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(quantizer.lookup_table(x[7]), table[0])
    codes = quantizer.encode(x[:5])
    numbers = np.stack([codes[:, 0] & 15, codes[:, 0] >> 4, codes[:, 1]], axis=1)
    added = table[:, np.arange(3), numbers].sum(axis=2)
    np.testing.assert_allclose(added, x[7:9] @ quantizer.decode(codes).T, rtol=1e-4, atol=1e-4)
    with pytest.raises(NotImplementedError, match="no sums; take the table of inner_product"):
        quantizer.lookup_table(x, "sqeuclidean")
    with pytest.raises(ValueError, match="sqeuclidean or inner_product"):
        quantizer.lookup_table(x, "cosine")


def test_local_search_is_nearer_than_product_codes(rng):
    x = (rng.standard_normal((4000, 4)) @ rng.standard_normal((4, 16))).astype(np.float32)
    product = kith.ProductQuantizer(4, bits=4).train(x)
    quantizer = kith.LocalSearchQuantizer(4, bits=4, rounds=10).train(x)
    errors = [((q.decode(q.encode(x)) - x) ** 2).mean() for q in (product, quantizer)]
    assert errors[1] < 0.7 * errors[0]


def test_rounds_continue_and_never_raise_an_error(x):
    quantizer = local().train(x)
    before = None
    for rounds in (0, 1, 4, 8):
        codes = quantizer.encode(x, rounds=rounds)
        errors = ((quantizer.decode(codes) - x) ** 2).sum(axis=1)
        assert before is None or (errors <= before * (1 + 1e-5)).all()
        more = quantizer.encode(x, rounds=rounds, from_round=rounds, start=codes)
        np.testing.assert_array_equal(more, quantizer.encode(x, rounds=2 * rounds))
        before = errors
    parts = [quantizer.encode(x[i : i + 100], first_row=i) for i in range(0, 900, 100)]
    np.testing.assert_array_equal(np.concatenate(parts), quantizer.encode(x, threads=1))
    assert (quantizer.encode(x, seed=1, rounds=1) != quantizer.encode(x, seed=2, rounds=1)).any()
    assert (quantizer.encode(x, start="random", rounds=0) != quantizer.encode(x, rounds=0)).any()


def test_training(x, tmp_path):
    for start in ("opq", "residual", "random"):
        quantizer = local(train_start=start, anneal=0).train(x)
        history = quantizer.history
        assert len(history) == 4 and all(b <= a * (1 + 1e-6) for a, b in zip(history, history[1:]))
    kith.write_vectors(tmp_path / "x.fbin", x)
    np.testing.assert_array_equal(local(seed=3).train(tmp_path / "x.fbin").codebooks, local(seed=3).train(x, threads=1).codebooks)
    assert (local(seed=3).train(x).codebooks != local(seed=4).train(x).codebooks).any()


@pytest.mark.parametrize("make", [local, lambda: kith.ResidualQuantizer(3, bits=4, beam=3)])
def test_files_pickles_and_given_codebooks(x, tmp_path, make):
    quantizer = make().train(x)
    codes = quantizer.encode(x)
    quantizer.save(tmp_path / "q.kith")
    kind = type(quantizer)
    for other in (
        kind.load(tmp_path / "q.kith"),
        pickle.loads(pickle.dumps(quantizer)),
        copy.copy(quantizer),
        kind.of_codebooks(quantizer.codebooks, **({"beam": 3} if kind is kith.ResidualQuantizer else {})),
    ):
        np.testing.assert_array_equal(other.codebooks, quantizer.codebooks)
        np.testing.assert_array_equal(other.encode(x), codes)
    assert not pickle.loads(pickle.dumps(make())).trained
    other = kith.ResidualQuantizer if kind is kith.LocalSearchQuantizer else kith.LocalSearchQuantizer
    with pytest.raises(ValueError, match=f"quantizer: kith.{kind.__name__}.load reads it"):
        other.load(tmp_path / "q.kith")
    assert repr(quantizer) == f"kith.{kind.__name__}(3, bits=4)"


def test_mistakes(x):
    for options, text in (
        ({"codebooks": 0}, "codebooks = 0"),
        ({"bits": 9}, "1 to 8 bits"),
        ({"perturbed": 4}, "perturbed = 4 of 3 codes"),
        ({"regularization": 0}, "regularization = 0"),
        ({"train_start": "pq"}, "unknown start of training 'pq'; known are: opq, residual, random"),
        ({"order": "up"}, "unknown order of codebooks 'up'; known are: fixed, random"),
        ({"seed": -1}, "not be negative"),
    ):
        with pytest.raises(ValueError, match=text):
            kith.LocalSearchQuantizer(**{"codebooks": 3, **options})
    with pytest.raises(ValueError, match="beam = 0"):
        kith.ResidualQuantizer(3, beam=0)
    quantizer = local()
    with pytest.raises(RuntimeError, match="not trained"):
        quantizer.encode(x)
    with pytest.raises(ValueError, match="10 rows cannot train books of 16 codewords"):
        quantizer.train(x[:10])
    quantizer.train(x)
    codes = quantizer.encode(x, rounds=1)
    with pytest.raises(ValueError, match="10 columns|of 10"):
        quantizer.encode(x[:, :9])
    with pytest.raises(ValueError, match="start has the shape"):
        quantizer.encode(x, start=codes[:, :1])
    with pytest.raises(ValueError, match="code 0 is no code"):
        quantizer.encode(x, start=codes | 0x80)
    with pytest.raises(TypeError, match="codes are 2-D uint8"):
        quantizer.encode(x, start=codes.astype(np.int32))
    with pytest.raises(ValueError, match="'greedy', 'random' or"):
        quantizer.encode(x, start="best")
    broken = x.copy()
    broken[123, 4] = np.nan
    before = quantizer.codebooks
    for call in (quantizer.encode, quantizer.train):
        with pytest.raises(ValueError, match="123 .* or make the quantizer with check_finite=False"):
            call(broken)
    with pytest.raises(MemoryError):
        quantizer.train(x, memory_limit=20_000)
    np.testing.assert_array_equal(quantizer.codebooks, before)
    with pytest.raises(ValueError, match=r"must be \(codebooks, 2\*\*bits, dimension\)"):
        kith.LocalSearchQuantizer.of_codebooks(np.zeros((2, 15, 4)))


def test_a_loaded_quantizer_is_copied_with_its_search(rng, tmp_path):
    x = rng.standard_normal((700, 8)).astype(np.float32)
    quantizer = kith.LocalSearchQuantizer(3, bits=4, rounds=2, sweeps=2, perturbed=1, order="random").train(x)
    quantizer.save(tmp_path / "lsq.kith")
    codes = quantizer.encode(x)
    loaded = kith.LocalSearchQuantizer.load(tmp_path / "lsq.kith")
    assert (loaded.encode(x) == codes).all()
    assert (pickle.loads(pickle.dumps(loaded)).encode(x) == codes).all()
