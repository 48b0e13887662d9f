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
    assert report["quantizer"] == {"name": name, "dimension": 16, "code_bytes": code_bytes}
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
    assert "holds a quantizer; give a .kith file of an index" in kith.fails(2, "index", "inspect", out)
    assert leftovers(tmp_path, data, out, other) == []


def test_how_additive_codes_are_trained(kith, tmp_path):
    rows = np.random.default_rng(2).standard_normal((2_000, 12)).astype(np.float32)
    data = write_matrix(tmp_path / "x.fbin", rows)
    written = {}
    for name, options in {
        "plain": [],
        "few": ["--rounds", 1, "--search-rounds", 1],
        "start": ["--start", "residual"],
        "heavy": ["--regularization", 1000.0],
        "calm": ["--anneal", 0],
        "again": ["--rounds", 25, "--search-rounds", 8, "--start", "opq", "--regularization", 10, "--anneal", 0.35, "--sweeps", 4, "--order", "fixed"],
    }.items():
        kith.ok("train", "--data", data, "--quantizer", "LSQ3x4", "--out", tmp_path / name, *options)
        written[name] = (tmp_path / name).read_bytes()
    assert written["again"] == written["plain"]
    assert len(set(written.values())) == 5
    for beam in (1, 5):
        kith.ok("train", "--data", data, "--quantizer", "RQ3x4", "--out", tmp_path / f"{beam}", "--beam", beam)
    assert (tmp_path / "1").read_bytes() != (tmp_path / "5").read_bytes()


def test_options_of_another_quantizer(kith, tmp_path):
    data = write_matrix(tmp_path / "x.fbin", np.random.default_rng(1).standard_normal((400, 10)))
    train = ["train", "--data", data, "--out", tmp_path / "q.kith", "--quantizer"]
    assert "--beam is an option of RQ, and LSQ2x4 was asked for" in kith.fails(2, *train, "LSQ2x4", "--beam", 3)
    assert "--sweeps is an option of LSQ, and RQ2x4 was asked for" in kith.fails(2, *train, "RQ2x4", "--sweeps", 3)
    assert "--anneal is an option of LSQ, and SQ8 was asked for" in kith.fails(2, *train, "SQ8", "--anneal", 0)
    assert "known are: opq, residual, random" in kith.fails(2, *train, "LSQ2x4", "--start", "best")
    assert leftovers(tmp_path, data) == []
