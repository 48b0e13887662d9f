"""--memory-limit: a promise about the peak resident memory of the whole process. It changes no byte of the output."""

import gzip
import re
import subprocess
import sys

import numpy as np
import pytest

from matrix_files import leftovers, read_matrix, write_images, write_matrix

MIB = 1 << 20
LIMIT = 64 * MIB


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A base four times as large as the limit, few queries, and a folder for outputs."""
    folder = tmp_path_factory.mktemp("large")
    block = np.random.default_rng(10).standard_normal((64 * 1024, 128)).astype(np.float32)
    base = folder / "b.fbin"
    with open(base, "wb") as file:
        np.array([8 * len(block), 128], np.uint32).tofile(file)
        for i in range(8):
            (block + np.float32(i)).tofile(file)
    assert base.stat().st_size > 4 * LIMIT
    return folder, base, write_matrix(folder / "q.fbin", block[:100])


# A process inherits the peak of the one that started it until it is another program; this one is small.
LAUNCHER = """
import os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(pid, 0)
print(usage.ru_maxrss * 1024, os.waitstatus_to_exitcode(status))
"""


def peak_memory(kith, *arguments):
    """Runs the program to success and returns the largest resident memory it had, as the system counted it."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", LAUNCHER, kith.path, *map(str, arguments), "--quiet"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    peak, code = map(int, done.stdout.split())
    assert code == 0, done.stderr
    return peak


def search(base, queries, folder, name, *options):
    ids, distances = folder / f"{name}.ibin", folder / f"{name}.fbin"
    arguments = [
        "knn",
        "--base",
        base,
        "--queries",
        queries,
        "--device",
        "cpu",
        "--out-ids",
        ids,
        "--out-distances",
        distances,
        *options,
    ]
    return arguments, lambda: (ids.read_bytes(), distances.read_bytes())


@pytest.fixture(scope="module")
def unlimited(kith, large):
    """The outputs of the search without a limit."""
    folder, base, queries = large
    arguments, outputs = search(base, queries, folder, "free")
    kith.ok(*arguments)
    return outputs()


@pytest.mark.parametrize("limit", [LIMIT, LIMIT // 2])
@pytest.mark.parametrize("threads", [1, 2])
def test_base_four_times_the_limit(kith_unsanitized, large, unlimited, tmp_path, threads, limit):
    folder, base, queries = large
    arguments, limited = search(base, queries, tmp_path, "limited", "--memory-limit", limit, "--threads", threads)
    assert peak_memory(kith_unsanitized, *arguments) <= limit
    assert limited() == unlimited


def test_bytes_keep_the_limit(kith_unsanitized, tmp_path):
    rows = np.random.default_rng(13).integers(0, 256, (400_000, 128), np.uint8)  # 49 MiB
    base, queries = write_matrix(tmp_path / "b.u8bin", rows), write_matrix(tmp_path / "q.u8bin", rows[:100])
    arguments, free = search(base, queries, tmp_path, "free")
    kith_unsanitized.ok(*arguments)
    arguments, limited = search(base, queries, tmp_path, "limited", "--memory-limit", "24M")
    assert peak_memory(kith_unsanitized, *arguments) <= 24 * MIB
    assert limited() == free()


def test_queries_and_results_larger_than_the_limit(kith_unsanitized, tmp_path):
    random = np.random.default_rng(11)
    base = write_matrix(tmp_path / "b.fbin", random.standard_normal((300, 16)))
    queries = write_matrix(tmp_path / "q.fbin", random.standard_normal((200_000, 16)))  # 12 MiB; results 15 MiB
    arguments, free = search(base, queries, tmp_path, "free")
    kith_unsanitized.ok(*arguments)
    arguments, limited = search(base, queries, tmp_path, "limited", "--memory-limit", "15M")
    assert peak_memory(kith_unsanitized, *arguments) <= 15 * MIB
    assert limited() == free()


def test_the_reported_peak_is_the_true_one(kith_unsanitized, large, tmp_path):
    folder, base, queries = large
    arguments, _ = search(base, queries, tmp_path, "x", "--memory-limit", LIMIT, "--json")
    reported = kith_unsanitized.ok(*arguments).json["memory"]["peak_resident_bytes"]
    assert LIMIT // 4 < reported <= LIMIT


@pytest.mark.parametrize("target", ["v.npy", "v.fbin"])
def test_convert_keeps_the_limit(kith_unsanitized, large, tmp_path, target):
    folder, base, _ = large
    source = base
    if target == "v.fbin":
        source = tmp_path / "s.u8bin"
        write_matrix(source, np.zeros((400_000, 128), np.uint8))
    assert peak_memory(kith_unsanitized, "convert", source, tmp_path / target, "--memory-limit", "16M") <= 16 * MIB
    assert peak_memory(kith_unsanitized, "convert", source, tmp_path / f"free-{target}") > 16 * MIB
    assert (tmp_path / target).read_bytes() == (tmp_path / f"free-{target}").read_bytes()


@pytest.mark.parametrize("source", ["s.fvecs", "s-idx3-ubyte.gz"])
def test_other_formats_keep_the_limit(kith_unsanitized, tmp_path, source):
    matrix = np.random.default_rng(13).integers(0, 256, (300_000, 128), np.uint8)  # 37 MiB, 147 as f32
    path = tmp_path / source
    if source.endswith("gz"):
        write_images(path, matrix, lambda content: gzip.compress(content, compresslevel=1))
    else:
        write_matrix(path, matrix)
    kith = kith_unsanitized
    assert peak_memory(kith, "convert", path, tmp_path / "t.f16bin", "--memory-limit", "16M") <= 16 * MIB
    assert (tmp_path / "t.f16bin").stat().st_size == 8 + 2 * matrix.size


def test_hdf5_keeps_the_limit(kith_unsanitized, large, tmp_path):
    kith = kith_unsanitized
    folder, base, _ = large
    limited, back = tmp_path / "v.hdf5", tmp_path / "v.fbin"
    assert peak_memory(kith, "convert", base, limited, "--memory-limit", "32M") <= 32 * MIB
    assert peak_memory(kith, "convert", limited, back, "--memory-limit", "32M") <= 32 * MIB
    assert back.read_bytes() == base.read_bytes()


def test_chunked_hdf5_keeps_the_limit(kith_unsanitized, large, tmp_path):
    h5py = pytest.importorskip("h5py")
    kith = kith_unsanitized
    folder, base, _ = large
    packed, back = tmp_path / "v.hdf5", tmp_path / "v.fbin"
    matrix = read_matrix(base)
    with h5py.File(packed, "w") as file:
        file.create_dataset("train", data=matrix, compression="lzf")
    assert peak_memory(kith, "convert", packed, back, "--memory-limit", "32M") <= 32 * MIB
    assert back.read_bytes() == base.read_bytes()


def test_hdf5_chunks_count_against_the_limit(kith_unsanitized, tmp_path):
    """One chunk of 16 MiB: with room for its filter it needs more than twice as much."""
    h5py = pytest.importorskip("h5py")
    packed, back = tmp_path / "v.hdf5", tmp_path / "v.fbin"
    matrix = (np.arange(1024 * 4096) % 100).astype(np.float32).reshape(1024, 4096)
    with h5py.File(packed, "w") as file:
        file.create_dataset("train", data=matrix, chunks=matrix.shape, compression="lzf")
    error = kith_unsanitized.fails(4, "convert", packed, back, "--memory-limit", "32M")
    assert f"not enough memory for the chunks of '{packed}': 36 MiB needed" in error
    assert leftovers(tmp_path, packed) == []
    assert peak_memory(kith_unsanitized, "convert", packed, back, "--memory-limit", "64M") <= 64 * MIB
    assert np.array_equal(read_matrix(back), matrix)


def test_eval_keeps_the_limit(kith_unsanitized, tmp_path):
    ids = write_matrix(
        tmp_path / "i.ibin", np.arange(4_000_000).reshape(40_000, 100)
    )  # 61 MiB as int64, with its truth
    assert peak_memory(kith_unsanitized, "eval", "--found", ids, "--truth", ids, "--memory-limit", "16M") <= 16 * MIB


@pytest.mark.parametrize("limit", ["1", "100K", "4M"])
def test_a_limit_below_the_program_itself(kith, large, tmp_path, limit):
    folder, base, queries = large
    arguments, _ = search(base, queries, tmp_path, "x", "--memory-limit", limit)
    error = kith.fails(4, *arguments)
    assert "--memory-limit" in error and "MiB" in error
    assert leftovers(tmp_path) == []


def test_too_small_a_limit_says_what_would_do(kith_unsanitized, tmp_path):
    """Rows so long that one of them does not fit; the error's number is believed, and must be enough."""
    rows = write_matrix(tmp_path / "wide.fbin", np.random.default_rng(12).standard_normal((3, 4 * MIB)))
    arguments, _ = search(rows, rows, tmp_path, "x", "-k", 1, "--threads", 1)
    outcome = kith_unsanitized(*arguments, "--memory-limit", "24M")
    assert outcome.code == 4
    assert "of --memory-limit 24 MiB the program itself takes" in outcome.err
    limit = re.search(r"--memory-limit (\d+)M would do", outcome.err)[1]
    assert peak_memory(kith_unsanitized, *arguments, "--memory-limit", f"{limit}M") <= int(limit) * MIB


def advice(kith, arguments, limit):
    error = kith.fails(4, *arguments, "--memory-limit", limit)
    return int(re.search(r"--memory-limit (\d+)M would do", error)[1])


def test_following_the_advice_takes_one_try(kith_unsanitized, tmp_path):
    kith = kith_unsanitized
    base = write_matrix(tmp_path / "b.fbin", np.random.default_rng(14).standard_normal((1500, 2000)))
    own = kith.fails(4, "knn", "--base", base, "--queries", base, "--out-ids", tmp_path / "i.ibin", "--memory-limit", "4M")
    little = f"{int(float(re.search(r'less than the ([0-9.]+) MiB', own)[1])) + 2}M"
    files = ["--base", base, "--queries", base, "--threads", 2, "--out-ids", tmp_path / "i.ibin"]
    search = ["knn", *files, "-k", 1400]
    limit = advice(kith, search, little)
    assert peak_memory(kith, *search, "--memory-limit", f"{limit}M") <= limit * MIB
    # How many rows are in range is known once there is memory to look for them.
    around = ["range", *files, "--radius", 1e9, "--out-offsets", tmp_path / "o.ibin"]
    limit = advice(kith, around, f"{advice(kith, around, little)}M")
    assert peak_memory(kith, *around, "--memory-limit", f"{limit}M") <= limit * MIB
