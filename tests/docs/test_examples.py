"""Every example in README.md and docs/, fenced or indented, runs as it stands.

KITH_PROGRAM is the program kith, KITH_PREFIX where the library is installed. A fence of "python gpu" needs torch and a GPU, one
of "text", "sql" or "cuda" is not run. An indented block is lines of a shell: of the program kith, which are run, or of pip, cmake and
scripts of the repository, which are checked for what they name.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
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


def indented(page: Path) -> list[tuple[int, str]]:
    """The indented blocks of a page, each with its line; what is within fences, tables and lists is none."""
    found: list[tuple[int, str]] = []
    block: list[str] = []
    fenced, before = False, ""
    for number, line in enumerate([*page.read_text(encoding="utf-8").splitlines(), "end"], 1):
        if line.startswith("```"):
            fenced = not fenced
        inside = not fenced and line.startswith("    ") and (bool(block) or before.strip() == "")
        if inside:
            block.append(line[4:])
        elif block and line.strip():
            found.append((number - len(block), "\n".join(block).strip()))
            block = []
        before = line
    return found


def indented_examples() -> list[object]:
    return [
        pytest.param(text, id=f"{page.name}:{number}") for page in PAGES for number, text in indented(page)
    ]


def run(*command: str | Path, folder: Path, path: str = "") -> str:
    environment = {**os.environ, "PATH": path + os.environ["PATH"]}
    result = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert result.returncode == 0, result.stdout
    return result.stdout


@pytest.mark.parametrize("code", examples("python"))
def test_python(code: str, tmp_path: Path) -> None:
    run(sys.executable, "-W", "error", "-c", code, folder=tmp_path)


def write_files(folder: Path) -> None:
    """What commands in the documentation read."""
    random = np.random.default_rng(1)
    base = random.standard_normal((500, 8), dtype=np.float32)
    truth = kith.knn(base[:20], base, k=10).ids
    kith.write_vectors(folder / "base.fbin", base)
    kith.write_vectors(folder / "sift_base.fvecs", base)
    kith.write_vectors(folder / "queries.fbin", base[:20])
    (folder / "parts").mkdir()
    for part in range(5):
        kith.write_vectors(folder / f"parts/{part}.npy", base[100 * part : 100 * part + 100])
    kith.write_vectors(folder / "truth.ibin", truth)
    kith.write_vectors(folder / "truth.ivecs", truth)
    kith.write_vectors(folder / "glove-100-angular.hdf5::test", base[:20])
    header = bytes([0, 0, 8, 3]) + np.array([50, 4, 4], ">u4").tobytes()
    (folder / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(header + bytes(50 * 16)))


@pytest.mark.parametrize("code", examples("sh"))
def test_shell(code: str, tmp_path: Path) -> None:
    write_files(tmp_path)
    program = Path(os.environ["KITH_PROGRAM"])
    assert "1.000000" in run("bash", "-ec", code, folder=tmp_path, path=f"{program.parent}:")


@pytest.mark.parametrize("code", indented_examples())
def test_indented(code: str, tmp_path: Path) -> None:
    write_files(tmp_path)
    lines = [line for line in code.splitlines() if line]
    if all(line.startswith("kith ") for line in lines):
        run("bash", "-ec", code, folder=tmp_path, path=f"{Path(os.environ['KITH_PROGRAM']).parent}:")
        return
    for line in lines:
        check_line(line)


def check_line(line: str) -> None:
    """That a line of a shell which takes too long to run names what there is."""
    presets = {preset["name"] for preset in json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]}
    words = shlex.split(line, comments=True)
    assert words[0] in ("pip", "cmake", "python", "python3") or (ROOT / words[0]).is_file() or words[0].startswith("build/"), line
    for word, value in zip(words, words[1:]):
        assert word != "--preset" or value in presets, line
        assert word != "-S" or (ROOT / value).is_dir(), line
    if words[:2] == ["pip", "install"] and words[2].startswith("kithnn["):
        extras = re.findall(r"[a-z]+", words[2].removeprefix("kithnn"))
        assert all(re.search(rf"^{extra} = \[", (ROOT / "pyproject.toml").read_text(), re.MULTILINE) for extra in extras), line


@pytest.mark.parametrize("code", examples("python gpu"))
def test_python_on_a_gpu(code: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    if not kith.info()["cuda_devices"]:
        pytest.skip("no CUDA device, or a build without CUDA")
    run(sys.executable, "-W", "error", "-c", code, folder=tmp_path)


def test_every_fence_is_of_a_kind_that_is_known() -> None:
    known = {"python", "python gpu", "sh", "c", "cpp", "cmake", "text", "cuda", "sql"}
    for page in PAGES:
        opened = re.findall(r"^```(.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)[::2]
        assert set(opened) <= known, (page.name, opened)


@pytest.mark.parametrize("code", examples("cpp"))
def test_cpp(code: str, tmp_path: Path) -> None:
    (project,) = re.findall(r"^```cmake\n(.*?)^```$", (ROOT / "docs/quickstart.md").read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "CMakeLists.txt").write_text(f"cmake_minimum_required(VERSION 3.25)\nproject(app LANGUAGES CXX)\n{project}")
    (tmp_path / "app.cpp").write_text(code)
    run("cmake", "-G", "Ninja", "-B", "build", f"-DCMAKE_PREFIX_PATH={os.environ['KITH_PREFIX']}", folder=tmp_path)
    run("cmake", "--build", "build", folder=tmp_path)
    assert "row" in run("build/app", folder=tmp_path)


@pytest.mark.parametrize("code", examples("c"))
def test_c(code: str, tmp_path: Path) -> None:
    prefix = Path(os.environ["KITH_PREFIX"])
    (tmp_path / "app.c").write_text(code)
    libraries = next(path.parent for path in prefix.rglob("libkith.so"))
    strict = ["-std=c11", "-pedantic-errors", "-Wall", "-Wextra", "-Werror"]
    run("cc", *strict, "app.c", f"-I{prefix}/include", f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-lkith", "-o", "app",
        folder=tmp_path)
    assert "row" in run("./app", folder=tmp_path)


def test_the_c_api_by_ctypes(tmp_path: Path) -> None:
    library = next(Path(os.environ["KITH_PREFIX"]).rglob("libkith.so"))
    assert "works by ctypes" in run(sys.executable, ROOT / "examples/c_api.py", library, folder=tmp_path)
