"""The notebook in examples/ runs from its first cell to its last. Slow: it needs what scripts/setup --slow installs."""

from __future__ import annotations

from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "fashion_mnist.ipynb"


@pytest.mark.slow
def test_notebook(tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("umap")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=1800, kernel_name="python3", resources={"metadata": {"path": NOTEBOOK.parent}})
    client.execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    text = "".join(output.get("text", "") for output in outputs)
    assert len(pictures) == 4, [output.get("output_type") for output in outputs]
    assert "probes  64: recall" in text and "classified correctly" in text
    nbformat.write(notebook, tmp_path / "executed.ipynb")
