"""Every command, with every option of its help given wrongly, ends with one line of its own that names what was given.

Commands are those of the manual's examples, on files that are there; options and their kinds are read from --help. Slow as a
whole: the quick tests try each command with a few mistakes.
"""

import re
import shlex

import numpy as np
import pytest
from matrix_files import write_matrix

# By the kind of value that the help tells; the first ones are wrong for every option of the kind.
WRONG = {
    "N": (["ten", "", "1.5", "99999999999999999999999"], ["-5"]),
    "X": (["wide", ""], ["-1", "nan"]),
    "SIZE": (["1X", "", "-5", "lots"], ["1"]),
    "NAME": (["no-such", ""], []),
    "FILE": (["/nowhere/at/all/x.fbin", ""], ["x.what", "/tmp"]),
    "I/N": (["2", "0/3", "4/3", "x/y", ""], []),
    "H,W": ([""], ["x"]),
}
# The words of CLI11, of the C++ library and of the system, that tell nothing of what was meant.
BARE = re.compile(
    r"std::|basic_string|stoi|CLI::|terminate|filesystem error|bad_alloc|Could not convert|The following argument|expected (at|exactly)"
    r"|requires? (at|exactly)|Sum of|vector::|Traceback|map::at|what\(\)"
)
MADE = {"explore", "sample", "completion"}  # started elsewhere, or without an input to be wrong about


@pytest.fixture(scope="module")
def folder(kith, tmp_path_factory):
    place = tmp_path_factory.mktemp("audit")
    rng = np.random.default_rng(0)
    for name, rows in (("base", 600), ("queries", 20), ("more", 50), ("a", 300), ("b", 300), ("films", 50)):
        write_matrix(place / f"{name}.fbin", rng.standard_normal((rows, 16)).astype(np.float32))
    for line in (
        "convert base.fbin base.fvecs", "knn --base base.fbin --queries queries.fbin -k 10 --out-ids truth.ibin",
        "knn --base base.fbin --queries queries.fbin -k 10 --out-ids old.ibin",
        "index build --base base.fbin --factory IVF8,PQ4x4 --out base.kith", "index build --base more.fbin --factory Flat --out more.kith",
        "graph build --data base.fbin -k 5 --out-ids ids.npy --out-distances distances.npy",
        "graph build --data base.fbin -k 5 --out graph",
        "graph build --data a.fbin -k 5 --out-ids a_ids.npy --out-distances a_d.npy",
        "graph build --data b.fbin -k 5 --out-ids b_ids.npy --out-distances b_d.npy", "train --data base.fbin --quantizer PQ4x4 --out pq.kith",
        "encode --quantizer pq.kith --data base.fbin --out codes.u8bin", "collection create films --dimension 16 --column year:int",
        "collection add films --vectors films.fbin",
    ):
        kith(*line.split(), cwd=place)
    return place


def commands(kith):
    """(command, its example's arguments)."""
    for path in re.findall(r'^\.SS "kith ([a-z ]+)"$', kith.ok("manual").out, re.MULTILINE) or []:
        example = kith.ok(*path.split(), "--help").out.rpartition("Example:\n")[2].strip().partition(" && ")[0]
        words = shlex.split(example)[1:]
        if words[: len(path.split())] == path.split() and path not in MADE:
            yield path, [{"IVF1024,PQ16": "IVF8,PQ4x4", "384": "16", "PQ16": "PQ4x4"}.get(word, word) for word in words]


def options(kith, path):
    """(name, kind of value) of each option in the command's help."""
    for line in kith.ok(*path.split(), "--help").out.splitlines():
        match = re.match(r"  (-[^ ]+) ([A-Z][A-Z/,]*)\b", line)
        if match and match[2] in WRONG:
            yield match[1].split(",")[0], match[2]


def with_option(words, name, value):
    """The words of an example with that option at that value, in the place of the one that is there."""
    words = list(words)
    if name in words:
        at = words.index(name)
        del words[at : at + 2]
    return [*words, f"{name}={value}" if name.startswith("--") else name, *([] if name.startswith("--") else [value])]


def fault(done, value, must):
    if done.code == 0:
        return "no error" if must else ""
    if done.code not in (1, 2, 3, 4, 5):
        return f"exit code {done.code}"
    # Warnings are lines before the one that says what is wrong.
    last = done.err.strip().splitlines()[-1] if done.err.strip() else ""
    if not last.startswith("kith: ") or BARE.search(done.err):
        return "not the program's own words"
    return ""


def test_the_manual_has_every_command(kith):
    assert len(list(commands(kith))) > 25


def test_lines_that_are_no_command_line(kith, folder):
    wrong = []
    for path, words in commands(kith):
        for line in ([*words, "--no-such"], [*words, "--no-such=3"], [*path.split(), "--metric"], [*words, "-Z"], [*words, "stray", "stray", "stray"]):
            done = kith(*line, cwd=folder)
            if said := fault(done, "", "stray" not in line):
                wrong.append(f"kith {shlex.join(line)}: {said}: {done.err}{done.code}")
    assert not wrong, "\n".join(wrong)


def tried(kith, folder, some):
    """What was answered badly, and how many mistakes were tried."""
    wrong, count = [], 0
    for path, words in commands(kith):
        for place, (name, kind) in enumerate(options(kith, path)):
            always, sometimes = WRONG[kind]
            for number, value in enumerate([*always, *sometimes]):
                if some and (place + number) % 13:
                    continue
                done = kith(*with_option(words, name, value), cwd=folder)
                count += 1
                if said := fault(done, value, value in always):
                    wrong.append(f"kith {shlex.join(with_option(words, name, value))}: {said}: {done.err}{done.code}")
    return wrong, count


def test_some_mistakes_in_options(kith, folder):
    wrong, count = tried(kith, folder, True)
    assert count > 40
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_every_mistake_in_options(kith, folder):
    wrong, count = tried(kith, folder, False)
    print(count, "mistakes tried")
    assert count > 500
    assert not wrong, "\n".join(wrong)
