"""Collections beside Chroma, LanceDB, sqlite-vec and Qdrant's local mode: 100,000 made embeddings of 384 columns.

    python bench/collections_vs_peers.py [--rows N] [--out FILE] [SYSTEM...]

Each system runs in processes of its own, in an environment that has it (pip install chromadb lancedb sqlite-vec
pysqlite3-binary qdrant-client); a note says which could not be imported. Steps: adds in batches of 1,000; one row a call;
reopen in a new process, to the first result; searches one query at a time, alone and with a filter that keeps a tenth; half
removed; bytes on the disk. All defaults are the system's own: where one syncs less, its adds are faster and a note says so.
Times are those of the wall; beside them stand those of the processors of all threads, which a busy machine does not stretch.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from report import Report, parser_of, report_of

DIMENSION = 384
BATCH = 1000
SINGLE = 300
QUERIES = 100
K = 10
YEARS = 100  # of which a filter keeps those below TENTH
TENTH = 10

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]


def made_rows(rows: int, seed: int) -> Floats:
    """Unit vectors around 500 centres, as embeddings of texts are."""
    centres = np.random.default_rng(0).standard_normal((500, DIMENSION), dtype=np.float32)
    random = np.random.default_rng(seed)
    x = centres[random.integers(0, 500, rows)] + 0.9 * random.standard_normal((rows, DIMENSION), dtype=np.float32)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


class System:
    """What is asked of each; ids are 0, 1, 2, ..., and the column is id % YEARS."""

    syncs = ""  # when a write that returned is on the disk

    def __init__(self, path: str) -> None:
        self.path = path

    def add(self, first: int, x: Floats) -> None:
        raise NotImplementedError

    def search(self, query: Floats, below: int | None) -> list[int]:
        raise NotImplementedError

    def remove(self, ids: list[int]) -> None:
        raise NotImplementedError

    def tidy(self) -> None:
        """What its documentation says to call after many removals."""

    def close(self) -> None:
        pass


class Kith(System):
    syncs = "every call"

    def __init__(self, path: str) -> None:
        import kith

        super().__init__(path)
        there = os.path.exists(path)
        self.c = kith.open(path) if there else kith.open(path, DIMENSION, columns={"year": int})
        if not there:
            self.c.create_index("year")

    def add(self, first: int, x: Floats) -> None:
        ids = np.arange(first, first + len(x))
        self.c.add(x, ids=ids, columns={"year": ids % YEARS})

    def search(self, query: Floats, below: int | None) -> list[int]:
        if below is None:
            return self.c.search(query, K).ids.tolist()
        return self.c.search(query, K, where="year < ?", params=(below,)).ids.tolist()

    def remove(self, ids: list[int]) -> None:
        self.c.remove(ids)

    def tidy(self) -> None:
        self.c.compact()

    def close(self) -> None:
        self.c.close()


class Chroma(System):
    syncs = "SQLite's log; the graph every 1,000 rows"

    def __init__(self, path: str) -> None:
        import chromadb

        super().__init__(path)
        client = chromadb.PersistentClient(path, chromadb.Settings(anonymized_telemetry=False))
        self.c = client.get_or_create_collection("vectors", metadata={"hnsw:space": "l2"}, embedding_function=None)

    def add(self, first: int, x: Floats) -> None:
        ids = range(first, first + len(x))
        self.c.add(ids=[str(i) for i in ids], embeddings=x, metadatas=[{"year": i % YEARS} for i in ids])

    def search(self, query: Floats, below: int | None) -> list[int]:
        where = {} if below is None else {"where": {"year": {"$lt": below}}}
        return [int(i) for i in self.c.query(query_embeddings=[query], n_results=K, include=["distances"], **where)["ids"][0]]

    def remove(self, ids: list[int]) -> None:
        for first in range(0, len(ids), 5000):  # its largest batch
            self.c.delete(ids=[str(i) for i in ids[first : first + 5000]])


class Lance(System):
    syncs = "each add is files of its own; not synced"

    def __init__(self, path: str) -> None:
        import lancedb
        import pyarrow as pa

        super().__init__(path)
        self.pa = pa
        schema = pa.schema([("id", pa.int64()), ("year", pa.int64()), ("vector", pa.list_(pa.float32(), DIMENSION))])
        self.t = lancedb.connect(path).create_table("c", schema=schema, exist_ok=True)

    def add(self, first: int, x: Floats) -> None:
        ids = np.arange(first, first + len(x))
        vectors = self.pa.FixedSizeListArray.from_arrays(self.pa.array(x.reshape(-1)), DIMENSION)
        self.t.add(self.pa.table({"id": ids, "year": ids % YEARS, "vector": vectors}))

    def search(self, query: Floats, below: int | None) -> list[int]:
        search = self.t.search(query).limit(K).select(["id"])
        if below is not None:
            search = search.where(f"year < {below}", prefilter=True)
        found: list[int] = search.to_arrow()["id"].to_pylist()
        return found

    def remove(self, ids: list[int]) -> None:
        for first in range(0, len(ids), 5000):
            self.t.delete(f"id in ({','.join(map(str, ids[first : first + 5000]))})")

    def tidy(self) -> None:
        from datetime import timedelta

        self.t.optimize(cleanup_older_than=timedelta(0))


class SqliteVec(System):
    syncs = "every call (synchronous=FULL)"

    def __init__(self, path: str) -> None:
        import sqlite_vec
        from pysqlite3 import dbapi2 as sqlite3  # not every Python's own loads extensions

        super().__init__(path)
        os.makedirs(path, exist_ok=True)
        self.db = sqlite3.connect(path + "/c.sqlite")
        self.db.enable_load_extension(True)
        sqlite_vec.load(self.db)
        self.db.execute("pragma journal_mode=wal")
        self.db.execute("pragma synchronous=full")
        self.db.execute(
            f"create virtual table if not exists c using vec0(id integer primary key, vector float[{DIMENSION}], year integer)"
        )

    def add(self, first: int, x: Floats) -> None:
        with self.db:
            self.db.executemany(
                "insert into c(id, vector, year) values (?, ?, ?)",
                ((first + i, row.tobytes(), (first + i) % YEARS) for i, row in enumerate(x)),
            )

    def search(self, query: Floats, below: int | None) -> list[int]:
        more = "" if below is None else f" and year < {below}"
        rows = self.db.execute(f"select id from c where vector match ? and k = {K}{more}", (query.tobytes(),))
        return [row[0] for row in rows]

    def remove(self, ids: list[int]) -> None:
        with self.db:
            self.db.executemany("delete from c where id = ?", ((i,) for i in ids))

    def tidy(self) -> None:
        self.db.execute("vacuum")

    def close(self) -> None:
        self.db.close()


class Qdrant(System):
    syncs = "SQLite's default, a transaction for each call"

    def __init__(self, path: str) -> None:
        from qdrant_client import QdrantClient, models

        super().__init__(path)
        self.models = models
        self.c = QdrantClient(path=path)
        if not self.c.collection_exists("c"):
            self.c.create_collection("c", models.VectorParams(size=DIMENSION, distance=models.Distance.EUCLID))

    def add(self, first: int, x: Floats) -> None:
        ids = list(range(first, first + len(x)))
        points = self.models.Batch(ids=ids, vectors=x.tolist(), payloads=[{"year": i % YEARS} for i in ids])
        self.c.upsert("c", points)

    def search(self, query: Floats, below: int | None) -> list[int]:
        kept = None
        if below is not None:
            kept = self.models.Filter(must=[self.models.FieldCondition(key="year", range=self.models.Range(lt=below))])
        return [int(p.id) for p in self.c.query_points("c", query=query, limit=K, query_filter=kept).points]

    def remove(self, ids: list[int]) -> None:
        self.c.delete("c", self.models.PointIdsList(points=ids))

    def close(self) -> None:
        self.c.close()


SYSTEMS: dict[str, tuple[type[System], str]] = {
    "Kith": (Kith, "kithnn"),
    "Chroma": (Chroma, "chromadb"),
    "LanceDB": (Lance, "lancedb"),
    "sqlite-vec": (SqliteVec, "sqlite-vec"),
    "Qdrant local": (Qdrant, "qdrant-client"),
}


def disk_bytes(path: str) -> int:
    """As the file system counts them: blocks, each file once."""
    return sum(os.lstat(os.path.join(folder, name)).st_blocks * 512 for folder, _, names in os.walk(path) for name in names)


@contextmanager
def timed(results: dict[str, Any], name: str) -> Iterator[None]:
    wall, processor = time.perf_counter(), time.process_time()
    yield
    results[name] = [time.perf_counter() - wall, time.process_time() - processor]


def true_ids(base: Floats, ids: Ids, queries: Floats) -> list[set[int]]:
    found = []
    for query in queries.astype(np.float64):
        distances = ((base.astype(np.float64) - query) ** 2).sum(axis=1) if len(base) < 20_000 else None
        if distances is None:  # unit vectors: the product says the same
            distances = -(base @ query.astype(np.float32))
        found.append({int(i) for i in ids[np.argpartition(distances, K)[:K]]})
    return found


def recall(found: list[list[int]], true: list[set[int]]) -> float:
    return float(np.mean([len(set(a) & b) / K for a, b in zip(found, true)]))


def write_part(make: Callable[[str], System], path: str, rows: int) -> dict[str, Any]:
    results: dict[str, Any] = {}
    x, more = made_rows(rows, 1), made_rows(SINGLE, 2)
    system = make(path)
    with timed(results, "add_batches"):
        for first in range(0, rows, BATCH):
            system.add(first, x[first : first + BATCH])
    with timed(results, "add_single"):
        for i in range(SINGLE):
            system.add(rows + i, more[i : i + 1])
    system.close()
    results["bytes_added"] = disk_bytes(path)
    return results


def read_part(make: Callable[[str], System], path: str, rows: int) -> dict[str, Any]:
    results: dict[str, Any] = {}
    queries = made_rows(QUERIES, 3)
    all_rows, ids = np.concatenate([made_rows(rows, 1), made_rows(SINGLE, 2)]), np.arange(rows + SINGLE)
    with timed(results, "reopen"):
        system = make(path)
        system.search(queries[0], None)
    with timed(results, "search"):
        found = [system.search(query, None) for query in queries]
    results["recall"] = recall(found, true_ids(all_rows, ids, queries))
    system.search(queries[0], TENTH)
    with timed(results, "search_filtered"):
        found = [system.search(query, TENTH) for query in queries]
    kept = ids % YEARS < TENTH
    results["recall_filtered"] = recall(found, true_ids(all_rows[kept], ids[kept], queries))
    with timed(results, "remove_half"):
        system.remove([int(i) for i in ids[::2]])
    found = [system.search(query, None) for query in queries]
    results["recall_removed"] = recall(found, true_ids(all_rows[1::2], ids[1::2], queries))
    system.close()
    results["bytes_removed"] = disk_bytes(path)
    system = make(path)
    with timed(results, "tidy"):
        system.tidy()
    system.close()
    results["bytes_tidied"] = disk_bytes(path)
    return results


def run_system(name: str, rows: int) -> dict[str, Any]:
    """Its results, or why there are none."""
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for part in ("write", "read"):
            command = [sys.executable, __file__, "--part", part, "--path", folder + "/c", "--rows", str(rows), name]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                lines = done.stderr.strip().splitlines()
                return {"failed": f"{part}: {lines[-1] if lines else done.returncode}"}
            results.update(json.loads(done.stdout.splitlines()[-1]))
        shutil.rmtree(folder + "/c", ignore_errors=True)
    return results


def add_rows(report: Report, name: str, one: dict[str, Any], rows: int) -> None:
    """A row for each kind of call, with the seconds of all processors beside those of the clock."""
    if "failed" in one:
        report.note(f"{name} did not run: {one['failed']}")
        return

    def row(case: str, key: str, calls: int, **figures: float) -> None:
        wall, processor = (1e3 * seconds / calls for seconds in one[key])
        report.row(
            f"{name}: {case}",
            shape=f"{rows} x {DIMENSION} f32",
            ms=wall,
            runs=calls,
            clock="wall",
            figures={"processor_ms": processor, **figures},
            labels={"version": one["version"]},
        )

    row(f"add all in batches of {BATCH:,}", "add_batches", 1)
    row("add one row a call", "add_single", SINGLE, disk_mb=one["bytes_added"] / 1e6)
    row("reopen to the first result", "reopen", 1)
    row("search, one query", "search", QUERIES, recall=one["recall"])
    row("search, a filter keeps a tenth", "search_filtered", QUERIES, recall=one["recall_filtered"])
    row("remove half", "remove_half", 1, recall=one["recall_removed"], disk_mb=one["bytes_removed"] / 1e6)
    row("compaction", "tidy", 1, disk_mb=one["bytes_tidied"] / 1e6)
    report.note(f"{name}: a write is on the disk after {one['syncs']}")


def version_of(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        import kith

        return kith.__version__ if package == "kithnn" else "?"


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("systems", nargs="*", metavar="SYSTEM", help=", ".join(SYSTEMS))
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--part", choices=("write", "read"), help=argparse.SUPPRESS)
    parser.add_argument("--path", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        make, package = SYSTEMS[options.systems[0]]
        work = write_part if options.part == "write" else read_part
        print(json.dumps({**work(make, options.path, options.rows), "syncs": make.syncs, "version": version_of(package)}))
        return
    report = report_of("collections", options)
    for name in options.systems or SYSTEMS:
        add_rows(report, name, run_system(name, options.rows), options.rows)


if __name__ == "__main__":
    main()
