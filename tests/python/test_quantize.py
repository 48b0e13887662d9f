"""kith.ProductQuantizer and kith.ScalarQuantizer: the same codes however they are made, and what people meet."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import kith


@pytest.fixture
def x(rng):
    return rng.standard_normal((1000, 12)).astype(np.float32)


def trained(kind, x, **options):
    return (kith.ProductQuantizer(4, bits=4) if kind == "product" else kith.ScalarQuantizer()).train(x, **options)


def test_product_codes_are_the_nearest_codewords(x):
    quantizer = kith.ProductQuantizer(3, bits=4, seed=2).train(x)
    words = quantizer.codewords.astype(np.float64)
    assert words.shape == (3, 16, 4) and quantizer.codewords.dtype == np.float32
    assert (quantizer.parts, quantizer.bits, quantizer.dimension, quantizer.code_bytes) == (3, 4, 12, 2)
    codes = quantizer.encode(x)
    assert codes.shape == (1000, 2) and codes.dtype == np.uint8
    distances = ((x.reshape(-1, 3, 1, 4) - words[None]) ** 2).sum(axis=3)
    nearest = distances.argmin(axis=2)
    assert (codes[:, 0] == nearest[:, 0] + 16 * nearest[:, 1]).all() and (codes[:, 1] == nearest[:, 2]).all()
    np.testing.assert_array_equal(quantizer.decode(codes), words[np.arange(3), nearest].reshape(-1, 12))


def test_scalar_codes_and_their_error(x):
    for bits in (8, 6, 4):
        quantizer = kith.ScalarQuantizer(bits).train(x)
        np.testing.assert_array_equal(quantizer.least, x.min(axis=0))
        np.testing.assert_array_equal(quantizer.span, x.max(axis=0) - x.min(axis=0))
        codes = quantizer.encode(x)
        assert codes.shape == (1000, 12 * bits // 8) == (1000, quantizer.code_bytes)
        assert (np.abs(quantizer.decode(codes) - x) <= 0.501 * quantizer.span / (2**bits - 1)).all()
    half = kith.ScalarQuantizer(16).train(x)
    np.testing.assert_array_equal(half.decode(half.encode(x)), x.astype(np.float16).astype(np.float32))
    assert half.least.size == 0 and half.code_bytes == 24


@pytest.mark.parametrize("kind", ["product", "scalar"])
def test_lookup_tables_add_up_to_distances(x, kind):
    quantizer = trained(kind, x)
    codes = quantizer.encode(x[:5])
    back = quantizer.decode(codes).astype(np.float64)
    split = np.stack([codes & 15, codes >> 4], axis=2).reshape(5, -1) if kind == "product" else codes
    for metric, expected in (
        ("sqeuclidean", ((x[7:9, None] - back[None]) ** 2).sum(axis=2)),
        ("inner_product", x[7:9].astype(np.float64) @ back.T),
    ):
        table = quantizer.lookup_table(x[7:9], metric)
        assert table.shape == (2, split.shape[1], 16 if kind == "product" else 256)
        sums = table[:, np.arange(split.shape[1]), split].astype(np.float64).sum(axis=2)
        np.testing.assert_allclose(sums, expected, rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(quantizer.lookup_table(x[7], metric), table[0])
    with pytest.raises(ValueError, match="sqeuclidean or inner_product"):
        quantizer.lookup_table(x, "cosine")


@pytest.mark.parametrize("kind", ["product", "scalar"])
def test_dtypes_layouts_and_threads_change_nothing(x, kind, tmp_path):
    quantizer = trained(kind, x, threads=1)
    codes = quantizer.encode(x, threads=1)
    path = tmp_path / "x.fvecs"
    kith.write_vectors(path, x)
    for given in (x.astype(np.float64), np.asfortranarray(x), np.repeat(x, 2, axis=0)[::2], path):
        other = trained(kind, given, threads=3)
        assert pickle.dumps(other) == pickle.dumps(quantizer)
        rows = x if given is path else given
        np.testing.assert_array_equal(other.encode(rows, threads=3), codes)
    np.testing.assert_array_equal(quantizer.decode(codes[::2]), quantizer.decode(codes)[::2])


@pytest.mark.parametrize("kind", ["product", "scalar"])
def test_copies_and_pickles(x, kind):
    quantizer = trained(kind, x)
    for other in (pickle.loads(pickle.dumps(quantizer)), copy.deepcopy(quantizer)):
        np.testing.assert_array_equal(other.encode(x), quantizer.encode(x))
    empty = pickle.loads(pickle.dumps(type(quantizer)(4)))
    assert not empty.trained and empty.dimension == 0 and empty.code_bytes == 0
    with pytest.raises(RuntimeError, match="not trained"):
        empty.encode(x)
    with pytest.raises(RuntimeError, match="not trained"):
        empty.decode(np.zeros((2, 3), np.uint8))


def test_made_from_values(x):
    product = trained("product", x)
    again = kith.ProductQuantizer.of_codewords(product.codewords)
    np.testing.assert_array_equal(again.encode(x), product.encode(x))
    scalar = trained("scalar", x)
    other = kith.ScalarQuantizer.of_ranges(scalar.least, scalar.span)
    np.testing.assert_array_equal(other.encode(x), scalar.encode(x))
    with pytest.raises(ValueError, match=r"\(parts, 2\*\*bits, columns of a part\)"):
        kith.ProductQuantizer.of_codewords(np.zeros((2, 15, 3)))
    with pytest.raises(ValueError, match="both must be 1-D"):
        kith.ScalarQuantizer.of_ranges([1, 2], [1])


def test_errors_say_what_to_do(x):
    with pytest.raises(ValueError, match="take 4 or 6"):
        kith.ProductQuantizer(5).train(x)
    with pytest.raises(ValueError, match="bits = 9"):
        kith.ProductQuantizer(4, bits=9)
    with pytest.raises(ValueError, match="parts = 0"):
        kith.ProductQuantizer(0)
    with pytest.raises(ValueError, match="bits = 5"):
        kith.ScalarQuantizer(5)
    with pytest.raises(ValueError, match="seed"):
        kith.ProductQuantizer(4, seed=-1)
    with pytest.raises(ValueError, match="100 rows cannot train 256 codewords"):
        kith.ProductQuantizer(4).train(x[:100])
    with pytest.warns(RuntimeWarning, match="1000 rows train 256 codewords; 9984 or more"):
        kith.ProductQuantizer(4).train(x)
    bad = x.copy()
    bad[17, 3] = np.nan
    for kind in ("product", "scalar"):
        with pytest.raises(ValueError, match="17"):
            trained(kind, bad)
        with pytest.raises(ValueError, match="17 .* or make the quantizer with check_finite=False"):
            trained(kind, x).encode(bad)
    with pytest.raises(ValueError, match="11 columns"):
        trained("scalar", x).encode(x[:, :11])
    with pytest.raises(ValueError, match="they must be 3 x 12 u8"):
        trained("scalar", x).decode(np.zeros((3, 11), np.uint8))
    with pytest.raises(NotImplementedError, match="no lookup table"):
        kith.ScalarQuantizer(16).train(x).lookup_table(x)


def test_a_limit_is_kept(x):
    with pytest.raises(MemoryError):
        kith.ProductQuantizer(4, bits=4).train(x, memory_limit=10_000)


def test_parameters_survive_a_file(tmp_path):
    x = np.random.default_rng(3).standard_normal((800, 8)).astype(np.float32)
    product = kith.ProductQuantizer(4, bits=4, seed=9, check_finite=False).train(x)
    product.save(tmp_path / "p.kith")
    again = kith.ProductQuantizer.load(tmp_path / "p.kith")
    assert again._parameters == product._parameters
    assert np.array_equal(again.train(x).codewords, product.codewords)
    scalar = kith.ScalarQuantizer(6, check_finite=False).train(x)
    scalar.save(tmp_path / "s.kith")
    assert kith.ScalarQuantizer.load(tmp_path / "s.kith")._parameters == scalar._parameters
