"""Kith finds nearest neighbours.

Exact search in one call, or through an index that keeps its vectors ready for many searches::

    import kith

    ids, distances = kith.knn(queries, base, k=10, metric="l2")

    index = kith.Index("Flat", metric="cosine")
    index.add(base)
    ids, distances = index.search(queries, k=10)

Compressed, with lists of which a search looks at some::

    index = kith.Index("IVF1024,PQ16")
    index.train(base)
    index.add(base)
    ids, distances = index.search(queries, k=10, probes=32)
    index.save("base.kith")
    index = kith.load("base.kith")

Vectors with ids, columns and payloads, in a directory that survives a crash::

    with kith.open("films", dimension=384, columns={"year": int}) as films:
        films.add(vectors, columns={"year": years})
        ids, distances = films.search(queries, k=10, where="year > ?", params=(2020,))

All neighbours within a radius: `range_search`. All distances: `pairwise_distances`. The neighbours of every row within
its own collection: `knn_graph`; paths between them: `SmoothPaths`. Rows that are nearly the same: `near_duplicates`. How
good found neighbours are: `recall`; what they look like: `show`, and `explore` in the browser. Codes of vectors:
`ProductQuantizer`, `ScalarQuantizer`,
`LocalSearchQuantizer`, `ResidualQuantizer`. scikit-learn-compatible estimators: ``kith.sklearn``.

Vectors are numpy arrays, or arrays of any library that supports DLPack (torch, cupy, jax), in host or GPU memory. float32,
float16, bfloat16, uint8 and int8 arrays with contiguous columns are zero-copy; float64, wider integers and other layouts are
converted to float32 by one copy, and `PrecisionWarning` says where that may be too coarse. Results have the queries' array type
and are on their device.

Metrics: ``"l2"`` (the root), ``"sqeuclidean"`` (its square), ``"inner_product"`` (largest first), ``"cosine"``
(1 - cos of the angle), ``"l1"``, ``"linf"``, ``"chi_square"`` and ``"hamming"`` (differing bits of uint8 rows). Names of other
libraries are accepted if they are unambiguous, such as ``"euclidean"``.

Errors: ``ValueError`` for a value or shape that is not allowed, ``TypeError`` for a type, ``OSError`` for a file the
system refuses, `CorruptFileError` for one whose content is wrong, ``MemoryError`` when a limit or the memory is too
small, ``RuntimeError`` for the rest (``NotImplementedError`` for what this build or device cannot do).
"""

from typing import TYPE_CHECKING

from kith._additive import LocalSearchQuantizer, ResidualQuantizer
from kith._collection import Collection, CollectionView, open
from kith._collection_info import CollectionInfo, CollectionSegment, VerifyReport
from kith._collection_reads import Items
from kith._errors import CorruptFileError, PrecisionWarning, UnfinishedError
from kith._explore import explore
from kith._files import read_vectors, write_vectors
from kith._graph_build import GraphIds, knn_graph, knn_graph_ids
from kith._graph_merge import extend_graph, merge_graphs, refine_graph
from kith._graph_report import GraphForecast, GraphRecall, GraphReport, GraphRound
from kith._index import Index
from kith._index_files import load, merge_files, read_faiss, read_hnswlib, write_faiss, write_hnswlib
from kith._index_info import IndexInfo
from kith._index_tune import TunedSearch, TuneReport
from kith._info import CudaDevice, Info, info
from kith._kith import DeviceArray
from kith._kith import version as _version
from kith._kmeans import KMeans
from kith._knn import knn
from kith._knn_graph import KnnGraph
from kith._metrics import Metric
from kith._near_duplicates import NearDuplicates, near_duplicates
from kith._pairwise_distances import pairwise_distances
from kith._plan import PlanPhase, WorkPlan, plan
from kith._quantize import ProductQuantizer, ScalarQuantizer
from kith._range_search import RangeNeighbors, range_search
from kith._recall import recall
from kith._search import Neighbors
from kith._show import show
from kith._smooth_paths import SmoothPath, SmoothPaths
from kith._spanning_tree import SpanningTree
from kith._transform import OPQ, PCA, RandomRotation, Transform

__version__: str = _version()

__all__ = [
    "Collection",
    "CollectionInfo",
    "CollectionSegment",
    "CollectionView",
    "CorruptFileError",
    "CudaDevice",
    "DeviceArray",
    "GraphForecast",
    "GraphIds",
    "GraphRecall",
    "GraphReport",
    "GraphRound",
    "Index",
    "IndexInfo",
    "Info",
    "Items",
    "KMeans",
    "KnnGraph",
    "LocalSearchQuantizer",
    "Metric",
    "NearDuplicates",
    "Neighbors",
    "OPQ",
    "PCA",
    "PlanPhase",
    "PrecisionWarning",
    "ProductQuantizer",
    "RandomRotation",
    "RangeNeighbors",
    "ResidualQuantizer",
    "ScalarQuantizer",
    "SmoothPath",
    "SmoothPaths",
    "SpanningTree",
    "Transform",
    "UnfinishedError",
    "TuneReport",
    "TunedSearch",
    "VerifyReport",
    "WorkPlan",
    "__version__",
    "explore",
    "extend_graph",
    "info",
    "knn",
    "knn_graph",
    "knn_graph_ids",
    "load",
    "merge_files",
    "merge_graphs",
    "near_duplicates",
    "open",
    "pairwise_distances",
    "plan",
    "range_search",
    "read_faiss",
    "read_hnswlib",
    "read_vectors",
    "recall",
    "refine_graph",
    "show",
    "write_faiss",
    "write_hnswlib",
    "write_vectors",
]

if not TYPE_CHECKING:

    def __getattr__(name):
        """``kith.sklearn`` without an import of its own; scikit-learn is loaded when it is first asked for."""
        if name == "sklearn":
            from importlib import import_module

            return import_module("kith.sklearn")
        from kith._other_names import refuse_module_name

        refuse_module_name(name)
