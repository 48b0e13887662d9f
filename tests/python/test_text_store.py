"""The example of a store of texts: what its pages say of add_texts and similarity_search."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from kith import _kith

pytestmark = pytest.mark.skipif(not _kith.has_collections, reason="built without SQLite")

EXAMPLE = Path(__file__).parents[2] / "examples/text_store.py"


@pytest.fixture
def example():
    spec = importlib.util.spec_from_file_location("text_store", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_example_runs(tmp_path):
    done = subprocess.run([sys.executable, EXAMPLE, tmp_path / "c"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "zebras in zoos\n"


def test_a_store_is_there_again(tmp_path, example):
    store = example.TextStore(tmp_path / "c", example.letter_counts, 26)
    names = store.add_texts(f"{'abc'[i % 3]}{'z' * i}" for i in range(9))
    assert len(set(names)) == 9
    store.add_texts(["changed"], [{"quote": 'a "b"'}], [names[0]])
    store.close()
    again = example.TextStore(tmp_path / "c", example.letter_counts, 26)
    assert again.similarity_search("changed", k=1)[0] == {
        "id": names[0], "page_content": "changed", "metadata": {"quote": 'a "b"'}, "score": pytest.approx(1, abs=1e-6)
    }
    assert [one["id"] for one in again.similarity_search("x", k=20, filter={"quote": 'a "b"'})] == [names[0]]
    assert again.similarity_search("x", filter={"none": 1}) == []
    assert not again.delete([names[1], "unknown"]) and len(again.similarity_search("x", k=20)) == 8
    again.close()
