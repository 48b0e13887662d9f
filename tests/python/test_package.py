"""The package as a whole: what it says of itself, its docs, its types."""

from __future__ import annotations

import doctest
import inspect
import json
import os
import pkgutil
import shutil
import subprocess
import sys
from importlib import import_module, metadata
from pathlib import Path

import pytest

import kith


def test_info():
    info = kith.info()
    assert info["version"] == kith.__version__ == metadata.version("kithnn")
    assert info["threads"] >= 1 and info["memory"] > 0 and info["memory_free"] > 0
    assert isinstance(info["cpu"], str) and isinstance(info["instruction_set"], str) and info["instruction_set"]
    assert isinstance(info["built_with_cuda"], bool) and isinstance(info["cuda_devices"], list)
    assert set(kith.Info.__annotations__) == set(info)
    if not info["built_with_cuda"]:
        assert info["cuda_devices"] == []
    for device in info["cuda_devices"]:
        assert set(kith.CudaDevice.__annotations__) == set(device)


def test_everything_public_is_documented():
    for name in kith.__all__:
        thing = getattr(kith, name)
        if name not in ("__version__", "Metric"):  # a str, and an alias of one
            assert inspect.getdoc(thing), name
    for documented in (kith.Index, kith.KnnGraph, kith.RangeNeighbors):
        for name, member in inspect.getmembers(documented):
            if not name.startswith("_"):
                assert inspect.getdoc(member), name


def modules(folder, prefix="kith."):
    for module in pkgutil.iter_modules(folder, prefix):
        if module.ispkg:
            yield from modules([str(Path(folder[0]) / module.name.rpartition(".")[2])], f"{module.name}.")
        elif module.name != "kith._kith":
            yield module.name


@pytest.mark.parametrize("name", list(modules(kith.__path__)))
def test_examples_in_the_docs_are_true(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    if name.startswith("kith.sklearn"):
        pytest.importorskip("sklearn")
    assert doctest.testmod(import_module(name)).failed == 0


@pytest.fixture(scope="module")
def mypy(tmp_path_factory):
    pytest.importorskip("mypy")
    folder = tmp_path_factory.mktemp("mypy")

    def check(*targets):
        command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(folder), *targets]
        environment = {**os.environ, "MYPYPATH": str(Path(__file__).parent)}
        return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)

    return check


def test_mypy_is_content(mypy):
    """Strictly, over the installed package with its generated stub and over a user's program."""
    checked = mypy("-p", "kith", "-m", "typed_usage")
    assert checked.returncode == 0, checked.stdout + checked.stderr


MISTAKES = """import kith
import numpy as np
x = np.zeros((3, 2), np.float32)
kith.knn(x, x, k='ten')
kith.knn(x, x, metric='euclidian')
kith.Index(metric='L2')
name: str = kith.knn(x, x).ids
kith.knn(x, x, metric='euclidean', threads=2)
"""


def test_pyright_agrees(tmp_path):
    if shutil.which("pyright") is None:
        pytest.skip("pyright is not installed")
    (tmp_path / "mistake.py").write_text(MISTAKES)
    (tmp_path / "typed_usage.py").write_text((Path(__file__).parent / "typed_usage.py").read_text())
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(Path(kith.__file__).parents[1])]}))
    command = ["pyright", "--pythonpath", sys.executable, "--outputjson", "-p", str(tmp_path)]
    checked = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)
    wrong = {(Path(found["file"]).name, found["range"]["start"]["line"] + 1) for found in checked["generalDiagnostics"]}
    assert wrong == {("mistake.py", line) for line in (4, 5, 6, 7)}, checked


def test_mypy_sees_mistakes(mypy, tmp_path):
    program = tmp_path / "mistake.py"
    program.write_text(MISTAKES)
    checked = mypy(str(program))
    wrong = [line.split(":")[1] for line in checked.stdout.splitlines() if ": error:" in line]
    assert wrong == ["4", "5", "6", "7"], checked.stdout
    assert '"ndarray' in checked.stdout  # numpy's, not Any


def test_the_program_comes_with_the_package():
    if not (Path(kith.__file__).parent / "_program" / "kith").exists():
        pytest.skip("this package was built without the program")
    scripts = Path(sys.executable).parent
    for command in ([sys.executable, "-m", "kith"], [scripts / "kith"]):
        done = subprocess.run([*command, "--version"], capture_output=True, text=True)
        assert done.stdout == f"kith {kith.__version__}\n", done.stderr
    wrong = subprocess.run([sys.executable, "-m", "kith", "knn", "--bases", "x"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "did you mean --base?" in wrong.stderr
