"""The notebooks in examples/ have their outputs, and run from their first cell to their last. Running
them is slow: it needs what scripts/setup --slow installs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
# What each is to draw and to say.
NOTEBOOKS = {
    "fashion_mnist": (5, ["probes  64: recall", "of an earlier one", "classified correctly"], "umap"),
    "scanpy": (1, ["recall 1", "the same clusters"], "scanpy"),
    "texts": (3, ["texts, 128 columns", "recall"], "sklearn"),
}


def told_and_drawn(cells: list[Any]) -> tuple[str, int]:
    outputs = [output for cell in cells if cell["cell_type"] == "code" for output in cell["outputs"]]
    text = "".join("".join(output.get("text", "")) for output in outputs)
    return text, sum("image/png" in output.get("data", {}) for output in outputs)


def check(name: str, cells: list[Any]) -> None:
    pictures, words, _ = NOTEBOOKS[name]
    text, drawn = told_and_drawn(cells)
    assert drawn == pictures
    for word in words:
        assert any(one in text for one in word.split("|")), word


@pytest.mark.parametrize("name", sorted(NOTEBOOKS))
def test_notebooks_are_committed_with_their_outputs(name: str) -> None:
    cells = json.loads((EXAMPLES / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    check(name, cells)
    assert not [output for cell in cells for output in cell.get("outputs", []) if output["output_type"] == "error"]
    assert "/home" not in json.dumps(cells)


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_run(name: str, tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip(NOTEBOOKS[name][2])
    notebook = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=1800, kernel_name="python3", resources={"metadata": {"path": EXAMPLES}})
    client.execute()
    check(name, notebook.cells)
    nbformat.write(notebook, tmp_path / "executed.ipynb")
