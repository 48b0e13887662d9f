"""kith knn: results against brute force, and every refusal before work begins."""

import os
import re

import numpy as np
import pytest

from matrix_files import leftovers, nearest, read_matrix, write_matrix

METRICS = ["l2", "sqeuclidean", "inner_product", "cosine"]


@pytest.fixture
def data(tmp_path):
    """A base and queries, f32, in .fbin files of a folder of their own."""
    random = np.random.default_rng(1)
    folder = tmp_path / "in"
    folder.mkdir()
    base = write_matrix(folder / "b.fbin", random.standard_normal((700, 19)))
    queries = write_matrix(folder / "q.fbin", random.standard_normal((61, 19)))
    return ["knn", "--base", base, "--queries", queries], read_matrix(base), read_matrix(queries)


def check(ids, distances, queries, base, k, metric):
    true_ids, true_distances = nearest(queries, base, k, metric)
    np.testing.assert_array_equal(ids, true_ids)
    np.testing.assert_allclose(distances, true_distances, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("ids_name, distances_name", [("i.ibin", "d.fbin"), ("i.npy", "d.npy")])
def test_equals_brute_force(kith, tmp_path, data, metric, ids_name, distances_name):
    arguments, base, queries = data
    ids, distances = tmp_path / ids_name, tmp_path / distances_name
    kith.ok(*arguments, "-k", 7, "--metric", metric, "--out-ids", ids, "--out-distances", distances)
    assert read_matrix(ids).dtype == (np.int32 if ids.suffix == ".ibin" else np.int64)
    check(read_matrix(ids), read_matrix(distances), queries, base, 7, metric)


@pytest.mark.parametrize(
    "suffixes", [(".u8bin", ".u8bin"), (".npy", ".u8bin"), (".u8bin", ".fbin"), (".fbin", ".u8bin")]
)
def test_bytes_and_mixed_types(kith, tmp_path, suffixes):
    random = np.random.default_rng(2)
    base, queries = random.integers(0, 256, (300, 33), np.uint8), random.integers(0, 256, (20, 33), np.uint8)
    b = write_matrix(tmp_path / f"b{suffixes[0]}", base)
    q = write_matrix(tmp_path / f"q{suffixes[1]}", queries)
    kith.ok(
        "knn",
        "--base",
        b,
        "--queries",
        q,
        "-k",
        5,
        "--out-ids",
        tmp_path / "i.ibin",
        "--out-distances",
        tmp_path / "d.fbin",
    )
    check(read_matrix(tmp_path / "i.ibin"), read_matrix(tmp_path / "d.fbin"), queries, base, 5, "l2")


def test_defaults_are_k_10_and_l2(kith, tmp_path, data):
    arguments, base, queries = data
    kith.ok(*arguments, "--out-ids", tmp_path / "i.ibin", "--out-distances", tmp_path / "d.fbin")
    check(read_matrix(tmp_path / "i.ibin"), read_matrix(tmp_path / "d.fbin"), queries, base, 10, "l2")


def test_either_output_alone(kith, tmp_path, data):
    arguments, _, _ = data
    kith.ok(*arguments, "--out-ids", tmp_path / "i.ibin", "--out-distances", tmp_path / "d.fbin")
    kith.ok(*arguments, "--out-ids", tmp_path / "only.ibin")
    kith.ok(*arguments, "--out-distances", tmp_path / "only.fbin")
    assert (tmp_path / "only.ibin").read_bytes() == (tmp_path / "i.ibin").read_bytes()
    assert (tmp_path / "only.fbin").read_bytes() == (tmp_path / "d.fbin").read_bytes()
    assert leftovers(tmp_path) == ["d.fbin", "i.ibin", "in", "only.fbin", "only.ibin"]


def test_more_neighbours_than_rows_are_padded(kith, tmp_path, data):
    arguments, base, queries = data
    few = write_matrix(tmp_path / "few.fbin", base[:3])
    kith.ok(
        "knn",
        "--base",
        few,
        *arguments[3:],
        "-k",
        5,
        "--out-ids",
        tmp_path / "i.ibin",
        "--out-distances",
        tmp_path / "d.fbin",
    )
    ids, distances = read_matrix(tmp_path / "i.ibin"), read_matrix(tmp_path / "d.fbin")
    check(ids[:, :3], distances[:, :3], queries, base[:3], 3, "l2")
    assert (ids[:, 3:] == -1).all() and np.isposinf(distances[:, 3:]).all()


def test_no_queries(kith, tmp_path, data):
    arguments, base, _ = data
    none = tmp_path / "none.npy"
    np.save(none, np.zeros((0, base.shape[1]), np.float32))
    kith.ok(
        *arguments[:3],
        "--queries",
        none,
        "-k",
        4,
        "--out-ids",
        tmp_path / "i.npy",
        "--out-distances",
        tmp_path / "d.npy",
    )
    assert np.load(tmp_path / "i.npy").shape == (0, 4) and np.load(tmp_path / "d.npy").shape == (0, 4)


def test_summary_and_json(kith, tmp_path, data):
    arguments, _, _ = data
    arguments = [
        *arguments,
        "-k",
        3,
        "--metric",
        "cosine",
        "--device",
        "cpu",
        "--threads",
        1,
        "--out-ids",
        tmp_path / "i.ibin",
    ]
    text = kith.ok(*arguments).out
    assert "61 queries, 700 base rows of 19 values (f32), k = 3, metric cosine\ndevice cpu, 1 threads: " in text
    assert text.endswith(f"queries/s\nwrote {tmp_path / 'i.ibin'}\n")

    report = kith.ok(*arguments, "--json").json
    result, timings = report["result"], report["timings"]
    assert report["command"] == "knn"
    assert result["base"] == {"path": str(arguments[2]), "dtype": "f32", "rows": 700, "cols": 19}
    assert result["queries"]["rows"] == 61
    assert (result["k"], result["metric"], result["device"], result["threads"]) == (3, "cosine", "cpu", 1)
    assert result["out_ids"] == str(tmp_path / "i.ibin") and "out_distances" not in result
    assert 0 < timings["search_seconds"] <= timings["total_seconds"]
    assert timings["queries_per_second"] == pytest.approx(61 / timings["search_seconds"])
    assert report["memory"]["peak_resident_bytes"] > 0 and "limit_bytes" not in report["memory"]


def test_device_of_auto_is_named(kith, tmp_path, data):
    arguments, _, _ = data
    report = kith.ok(*arguments, "--out-ids", tmp_path / "i.ibin", "--json").json
    if kith.ok("info", "--json").json["result"]["cuda"]["devices"]:
        assert report["result"]["device"] == "auto" and any(" on c" in line for line in report["log"])
    else:
        assert report["result"]["device"] == "cpu" and report["log"] == []
    assert report["result"]["threads"] == os.cpu_count()


def test_same_bytes_for_any_number_of_threads(kith, tmp_path, data):
    arguments, _, _ = data
    outputs = []
    for threads in (1, 2, 5):
        ids, distances = tmp_path / f"i{threads}.ibin", tmp_path / f"d{threads}.fbin"
        kith.ok(*arguments, "--threads", threads, "--out-ids", ids, "--out-distances", distances)
        outputs.append((ids.read_bytes(), distances.read_bytes()))
    assert outputs[0] == outputs[1] == outputs[2]


def test_an_output_is_replaced(kith, tmp_path, data):
    arguments, _, _ = data
    kith.ok(*arguments, "--out-ids", tmp_path / "fresh.ibin")
    (tmp_path / "i.ibin").write_bytes(b"old")
    kith.ok(*arguments, "--out-ids", tmp_path / "i.ibin")
    assert (tmp_path / "i.ibin").read_bytes() == (tmp_path / "fresh.ibin").read_bytes()


# Refusals: exit code, text, and an untouched folder.


@pytest.fixture
def refused(kith, tmp_path, data):
    arguments, _, _ = data

    def run(
        code, *changes, base=arguments[2], queries=arguments[4], outputs=("--out-ids", tmp_path / "out" / "i.ibin")
    ):
        folder = tmp_path / "out"
        folder.mkdir(exist_ok=True)
        before = leftovers(folder)
        error = kith.fails(code, "knn", "--base", base, "--queries", queries, *outputs, *changes)
        assert leftovers(folder) == before
        return error

    return run


@pytest.mark.parametrize("k", [0, -1, -9])
def test_k_too_small(refused, k):
    assert f"k = {k}" in refused(2, "-k", k)


def test_unknown_metric_lists_the_known(refused):
    assert "unknown metric 'l3'; known are: l2, sqeuclidean, inner_product, cosine" in refused(2, "--metric", "l3")


def test_missing_base(refused, tmp_path):
    error = refused(3, base=tmp_path / "nobody.fbin")
    assert "nobody.fbin" in error and "No such file" in error


def test_missing_queries(refused, tmp_path):
    assert "nobody.fbin" in refused(3, queries=tmp_path / "nobody.fbin")


def test_directory_as_base(refused, tmp_path):
    (tmp_path / "d.fbin").mkdir()
    assert "directory" in refused(3, base=tmp_path / "d.fbin")


@pytest.mark.parametrize("bytes_kept", [0, 5, 8, 1000])
def test_truncated_base(refused, tmp_path, data, bytes_kept):
    path = tmp_path / "cut.fbin"
    path.write_bytes(data[0][2].read_bytes()[:bytes_kept])
    assert "cut.fbin" in refused(3, base=path)


def test_trailing_bytes(refused, tmp_path, data):
    path = tmp_path / "long.fbin"
    path.write_bytes(data[0][2].read_bytes() + b"x")
    assert "long.fbin" in refused(3, base=path)


def test_ids_as_base(refused, tmp_path):
    assert "ids" in refused(2, base=write_matrix(tmp_path / "ids.ibin", np.zeros((4, 19))))


def test_different_dimensions(refused, tmp_path):
    error = refused(2, queries=write_matrix(tmp_path / "narrow.fbin", np.zeros((4, 18))))
    assert "18" in error and "19" in error


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("role", ["base", "queries"])
def test_values_that_are_not_finite_name_their_row(refused, tmp_path, data, role, value):
    matrix = data[1].copy()
    matrix[517, 11] = value
    path = write_matrix(tmp_path / "bad.fbin", matrix)
    assert "517" in refused(2, **{role: path})


def test_values_that_are_not_finite_can_be_accepted(kith, tmp_path, data):
    arguments, base, queries = data
    bad = base.copy()
    bad[517, 11] = np.nan
    kith.ok(
        "knn",
        "--base",
        write_matrix(tmp_path / "bad.fbin", bad),
        *arguments[3:],
        "-k",
        699,
        "--no-check-finite",
        "--out-ids",
        tmp_path / "i.ibin",
    )
    ids = read_matrix(tmp_path / "i.ibin")
    rest = np.delete(np.arange(700), 517)
    np.testing.assert_array_equal(ids, rest[nearest(queries, base[rest], 699, "l2")[0]])


def test_no_output(refused):
    assert "--out-ids" in refused(2, outputs=())


@pytest.mark.parametrize("name", ["i.txt", "i", "i.fbin", "i.u8bin"])
def test_endings_that_hold_no_ids(refused, tmp_path, name):
    assert name in refused(2, outputs=("--out-ids", tmp_path / "out" / name))


@pytest.mark.parametrize("name", ["d.txt", "d", "d.ibin", "d.u8bin"])
def test_endings_that_hold_no_distances(refused, tmp_path, name):
    outputs = ("--out-ids", tmp_path / "out" / "i.ibin", "--out-distances", tmp_path / "out" / name)
    assert name in refused(2, outputs=outputs)


def test_output_into_a_missing_folder(refused, tmp_path):
    error = refused(3, outputs=("--out-ids", tmp_path / "nowhere" / "i.ibin"))
    assert "nowhere" in error and "No such file" in error


def test_output_onto_a_directory(refused, tmp_path):
    (tmp_path / "out" / "i.ibin").mkdir(parents=True)
    assert "directory" in refused(3)


def test_output_onto_a_device(refused, tmp_path):
    (tmp_path / "null.ibin").symlink_to("/dev/null")
    error = refused(3, outputs=("--out-ids", tmp_path / "null.ibin"))
    assert "null.ibin" in error


def test_output_that_is_an_input(kith, tmp_path, data):
    arguments, _, _ = data
    base = arguments[2]
    before = base.read_bytes()
    (tmp_path / "link.fbin").symlink_to(base)
    os.link(base, tmp_path / "hard.fbin")
    other_spelling = base.parent / ".." / "in" / "b.fbin"
    for name in (base, tmp_path / "link.fbin", tmp_path / "hard.fbin", other_spelling):
        error = kith.fails(2, *arguments, "--out-distances", name)
        assert "same file" in error and "--base" in error
    assert base.read_bytes() == before


def test_outputs_that_are_one_file(kith, tmp_path, data):
    arguments, _, _ = data
    error = kith.fails(2, *arguments, "--out-ids", "x.npy", "--out-distances", tmp_path / "." / "x.npy", cwd=tmp_path)
    assert "same file" in error and "--out-ids" in error
    assert leftovers(tmp_path) == ["in"]


def test_error_keeps_the_old_output(kith, tmp_path, data):
    arguments, base, _ = data
    bad = base.copy()
    bad[3, 3] = np.nan
    (tmp_path / "i.ibin").write_bytes(b"old")
    kith.fails(
        2, "knn", "--base", write_matrix(tmp_path / "bad.fbin", bad), *arguments[3:], "--out-ids", tmp_path / "i.ibin"
    )
    assert (tmp_path / "i.ibin").read_bytes() == b"old"
    assert leftovers(tmp_path) == ["bad.fbin", "i.ibin", "in"]


def test_a_short_base_is_told_of_once(kith, tmp_path):
    base = write_matrix(tmp_path / "b.fbin", np.zeros((3, 2)))
    queries = write_matrix(tmp_path / "q.fbin", np.zeros((7, 2)))
    arguments = ("knn", "--base", base, "--queries", queries, "-k", 5, "--out-ids", tmp_path / "i.npy")
    said = "k = 5, but the base has 3 rows: the rest of each result is id -1; were queries and base swapped?"
    assert kith.ok(*arguments).out.count(said) == 1
    assert kith.ok(*arguments, "--json").json["log"] == [said]


def test_rates_are_plain_numbers(kith, tmp_path):
    base = write_matrix(tmp_path / "b.fbin", np.random.default_rng(1).normal(size=(2000, 4)))
    text = kith.ok("knn", "--base", base, "--queries", base, "-k", 1, "--out-ids", tmp_path / "i.npy").out
    assert re.search(r" s, \d{1,3}(,\d{3})* queries/s$", text, re.MULTILINE), text


@pytest.mark.parametrize("device", ["cpu/2", "cpu/5"])
def test_parts_of_a_device_have_the_bytes_of_one(kith, tmp_path, data, device):
    for name, where in (("one.npy", "cpu"), ("several.npy", device)):
        kith.ok(*data[0], "-k", 7, "--device", where, "--out-ids", tmp_path / name)
    assert (tmp_path / "several.npy").read_bytes() == (tmp_path / "one.npy").read_bytes()


def test_a_device_named_twice(kith, tmp_path, data):
    error = kith.fails(2, *data[0], "-k", 7, "--device", "cuda:0,cuda:0", "--out-ids", tmp_path / "i.npy")
    assert "device cuda:0 is named twice in 'cuda:0,cuda:0'; for 2 parts of it write cuda:0/2" in error
