"""``kith explore``: the page from files."""

from __future__ import annotations

import argparse
import gzip
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kith import _kith
from kith._explore import explore
from kith._explore.collected import is_collection
from kith._explore.vector_files import vectors_in
from kith._items import Items
from kith._knn_graph import KnnGraph


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs until Ctrl-C; the exit code is the program's: 2 for wrong usage, 3 for a file, 4 for memory."""
    given = _parser().parse_args(arguments)
    try:
        if given.collection is not None and given.vectors is not None:
            raise ValueError("--vectors and a collection are two things to look at; give one")
        explore(
            _collection(given) if given.vectors is None else given.items,
            None if given.vectors is None else vectors_in(given.vectors),
            _labels(given.labels, given.vectors is None),
            _graph(given.graph),
            None if given.xy is None else vectors_in(given.xy),
            text=given.text,
            metric=given.metric,
            device=given.device,
            host=given.host,
            port=given.port,
            browser=not given.no_browser,
            shape=given.shape,
            block=True,
        )
    except KeyboardInterrupt:
        return 130
    except NotImplementedError as error:
        print(f"kith explore: {error}", file=sys.stderr)
        return 2
    except (ValueError, TypeError, OSError, MemoryError) as error:
        print(f"kith explore: {_words_of(error)}", file=sys.stderr)
        return 4 if isinstance(error, MemoryError) else 3 if isinstance(error, OSError) else 2
    return 0


def _words_of(error: BaseException) -> str:
    """Without the number of the system's error."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"cannot open {error.filename!r}: {error.strerror}"
    if isinstance(error, OSError) and error.strerror:
        return str(error.strerror)
    return str(error) or type(error).__name__


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kith explore",
        description="Look at vectors in the browser: neighbours, search, clusters, paths, a map.",
        epilog="example: kith explore --vectors x.npy --items thumbs/, or kith explore photos of a collection",
    )
    parser.add_argument("collection", metavar="DIR", nargs="?", help="a collection, in the place of --vectors and --items")
    parser.add_argument("--vectors", metavar="FILE", help="vectors, in any format that Kith reads or kith convert takes")
    parser.add_argument("--items", metavar="PATH", help="a folder of images, in the order of names, or a .txt or .jsonl file")
    parser.add_argument("--labels", metavar="FILE", help="a label for each row: a .txt file of a label a line, .npy or idx1-ubyte; or a column")
    parser.add_argument("--text", metavar="COLUMN", help="the column of a collection that is shown; by default its payloads")
    parser.add_argument("--graph", metavar="FILE", nargs="+", help="a k-NN graph: its folder, or its files of ids and distances")
    parser.add_argument("--xy", metavar="FILE", help="where to draw each row on the map, two columns")
    parser.add_argument("--shape", metavar="H,W", type=_shape, help="vectors are pixels of images: height,width[,3]")
    parser.add_argument("--metric", metavar="NAME", help="l2 (default), cosine, inner_product, ...")
    parser.add_argument("--device", metavar="NAME", default="auto", help="auto (default), cpu, cuda, cuda:N")
    parser.add_argument("--host", metavar="NAME", default="127.0.0.1", help="where to listen (127.0.0.1: this machine alone)")
    parser.add_argument("--port", metavar="N", type=int, default=0, help="0 (default) takes a free one")
    parser.add_argument("--no-browser", action="store_true", help="print the address and open nothing")
    return parser


def _shape(words: str) -> tuple[int, ...]:
    return tuple(int(word) for word in words.replace("x", ",").split(","))


def _collection(given: argparse.Namespace) -> str:
    """The path of a collection, in the place of which there may be something else."""
    path: str | None = given.collection
    if path is None:
        raise ValueError("say what to look at: --vectors FILE, or the directory of a collection")
    if given.items is not None:
        raise ValueError("--items belong to --vectors; what a collection shows is its payloads, or a column: --text COLUMN")
    if not _kith.has_collections:
        raise NotImplementedError("this build of Kith has no collections, since it was built without SQLite; say --vectors FILE")
    if not os.path.exists(path):
        raise FileNotFoundError(f"there is no collection {path!r}")
    if os.path.isdir(path) and not is_collection(path):
        raise ValueError(f"{path!r} is a folder, but no collection; of a folder of images say --vectors FILE --items {path}")
    if os.path.isfile(path):
        raise ValueError(f"{path!r} is a file; say --vectors {path}")
    return path


def _labels(path: str | None, of_collection: bool) -> Any:
    if path is None or (of_collection and not os.path.exists(path)):
        return path
    if Path(path).suffix == ".npy":
        return np.load(path, allow_pickle=False)
    if "idx1-ubyte" in Path(path).name:
        content = Path(path).read_bytes()
        content = gzip.decompress(content) if path.endswith(".gz") else content
        if content[:4] != b"\0\0\x08\x01" or len(content) != 8 + int.from_bytes(content[4:8], "big"):
            raise ValueError(f"{path!r} is no IDX file of a byte a row")
        return np.frombuffer(content, np.uint8, offset=8)
    return list(Items(path, "labels").texts or [])


def _graph(files: list[str] | None) -> KnnGraph | None:
    if files is None:
        return None
    if len(files) > 2:
        raise ValueError(f"--graph has {len(files)} files; it takes a folder, or a file of ids and one of distances")
    return KnnGraph.load(files[0], files[1] if len(files) == 2 else None)
