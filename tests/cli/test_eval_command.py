"""kith eval: the two recalls, each by its name."""

import numpy as np
import pytest

from matrix_files import write_matrix


def recalls(found, truth, k, rs):
    one = [float(np.mean([truth[i, 0] in found[i, :r] for i in range(len(found))])) for r in rs]
    shared = sum(len(set(found[i, :k]) & set(truth[i, :k])) for i in range(len(found)))
    return one, shared / (len(found) * k)


@pytest.fixture(scope="module")
def ids(tmp_path_factory):
    """Found and true ids that overlap in part."""
    random = np.random.default_rng(7)
    folder = tmp_path_factory.mktemp("ids")
    found = np.stack([random.permutation(150)[:100] for _ in range(300)])
    truth = np.stack([random.permutation(150)[:120] for _ in range(300)])
    return write_matrix(folder / "f.ibin", found), write_matrix(folder / "t.npy", truth.astype(np.int64)), found, truth


def test_defaults(kith, ids):
    f, t, found, truth = ids
    result = kith.ok("eval", "--found", f, "--truth", t, "--json").json["result"]
    one, k_recall = recalls(found, truth, 100, [1, 10, 100])
    assert result["queries"] == 300
    assert result["1-recall@R"] == [{"R": r, "recall": pytest.approx(value)} for r, value in zip([1, 10, 100], one)]
    assert result["k-recall@k"] == {"k": 100, "recall": pytest.approx(k_recall)}


def test_text_names_each_measure(kith, ids):
    f, t, found, truth = ids
    one, k_recall = recalls(found, truth, 10, [1, 5])
    lines = kith.ok("eval", "--found", f, "--truth", t, "-k", 10, "-R", "1,5").out.splitlines()
    assert [line.split() for line in lines] == [
        ["300", "queries"],
        ["1-recall@1", f"{one[0]:.6f}"],
        ["1-recall@5", f"{one[1]:.6f}"],
        ["10-recall@10", f"{k_recall:.6f}"],
    ]


def test_default_k_is_at_most_the_columns_of_truth(kith, tmp_path, ids):
    f, _, found, truth = ids
    t = write_matrix(tmp_path / "t.ibin", truth[:, :7])
    result = kith.ok("eval", "--found", f, "--truth", t, "--json").json["result"]
    assert result["k-recall@k"] == {"k": 7, "recall": pytest.approx(recalls(found, truth, 7, [])[1])}


def test_default_r_is_at_most_the_columns_of_found(kith, tmp_path, ids):
    _, t, found, _ = ids
    f = write_matrix(tmp_path / "f.ibin", found[:, :12])
    result = kith.ok("eval", "--found", f, "--truth", t, "--json").json["result"]
    assert [item["R"] for item in result["1-recall@R"]] == [1, 10]


def test_perfect_and_useless(kith, tmp_path):
    t = write_matrix(tmp_path / "t.ibin", np.arange(30).reshape(3, 10))
    f = write_matrix(tmp_path / "f.ibin", np.arange(30, 60).reshape(3, 10))
    assert kith.ok("eval", "--found", t, "--truth", t, "--json").json["result"]["k-recall@k"]["recall"] == 1
    assert kith.ok("eval", "--found", f, "--truth", t, "--json").json["result"]["k-recall@k"]["recall"] == 0


def test_many_rows_do_not_depend_on_pieces(kith, tmp_path):
    """Several pieces under a limit give the same number as one."""
    random = np.random.default_rng(8)
    found = random.integers(0, 40, (200_000, 10))
    truth = 4 * random.permutation(10) + random.integers(0, 4, (200_000, 10))  # no id twice in a row
    f, t = write_matrix(tmp_path / "f.ibin", found), write_matrix(tmp_path / "t.ibin", truth)
    result = kith.ok("eval", "--found", f, "--truth", t, "-R", "1,10", "--json").json["result"]
    hits = (found[:, :, None] == truth[:, None, :]).any(axis=1)  # per true id: was it found
    assert result["k-recall@k"]["recall"] == hits.sum() / 2_000_000
    assert [item["recall"] for item in result["1-recall@R"]] == [(found[:, 0] == truth[:, 0]).mean(), hits[:, 0].mean()]


def test_a_truth_that_holds_a_row_twice(kith, tmp_path):
    f = write_matrix(tmp_path / "f.ibin", [[1, 2], [3, 4]])
    t = write_matrix(tmp_path / "t.ibin", [[1, 2], [3, 3]])
    assert f"row 1 of {t} holds 3 twice" in kith.fails(2, "eval", "--found", f, "--truth", t)


@pytest.mark.parametrize(
    "options, text",
    [
        (["-k", 0], "-k 0; allowed are 1 to 100"),
        (["-k", 101], "-k 101; allowed are 1 to 100"),
        (["-k", -3], "-k -3"),
        (["-R", "0"], "-R 0; allowed are 1 to 100"),
        (["-R", "1,101"], "-R 101"),
        (["-R", "1,x"], "-R"),
    ],
)
def test_values_outside(kith, ids, options, text):
    assert text in kith.fails(2, "eval", "--found", ids[0], "--truth", ids[1], *options)


@pytest.mark.parametrize("rows", [299, 301, 0])
def test_different_rows(kith, tmp_path, ids, rows):
    t = write_matrix(tmp_path / "t.npy", np.zeros((rows, 10), np.int32))
    error = kith.fails(2, "eval", "--found", ids[0], "--truth", t)
    assert f"has 300 rows and {t} has {rows}" in error


def test_no_rows(kith, tmp_path):
    t = write_matrix(tmp_path / "t.npy", np.zeros((0, 10), np.int32))
    assert "no rows" in kith.fails(2, "eval", "--found", t, "--truth", t)


def test_truth_with_too_few_neighbours_names_its_row(kith, tmp_path, ids):
    f, _, _, truth = ids
    padded = truth.copy()
    padded[123, 4:] = -1
    t = write_matrix(tmp_path / "t.ibin", padded)
    error = kith.fails(2, "eval", "--found", f, "--truth", t)
    assert f"row 123 of {t} holds 4 neighbours" in error and "use -k 4" in error
    assert kith.ok("eval", "--found", f, "--truth", t, "-k", 4).code == 0


def test_vectors_are_no_ids(kith, tmp_path, ids):
    v = write_matrix(tmp_path / "v.fbin", np.zeros((300, 10)))
    assert "ids" in kith.fails(2, "eval", "--found", v, "--truth", ids[1])


def test_missing_files(kith, tmp_path, ids):
    assert "No such file" in kith.fails(3, "eval", "--found", tmp_path / "f.ibin", "--truth", ids[1])
    assert "No such file" in kith.fails(3, "eval", "--found", ids[0], "--truth", tmp_path / "t.ibin")
