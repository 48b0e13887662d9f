"""kith-mpi: several processes, the files of one.

KITH_MPI_PROGRAM names the program, KITH_PROGRAM the one that runs alone; without the first there is nothing to test. Ranks of
other machines cannot be had here: all run on this one, four of them, with a thread each.
"""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

MPI = os.environ.get("KITH_MPI_PROGRAM")
KITH = os.environ.get("KITH_PROGRAM")
pytestmark = pytest.mark.skipif(not MPI, reason="KITH_MPI_PROGRAM names no kith-mpi: Kith was built without MPI")

# More ranks than cores: they must not spin while they wait.
ENVIRONMENT = {
    **os.environ,
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
}
TIMEOUT_SECONDS = 60
GRAPH = ["graph", "build", "--data", "[ab].npy", "-k", 6, "--method", "cells", "--recall", 0.9]
INDEXES = {"Flat": "flat", "IVF64,PQ8": "lists"}


def search_of(name):
    return ["index", "search", "--index", f"{name}.kith", "--queries", "q.npy", "-k", 7]


def command(ranks, *arguments):
    return ["mpirun", "-n", str(ranks), MPI, *map(str, arguments), "--threads", "1"]


def mpirun(ranks, *arguments, cwd):
    return subprocess.run(
        command(ranks, *arguments), cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, timeout=TIMEOUT_SECONDS
    )


def alone(*arguments, cwd):
    done = subprocess.run([KITH, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows in two files, queries, and what one process makes of them."""
    at = tmp_path_factory.mktemp("mpi")
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((20000, 24), dtype=np.float32)
    rows[777] = rows[12345]  # a tie
    np.save(at / "a.npy", rows[:7000])
    np.save(at / "b.npy", rows[7000:])
    np.save(at / "q.npy", rows[12300:12500])
    np.save(at / "few.npy", rows[:3])
    for queries in ("q", "few"):
        alone(
            *("knn", "--base", "[ab].npy", "--queries", f"{queries}.npy", "-k", 7),
            *("--out-ids", f"{queries}_ids.npy", "--out-distances", f"{queries}_distances.fbin"),
            cwd=at,
        )
    alone(*GRAPH, "--out", "graph", cwd=at)
    for factory, name in INDEXES.items():
        alone("index", "build", "--base", "[ab].npy", "--factory", factory, "--out", f"{name}.kith", cwd=at)
        alone(*search_of(name), "--out-ids", f"{name}_ids.npy", "--out-distances", f"{name}_distances.fbin", cwd=at)
    alone("kmeans", "--data", "[ab].npy", "-k", 50, "--iterations", 6, "--out", "c.npy", "--out-labels", "l.ibin", cwd=at)
    return at


def same(folder, one, other):
    return (folder / one).read_bytes() == (folder / other).read_bytes()


@pytest.mark.parametrize("ranks", [1, 4])
def test_messages_and_steps(ranks):
    program = Path(MPI).parent / "kith_mpi_tests"
    done = subprocess.run(
        ["mpirun", "-n", str(ranks), program], env=ENVIRONMENT, capture_output=True, text=True, timeout=TIMEOUT_SECONDS
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("ranks", "queries"), [(1, "q"), (4, "q"), (4, "few")])
def test_knn_writes_the_files_of_one_process(folder, ranks, queries):
    done = mpirun(
        ranks,
        *("knn", "--base", "[ab].npy", "--queries", f"{queries}.npy", "-k", 7, "--json"),
        *("--out-ids", "ids.npy", "--out-distances", "distances.fbin"),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)  # one object: only rank 0 prints
    assert report["result"]["ranks"] == ranks
    assert same(folder, "ids.npy", f"{queries}_ids.npy")
    assert same(folder, "distances.fbin", f"{queries}_distances.fbin")
    assert not list(folder.glob("*.part")) and not list(folder.glob(".kith-*"))


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_kmeans_writes_the_files_of_one_process(folder, ranks):
    done = mpirun(
        ranks,
        *("kmeans", "--data", "[ab].npy", "-k", 50, "--iterations", 6),
        *("--out", f"c{ranks}.npy", "--out-labels", f"l{ranks}.ibin"),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 3 and f"{ranks} ranks" in done.stdout
    assert same(folder, f"c{ranks}.npy", "c.npy")
    assert same(folder, f"l{ranks}.ibin", "l.ibin")


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_graph_has_the_bytes_of_one_process(folder, ranks):
    done = mpirun(ranks, *GRAPH, "--json", "--out", f"graph{ranks}", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["result"]["ranks"] == ranks
    for name in ("ids.npy", "distances.npy"):
        assert same(folder, f"graph{ranks}/{name}", f"graph/{name}")
    assert not (folder / f"graph{ranks}" / "work").exists()


def test_a_graph_whose_rank_was_killed_goes_on(folder):
    (folder / "graph_killed").mkdir()
    with subprocess.Popen(
        command(3, *GRAPH, "--out", "graph_killed"), cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as job:  # fmt: skip
        began = time.monotonic()
        while len(ranks := started_ranks(job, time.monotonic() - began)) < 3:
            if job.poll() is not None:  # it was done before it was seen
                return
            time.sleep(0.01)
        os.kill(ranks[1], signal.SIGKILL)
        job.communicate(timeout=TIMEOUT_SECONDS)
        assert job.returncode != 0
    done = mpirun(2, *GRAPH, "--out", "graph_killed", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert same(folder, "graph_killed/ids.npy", "graph/ids.npy")


@pytest.mark.parametrize("method", ["exact", "auto", "nn_descent", "ggm"])
def test_a_graph_in_memory_has_the_bytes_of_one_process(folder, method):
    """Also where the ranks may use different instructions."""
    np.save(folder / "some.npy", np.load(folder / "a.npy")[:3000])
    build = ["graph", "build", "--data", "some.npy", "-k", 6, "--method", method, "--recall", 0.9]
    build += ["--shards", 3] if method == "ggm" else []
    alone(*build, "--out", f"{method}_alone", cwd=folder)
    done = mpirun_unlike(*build, "--out", f"{method}_ranks", cwd=folder)
    assert done.returncode == 0, done.stderr
    for name in ("ids.npy", "distances.npy"):
        assert same(folder, f"{method}_ranks/{name}", f"{method}_alone/{name}")


def test_graphs_that_ranks_do_not_build(folder):
    done = mpirun(2, *GRAPH, "--out-ids", "i.npy", "--out-distances", "d.npy", cwd=folder)
    assert done.returncode != 0 and "needs --out FOLDER" in done.stderr
    done = mpirun(2, *GRAPH[:-4], "--method", "nn_descent", "--out", "none", "--keep-work", cwd=folder)
    assert done.returncode != 0 and "keep steps of graphs by the method cells alone" in done.stderr


@pytest.mark.parametrize("ranks", [1, 4])
@pytest.mark.parametrize("factory", INDEXES)
def test_an_index_has_the_bytes_of_one_process(folder, ranks, factory):
    name = INDEXES[factory]
    build = ["index", "build", "--base", "[ab].npy", "--factory", factory]
    done = mpirun(ranks, *build, "--out", f"{name}{ranks}.kith", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert same(folder, f"{name}{ranks}.kith", f"{name}.kith")
    out = ["--out-ids", f"{name}{ranks}_ids.npy", "--out-distances", f"{name}{ranks}_distances.fbin"]
    done = mpirun(ranks, *search_of(name), "--mmap", *out, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert same(folder, f"{name}{ranks}_ids.npy", f"{name}_ids.npy")
    assert same(folder, f"{name}{ranks}_distances.fbin", f"{name}_distances.fbin")
    assert not list(folder.glob("*.part"))


def mpirun_unlike(*arguments, cwd):
    """Two ranks: one that may use all that the processor has, one that may not."""
    oldest = "NEON" if os.uname().machine == "aarch64" else "SSE4"
    line = [MPI, *map(str, arguments), "--threads", "1"]
    return subprocess.run(
        ["mpirun", "-n", "1", *line, ":", "-n", "1", "-x", f"KITH_CPU_TARGET={oldest}", *line],
        cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, timeout=TIMEOUT_SECONDS,
    )  # fmt: skip


UNLIKE = {
    "kmeans": (["kmeans", "--data", "[ab].npy", "-k", 50, "--iterations", 6], {"--out": "c.npy", "--out-labels": "l.ibin"}),
    "knn": (
        ["knn", "--base", "[ab].npy", "--queries", "q.npy", "-k", 7],
        {"--out-ids": "q_ids.npy", "--out-distances": "q_distances.fbin"},
    ),
    "index build": (["index", "build", "--base", "[ab].npy", "--factory", "IVF64,PQ8"], {"--out": "lists.kith"}),
    "index search": (search_of("lists"), {"--out-ids": "lists_ids.npy", "--out-distances": "lists_distances.fbin"}),
}


@pytest.mark.parametrize("call", UNLIKE)
def test_ranks_of_different_instruction_sets(folder, call):
    arguments, outputs = UNLIKE[call]
    to = [word for option, name in outputs.items() for word in (option, f"unlike_{name}")]
    done = mpirun_unlike(*arguments, *to, cwd=folder)
    assert done.returncode == 0, done.stderr
    for name in outputs.values():
        assert same(folder, f"unlike_{name}", name)


def test_a_graph_by_ranks_of_different_instruction_sets(folder):
    done = mpirun_unlike(*GRAPH, "--out", "graph_unlike", cwd=folder)
    assert done.returncode == 0, done.stderr
    for name in ("ids.npy", "distances.npy"):
        assert same(folder, f"graph_unlike/{name}", f"graph/{name}")


def test_an_error_is_said_once_with_its_rank_and_code(folder):
    done = mpirun(3, "knn", "--base", "nowhere.npy", "--queries", "q.npy", "--out-ids", "none.npy", "--json", cwd=folder)
    assert done.returncode == 3
    assert len(re.findall(r"^kith-mpi: rank 0 on \S+: cannot open 'nowhere.npy'", done.stderr, re.MULTILINE)) == 1
    assert json.loads(done.stdout)["error"]["type"] == "IoError"
    assert not (folder / "none.npy").exists() and not list(folder.glob("*.part"))


def test_a_rank_with_another_folder_ends_all(folder, tmp_path):
    """As where a mount is missing on one machine."""
    line = [MPI, "knn", "--base", "[ab].npy", "--queries", "q.npy", "--out-ids", str(folder / "none.npy")]
    done = subprocess.run(
        ["mpirun", "-n", "2", *line, ":", "-n", "1", "-wdir", str(tmp_path), *line],
        cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=TIMEOUT_SECONDS,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert re.search(r"^kith-mpi: rank 2 on \S+: ", done.stderr, re.MULTILINE)
    assert not (folder / "none.npy").exists()


def test_other_commands_are_refused(folder):
    done = subprocess.run(
        ["mpirun", "-n", "2", MPI, "info", "q.npy"],
        cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=TIMEOUT_SECONDS,
    )  # fmt: skip
    assert done.returncode == 2 and done.stderr.count("kith-mpi shares knn, kmeans") == 1


def started_ranks(job, waited):
    """The process of each rank that has started MPI, children of mpirun, which does not say the rank of earlier ends.

    MPI has started where ranks share memory; on machines on which they do not, some seconds must be enough.
    """
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) != job.pid or b"kith-mpi" not in (entry / "cmdline").read_bytes():
                continue
            if b"vader_segment" in (entry / "maps").read_bytes() or waited > 10:
                rank = re.search(rb"OMPI_COMM_WORLD_RANK=(\d+)", (entry / "environ").read_bytes())
                found[int(rank[1])] = int(entry.name)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


# Calls that last some seconds on any machine, with where their results would be.
LONG_GRAPH = ["graph", "build", "--data", "long.npy", "-k", 10, "--out", "no", "--method"]
LONG = {
    "kmeans": ["kmeans", "--data", "long.npy", "-k", 1000, "--iterations", 1000, "--tol", 0, "--out", "no.npy"],
    "knn": ["knn", "--base", "long.npy", "--queries", "long.npy", "-k", 10, "--out-ids", "no.npy"],
    "graph from disk": [*LONG_GRAPH, "cells"],
    "graph in memory": [*LONG_GRAPH, "exact"],
    "graph by rounds": [*LONG_GRAPH, "nn_descent", "--start", "random", "--recall", 0.9999],
    "graph by ggm": [*LONG_GRAPH, "ggm", "--shards", 4, "--recall", 0.9999],
    "index build": ["index", "build", "--base", "long.npy", "--factory", "IVF2048,PQ16", "--out", "no.kith"],
    "index search": ["index", "search", "--index", "long.kith", "--queries", "long.npy", "-k", 10, "--out-ids", "no.npy"],
}
SECONDS_TO_END = 5


@pytest.fixture(scope="module")
def long(folder):
    """Rows and an index for calls that last."""
    np.save(folder / "long.npy", np.random.default_rng(7).standard_normal((100_000, 32)).astype(np.float32))
    alone("index", "build", "--base", "long.npy", "--factory", "Flat", "--out", "long.kith", cwd=folder)
    return folder


def end_by_a_kill(folder, call, attempt):
    """Kills a rank at a moment, both drawn by these, and looks at how the job ends."""
    chance = random.Random(f"{call} {attempt}")
    shutil.rmtree(folder / "no", ignore_errors=True)
    with subprocess.Popen(
        command(3, *LONG[call]), cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as job:
        began = time.monotonic()
        while len(ranks := started_ranks(job, time.monotonic() - began)) < 3:
            assert time.monotonic() - began < TIMEOUT_SECONDS and job.poll() is None
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 1.5))
        victim = chance.randrange(3)
        os.kill(ranks[victim], signal.SIGKILL)
        killed = time.monotonic()
        _, said = job.communicate(timeout=TIMEOUT_SECONDS)
        took = time.monotonic() - killed
        print(f"{call}: rank {victim} killed {killed - began:.2f} s after the start; all ended {took:.2f} s later")
        assert took < SECONDS_TO_END
        assert job.returncode != 0
        assert re.search(rf"rank {victim} with PID.*signal 9", said), said
    for result in ("no.npy", "no.kith", "no/report.json"):
        assert not (folder / result).exists()


@pytest.mark.parametrize("call", LONG)
def test_a_rank_that_is_killed_ends_the_job(long, call):
    end_by_a_kill(long, call, 0)


@pytest.mark.slow
@pytest.mark.parametrize("attempt", range(1, 1 + 40 // len(LONG)))
@pytest.mark.parametrize("call", LONG)
def test_forty_ranks_that_are_killed_end_their_jobs(long, call, attempt):
    end_by_a_kill(long, call, attempt)
