"""Every fenced example in README.md and docs/ runs as it stands.

KITH_PROGRAM is the program kith, KITH_PREFIX where the library is installed.
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

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def examples(language: str) -> list[object]:
    """The fenced blocks of a language, each named after its page and line."""
    found: list[object] = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for block in re.finditer(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            line = text.count("\n", 0, block.start()) + 1
            found.append(pytest.param(block[1], id=f"{page.name}:{line}"))
    return found


def run(*command: str | Path, folder: Path, path: str = "") -> str:
    environment = {**os.environ, "PATH": path + os.environ["PATH"]}
    result = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert result.returncode == 0, result.stdout
    return result.stdout


@pytest.mark.parametrize("code", examples("python"))
def test_python(code: str, tmp_path: Path) -> None:
    run(sys.executable, "-W", "error", "-c", code, folder=tmp_path)


@pytest.mark.parametrize("code", examples("sh"))
def test_shell(code: str, tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    base = random.standard_normal((500, 8), dtype=np.float32)
    kith.write_vectors(tmp_path / "base.fbin", base)
    kith.write_vectors(tmp_path / "queries.fbin", base[:20])
    kith.write_vectors(tmp_path / "truth.ibin", kith.knn(base[:20], base, k=10).ids)
    program = Path(os.environ["KITH_PROGRAM"])
    assert "1.000000" in run("bash", "-ec", code, folder=tmp_path, path=f"{program.parent}:")


@pytest.mark.parametrize("code", examples("cpp"))
def test_cpp(code: str, tmp_path: Path) -> None:
    (project,) = re.findall(r"^```cmake\n(.*?)^```$", (ROOT / "docs/quickstart.md").read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "CMakeLists.txt").write_text(f"cmake_minimum_required(VERSION 3.25)\nproject(app LANGUAGES CXX)\n{project}")
    (tmp_path / "app.cpp").write_text(code)
    run("cmake", "-G", "Ninja", "-B", "build", f"-DCMAKE_PREFIX_PATH={os.environ['KITH_PREFIX']}", folder=tmp_path)
    run("cmake", "--build", "build", folder=tmp_path)
    assert "row" in run("build/app", folder=tmp_path)
