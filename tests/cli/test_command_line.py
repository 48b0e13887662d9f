"""What holds for every command: help, version, wrong usage, exit codes, --json, --quiet, byte sizes."""

import re

import numpy as np
import pytest

from matrix_files import write_matrix

COMMANDS = ["info", "head", "knn", "convert", "eval", "train", "encode", "decode"]


@pytest.fixture(scope="module")
def search(tmp_path_factory):
    """Arguments of a search that succeeds."""
    folder = tmp_path_factory.mktemp("search")
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    base = write_matrix(folder / "b.fbin", rows)
    return ["knn", "--base", base, "--queries", base, "-k", 2, "--out-ids", folder / "i.ibin"]


def test_version(kith):
    assert re.fullmatch(r"kith \d+\.\d+\.\d+\n", kith.ok("--version").out)


def test_help_names_every_command(kith):
    text = kith.ok("--help").out
    assert all(re.search(rf"^  {command} ", text, re.MULTILINE) for command in [*COMMANDS, "index"])


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(kith, command):
    text = kith.ok(command, "--help").out
    assert f"Usage: kith {command}" in text
    assert "--json" in text


def commands_of(kith, *path):
    """Every command, those under others too."""
    text = kith.ok(*path, "--help").out
    if "Subcommands:" not in text:
        yield path
        return
    for name in re.findall(r"^  ([a-z]+) ", text.split("Subcommands:")[1].split("\n\n")[0], re.MULTILINE):
        yield from commands_of(kith, *path, name)


def test_every_help_ends_with_an_example(kith):
    commands = list(commands_of(kith))
    assert ("index", "build") in commands and ("knn",) in commands
    for command in [(), ("index",), *commands]:
        *_, title, line = kith.ok(*command, "--help").out.strip().splitlines()
        assert title == "Example:" and line.startswith("  kith " + " ".join(command)), command


def test_examples_have_options_that_there_are(kith):
    for command in commands_of(kith):
        text = kith.ok(*command, "--help").out
        options, example = text.split("|")[0].split("Example:")
        for option in re.findall(r" (--?[a-z-]+)", example):
            assert re.search(rf"^  (-\w,)?{option}\b", options, re.MULTILINE), (command, option)


def test_help_shows_defaults(kith):
    text = kith.ok("knn", "--help").out
    for default in ("-k N=10", "--metric NAME=l2", "--device NAME=auto", "--threads N=0"):
        assert default in text


def test_no_command_prints_help_and_fails(kith):
    outcome = kith()
    assert (outcome.code, outcome.out) == (2, "")
    assert "no command was given" in outcome.err and "Usage: kith" in outcome.err


@pytest.mark.parametrize(
    "arguments, text",
    [
        (["frobnicate"], "unknown command 'frobnicate'; known are: info, head, knn, range, dedup, kmeans, convert, eval, index, graph, collection, train, encode, decode, plan, explore, sample, completion, manual"),
        (["knn", "--base", "b.fbin", "--queries", "q.fbin", "--threads", "99999999999"], "--threads: 99999999999 is too large"),
        (["knn", "--base", "b.fbin", "--queries", "q.fbin", "--metric", "L2"], "FAISS's L2 is sqeuclidean"),
        (["knn", "--base", "b.fbin", "--queries", "q.fbin", "--metric", "euclidian"], "did you mean euclidean?"),
        (["knn", "--bases", "b.fbin", "--queries", "q.fbin"], "no option --bases; did you mean --base? See kith knn --help"),
        (["index", "search", "--index", "i.kith", "--query=q.fbin"], "kith index search has no option --query; did you mean --queries?"),
        (["knn", "--base", "b.fbin", "--queries", "q.fbin", "--nprobe", "3"], "kith knn has no option --nprobe; see kith knn"),
        (["range", "--base", "b", "--queries", "q", "--radius", "1e9999", "--out-ids", "i"], "1e9999 is beyond what"),
        (["knn", "--queries", "q.fbin"], "--base is required; see kith knn --help"),
        (["knn", "--base", "b.fbin", "--queries", "q.fbin", "-k", "ten"], "ten"),
        (["knn", "--base", "b.fbin", "--queries", "q.fbin", "-k", "010"], "'010' is not a decimal whole number"),
        (["knn", "--base", "b.fbin", "--queries", "q.fbin", "-k", "9999999999999999999"], "-k: 9999999999999999999 is too large"),
        (["knn", "--base", "b.fbin", "--queries", "q.fbin", "--colour"], "--colour"),
        (["convert", "a.fbin"], "OUT is required"),
        (["kmeans", "--data", "x.fbin", "--out", "c.fbin", "--seed", "-1"], "'-1' is negative"),
        (["kmeans", "--data", "x.fbin", "--out", "c.fbin", "--tol", "x"], "--tol: 'x' is not a number such as 0.5"),
        (["range", "--base", "b.fbin", "--queries", "q.fbin", "--radius", "1,5"], "--radius: '1,5' is not a number"),
        (["eval", "--found", "f.ibin", "--truth", "t.ibin", "-k", "x"], "'x' is not a decimal whole number"),
        (["eval", "--found", "f.ibin", "--truth", "t.ibin", "-R", "1,x"], "'x' is not a decimal whole number"),
        (["convert", "a.fbin", "b.npy", "--threads=2"], "--threads"),
        (["eval", "--found", "i.ibin"], "--truth is required"),
        (["knn", "b.fbin", "q.fbin"], "kith knn takes no argument 'b.fbin'; did you mean --base b.fbin --queries q.fbin? See"),
        (["eval", "--found", "i.ibin", "t.ibin"], "did you mean --truth t.ibin?"),
        (["graph", "path", "g", "1", "2"], "kith graph path takes no argument 'g'; did you mean --graph g? See"),
        (["graph", "info", "g"], "kith graph info takes no argument 'g'; did you mean --graph g? See"),
        (["graph"], "kith graph needs one of its commands: build, eval, info, path, labels, merge, extend, refine; see"),
        (["index", "help"], "unknown command 'index help'; did you mean kith index --help?"),
        (["index", "info", "b.kith"], "unknown command 'index info'; did you mean kith index inspect?"),
        (["index", "train"], "did you mean kith index build?"),
        (["graph", "search"], "did you mean kith index build --factory Graph32, then kith index search?"),
        (["collection", "list"], "did you mean kith collection info?"),
        (["ui"], "did you mean kith explore?"),
        (["-V"], "did you mean --version?"),
        (["sample", "x.fbin", "--dim", "4"], "kith sample has no option --dim; did you mean --cols?"),
        (["eval", "--found", "i.ibin", "--gt", "t.ibin"], "kith eval has no option --gt; did you mean --truth?"),
        (["index", "build", "--base", "b.fbin", "--M", "16"], "kith index build has no option --M; did you mean --factory?"),
        (["convert", "a.fbin", "b.npy", "--dtype", "float16"], "unknown dtype 'float16'; did you mean f16?"),
        (["knn", "--base", "b.fbin", "--queries", "q.fbin", "--device", "gpu"], "cuda:0/2; did you mean cuda?"),
    ],
)
def test_wrong_usage(kith, arguments, text):
    assert text in kith.fails(2, *arguments)


def test_wrong_usage_is_json_too_when_asked(kith):
    outcome = kith("knn", "--json")
    assert outcome.code == 2
    assert outcome.json["error"]["type"] == "UsageError"
    assert outcome.err == f"kith: {outcome.json['error']['message']}\n"


@pytest.mark.parametrize("flag", ["--json", "--json=true"])
def test_errors_are_json_when_asked(kith, tmp_path, flag):
    outcome = kith("info", tmp_path / "missing.fbin", flag)
    assert outcome.code == 3
    assert outcome.json["error"]["type"] == "IoError"
    assert "missing.fbin" in outcome.json["error"]["message"]
    assert outcome.err == f"kith: {outcome.json['error']['message']}\n"


def test_quiet_prints_nothing(kith, search):
    assert kith.ok(*search, "--quiet").out == ""


def test_json_goes_before_quiet(kith, search):
    assert kith.ok(*search, "--quiet", "--json").json["command"] == "knn"


def test_output_that_cannot_be_written_is_an_error(kith):
    import subprocess

    with open("/dev/full", "w") as full:
        done = subprocess.run([kith.path, "--version"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=30)
    assert done.returncode == 1
    assert "stdout" in done.stderr


@pytest.mark.parametrize(
    "text, size",
    [
        ("512M", 512 << 20),
        ("512m", 512 << 20),
        ("1.5G", 3 << 29),
        ("2GiB", 2 << 30),
        ("200000000", 200_000_000),
        ("200000000B", 200_000_000),
        ("1T", 1 << 40),
        ("262144K", 256 << 20),
        ("262144KiB", 256 << 20),
    ],
)
def test_byte_sizes(kith, search, text, size):
    memory = kith.ok(*search, "--memory-limit", text, "--device-memory-limit", text, "--json").json["memory"]
    assert (memory["limit_bytes"], memory["device_limit_bytes"]) == (size, size)


@pytest.mark.parametrize("text", ["", "M", "12Q", "12MB", "1e9", "five", "1.2.3G", "12 M", "nan", "inf", "0x10"])
def test_what_is_no_byte_size(kith, search, text):
    error = kith.fails(2, *search, f"--memory-limit={text}")
    assert "--memory-limit" in error


@pytest.mark.parametrize("text", ["0", "0.1", "-5M", "9999999999T"])
def test_byte_sizes_out_of_range(kith, search, text):
    error = kith.fails(2, *search, f"--memory-limit={text}")
    assert f"--memory-limit '{text}' is out of range" in error


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:-1", "cuda:x", "CPU"])
def test_unknown_device(kith, search, device):
    assert f"unknown device '{device}'; known are: auto, cpu, cuda, cuda:N" in kith.fails(
        2, *search, "--device", device
    )


def test_cuda_without_cuda(kith, search):
    if kith.ok("info", "--json").json["result"]["cuda"]["devices"]:
        assert kith.ok(*search, "--device", "cuda:0", "--json").json["result"]["device"] == "cuda:0"
    else:
        assert "CUDA" in kith.fails(5, *search, "--device", "cuda:0")


def test_kmeans_on_the_device_asked_for(kith, tmp_path):
    np.save(tmp_path / "x.npy", np.arange(40, dtype=np.float32).reshape(20, 2))
    arguments = ("kmeans", "--data", tmp_path / "x.npy", "-k", 3, "--seed", 1)
    kith.ok(*arguments, "--out", tmp_path / "cpu.fbin", "--device", "cpu")
    if kith.ok("info", "--json").json["result"]["cuda"]["devices"]:
        kith.ok(*arguments, "--out", tmp_path / "gpu.fbin", "--device", "cuda:0")
        assert (tmp_path / "gpu.fbin").read_bytes() == (tmp_path / "cpu.fbin").read_bytes()
    else:
        assert "CUDA" in kith.fails(5, *arguments, "--out", tmp_path / "gpu.fbin", "--device", "cuda:0")


def test_errors_name_options(kith, tmp_path):
    np.save(tmp_path / "x.npy", np.full((3, 2), np.nan, np.float32))
    np.save(tmp_path / "ids.npy", np.zeros((3, 2), np.int64))
    search = ("knn", "--queries", tmp_path / "x.npy", "--out-ids", tmp_path / "i.npy", "-k", 1, "--base")
    assert "(--no-check-finite)" in kith.fails(2, *search, tmp_path / "x.npy")
    assert "holds ids (i64), not vectors; give a file of vectors" in kith.fails(2, *search, tmp_path / "ids.npy")


@pytest.mark.parametrize("threads", ["-1", "100000"])
def test_threads_out_of_range(kith, search, threads):
    assert f"threads = {threads}" in kith.fails(2, *search, "--threads", threads)


@pytest.mark.parametrize(
    "arguments",
    [
        ("knn", "--base", "b.fbin", "--queries", "q.fbin", "--out-ids", "i.ibin", "--filter", ""),
        ("knn", "--base", "b.fbin", "--queries", "q.fbin", "--out-ids", "i.ibin", "--memory-limit", ""),
        ("kmeans", "--data", "b.fbin", "--out", "c.fbin", "--weights", ""),
        ("kmeans", "--data", "b.fbin", "--out", "c.fbin", "--tol", ""),
        ("range", "--base", "b.fbin", "--queries", "q.fbin", "--out-ids", "i.ibin", "--out-offsets", "o.ibin", "--radius", ""),
    ],
)
def test_an_empty_value_is_no_default(kith, arguments):
    assert "an empty value" in kith.fails(2, *arguments)


def test_contradictions_and_seeds_below_zero_are_refused(kith):
    data = ("kmeans", "--data", "b.fbin", "--out", "c.fbin")
    assert "--init random" in kith.fails(2, *data, "--centres", "x.fbin", "--init", "random")
    kith.fails(2, *data, "--seed", "-1")


def test_a_slip_of_the_pen_is_answered_with_what_was_meant(kith):
    for line, says in [
        (["kn"], "did you mean kith knn?"),
        (["index", "bild"], "did you mean kith index build?"),
        (["knn", "--k", "5"], "no option --k; did you mean -k?"),
        (["knn", "--out", "x.npy"], "did you mean --out-ids or --out-distances?"),
        (["knn", "-t", "1"], "no option -t; did you mean --threads?"),
        (["search"], "did you mean kith knn, or kith index search?"),
        (["deduplicate", "x.fbin"], "did you mean kith dedup?"),
        (["index", "search", "--top-k", "3"], "no option --top-k; did you mean -k?"),
        (["dedup", "--threshold", "3"], "no option --threshold; did you mean --radius?"),
        (["graph", "labels", "--eps", "3"], "no option --eps; did you mean --height?"),
        (["knn", "--gpu"], "no option --gpu; did you mean --device?"),
        (["kmeans", "--input", "x.npy"], "no option --input; did you mean --data?"),
        (["knn", "-j", "2"], "no option -j; did you mean --threads?"),
        (["index", "search", "-i", "x.kith"], "no option -i; did you mean --index?"),
        (["head", "x.fbin", "-n", "2"], "no option -n; did you mean --rows?"),
        (["help", "knnn"], "unknown command 'knnn'; did you mean kith knn?"),
        (["help", "index", "bild"], "did you mean kith index build?"),
        (["index", "bild", "--help"], "did you mean kith index build?"),
        (["knn", "--base", "a.fbin", "--queries", "b.fbin", "--out-ids", "c.ibin", "more"], "takes no argument 'more'"),
    ]:
        assert says in kith.fails(2, *line)
    assert "X=0" not in kith.ok("range", "--help").out


def test_help_is_a_command_too(kith):
    assert kith.ok("help").out == kith.ok("--help").out
    assert kith.ok("help", "knn").out == kith.ok("knn", "--help").out
    assert kith.ok("help", "graph", "path").out == kith.ok("graph", "path", "--help").out


def test_data_and_base_are_one_option(kith, tmp_path):
    import numpy as np

    np.save(tmp_path / "x.npy", np.eye(6, dtype=np.float32))
    x = tmp_path / "x.npy"
    kith.ok("knn", "--data", x, "--queries", x, "-k", "2", "--out-ids", tmp_path / "i.ibin")
    kith.ok("index", "build", "--data", x, "--factory", "Flat", "--out", tmp_path / "x.kith")
    kith.ok("kmeans", "--base", x, "-k", "2", "--out", tmp_path / "c.npy")
    kith.ok("graph", "build", "--base", x, "-k", "2", "--out-ids", tmp_path / "g.npy", "--out-distances", tmp_path / "d.npy")
