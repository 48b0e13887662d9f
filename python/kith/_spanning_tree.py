"""The minimum spanning tree of a k-NN graph, and the single linkage that follows from it."""

from __future__ import annotations

from typing import SupportsFloat

import numpy as np
import numpy.typing as npt

from kith import _kith
from kith._options import real_number
from kith._other_names import answers_other_names


class SpanningTree:
    """The minimum spanning tree of a k-NN graph: `KnnGraph.spanning_tree` makes one.

    Attributes
    ----------
    edges : array of int64, (rows - 1, 2)
        The smaller and the larger row of each edge, the shortest first, and equal ones by their rows.
    weights : array of float32, (rows - 1,)
        How long they are, in the metric's unit.
    """

    def __init__(self, tree: _kith.SpanningTree) -> None:
        self._tree = tree

    @property
    def edges(self) -> npt.NDArray[np.int64]:
        return self._tree.edges.view(np.int64)

    @property
    def weights(self) -> npt.NDArray[np.float32]:
        return self._tree.weights

    def __len__(self) -> int:
        """How many edges there are."""
        return len(self._tree.weights)

    def to_array(self) -> npt.NDArray[np.float64]:
        """(rows - 1, 3): the rows and the weight of each edge, sorted, as the hdbscan package takes a minimum spanning tree."""
        return np.column_stack([self.edges.astype(np.float64), self.weights.astype(np.float64)])

    def single_linkage(self) -> npt.NDArray[np.float64]:
        """The single linkage, (rows - 1, 4), in SciPy's layout, for ``scipy.cluster.hierarchy``.

        In each row the two clusters that are joined, their distance, and the number of rows in the new cluster, whose
        number is that of the rows and the place in this array.
        """
        return self._tree.single_linkage()

    @answers_other_names("labels()")
    def labels(self, height: SupportsFloat) -> npt.NDArray[np.int64]:
        """The cluster of each row when edges up to `height` join them: 0, 1, 2, ... in the order of their first rows."""
        return self._tree.labels(real_number(height, "height")).view(np.int64)

    def __repr__(self) -> str:
        return f"kith.SpanningTree(rows={self._tree.rows})"
