"""kith train, encode and decode: vectors as codes and back."""

import numpy as np
import pytest

from matrix_files import leftovers, read_matrix, write_matrix


@pytest.mark.parametrize("name, code_bytes, error", [("PQ8", 8, 0.25), ("PQ8x4", 4, 0.7), ("SQ8", 16, 1e-3), ("SQfp16", 32, 1e-6), ("LSQ4x4", 2, 0.7), ("RQ4x4", 2, 0.8)])
def test_there_and_back(kith, tmp_path, name, code_bytes, error):
    rows = np.random.default_rng(1).standard_normal((12_000, 16)).astype(np.float32)
    data = write_matrix(tmp_path / "x.fbin", rows)
    quantizer, codes, again = tmp_path / "q.kith", tmp_path / "c.u8bin", tmp_path / "y.fbin"
    report = kith.ok("train", "--data", data, "--quantizer", name, "--out", quantizer, "--json").json["result"]
    assert report["quantizer"] == {"name": name, "cols": 16, "code_bytes": code_bytes}
    kith.ok("encode", "--quantizer", quantizer, "--data", data, "--out", codes)
    assert read_matrix(codes).shape == (12_000, code_bytes)
    text = kith.ok("decode", "--quantizer", quantizer, "--codes", codes, "--out", again).out
    assert f"{name} of 16 values in {code_bytes} bytes" in text
    assert np.mean((read_matrix(again) - rows) ** 2) < error
    before = codes.read_bytes()
    kith.ok("encode", "--quantizer", quantizer, "--data", data, "--out", codes, "--threads", 1, "--memory-limit", "64M")
    assert codes.read_bytes() == before


def test_mistakes(kith, tmp_path):
    data = write_matrix(tmp_path / "x.fbin", np.random.default_rng(1).standard_normal((400, 10)))
    out = tmp_path / "q.kith"
    train = ["train", "--data", data, "--out", out, "--quantizer"]
    assert "'IVF4,SQ8' is not a quantizer" in kith.fails(2, *train, "IVF4,SQ8")
    assert "unknown part 'XQ4'" in kith.fails(2, *train, "XQ4")
    assert "4 sub-vectors do not divide 10 columns" in kith.fails(2, *train, "PQ4")
    assert leftovers(tmp_path, data) == []
    kith.ok(*train, "SQ8")
    other = write_matrix(tmp_path / "o.fbin", np.zeros((3, 9)))
    codes = tmp_path / "c.u8bin"
    assert "rows of 9 values" in kith.fails(2, "encode", "--quantizer", out, "--data", other, "--out", codes)
    assert "are 10 bytes" in kith.fails(2, "decode", "--quantizer", out, "--codes", other, "--out", tmp_path / "y.fbin")
    assert "holds 'codec', where 'index' is wanted" in kith.fails(2, "index", "inspect", out)
    assert leftovers(tmp_path, data, out, other) == []
