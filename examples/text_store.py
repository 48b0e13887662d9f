"""A store of texts with LangChain's `add_texts` and `similarity_search`, in forty lines around a collection.

It depends on no other library: pass any function that makes a matrix of texts. `python examples/text_store.py FOLDER` tries it.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import kith


class TextStore:
    def __init__(self, path: str, embed: Callable[[Sequence[str]], Any], dimension: int) -> None:
        self._embed = embed
        self._items = kith.open(path, dimension, metric="cosine", ids="text", columns={"metadata": dict})

    def add_texts(
        self, texts: Iterable[str], metadatas: list[dict[str, Any]] | None = None, ids: list[str] | None = None
    ) -> list[str]:
        given = list(texts)
        names = ids or [str(uuid.uuid4()) for _ in given]
        columns = {"metadata": metadatas or [{} for _ in given]}
        self._items.upsert(self._embed(given), names, columns, [text.encode() for text in given])
        return names

    def similarity_search(self, query: str, k: int = 4, filter: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        where = " and ".join("json_extract(metadata, ?) = ?" for _ in filter or {})
        params = [value for name, wanted in (filter or {}).items() for value in (f'$."{name}"', wanted)]
        found = self._items.search(self._embed([query])[0], k, where=where or None, params=params)
        names = [name for name in found.ids if name is not None]
        items = self._items.get(names)
        return [
            {"id": name, "page_content": text.decode(), "metadata": metadata, "score": 1 - float(distance)}
            for name, text, metadata, distance in zip(names, items.payloads, items.columns["metadata"], found.distances)
        ]

    def delete(self, ids: list[str]) -> bool:
        return self._items.remove(ids) == len(ids)

    def close(self) -> None:
        self._items.close()


def letter_counts(texts: Sequence[str]) -> Any:
    """Instead of a model."""
    return [[text.lower().count(letter) + 0.01 for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]


def main() -> None:
    store = TextStore(sys.argv[1], letter_counts, 26)
    store.add_texts(["zebras in zoos", "a llama and a bee", "jazz"], [{"page": 1}, {"page": 2}, {"page": 2}], ["z", "l", "j"])
    best = store.similarity_search("zoo zebra", k=1)[0]
    assert (best["id"], best["metadata"]) == ("z", {"page": 1}), best
    assert store.similarity_search("zoo zebra", k=2, filter={"page": 2})[0]["metadata"] == {"page": 2}
    assert store.delete(["z"]) and store.similarity_search("zoo zebra", k=1)[0]["id"] != "z"
    print(best["page_content"])
    store.close()


if __name__ == "__main__":
    main()
