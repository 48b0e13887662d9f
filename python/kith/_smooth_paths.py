"""The smoothest path between two rows of a k-NN graph: its largest step is as small as it can be."""

from __future__ import annotations

from typing import Any, NamedTuple, SupportsIndex

import numpy as np
import numpy.typing as npt

from kith import _kith
from kith._errors import kind_of
from kith._knn_graph import KnnGraph
from kith._options import calling, text, whole_number
from kith._other_names import answers_other_names
from kith._progress import Progress
from kith._typing import ByteSize, ByteSizes, DeviceNames


class SmoothPath(NamedTuple):
    """Rows from one to another, and the largest step between them.

    Attributes
    ----------
    rows : array of int64
        Both ends included; one row if they are the same, none if no path connects them.
    width : float
        The largest step, in the metric's unit: 0 if the ends are the same row, inf if no path connects them.
    """

    rows: npt.NDArray[np.int64]
    width: float


class SmoothPaths:
    """Paths with the least possible largest step, between any two rows of a graph.

    The graph is taken both ways: a neighbour leads to its row too. It is gone through once, when this is made, in time in
    proportion to its edges; then `width` takes about a microsecond, and `path` a short search. All methods may be called
    from many threads at once.

    Parameters
    ----------
    graph : KnnGraph
        Of any metric but ``inner_product``, which is no distance.
    device : str, default "auto"
        ``"cpu"`` or ``"cuda:N"``; ``"auto"`` is that of the graph. Results do not depend on it. Built on a GPU, it answers
        many widths there; the first path by steps then lists the edges on the host.
    threads, memory_limit, device_memory_limit, progress
        As in `knn`.

    Notes
    -----
    Built on the CPU it keeps 16 bytes for each neighbour of the graph and some 40 for each row, and not the graph.

    Raises
    ------
    ValueError
        The metric is ``inner_product``; `KnnGraph.validate` refuses the graph.
    MemoryError
        The limit, or the memory, is too small.

    Examples
    --------
    >>> import numpy as np, kith
    >>> graph = kith.knn_graph(np.array([[0], [1], [3], [7]], dtype=np.float32), k=1)
    >>> paths = kith.SmoothPaths(graph)
    >>> paths.path(0, 3)
    SmoothPath(rows=array([0, 1, 2, 3]), width=4.0)
    """

    @answers_other_names("kith.SmoothPaths()")
    def __init__(
        self,
        graph: KnnGraph,
        *,
        device: DeviceNames = "auto",
        threads: SupportsIndex = 0,
        memory_limit: ByteSize | None = None,
        device_memory_limit: ByteSizes | None = None,
        progress: Progress = False,
    ) -> None:
        if not isinstance(graph, KnnGraph):
            raise TypeError(f"graph is {kind_of(graph)}; it must be a kith.KnnGraph")
        arrays = (graph.ids, graph.distances)
        with calling(device, threads, memory_limit, device_memory_limit, progress, arrays=arrays) as options:
            self._given = graph._given_there(options) if device != "cpu" else graph._given()
            self._graph = graph  # whose memory is read again where this was built on a GPU
            self._paths = _kith.SmoothPaths(self._given, options)

    def __len__(self) -> int:
        """How many rows the graph has."""
        return self._paths.rows

    @property
    def parts(self) -> int:
        """The connected components of the graph, taken both ways."""
        return self._paths.parts

    def width(self, a: SupportsIndex, b: SupportsIndex) -> float:
        """The least possible largest step from row `a` to row `b`, in the metric's unit.

        0 if they are the same row, inf if no path connects them.
        """
        return float(self._paths.width(whole_number(a, "a"), whole_number(b, "b")))

    def widths(self, pairs: npt.ArrayLike, *, threads: SupportsIndex = 0) -> npt.NDArray[np.float32]:
        """`width` of many pairs, given as an (n, 2) array of row numbers."""
        given: Any = np.asarray(pairs)
        if given.size == 0:
            given = given.reshape(0, 2).astype(np.int64)
        if given.ndim != 2 or given.shape[1] != 2:
            raise ValueError(f"pairs have shape {given.shape}; they must be (n, 2)")
        if given.dtype.kind not in "iu":
            raise TypeError(f"pairs are {given.dtype}; row numbers are integers")
        if given.dtype == np.uint64 and given.max() > np.iinfo(np.int64).max:
            raise ValueError(f"pairs hold {given.max()}; the graph's rows are 0 to {len(self) - 1}")
        with calling("cpu", threads) as options:
            return self._paths.widths(np.ascontiguousarray(given, np.int64).view(np.int64), options)

    def path(self, a: SupportsIndex, b: SupportsIndex, by: str = "steps") -> SmoothPath:
        """A path from row `a` to row `b` whose largest step is as small as it can be.

        Parameters
        ----------
        a, b : int
            Row numbers.
        by : str, default "steps"
            Which of all such paths. ``"steps"``: one with the fewest steps, and of those the first in the order of row
            numbers. ``"tree"``: that of the minimum spanning tree, which is least in its largest step, then in the second
            largest, and so on: many short steps.

        Returns
        -------
        SmoothPath
            ``(rows, width)``.

        Raises
        ------
        ValueError
            No rows of the graph; an unknown `by`.
        """
        with calling("cpu") as options:
            rows, width = self._paths.path(whole_number(a, "a"), whole_number(b, "b"), text(by, "by"), options)
        return SmoothPath(rows.view(np.int64), width)

    def __repr__(self) -> str:
        return f"kith.SmoothPaths(rows={len(self)}, parts={self.parts})"
