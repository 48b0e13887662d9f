"""kith kmeans: files in, centres and labels out."""

import numpy as np
import pytest

from matrix_files import leftovers, read_matrix, write_matrix
from test_memory_limit import MIB, peak_memory


@pytest.fixture
def data(tmp_path):
    """Rows around eight far centres, as f32 and as bytes."""
    random = np.random.default_rng(1)
    rows = np.rint(
        random.integers(0, 8, (2000, 1)) * 30
        + 2 * random.standard_normal((2000, 10))
        + 8
    )
    rows = rows.clip(0, 255)
    return (
        rows,
        write_matrix(tmp_path / "x.fbin", rows),
        write_matrix(tmp_path / "x.u8bin", rows),
    )


def test_centres_and_labels(kith, data, tmp_path):
    rows, path, bytes_path = data
    out, labels = tmp_path / "c.fbin", tmp_path / "l.ibin"
    arguments = (
        "kmeans",
        "--data",
        path,
        "-k",
        8,
        "--out",
        out,
        "--out-labels",
        labels,
    )
    report = kith.ok(*arguments, "--json").json
    centres, found = read_matrix(out), read_matrix(labels)
    assert centres.shape == (8, 10) and found.shape == (2000, 1)
    every = ((rows[:, None] - centres[None].astype(np.float64)) ** 2).sum(axis=2)
    assert (every.argmin(axis=1) == found[:, 0]).all()
    result = report["result"]
    assert result["objective"] == pytest.approx(every.min(axis=1).sum(), rel=1e-6)
    assert len(result["history"]) == result["iterations"] <= 25
    assert result["params"]["clusters"] == 8 and result["params"]["init"] == "kmeans++"
    assert "8 centres" in kith.ok(*arguments).out

    as_bytes, byte_labels = tmp_path / "b.npy", tmp_path / "bl.npy"
    kith.ok(
        "kmeans",
        "--data",
        bytes_path,
        "-k",
        8,
        "--out",
        as_bytes,
        "--out-labels",
        byte_labels,
        "--threads",
        1,
    )
    assert (read_matrix(as_bytes) == centres).all() and (
        read_matrix(byte_labels) == found
    ).all()


def test_every_option(kith, data, tmp_path):
    rows, path, _ = data
    weights = write_matrix(tmp_path / "w.npy", np.ones((2000, 1), np.float32))
    plain, weighted = tmp_path / "1.fbin", tmp_path / "2.fbin"
    kith.ok("kmeans", "--data", path, "-k", 5, "--out", plain, "--seed", 3)
    kith.ok(
        "kmeans",
        "--data",
        path,
        "--clusters",
        5,
        "--out",
        weighted,
        "--seed",
        3,
        "--weights",
        weights,
    )
    assert plain.read_bytes() == weighted.read_bytes()
    np.save(tmp_path / "list.npy", np.ones(2000, np.float32))  # as numpy has them
    options = ["--seed", 3, "--weights", tmp_path / "list.npy"]
    kith.ok("kmeans", "--data", path, "-k", 5, "--out", tmp_path / "5.fbin", *options)
    assert plain.read_bytes() == (tmp_path / "5.fbin").read_bytes()
    options = [
        "--iterations",
        3,
        "--tol",
        0,
        "--n-init",
        2,
        "--init",
        "random",
        "--spherical",
        "--batch-size",
        100,
    ]
    options += [
        "--max-points-per-centre",
        100,
        "--init-points-per-centre",
        8,
        "--no-check-finite",
        "--quiet",
    ]
    assert (
        kith.ok(
            "kmeans", "--data", path, "-k", 5, "--out", tmp_path / "3.fbin", *options
        ).out
        == ""
    )
    np.testing.assert_allclose(
        np.linalg.norm(read_matrix(tmp_path / "3.fbin"), axis=1), 1, rtol=1e-6
    )
    kith.ok(
        "kmeans",
        "--data",
        path,
        "-k",
        5,
        "--out",
        tmp_path / "4.fbin",
        "--init",
        "given",
        "--centres",
        plain,
    )
    assert np.allclose(read_matrix(tmp_path / "4.fbin"), read_matrix(plain), rtol=0.05)


@pytest.mark.parametrize(
    "options, code, says",
    [
        (["-k", 0], 2, "clusters = 0"),
        (["-k", 3000], 2, "3000 clusters"),
        (["--init", "best"], 2, "kmeans++"),
        (["--init", "given"], 2, "--centres"),
        (["--tol", -1], 2, "tol = -1"),
        (["--weights", "x.fbin"], 2, "2000 x 10 f32; one row or one column is needed"),
        (["--out-labels", "c.fbin"], 2, "same file"),
        (["--out-labels", "x.fbin"], 2, "same file"),
        (["--data", "none.fbin"], 3, "none.fbin"),
        (["--memory-limit", "1M"], 4, "--memory-limit"),
    ],
)
def test_what_is_refused(kith, data, tmp_path, options, code, says):
    options = [tmp_path / o if str(o).endswith("bin") else o for o in options]
    if "--data" not in options:
        options += ["--data", data[1]]
    assert says in kith.fails(code, "kmeans", "--out", tmp_path / "c.fbin", *options)
    assert leftovers(tmp_path, data[1], data[2]) == []


@pytest.mark.parametrize("batch", [0, 5000])
def test_a_file_larger_than_the_limit(kith_unsanitized, tmp_path, batch):
    block = (
        np.random.default_rng(2).standard_normal((32 * 1024, 128)).astype(np.float32)
    )
    path = tmp_path / "x.fbin"
    with open(path, "wb") as file:
        np.array([4 * len(block), 128], np.uint32).tofile(file)
        for i in range(4):
            (block + np.float32(i)).tofile(file)
    limit = 24 * MIB
    assert path.stat().st_size > 2.5 * limit
    arguments = [
        "kmeans",
        "--data",
        path,
        "-k",
        50,
        "--iterations",
        2,
        "--batch-size",
        batch,
        "--threads",
        2,
    ]
    free = [
        *arguments,
        "--out",
        tmp_path / "c1.fbin",
        "--out-labels",
        tmp_path / "l1.ibin",
    ]
    tight = [
        *arguments,
        "--out",
        tmp_path / "c2.fbin",
        "--out-labels",
        tmp_path / "l2.ibin",
        "--memory-limit",
        limit,
    ]
    kith_unsanitized.ok(*free)
    assert peak_memory(kith_unsanitized, *tight) <= limit
    assert (tmp_path / "c1.fbin").read_bytes() == (tmp_path / "c2.fbin").read_bytes()
    assert (tmp_path / "l1.ibin").read_bytes() == (tmp_path / "l2.ibin").read_bytes()
