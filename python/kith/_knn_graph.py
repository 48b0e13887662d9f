"""The k-NN graph of a collection: for every row its nearest other rows; what can be asked of it."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any, NoReturn, SupportsFloat, SupportsIndex, cast

import numpy as np
import numpy.typing as npt

from kith import _kith
from kith._arrays import Array, VectorsLike, as_vectors, to_numpy
from kith._device_arrays import device_number, on_device
from kith._errors import kind_of
from kith._files import PathLike, path_bytes
from kith._graph_report import GraphRecall, GraphReport
from kith._libraries import library_of
from kith._metrics import Metric, metric_name
from kith._options import calling, seed_number, text, whole_number
from kith._other_names import answers_other_names, refuse_graph_attribute
from kith._progress import Progress
from kith._spanning_tree import SpanningTree
from kith._typing import ByteSize, DeviceNames

if TYPE_CHECKING:
    from kith._smooth_paths import SmoothPath


class KnnGraph:
    """For every row of a collection its k nearest other rows, nearest first.

    `knn_graph` makes one. One may also be made of neighbours that were found elsewhere, or of files (`KnnGraph.load`). A
    graph does not change.

    Parameters
    ----------
    ids : array of int64, (rows, k)
        Row numbers, nearest first and never the row itself; -1 at the end if there are fewer than k. Arrays of torch,
        cupy and jax (which may be int32) and those in a GPU's memory are kept as they are; of all else numpy's are made.
    distances : array of float32, (rows, k)
        In the metric's unit; of the same library and in the same place.
    metric : str, default "l2"
        What was measured.

    Raises
    ------
    ValueError
        Shapes that differ; ids or distances that `validate` refuses.
    TypeError
        Ids that are no integers, distances that are no real numbers, arrays of two libraries.
    """

    def __init__(self, ids: Array, distances: Array, metric: Metric = "l2") -> None:
        self._take(ids, distances, metric, GraphReport())
        if not on_device(self._ids):
            self.validate()

    def _take(self, ids: Array, distances: Array, metric: Metric, report: GraphReport) -> None:
        self._ids = _kept(ids, "ids", "int64")
        self._distances = _kept(distances, "distances", "float32")
        self._metric = cast(Metric, metric_name(metric))
        self._report = report
        if len(self._ids.shape) != 2 or tuple(self._ids.shape) != tuple(self._distances.shape):
            shapes = tuple(self._ids.shape), tuple(self._distances.shape)
            raise ValueError(f"ids are {shapes[0]} and distances {shapes[1]}; both must be (rows, k)")
        same_library = library_of(self._ids) is library_of(self._distances)
        devices = device_number(self._ids), device_number(self._distances)
        if not same_library or (devices[0] is None) != (devices[1] is None):
            raise TypeError("ids and distances are of two libraries, or one lies in a GPU's memory and one on the host")
        if devices[0] != devices[1]:
            raise ValueError(
                f"ids lie in the memory of cuda:{devices[0]} and distances in that of cuda:{devices[1]}; copy one to the "
                f"other's"
            )

    @classmethod
    def _found(cls, ids: Array, distances: Array, metric: str, report: GraphReport) -> KnnGraph:
        """Of what a search found, which need not be looked at."""
        graph = cls.__new__(cls)
        graph._take(ids, distances, cast(Metric, metric), report)
        return graph

    @classmethod
    @answers_other_names("kith.KnnGraph.load()")
    def load(
        cls,
        ids: PathLike,
        distances: PathLike | None = None,
        metric: Metric | None = None,
        *,
        threads: SupportsIndex = 0,
        memory_limit: ByteSize | None = None,
        progress: Progress = False,
    ) -> KnnGraph:
        """A graph from two files, of ids and of distances, in any format that `read_vectors` reads, or from a folder.

        Without `distances`, `ids` is a folder that ``kith graph build --out`` has made: its arrays are mapped, also under
        a `memory_limit`, which does not count mapped pages; the metric is in its report.

        int64 ids and float32 distances in ``.npy`` files, and distances in ``.fbin`` files, are mapped: their pages come
        from the disk when they are touched. All else is read, and under a `memory_limit` these are too. The metric is not
        in two files; it is "l2" unless given. `threads`, `memory_limit` and `progress` are as in `knn`.

        Raises
        ------
        OSError, CorruptFileError
            As `read_vectors`.
        ValueError
            What the files hold is no graph: the first row that breaks one of `validate`'s rules is named.
        """
        with calling("cpu", threads, memory_limit, None, progress) as options:
            if distances is None:
                if not os.path.exists(ids):
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(ids))
                found, name = _kith.load_graph_folder(path_bytes(ids, "ids"), options)
                if metric is not None and metric_name(metric) != name:
                    raise ValueError(f"the graph in {os.fspath(ids)!r} is of the metric {name!r}, not {metric!r}")
            else:
                name = "l2" if metric is None else metric
                found = _kith.load_graph(path_bytes(ids, "ids"), path_bytes(distances, "distances"), metric_name(name), options)
        return cls._found(found[0].view(np.int64), found[1], name, GraphReport())

    @answers_other_names("save()")
    def save(
        self,
        ids: PathLike,
        distances: PathLike,
        *,
        threads: SupportsIndex = 0,
        memory_limit: ByteSize | None = None,
        progress: Progress = False,
    ) -> None:
        """Write the graph to two files, of ids and of distances, in any format that `write_vectors` writes.

        Either both are new afterwards, or neither. ``.npy`` files can be mapped when they are loaded. ValueError for what
        `validate` refuses. `threads`, `memory_limit` and `progress` are as in `knn`.
        """
        with calling("cpu", threads, memory_limit, None, progress) as options:
            self._given().save(path_bytes(ids, "ids"), path_bytes(distances, "distances"), options)

    def validate(self) -> None:
        """Check that this is a graph: ValueError, which names the first row that is wrong, unless it is.

        An id is another row of the graph, from 0 to ``len(graph) - 1``, and stands in a row once; -1 stands at the end
        of a row alone. Distances are numbers, the nearest first. A graph that you make of arrays on the host is checked at
        once, and every graph before other methods read it, since you may have changed the arrays. A graph in a GPU's memory
        is checked there.
        """
        with calling("auto", arrays=(self._ids, self._distances)) as options:
            self._given_there(options).validate(options)

    @property
    def ids(self) -> Array:
        """(rows, k): the numbers of the neighbouring rows, nearest first; -1 at the end if there are fewer than k.

        Numpy's array is the graph's own memory, read-only.
        """
        return self._ids

    @property
    def distances(self) -> Array:
        """(rows, k): how far they are, in the metric's unit. Numpy's array is the graph's own memory, read-only."""
        return self._distances

    @property
    def k(self) -> int:
        """How many neighbours a row has."""
        return int(self._ids.shape[1])

    @property
    def metric(self) -> Metric:
        """The metric's name."""
        return self._metric

    @property
    def report(self) -> GraphReport:
        """How the graph was made, and how good it is."""
        return self._report

    def __len__(self) -> int:
        """How many rows there are."""
        return int(self._ids.shape[0])

    def to_host(self) -> KnnGraph:
        """The same graph with numpy arrays: a copy if it is in a GPU's memory."""
        ids, distances = self._on_host()
        graph = KnnGraph(ids, distances, self._metric)
        graph._report = self._report
        return graph

    @answers_other_names("measure_recall()")
    def measure_recall(
        self,
        x: VectorsLike,
        *,
        rows: SupportsIndex = 1000,
        seed: SupportsIndex = 0,
        device: DeviceNames = "auto",
        threads: SupportsIndex = 0,
        memory_limit: ByteSize | None = None,
        progress: Progress = False,
    ) -> GraphRecall:
        """How many of the true neighbours the graph has, measured on rows that are searched exactly.

        A neighbour counts as found if its distance is not above that of the true k-th, so that ties count.

        Parameters
        ----------
        x : array_like, (rows, dimension)
            The vectors that the graph was built of, on the host or in a GPU's memory.
        rows : int, default 1000
            How many rows to measure; all if there are fewer.
        seed : int, default 0
            By which they are drawn.
        device, threads, memory_limit, progress
            As in `knn`, for the search.
        """
        count, draw = whole_number(rows, "rows"), seed_number(seed)
        read = library_of(x).to_host(x) if device == "cpu" and on_device(x) else x
        with calling(device, threads, memory_limit, None, progress, arrays=(read, self._ids, self._distances)) as options:
            vectors, _ = as_vectors(read, "x", options.stream)
            given = self._given() if device == "cpu" else self._given_there(options)
            return GraphRecall(*given.measure_recall(vectors, count, draw, options))

    @answers_other_names("in_degrees()")
    def in_degrees(
        self,
        *,
        threads: SupportsIndex = 0,
        memory_limit: ByteSize | None = None,
        progress: Progress = False,
    ) -> npt.NDArray[np.int64]:
        """How many rows have each row as their neighbour. `threads`, `memory_limit` and `progress` are as in `knn`."""
        with calling("cpu", threads, memory_limit, None, progress) as options:
            return self._given().in_degrees(options).view(np.int64)

    @answers_other_names("components()")
    def components(
        self,
        *,
        threads: SupportsIndex = 0,
        memory_limit: ByteSize | None = None,
        progress: Progress = False,
    ) -> tuple[int, npt.NDArray[np.int64]]:
        """The connected components, edges taken both ways, as ``scipy.sparse.csgraph.connected_components`` gives them.

        `threads`, `memory_limit` and `progress` are as in `knn`.

        Returns
        -------
        (count, labels)
            Their number, and the one of each row: 0, 1, 2, ... in the order of their first rows.
        """
        with calling("cpu", threads, memory_limit, None, progress) as options:
            count, labels = self._given().components(options)
        return count, labels.view(np.int64)

    @answers_other_names("to_csr()")
    def to_csr(
        self,
        *,
        threads: SupportsIndex = 0,
        memory_limit: ByteSize | None = None,
        progress: Progress = False,
    ) -> Any:
        """The graph as a sparse matrix of distances: scipy's, so that a graph in a GPU's memory is copied to the host.

        `threads`, `memory_limit` and `progress` are as in `knn`.

        Returns
        -------
        scipy.sparse.csr_array of float32, (rows, rows)
            Row i holds the distances of its neighbours, in the columns of their numbers, ascending. A neighbour at
            distance 0 is an entry too. No entry stands on the diagonal.

        Raises
        ------
        ImportError
            scipy is not installed.
        ValueError
            What `validate` refuses.
        """
        return self._matrix("to_csr", threads, memory_limit, progress)

    @answers_other_names("reversed()")
    def reversed(
        self,
        *,
        threads: SupportsIndex = 0,
        memory_limit: ByteSize | None = None,
        progress: Progress = False,
    ) -> Any:
        """The reversed edges: row i of the sparse matrix holds the rows whose neighbour it is. As `to_csr` else."""
        return self._matrix("reversed", threads, memory_limit, progress)

    @answers_other_names("symmetric()")
    def symmetric(
        self,
        *,
        threads: SupportsIndex = 0,
        memory_limit: ByteSize | None = None,
        progress: Progress = False,
    ) -> Any:
        """Edges both ways: row i holds its neighbours and the rows whose neighbour it is. As `to_csr` else.

        Where an edge and the one back tell two distances, the nearer one counts.
        """
        return self._matrix("symmetric", threads, memory_limit, progress)

    @answers_other_names("mutual()")
    def mutual(
        self,
        *,
        threads: SupportsIndex = 0,
        memory_limit: ByteSize | None = None,
        progress: Progress = False,
    ) -> Any:
        """Edges that are there both ways: row i holds its neighbours whose neighbour it is. As `to_csr` else."""
        return self._matrix("mutual", threads, memory_limit, progress)

    @answers_other_names("to_umap()")
    def to_umap(self) -> tuple[Array, Array]:
        """The graph as umap-learn and cuML take it: ``UMAP(n_neighbors=k + 1, precomputed_knn=graph.to_umap())``.

        Returns
        -------
        (indices, distances)
            Fresh int64 and float32 arrays, (rows, k + 1): the row itself first at distance 0, as UMAP counts it among
            its neighbours, then the k others. Numpy's, since umap-learn takes no others; but of a graph of torch, cupy
            or jax in a GPU's memory theirs, there, for cuML. ``graph.to_host().to_umap()`` is always numpy's.

        Raises
        ------
        ValueError
            The metric is ``inner_product``, which is no distance, a row has fewer than k neighbours, or `validate`
            refuses the graph.
        """
        if self._stays_on_device():
            return self._to_umap_there()
        with calling("cpu") as options:
            indices, distances = self._given().to_umap(options)
        return indices.view(np.int64), distances

    def _to_umap_there(self) -> tuple[Array, Array]:
        """By the arrays' own library, in the GPU's memory; only the check copies them."""
        if self._metric == "inner_product":
            raise ValueError("inner_product is no distance, and UMAP wants one; build the graph with cosine or l2")
        self.validate()
        missing = self._ids < 0
        library = library_of(self._ids)
        if bool(missing.any()):
            row = int(np.argmax(library.to_host(missing).any(axis=1)))
            raise ValueError(f"row {row} has fewer than k = {self.k} neighbours; UMAP wants a full graph: lower k")
        itself = library.from_host(np.arange(len(self), dtype=np.int64)[:, np.newaxis], self._ids)
        nothing = library.from_host(np.zeros((len(self), 1), np.float32), self._distances)
        return library.beside(itself, self._ids), library.beside(nothing, self._distances)

    @answers_other_names("to_scanpy()")
    def to_scanpy(
        self, adata: Any = None, n_neighbors: SupportsIndex | None = None, use_rep: str | None = None
    ) -> dict[str, Any]:
        """The graph as scanpy keeps one, for ``scanpy.tl.leiden``, ``scanpy.tl.umap`` and the like.

        Parameters
        ----------
        adata : anndata.AnnData, optional
            Where to put it: as ``obsp["distances"]``, ``obsp["connectivities"]`` and ``uns["neighbors"]``, as
            ``scanpy.pp.neighbors`` does.
        n_neighbors : int, optional
            As scanpy counts, which takes the row itself for its first neighbour: 15 are 14 others, and the graph must have
            as many. By default all: k + 1.
        use_rep : str, optional
            The key of ``adata.obsm`` whose rows the graph was made of, for the description.

        Returns
        -------
        dict
            ``distances`` and ``connectivities``, ``scipy.sparse.csr_matrix`` of float32, and ``neighbors``, scanpy's
            description of them. Connectivities are UMAP's weights.

        Raises
        ------
        ImportError, ValueError
            As `to_csr` and `to_umap`.
        """
        count = self.k + 1 if n_neighbors is None else whole_number(n_neighbors, "n_neighbors")
        if not 2 <= count <= self.k + 1:
            more = f": build the graph with k={count - 1}" if count > 2 else ""
            raise ValueError(
                f"n_neighbors = {count}, and the graph has k = {self.k}; scanpy counts the row itself, so that n_neighbors is 2 to "
                f"{self.k + 1}{more}"
            )
        if adata is not None and getattr(adata, "n_obs", len(self)) != len(self):
            raise ValueError(f"the graph has {len(self)} rows, and adata has {adata.n_obs} observations; it is of other vectors")
        if adata is not None and not (hasattr(adata, "obsp") and hasattr(adata, "uns")):
            raise TypeError(f"adata is {kind_of(adata)}; it must be an anndata.AnnData")
        if count < self.k + 1:
            first = KnnGraph(self._ids[:, : count - 1], self._distances[:, : count - 1], self._metric)
            return first.to_scanpy(adata, use_rep=use_rep)
        sparse = _scipy_sparse("to_scanpy")
        shape = (len(self), len(self))
        with calling("cpu") as options:
            given = self._given()
            weights = _as_matrix(sparse.csr_matrix, given.connectivities(options), shape)
            distances = _as_matrix(sparse.csr_matrix, given.to_csr(options), shape)
        neighbors: dict[str, Any] = {
            "connectivities_key": "connectivities",
            "distances_key": "distances",
            "params": {
                "n_neighbors": self.k + 1,
                "method": "umap",
                "random_state": 0,
                "metric": _SCANPY_METRICS.get(self._metric, self._metric),
            },
        }
        if use_rep is not None:
            neighbors["params"]["use_rep"] = use_rep
        if adata is not None:
            adata.obsp["distances"], adata.obsp["connectivities"] = distances, weights
            adata.uns["neighbors"] = neighbors
        return {"distances": distances, "connectivities": weights, "neighbors": neighbors}

    @answers_other_names("smoothest_path()")
    def smoothest_path(
        self, a: SupportsIndex, b: SupportsIndex, by: str = "steps", *, progress: Progress = False
    ) -> SmoothPath:
        """The path from row `a` to row `b` whose largest step is as small as it can be: `SmoothPaths.path`.

        Goes through the whole graph, and tells `progress` of it as `knn` does. For more than one pair make a `SmoothPaths`, which
        does that once.
        """
        from kith._smooth_paths import SmoothPaths

        return SmoothPaths(self, progress=progress).path(a, b, by)

    @answers_other_names("spanning_tree()")
    def spanning_tree(
        self,
        weights: str = "distance",
        *,
        min_samples: SupportsIndex | None = None,
        unconnected: str = "refuse",
        x: VectorsLike | None = None,
        threads: SupportsIndex = 0,
        memory_limit: ByteSize | None = None,
        progress: Progress = False,
    ) -> SpanningTree:
        """The minimum spanning tree of the graph, edges taken both ways.

        Parameters
        ----------
        weights : str, default "distance"
            How long an edge is: ``"distance"``, or ``"mutual_reachability"``, the largest of that and both rows' core
            distances, as HDBSCAN weighs.
        min_samples : int, optional
            For ``"mutual_reachability"``: a row's core distance is that of its min_samples-th neighbour, from 1 to k, the
            row itself not counted (scikit-learn's HDBSCAN counts it: there it is one more). 5 if not given, or k where
            that is smaller.
        unconnected : str, default "refuse"
            What to do where no edge joins some parts of the graph: ``"refuse"`` is an error that counts them;
            ``"at_inf"`` joins them at inf; ``"nearest"`` by the shortest edges between them, found by exact search in `x`.
        x : array_like, (rows, dimension), optional
            The vectors, for ``"nearest"``. Those in a GPU's memory are copied to the host.
        threads, memory_limit, progress
            As in `knn`.

        Returns
        -------
        SpanningTree
            Its edges, sorted; `SpanningTree.single_linkage` and `SpanningTree.labels` follow from it.

        Raises
        ------
        ValueError
            The metric is ``inner_product``; parts that nothing joins; what `validate` refuses.
        """
        samples = 0 if min_samples is None else whole_number(min_samples, "min_samples")
        if min_samples is not None and samples < 1:
            raise ValueError(f"min_samples = {samples}; it must be 1 to k = {self.k}")
        ways = text(weights, "weights"), text(unconnected, "unconnected")
        with calling("cpu", threads, memory_limit, None, progress) as options:
            rows = None
            if x is not None:
                rows, _ = as_vectors(library_of(x).to_host(x) if on_device(x) else x, "x")
            return SpanningTree(_kith.SpanningTree(self._given(), rows, ways[0], samples, ways[1], options))

    @answers_other_names("single_linkage()")
    def single_linkage(
        self,
        *,
        unconnected: str = "refuse",
        x: VectorsLike | None = None,
        progress: Progress = False,
    ) -> npt.NDArray[np.float64]:
        """Single linkage in SciPy's layout: ``spanning_tree(unconnected=unconnected, x=x).single_linkage()``."""
        return self.spanning_tree(unconnected=unconnected, x=x, progress=progress).single_linkage()

    @answers_other_names("labels()")
    def labels(self, height: SupportsFloat, *, progress: Progress = False) -> npt.NDArray[np.int64]:
        """The cluster of each row when edges up to `height` join them: ``spanning_tree(unconnected="at_inf").labels(height)``.

        Parts that no edge joins stay apart at any height.
        """
        return self.spanning_tree(unconnected="at_inf", progress=progress).labels(height)

    def _matrix(self, kind: str, threads: SupportsIndex, memory_limit: ByteSize | None, progress: Progress) -> Any:
        sparse = _scipy_sparse(kind)
        with calling("cpu", threads, memory_limit, None, progress) as options:
            arrays = getattr(self._given(), kind)(options)
        return _as_matrix(sparse.csr_array, arrays, (len(self), len(self)))

    def _given(self) -> _kith.GivenGraph:
        """For the library, on the host."""
        ids, distances = self._on_host()
        return _kith.GivenGraph(
            np.ascontiguousarray(ids).view(np.int64), np.ascontiguousarray(distances, np.float32), self._metric
        )

    def _given_there(self, options: _kith.CallOptions) -> _kith.GivenGraph:
        """For the library, in the graph's memory."""
        if not on_device(self._ids) or str(self._ids.dtype).rpartition(".")[2] != "int64":
            return self._given()
        library = library_of(self._ids)
        arrays = [library.export(x, options.stream, name) for x, name in ((self._ids, "ids"), (self._distances, "distances"))]
        return _kith.GivenGraph(arrays[0], arrays[1], self._metric)

    def _stays_on_device(self) -> bool:
        """Whether it is in a GPU's memory, in arrays of a library that can compute there."""
        return on_device(self._ids) and library_of(self._ids).computes

    def _on_host(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        library = library_of(self._ids)
        return np.asarray(library.to_host(self._ids), np.int64), library.to_host(self._distances)

    def __getattr__(self, name: str) -> NoReturn:
        refuse_graph_attribute(name)

    def __repr__(self) -> str:
        return f"kith.KnnGraph(rows={len(self)}, k={self.k}, metric={self.metric!r})"


# What scanpy calls metrics.
_SCANPY_METRICS = {"l2": "euclidean", "l1": "manhattan", "linf": "chebyshev"}


def _scipy_sparse(user: str) -> Any:
    try:
        import scipy.sparse  # type: ignore[import-untyped]
    except ImportError:
        raise ImportError(f"{user} makes a sparse matrix of scipy, which is missing: pip install scipy") from None
    return scipy.sparse


def _as_matrix(kind: Any, arrays: tuple[Any, Any, Any], shape: tuple[int, int]) -> Any:
    offsets, columns, values = arrays
    matrix = kind((values, columns.view(np.int64), offsets.view(np.int64)), shape=shape)
    matrix.has_sorted_indices = True
    return matrix


def _kept(x: Array, name: str, dtype: str) -> Array:
    library = library_of(x)
    if not library.computes:
        if not library.on_device(x):
            kept = _as_numbers(to_numpy(x, name), name, dtype).view()
            kept.flags.writeable = False  # the graph's, which does not change; the caller's own array may
            return kept
        x = library.export(x, 0, name)
    given = str(x.dtype).rpartition(".")[2]  # torch's are called torch.int64
    if given != dtype and (given, dtype) != ("int32", "int64"):
        raise TypeError(f"{name} are {given}; they must be {dtype}")
    return library.plain(x, name)


def _as_numbers(array: npt.NDArray[Any], name: str, dtype: str) -> npt.NDArray[Any]:
    """Ids of any integer type as int64, distances of any real one as float32; an empty list has no type to tell."""
    wanted = "iu" if dtype == "int64" else "iuf"
    if array.dtype.kind not in wanted and array.size > 0:
        kind = "integers" if dtype == "int64" else "real numbers"
        raise TypeError(f"{name} are {array.dtype}; they must be {kind}")
    if array.dtype == np.uint64 and dtype == "int64" and array.size > 0 and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} hold {array.max()}; row numbers are int64")
    return array.astype(dtype, copy=False)
