"""Answers questions from a folder of texts: finds the passages that a language model would be given.

    pip install build/wheel/dist/kithnn-*.whl                   # and sentence-transformers, for meanings in the place of words
    python rag.py [FOLDER] "how do I sort a list?"

FOLDER holds .txt, .md or .rst files; without it the documentation strings of Python's standard library take their place.
Passages, their vectors and where they come from lie in a collection, a directory that survives a crash: a second run only
adds what has changed. With sentence-transformers installed its model makes the vectors; else they count words.
"""

import argparse
import importlib.util
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kith
import numpy as np
from numpy.typing import NDArray

WORDS, OVERLAP = 120, 20  # of a passage, and of what it shares with the one before
COLUMNS = 1024  # of vectors that count words
COMMON = set("and are but can for from has have how its not that the then this was what when where which who will with you".split())


def passages(folder: Path | None) -> Iterator[tuple[str, str]]:
    """(name, text) of each passage."""
    if folder is None:
        for module in ("argparse", "bisect", "collections", "csv", "functools", "heapq", "itertools", "json", "pathlib", "random",
                       "shutil", "statistics", "string", "tempfile", "textwrap", "threading"):
            found = vars(importlib.import_module(module))
            for name, thing in sorted(found.items()):
                if callable(thing) and not name.startswith("_") and len(thing.__doc__ or "") > 60:
                    yield f"{module}.{name}", " ".join((thing.__doc__ or "").split())
        for name in ("sorted", "zip", "open", "list", "dict", "str", "enumerate", "range"):
            yield name, " ".join((vars(importlib.import_module("builtins"))[name].__doc__ or "").split())
        return
    for path in sorted(path for path in folder.rglob("*") if path.suffix in (".txt", ".md", ".rst")):
        words = path.read_text(encoding="utf-8", errors="replace").split()
        for number, first in enumerate(range(0, max(1, len(words) - OVERLAP), WORDS - OVERLAP)):
            yield f"{path.relative_to(folder)}#{number}", " ".join(words[first : first + WORDS])


class WordCounts:
    """Words, cut to their stems' first letters and hashed to columns, frequent ones counted less: no model, no download."""

    def __init__(self, texts: list[str]) -> None:
        seen = np.stack([self._counts(text) > 0 for text in texts]).sum(axis=0)
        self._weights = np.log(1 + len(texts) / (1 + seen)).astype(np.float32)

    def encode(self, texts: list[str]) -> NDArray[np.float32]:
        rows: NDArray[np.float32] = np.stack([np.log1p(self._counts(text)) * self._weights for text in texts])
        return rows

    @staticmethod
    def _counts(text: str) -> NDArray[np.float32]:
        words = [word[:6].rstrip("s") for word in re.findall(r"[a-z]{3,}", text.lower()) if word not in COMMON]
        columns = [zlib.crc32(word.encode()) % COLUMNS for word in words]
        return np.bincount(columns, minlength=COLUMNS).astype(np.float32)


def model_for(texts: list[str]) -> Any:
    if importlib.util.find_spec("sentence_transformers") is None:
        return WordCounts(texts)
    return importlib.import_module("sentence_transformers").SentenceTransformer("all-MiniLM-L6-v2")


def main() -> None:
    parser = argparse.ArgumentParser(description="passages that answer a question")
    parser.add_argument("folder", type=Path, nargs="?", help="texts (default: documentation of Python's library)")
    parser.add_argument("question")
    parser.add_argument("--store", type=Path, default=Path("rag-store"), help="the collection's directory")
    parser.add_argument("-k", type=int, default=3, help="passages to find")
    options = parser.parse_args()

    found = dict(passages(options.folder))
    if not found:
        raise SystemExit(f"{options.folder} holds no .txt, .md or .rst file")
    names, texts = list(found), list(found.values())
    model = model_for(texts)
    vectors = np.asarray(model.encode(texts), np.float32)
    with kith.open(options.store, dimension=vectors.shape[1], metric="cosine", ids="text", columns={"source": str}) as store:
        with store.batch():  # all of it, or nothing
            store.upsert(vectors, names, {"source": [name.partition("#")[0] for name in names]}, [text.encode() for text in texts])
            store.remove([name for name in store.ids() if name not in found])
        print(f"{len(store)} passages in {options.store}", file=sys.stderr)
        ids, distances = store.search(np.asarray(model.encode([options.question]), np.float32)[0], k=options.k)
        hits = store.get([name for name in ids if name is not None])
    for name, distance, text in zip(hits.ids, distances, hits.payloads):
        print(f"{name}  ({1 - distance:.2f})\n  {text.decode()[:300]}\n")


if __name__ == "__main__":
    main()
