"""The programs of docs/gallery.md run when they are copied alone into an empty folder, without arguments but those of the page.

What they need besides Kith and numpy decides whether they are skipped. KITH_PROGRAM is the program kith.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PAGE = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")

# What each needs, is given, says and makes. A folder without Fashion-MNIST keeps the quick ones quick.
TASKS = {
    "fashion_neighbours.py": (["PIL"], ["--dataset", "."], "10-recall@10 = 1.0000", ["fashion/neighbours.png"]),
    "photo_folder.py": (["PIL", "matplotlib"], [], "nearly the same: 000-copy.jpg, 000.jpg", ["photos/neighbours.png", "photos/photos.fbin"]),
    "rag.py": ([], ["how do I sort a list?"], "sort", ["rag-store/collection.sqlite"]),
    "smooth_path.py": (["PIL"], ["--data", "."], "drew smooth_path.png", ["smooth_path.png"]),
    "umap_graph.py": (["umap"], ["--rows", "500", "--out", "umap.npy"], "written to umap.npy", ["umap.npy"]),
    "scanpy_clusters.py": (["scanpy", "leidenalg", "igraph"], [], "adjusted Rand index", ["clusters.csv"]),
    "near_duplicates.sh": ([], [], "300", ["unique.npy", "rows.ibin", "groups.ibin"]),
    "tuned_index.py": ([], ["--recall", "0.9"], "19999 vectors in tuned.kith", ["tuned.kith"]),
}
SLOW = {"umap_graph.py", "scanpy_clusters.py"}  # seconds of compiling, by numba


def run_alone(name: str, folder: Path) -> str:
    needed, arguments, _, _ = TASKS[name]
    for module in needed:
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    shutil.copy(EXAMPLES / name, folder)
    program = Path(os.environ["KITH_PROGRAM"])
    path = os.pathsep.join([str(Path(sys.executable).parent), str(program.parent), os.environ["PATH"]])
    command = ["bash", name] if name.endswith(".sh") else [sys.executable, name]
    if name == "fashion_neighbours.py":
        arguments = [*arguments, "--program", str(program)]
    done = subprocess.run(
        [*command, *arguments], cwd=folder, env={**os.environ, "PATH": path}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else []) for name in TASKS])
def test_a_task(name: str, tmp_path: Path) -> None:
    said = run_alone(name, tmp_path)
    _, _, words, made = TASKS[name]
    assert words in said, said
    for file in made:
        assert (tmp_path / file).stat().st_size > 0, file


def test_a_second_run_of_the_store_only_brings_it_up_to_date(tmp_path: Path) -> None:
    first, second = (run_alone("rag.py", tmp_path) for _ in range(2))
    assert first == second
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.md").write_text("Zebras have stripes.")
    (tmp_path / "texts" / "b.txt").write_text("Bees make honey.")
    command = [sys.executable, "rag.py", "texts", "who makes honey?", "--store", "other", "-k", "1"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert said.startswith("b.txt#0") and "Bees make honey." in said


def test_the_index_may_be_one_of_faiss(tmp_path: Path) -> None:
    import kith
    import numpy as np

    x = np.random.default_rng(0).standard_normal((600, 8), dtype=np.float32)
    kith.write_vectors(tmp_path / "x.fbin", x)
    index = kith.Index("IVF8,Flat")
    index.train(x)
    index.add(x)
    index.save(tmp_path / "trained.index")
    shutil.copy(EXAMPLES / "tuned_index.py", tmp_path)
    command = [sys.executable, "tuned_index.py", "x.fbin", "--index", "trained.index"]
    said = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert said.returncode == 0 and "IVF8,Flat" in said.stdout and "599 vectors" in said.stdout, said.stdout


def test_the_page_names_every_task_and_each_can_be_copied_alone() -> None:
    assert re.findall(r"^## (\d)\.", PAGE, re.MULTILINE) == [str(number) for number in range(1, 9)]
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    for name in TASKS:
        assert f"examples/{name}" in PAGE, name
    for path in EXAMPLES.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            imported = [one.name for one in node.names] if isinstance(node, ast.Import) else [getattr(node, "module", None)]
            assert not names & set(imported), path.name
