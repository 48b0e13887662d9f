"""HDBSCAN's last step: from single linkage to a label for each row.

scikit-learn has it compiled, under a private name, and it is taken from there where it is. Should a release rename it, the same
steps in numpy and Python take its place, with the same labels: Campello, Moulavi and Sander, "Density-Based Clustering Based on
Hierarchical Density Estimates" (2013).
"""

from __future__ import annotations

from collections import defaultdict
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

_FIELDS = ["left_node", "right_node", "value", "cluster_size"]


def labels_of(
    linkage: npt.NDArray[np.float64],
    min_cluster_size: int,
    method: str,
    allow_single_cluster: bool,
    epsilon: float,
    max_cluster_size: int | None,
) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64], npt.NDArray[Any]]:
    """Labels, probabilities and the hierarchy as scikit-learn keeps it, of a linkage as SciPy has it."""
    hierarchy = np.empty(len(linkage), list(zip(_FIELDS, [np.intp, np.intp, np.float64, np.intp])))
    for number, field in enumerate(_FIELDS):
        hierarchy[field] = linkage[:, number]
    given = (min_cluster_size, method, allow_single_cluster, epsilon, max_cluster_size)
    try:
        theirs = import_module("sklearn.cluster._hdbscan._tree")
        labels, probabilities = theirs.tree_to_labels(hierarchy.astype(theirs.HIERARCHY_dtype), *given)
    except (ImportError, AttributeError, TypeError, KeyError):
        labels, probabilities = tree_to_labels(hierarchy, *given)
    return labels, probabilities, hierarchy


class _Condensed(NamedTuple):
    """The clusters of at least a size: which of them, or which row, left its parent, and when (1 / distance)."""

    parent: npt.NDArray[np.intp]
    child: npt.NDArray[np.intp]
    value: npt.NDArray[np.float64]
    size: npt.NDArray[np.intp]


def tree_to_labels(
    hierarchy: npt.NDArray[Any],
    min_cluster_size: int = 10,
    method: str = "eom",
    allow_single_cluster: bool = False,
    epsilon: float = 0.0,
    max_cluster_size: int | None = None,
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]:
    tree = _condensed(hierarchy, min_cluster_size)
    root, rows = int(tree.parent.min()), len(hierarchy) + 1
    inner = tree.size > 1
    parents = dict(zip(tree.child[inner].tolist(), tree.parent[inner].tolist()))
    births = dict(zip(tree.child[inner].tolist(), tree.value[inner].tolist()))
    children: dict[int, list[int]] = defaultdict(list)
    for child, parent in parents.items():
        children[parent].append(child)
    clusters = sorted({root, *parents}, reverse=True)[: None if allow_single_cluster else -1]

    if method == "leaf":
        chosen = {node for node in parents if node not in children}
    else:
        sizes = dict(zip(tree.child[inner].tolist(), tree.size[inner].tolist()))
        sizes[root] = sum(sizes[child] for child in children[root])
        most = rows + 1 if max_cluster_size is None else max_cluster_size
        chosen = _most_stable(tree, root, clusters, children, sizes, most)
    only_root = chosen == {root}
    if epsilon != 0 and parents and not only_root:
        chosen = _within(chosen, root, parents, births, children, epsilon, allow_single_cluster)
    elif epsilon != 0 and only_root and not allow_single_cluster:
        chosen = set()
    chosen &= set(clusters)
    return _labelled(tree, root, chosen, allow_single_cluster, epsilon)


def _condensed(hierarchy: npt.NDArray[Any], least: int) -> _Condensed:
    rows = len(hierarchy) + 1
    left, right = hierarchy["left_node"].tolist(), hierarchy["right_node"].tolist()
    value, size = hierarchy["value"].tolist(), hierarchy["cluster_size"].tolist()
    entries: list[tuple[int, int, float, int]] = []
    label, level, following = {2 * rows - 2: rows}, [2 * rows - 2], rows + 1

    def fall_out(node: int, parent: int, at: float) -> None:
        below = [node]
        while below:
            further: list[int] = []
            for one in below:
                if one < rows:
                    entries.append((parent, one, at, 1))
                else:
                    further += [left[one - rows], right[one - rows]]
            below = further

    while level:
        deeper: list[int] = []
        for node in level:
            if node < rows:
                continue
            here, parent = node - rows, label[node]
            at = 1 / value[here] if value[here] > 0 else np.inf
            both = left[here], right[here]
            counts = [size[one - rows] if one >= rows else 1 for one in both]
            split = min(counts) >= least
            for one, count in zip(both, counts):
                if count < least:
                    fall_out(one, parent, at)
                    continue
                label[one] = following if split else parent
                if split:
                    entries.append((parent, following, at, count))
                    following += 1
                deeper.append(one)
        level = deeper
    parent_, child, lambda_, count_ = zip(*entries)
    return _Condensed(np.array(parent_, np.intp), np.array(child, np.intp), np.array(lambda_), np.array(count_, np.intp))


def _below(node: int, children: dict[int, list[int]]) -> list[int]:
    found, level = [], [node]
    while level:
        level = [child for one in level for child in children.get(one, ())]
        found += level
    return found


def _most_stable(
    tree: _Condensed, root: int, clusters: list[int], children: dict[int, list[int]], sizes: dict[int, int], most: int
) -> set[int]:
    """Excess of mass: a cluster, or those below it, whichever last longer in sum."""
    births = np.zeros(int(max(tree.child.max(), root)) + 1)
    births[tree.child] = tree.value
    births[root] = 0
    with np.errstate(invalid="ignore"):
        lasted = (tree.value - births[tree.parent]) * tree.size
    sums = np.bincount(tree.parent - root, lasted)
    stability = {root + number: one for number, one in enumerate(sums.tolist())}
    chosen = set(clusters)
    for node in clusters:  # from the leaves on
        below = sum(stability[child] for child in children.get(node, ()))
        if below > stability[node] or sizes[node] > most:
            chosen.discard(node)
            stability[node] = below
        else:
            chosen.difference_update(_below(node, children))
    return chosen


def _within(
    chosen: set[int],
    root: int,
    parents: dict[int, int],
    births: dict[int, float],
    children: dict[int, list[int]],
    epsilon: float,
    allow_single_cluster: bool,
) -> set[int]:
    """Clusters that split off below a distance of `epsilon` give way to the one that they were in there."""
    selected: set[int] = set()
    processed: set[int] = set()
    for leaf in chosen:
        if leaf not in births or 1 / births[leaf] >= epsilon:
            selected.add(leaf)
            continue
        if leaf in processed:
            continue
        node = leaf
        while True:
            parent = parents[node]
            if parent == root:
                node = parent if allow_single_cluster else node
                break
            node = parent
            if 1 / births[parent] > epsilon:
                break
        selected.add(node)
        processed.update(_below(node, children))
    return selected


def _labelled(
    tree: _Condensed, root: int, chosen: set[int], allow_single_cluster: bool, epsilon: float
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]:
    names = {cluster: number for number, cluster in enumerate(sorted(chosen))}
    # The cluster that each belongs to: a chosen one is its own, any other its parent's. Parents have lower numbers.
    owner = np.arange(int(max(tree.parent.max(), tree.child.max())) + 1)
    inner = tree.size > 1
    for child, parent in sorted(zip(tree.child[inner].tolist(), tree.parent[inner].tolist())):
        if child not in chosen:
            owner[child] = owner[parent]
    rows = ~inner
    point, its_parent, its_value = tree.child[rows], tree.parent[rows], tree.value[rows]
    cluster = owner[its_parent]
    number = np.array([names.get(one, -1) for one in range(root, owner.size)], np.intp)
    label = np.where(cluster == root, -1, number[cluster - root])
    if chosen == {root} and allow_single_cluster:
        threshold = 1 / epsilon if epsilon != 0 else tree.value[tree.parent == root].max()
        label[(cluster == root) & (its_value >= threshold)] = names[root]

    deaths = np.zeros(owner.size)
    np.maximum.at(deaths, tree.parent, tree.value)
    last = deaths[cluster]
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where((last == 0) | np.isinf(its_value), 1.0, np.minimum(its_value, last) / last)
    labels, probabilities = np.full(root, -1, np.intp), np.zeros(root)
    labels[point] = label
    probabilities[point] = np.where(label >= 0, share, 0.0)
    return labels, probabilities
