"""The recipes of docs/clusters.md that share a graph among processes, run with stand-ins for SLURM, Ray and Dask.

KITH_PROGRAM is the program kith. What a stand-in does is what the scheduler promises: it runs every task, some of them again.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import kith
import numpy as np
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "clusters.md"

RAY = """
from concurrent.futures import ThreadPoolExecutor

threads = ThreadPoolExecutor(16)


def init():
    pass


def remote(**options):
    class Task:
        def __init__(self, function):
            self.function = function

        def remote(self, *arguments):
            return threads.submit(self.function, *arguments)

    return Task


def get(futures):
    return [future.result() for future in futures]
"""

DASK = """
class Client:
    def __init__(self, address):
        pass

    def map(self, function, values, pure, retries):
        return [function(value) for value in values]  # one worker for all

    def gather(self, results):
        return results
"""


def recipe(mark: str, folder: Path) -> str:
    """The block with this mark, in this folder, for vectors that are few."""
    blocks = re.findall(r"^```text\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    found = [block for block in blocks if mark in block]
    assert len(found) == 1, mark
    assert found[0].count("\n") <= 28
    text = str(found[0]).replace("/shared/", f"{folder}/").replace("threads=16", "threads=1").replace("PARTS = 8", "PARTS = 3")
    return text.replace('method="cells"', 'method="cells", cells=20, recall=0.8').replace(
        "--method cells", "--method cells --cells 20 --recall 0.8 --device cpu"
    )


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    random = np.random.default_rng(1)
    (tmp_path / "emb").mkdir()
    for part in range(3):
        np.save(tmp_path / "emb" / f"{part}.npy", random.standard_normal((700, 16), dtype=np.float32))
    return tmp_path


def assert_whole(folder: Path) -> None:
    truth = kith.knn_graph(str(folder / "emb" / "*.npy"), k=10, method="cells", cells=20, recall=0.8, device="cpu")
    graph = kith.KnnGraph.load(folder / "graph")
    assert np.array_equal(graph.ids, truth.ids) and np.array_equal(graph.distances, truth.distances)
    assert list((folder / "w").iterdir()) == []


@pytest.mark.parametrize("name, stand_in, mark", [("ray", RAY, "import ray"), ("dask", DASK, "dask.distributed")])
def test_python(shared: Path, name: str, stand_in: str, mark: str) -> None:
    modules = shared / "modules"
    package = modules / name
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(stand_in if name == "ray" else "")
    (package / "distributed.py").write_text(stand_in)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(modules), os.environ.get("PYTHONPATH", "")])}
    subprocess.run([sys.executable, "-c", recipe(mark, shared)], env=environment, check=True, timeout=100)
    assert_whole(shared)


@pytest.mark.parametrize("waits", [True, False])
def test_slurm(shared: Path, waits: bool) -> None:
    program = Path(os.environ["KITH_PROGRAM"])
    script = shared / "job"
    texts = re.findall(r"^```text\n(#!/bin/bash\n#SBATCH --array.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    assert len(texts) == 2
    text = texts[0 if waits else 1].replace("/shared/", f"{shared}/")
    script.write_text(text.replace("--method cells", "--method cells --cells 20 --recall 0.8 --device cpu"))
    (shared / "scontrol").write_text(f"#!/bin/sh\necho $2 >> {shared}/requeued\n")
    (shared / "scontrol").chmod(0o755)

    def start(task: int) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ, "PATH": f"{shared}:{program.parent}:{os.environ['PATH']}", "SLURM_ARRAY_TASK_ID": str(task),
            "SLURM_ARRAY_TASK_COUNT": "3", "SLURM_ARRAY_JOB_ID": "7", "SLURM_CPUS_PER_TASK": "1",
        }  # fmt: skip
        return subprocess.Popen(["bash", str(script)], env=environment)

    if waits:
        assert [process.wait(100) for process in [start(task) for task in (1, 2, 3)]] == [0, 0, 0]
    else:
        queue = [1, 2, 3]  # one node for all
        for _ in range(50):
            if not queue:
                break
            task = queue.pop(0)
            if start(task).wait(100) == 75:
                queue.append(task)
        requeued = (shared / "requeued").read_text().split()
        assert queue == [] and set(requeued) <= {"7_1", "7_2", "7_3"} and requeued
    assert_whole(shared)
