"""What the views need, computed in a thread of its own while the page works: places on the map, clusters, the graph, paths.

Each stage ends as done, failed or left out, with words that say why; the page asks how far they are.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from kith._explore.clusterings import Clusters, Linkage, by_size, in_order_of_size, measured
from kith._explore.given import Given
from kith._explore.jobs import Jobs, NotReady, Report
from kith._graph_build import knn_graph
from kith._index import Index
from kith._kmeans import KMeans
from kith._knn_graph import KnnGraph
from kith._search import Neighbors
from kith._smooth_paths import SmoothPaths
from kith._transform import PCA

NEIGHBOURS = 20  # in the graph that is computed
_LEARNT_FROM = 20_000  # rows that principal components are learnt from
_SEARCH_THREADS = 8  # of a search beside the work
_MOST_BITS = 1 << 30  # of hashes whose bits are taken apart for clusters and the map


@dataclass
class Stage:
    """One of the things that are computed."""

    name: str
    title: str
    state: str = "waiting"  # "running", "done", "failed", "left out"
    done: int = 0
    total: int = 0
    seconds: float = 0.0
    words: str = ""


class Work:
    """The computing behind a page. Searches can be made at once; all else is asked for by name."""

    def __init__(self, given: Given) -> None:
        self.given = given
        self.index = Index("Flat", metric=given.metric, device=given.device)
        try:
            self.index.add(given.x, copy=False)
        except ValueError:
            self.index.add(given.x)  # of a dtype or a layout that is converted
        self.stages = {
            name: Stage(name, title)
            for name, title in (
                ("map", "Places on the map"),
                ("clusters", "Clusters"),
                ("graph", "k-NN graph"),
                ("paths", "Paths"),
                ("linkage", "Single linkage"),
            )
        }
        self._results: dict[str, Any] = {}
        self._changed = threading.Condition()
        self._closed = False
        self._jobs = Jobs()
        self._bar = _Bar()
        self._thread = threading.Thread(target=self._run, name="kith explore", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Ends what is being computed, at its next word of progress."""
        self._closed = True
        self._jobs.close()
        if self._thread.is_alive():
            self._thread.join(timeout=10)

    def wait(self, timeout: float | None = None) -> bool:
        """Until all stages have ended; whether they have."""
        with self._changed:
            return self._changed.wait_for(self._all_ended, timeout)

    def search(self, queries: npt.NDArray[Any], k: int) -> Neighbors:
        """Exact search, which does not wait for the threads of what is being computed: it has its own meanwhile."""
        busy = self._thread.is_alive()
        found = self.index.search(queries, k, threads=min(_SEARCH_THREADS, len(os.sched_getaffinity(0))) if busy else 0)
        return Neighbors(found.ids, found.distances)

    def graph(self) -> KnnGraph:
        return self._result("graph")  # type: ignore[no-any-return]

    def graph_if_ready(self) -> KnnGraph | None:
        return self._results.get("graph")

    def paths(self) -> SmoothPaths:
        return self._result("paths")  # type: ignore[no-any-return]

    def linkage(self) -> Linkage:
        return self._result("linkage")  # type: ignore[no-any-return]

    def places(self) -> tuple[npt.NDArray[np.float32], str]:
        """Where each row is on the map, and what its axes are, in words."""
        return self._result("map")  # type: ignore[no-any-return]

    def default_count(self) -> int:
        """Clusters where no number is asked for: as many as there are classes, or 20."""
        names = 0 if self.given.labels is None else len(self.given.labels.names)
        return min(names if 2 <= names <= 50 else 20, len(self.given))

    def cells(self, count: int) -> Clusters:
        """The cells of k-means; of another number than the default computed when they are asked for first."""
        if count == self.default_count() or self.stages["clusters"].state in ("failed", "left out"):
            return self._result("clusters")  # type: ignore[no-any-return]
        make = partial(self._cells_of, count)
        return self._jobs.get(("cells", count), f"{count} clusters", make, kept=False, alone=True)  # type: ignore[no-any-return]

    def cut(self, height: float) -> Clusters:
        """The clusters of single linkage at a height, the largest first."""
        tree = self.linkage().tree
        return self._jobs.get(("cut", height), "The cut", lambda _: by_size(tree.labels(height)), kept=False)  # type: ignore[no-any-return]

    def pairs(self) -> npt.NDArray[np.int64]:
        """The closest pairs of rows, (pairs, 2), the closest first: each row with its nearest neighbour."""
        graph = self._of_distances()

        def closest(report: Report) -> npt.NDArray[np.int64]:
            nearest = np.asarray(graph.ids[:, 0])
            rows = np.flatnonzero(nearest >= 0)
            length = np.asarray(graph.distances[:, 0])[rows]
            picked = rows[np.argsort(length, kind="stable")[:20_000]]
            pairs = np.sort(np.column_stack([picked, nearest[picked]]), axis=1)
            _, first = np.unique(pairs, axis=0, return_index=True)
            return np.asarray(pairs[np.sort(first)], np.int64)

        return self._jobs.get("pairs", "The closest pairs", closest)  # type: ignore[no-any-return]

    def outliers(self) -> tuple[npt.NDArray[np.int64], int]:
        """Rows by how far their neighbours are, the farthest first, and which neighbour that is counted by."""
        graph = self._of_distances()
        place = min(10, graph.k)

        def farthest(report: Report) -> npt.NDArray[np.int64]:
            far = np.asarray(graph.distances[:, place - 1])
            return np.argsort(-far, kind="stable")[:5_000]

        return self._jobs.get("outliers", "Outliers", farthest), place

    def parts(self) -> npt.NDArray[np.int64]:
        """The connected component of the graph that each row lies in."""
        return self._jobs.get("parts", "The parts of the graph", lambda _: self.graph().components()[1])  # type: ignore[no-any-return]

    def _of_distances(self) -> KnnGraph:
        graph = self.graph()
        if graph.metric == "inner_product":
            raise NotReady("inner_product is no distance, so that nothing is near or far: start with metric cosine or l2", coming=False)
        return graph

    def _result(self, name: str) -> Any:
        stage = self.stages[name]
        if stage.state == "done":
            return self._results[name]
        if stage.state in ("failed", "left out"):
            raise NotReady(stage.words, coming=False)
        raise NotReady(f"{stage.title}: being computed", coming=True)

    def _all_ended(self) -> bool:
        return all(stage.state not in ("waiting", "running") for stage in self.stages.values())

    def _run(self) -> None:
        with suppress(Exception):  # a search that the page asks for says what is wrong
            # The first batch prepares the index: single searches, which are made before there is a graph, are faster then.
            self.index.search(self.given.x[:32], 1)
        for name, make in (
            ("map", self._make_places),
            ("clusters", lambda report: self._cells_of(self.default_count(), report)),
            ("graph", self._make_graph),
            ("paths", self._make_paths),
            ("linkage", self._make_linkage),
        ):
            if self._closed:
                return
            self._do(self.stages[name], make)
        self._bar.end()

    def _do(self, stage: Stage, make: Callable[[Report], Any]) -> None:
        began = time.monotonic()

        def report(_: str, done: int, total: int) -> None:
            if self._closed:
                raise KeyboardInterrupt
            stage.done, stage.total, stage.seconds = done, total, time.monotonic() - began
            self._bar.draw(stage.title, done, total)

        stage.state = "running"
        try:
            self._results[stage.name] = make(report)
            ended = "done"
        except NotReady as absent:
            ended, stage.words = "left out", str(absent)
        except KeyboardInterrupt:
            ended, stage.words = "left out", "the page was closed"
        except MemoryError as error:
            ended, stage.words = "failed", f"{stage.title}: not enough memory: {error}"
        except Exception as error:  # told on the page; other views go on
            ended, stage.words = "failed", f"{stage.title}: {error}"
        stage.seconds = time.monotonic() - began
        with self._changed:
            stage.state = ended
            self._changed.notify_all()

    def _make_places(self, _: Report) -> tuple[npt.NDArray[np.float32], str]:
        if self.given.xy is not None:
            return self.given.xy, "places that were given with xy="
        x = self._numbers()
        if x.shape[1] < 2 or len(x) < 2:
            return np.column_stack([np.asarray(x[:, 0], np.float32), np.zeros(len(x), np.float32)]), "the only column"
        sample = np.ascontiguousarray(x[:: max(1, len(x) // _LEARNT_FROM)])
        places = np.asarray(PCA(2, device=self.given.device).train(sample).apply(x), np.float32)
        return places, f"the first two principal components, {_share_kept(places, sample)}"

    def _cells_of(self, count: int, report: Report) -> Clusters:
        x = self._numbers()
        spherical = self.given.metric in ("cosine", "inner_product")
        model = KMeans(
            min(count, len(x)),
            seed=0,
            spherical=spherical,
            max_points_per_centre=2000,
            compute_labels=False,
            history=False,
            device=self.given.device,
        )
        model.fit(x, progress=report)
        labels, distances = (np.asarray(part) for part in model.assign(x))
        far = 1 - distances.astype(np.float64) if spherical else distances.astype(np.float64)
        labels = in_order_of_size(labels, count)
        order = np.lexsort((far, labels))
        counts = np.bincount(labels, minlength=count)
        sums = np.bincount(labels, weights=np.maximum(far, 0) if spherical else far**2, minlength=count)
        spreads = np.sqrt(sums / np.maximum(counts, 1))
        return Clusters(labels.astype(np.int32), order, np.concatenate([[0], np.cumsum(counts)]), spreads)

    def _make_graph(self, report: Report) -> KnnGraph:
        if self.given.graph is not None:
            return self.given.graph
        rows = len(self.given)
        if rows < 2:
            raise NotReady("there is one row, which has no neighbours", coming=False)
        k = min(NEIGHBOURS, rows - 1)
        return knn_graph(self.given.x, k=k, metric=self.given.metric, device=self.given.device, progress=report).to_host()

    def _make_paths(self, report: Report) -> SmoothPaths:
        paths = SmoothPaths(self._needed_graph("paths want a distance"), device="cpu", progress=report)
        paths.path(0, len(paths) - 1)  # the first path lists the edges, which shall not be waited for
        return paths

    def _make_linkage(self, report: Report) -> Linkage:
        graph = self._needed_graph("linkage wants a distance")
        return measured(graph.spanning_tree(unconnected="at_inf", progress=report), len(graph))

    def _needed_graph(self, want: str) -> KnnGraph:
        graph = self.graph_if_ready()
        if graph is None:
            raise NotReady(f"there is no k-NN graph: {self.stages['graph'].words}", coming=False)
        if graph.metric == "inner_product":
            raise NotReady(f"inner_product is no distance, and {want}: start with metric cosine or l2", coming=False)
        return graph

    def _numbers(self) -> npt.NDArray[Any]:
        """Vectors that means can be made of: the bits of hashes, one by one, all others as they are."""
        if self.given.metric != "hamming":
            return self.given.x
        if self.given.x.size > _MOST_BITS // 8:
            raise NotReady("clusters and places of bits are computed of up to 128 MiB of them", coming=False)
        if "bits" not in self._results:
            self._results["bits"] = np.unpackbits(self.given.x.view(np.uint8), axis=1)
        return np.asarray(self._results["bits"])


def _share_kept(places: npt.NDArray[np.float32], sample: npt.NDArray[Any]) -> str:
    """How much of the variance two components hold, in words."""
    whole = float(sample[:2000].astype(np.float64).var(axis=0).sum())
    kept = float(places.astype(np.float64).var(axis=0).sum())
    return "which hold nothing: all rows are equal" if whole == 0 else f"{min(1.0, kept / whole):.0%} of the variance"


class _Bar:
    """How far the work is, on the last line of a terminal; nothing elsewhere."""

    def __init__(self) -> None:
        self._shown = sys.stderr is not None and sys.stderr.isatty()
        self._drawn_at = 0.0

    def draw(self, title: str, done: int, total: int) -> None:
        now = time.monotonic()
        if not self._shown or total <= 0 or now - self._drawn_at < 0.1:
            return
        self._drawn_at = now
        part = min(1.0, done / total)
        bar = ("#" * round(30 * part)).ljust(30)
        print(f"\r{title:<18} [{bar}] {part:4.0%}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._shown:
            print(f"\r{'Everything is computed. Ctrl-C ends the page.':<60}", file=sys.stderr, flush=True)
