"""kith range, and --filter of kith knn and kith range, against brute force."""

import numpy as np
import pytest

from matrix_files import leftovers, nearest, read_matrix, write_matrix


@pytest.fixture
def data(tmp_path):
    random = np.random.default_rng(3)
    folder = tmp_path / "in"
    folder.mkdir()
    base = write_matrix(folder / "b.fbin", random.standard_normal((500, 6)))
    queries = write_matrix(folder / "q.fbin", random.standard_normal((40, 6)))
    return ["--base", base, "--queries", queries], read_matrix(base), read_matrix(queries)


def within(queries, base, radius, kept=None):
    """For each query the rows within the radius, nearest first, by brute force."""
    ids, distances = nearest(queries, base, len(base), "l2")
    keep = np.ones(len(base), bool) if kept is None else np.isin(np.arange(len(base)), kept)
    return [row[(far.astype(np.float32) <= np.float32(radius)) & keep[row]] for row, far in zip(ids, distances)]


def check(tmp_path, truth):
    offsets, ids = read_matrix(tmp_path / "o.ibin")[:, 0], read_matrix(tmp_path / "i.ibin")[:, 0]
    assert len(offsets) == len(truth) + 1 and offsets[0] == 0
    for query, rows in enumerate(truth):
        np.testing.assert_array_equal(ids[offsets[query] : offsets[query + 1]], rows)


def outputs(tmp_path):
    return ["--out-offsets", tmp_path / "o.ibin", "--out-ids", tmp_path / "i.ibin"]


@pytest.mark.parametrize("radius", [0, 1.5, 2.5, 100])
def test_finds_all_within_the_radius(kith, tmp_path, data, radius):
    arguments, base, queries = data
    said = kith.ok(
        "range", *arguments, "--radius", radius, *outputs(tmp_path), "--out-distances", tmp_path / "d.fbin", "--json"
    )
    truth = within(queries, base, radius)
    check(tmp_path, truth)
    assert said.json["result"]["found"] == sum(map(len, truth)) == len(read_matrix(tmp_path / "d.fbin"))
    assert (read_matrix(tmp_path / "d.fbin") <= radius).all()


def test_runs_where_it_is_told(kith, tmp_path, data):
    arguments, base, queries = data
    kith.ok("range", *arguments, "--radius", 2.5, *outputs(tmp_path), "--device", "cpu", "--device-memory-limit", "1G")
    check(tmp_path, within(queries, base, 2.5))
    assert "unknown device 'gpu'" in kith.fails(
        2, "range", *arguments, "--radius", 2.5, *outputs(tmp_path), "--device", "gpu"
    )


LISTS = ["keep.ibin", "keep.npy", "keep-list.npy"]
MASKS = ["mask.u8bin", "mask.npy", "mask-bool.npy", "mask-column.npy", "mask-row.npy"]


@pytest.mark.parametrize("name", LISTS + MASKS)
def test_a_filter_leaves_rows_out(kith, tmp_path, data, name):
    arguments, base, queries = data
    kept = np.arange(3, 500, 7)
    mask = np.zeros((500, 1), np.uint8)
    mask[kept] = 1
    rows = mask if name.startswith("mask") else kept.reshape(-1, 1)
    if name == "mask-bool.npy":  # as numpy has them
        rows = rows[:, 0] != 0
    elif name == "mask-column.npy":
        rows = rows != 0
    elif name == "mask-row.npy":
        rows = rows.reshape(1, -1) != 0
    elif name == "keep-list.npy":
        rows = rows[:, 0]
    filter_path = write_matrix(tmp_path / "in" / name, rows)
    kith.ok("range", *arguments, "--radius", 2.5, "--filter", filter_path, *outputs(tmp_path))
    check(tmp_path, within(queries, base, 2.5, kept))
    kith.ok("knn", *arguments, "-k", 5, "--filter", filter_path, "--out-ids", tmp_path / "n.ibin")
    ids, _ = nearest(queries, base[kept], 5, "l2")
    np.testing.assert_array_equal(read_matrix(tmp_path / "n.ibin"), kept[ids])


def test_a_memory_limit_changes_nothing(kith_unsanitized, tmp_path, data):
    arguments, base, queries = data
    kith_unsanitized.ok("range", *arguments, "--radius", 2, *outputs(tmp_path), "--memory-limit", "64M")
    check(tmp_path, within(queries, base, 2))


def test_refuses_before_it_works(kith, tmp_path, data):
    arguments, _, _ = data
    known = [tmp_path / "in"]
    wrong_mask = write_matrix(tmp_path / "in" / "m.u8bin", np.ones((7, 1), np.uint8))
    outside = write_matrix(tmp_path / "in" / "k.ibin", np.array([[500]]))
    assert "500" in kith.fails(2, "range", *arguments, "--radius", 1, "--filter", outside, *outputs(tmp_path))
    assert "7 rows" in kith.fails(2, "range", *arguments, "--radius", 1, "--filter", wrong_mask, *outputs(tmp_path))
    assert "one row or column" in kith.fails(
        2, "knn", *arguments, "--filter", arguments[1], "--out-ids", tmp_path / "i.ibin"
    )
    assert "not a number" in kith.fails(2, "range", *arguments, "--radius", "nan", *outputs(tmp_path))
    assert "same file" in kith.fails(
        2, "range", *arguments, "--radius", 1, "--out-offsets", tmp_path / "x.ibin", "--out-ids", tmp_path / "x.ibin"
    )
    nowhere = tmp_path / "no" / "where.ibin"
    assert "where.ibin" in kith.fails(
        3, "range", *arguments, "--radius", 1, "--out-offsets", tmp_path / "o.ibin", "--out-ids", nowhere
    )
    assert leftovers(tmp_path, *known) == []


def test_without_self(kith, tmp_path):
    x = np.array([[0.0], [0.1], [5.0], [0.0]], np.float32)
    file, other = write_matrix(tmp_path / "x.fbin", x), write_matrix(tmp_path / "y.fbin", x[:2])
    out = ("--out-offsets", tmp_path / "o.npy", "--out-ids", tmp_path / "i.npy", "--out-distances", tmp_path / "d.npy")
    kith.ok("range", "--base", file, "--queries", file, "--radius", 0.2, "--without-self", *out)
    assert np.load(tmp_path / "o.npy").ravel().tolist() == [0, 2, 4, 4, 6]
    assert np.load(tmp_path / "i.npy").ravel().tolist() == [3, 1, 0, 3, 0, 1]
    np.testing.assert_allclose(np.load(tmp_path / "d.npy").ravel(), [0, 0.1, 0.1, 0.1, 0, 0.1], rtol=1e-6)
    assert "--without-self" in kith.fails(2, "range", "--base", file, "--queries", other, "--radius", 1, "--without-self", *out)
