"""kith dedup and kith sample: near duplicates go, and there is something to try commands with."""

import numpy as np
from matrix_files import read_matrix, write_matrix


def planted(tmp_path, rng):
    x = rng.standard_normal((500, 8)).astype(np.float32)
    return write_matrix(tmp_path / "x.fbin", np.concatenate([x, x[:40] + np.float32(1e-3)])), x


def test_near_duplicates_go(kith, tmp_path, rng=np.random.default_rng(1)):
    path, x = planted(tmp_path, rng)
    for exact in ([], ["--exact"]):
        outputs = ["--out", tmp_path / "u.fbin", "--out-rows", tmp_path / "r.ibin", "--out-labels", tmp_path / "l.ibin"]
        said = kith.ok("dedup", "--data", path, "--radius", "0.1", *exact, *outputs).out
        assert "540 rows, 40 of them near duplicates" in said
        np.testing.assert_array_equal(read_matrix(tmp_path / "u.fbin"), x)
        assert read_matrix(tmp_path / "r.ibin").ravel().tolist() == list(range(500))
        assert read_matrix(tmp_path / "l.ibin").ravel().tolist() == [*range(500), *range(40)]
    told = kith.ok("dedup", "--base", path, "--radius", "0.1", "--out-rows", tmp_path / "r.ibin", "--json").json
    assert told["result"]["left"] == 500


def test_a_dedup_without_output_or_radius(kith, tmp_path):
    path, _ = planted(tmp_path, np.random.default_rng(1))
    assert "no output" in kith.fails(2, "dedup", "--data", path, "--radius", "1")
    assert "--radius is required" in kith.fails(2, "dedup", "--data", path, "--out", tmp_path / "u.fbin")
    assert "radius" in kith.fails(2, "dedup", "--data", path, "--radius", "-1", "--out", tmp_path / "u.fbin")
    assert not (tmp_path / "u.fbin").exists()


def test_samples_are_the_same_everywhere_and_of_one_kind(kith, tmp_path):
    kith.ok("sample", tmp_path / "a.fbin", "--rows", "300", "--cols", "12")
    kith.ok("sample", tmp_path / "b.npy", "--rows", "200", "--cols", "12", "--memory-limit", "100M")
    kith.ok("sample", tmp_path / "q.fbin", "--rows", "50", "--cols", "12", "--seed", "1")
    a, b, q = (read_matrix(tmp_path / name) for name in ("a.fbin", "b.npy", "q.fbin"))
    np.testing.assert_array_equal(a[:200], b)
    near = np.sqrt(((q[:, None] - a[None]) ** 2).sum(2)).min(1)
    apart = np.sqrt(((a[:50, None] - a[None, 50:100]) ** 2).sum(2)).mean()
    assert np.median(near) < 0.8 * apart and 0.5 < a.std() < 2
    assert "at least 1" in kith.fails(2, "sample", tmp_path / "x.fbin", "--rows", "0")
