"""Names that FAISS, cuVS, hnswlib and scikit-learn use, answered with Kith's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

_PROBES = "probes"
_REFINE = "refine, how many times k candidates are compared again"
_K = "k"
_THREADS = "threads"
_METRIC = "metric"
_OUT = "out=(ids, distances)"
_IN_FACTORY = "the factory string, such as kith.Index('IVF4096,PQ16')"
_FROM_VECTORS = "nothing: the dimension is that of the first vectors"

_ARGUMENTS = {
    "nprobe": _PROBES,
    "n_probe": _PROBES,
    "n_probes": _PROBES,
    "nprobes": _PROBES,
    "probe": _PROBES,
    "ef": _PROBES,
    "k_factor": _REFINE,
    "refine_ratio": _REFINE,
    "params": "probes and refine, given by themselves",
    "search_params": "probes and refine, given by themselves",
    "n_neighbors": _K,
    "top_k": _K,
    "topk": _K,
    "num_threads": _THREADS,
    "n_threads": _THREADS,
    "n_jobs": _THREADS,
    "metric_type": _METRIC,
    "space": _METRIC,
    "D": _OUT,
    "I": _OUT,
    "sel": "filter",
    "selector": "filter",
    "mask": "filter",
    "nlist": _IN_FACTORY,
    "n_lists": _IN_FACTORY,
    "nlists": _IN_FACTORY,
    "m": _IN_FACTORY,
    "M": _IN_FACTORY,
    "pq_dim": _IN_FACTORY,
    "nbits": _IN_FACTORY,
    "description": "factory",
    "spec": "factory",
    "d": _FROM_VECTORS,
    "dim": _FROM_VECTORS,
    "dimension": _FROM_VECTORS,
    "max_elements": "expected_rows, for 'IVF' without a number",
    "random_state": "seed",
    "check_finite": "kith.Index(..., check_finite=False), for all of its calls",
    "thresh": "radius",
    "xids": "ids",
    "labels": "ids",
}

_ATTRIBUTES = {
    "ntotal": "len(index)",
    "d": "index.dimension",
    "dim": "index.dimension",
    "is_trained": "index.trained",
    "metric_type": "index.metric",
    "nprobe": "index.search(queries, probes=...)",
    "nlist": "index.info().lists",
    "add_with_ids": "index.add(x, ids=ids)",
    "add_items": "index.add(x, ids=ids)",
    "remove_ids": "index.remove(ids)",
    "mark_deleted": "index.remove(ids)",
    "delete": "index.remove(ids)",
    "knn_query": "index.search(queries, k=k), which gives (ids, distances)",
    "query": "index.search(queries, k=k), which gives (ids, distances)",
    "kneighbors": "index.search(queries, k=k), which gives (ids, distances)",
    "set_ef": "index.search(queries, beam=...) of a Graph",
    "reconstruct_n": "index.reconstruct(range(first, last))",
    "reconstruct_batch": "index.reconstruct(ids)",
    "get_items": "index.reconstruct(ids)",
    "save_index": "index.save(path)",
    "load_index": "kith.load(path)",
    "fit": "index.train(x), then index.add(x)",
    "build": "index.train(x), then index.add(x)",
    "extend": "index.add(x, ids=ids)",
    "make_direct_map": "nothing: reconstruct() needs no map",
}

_MODULE_NAMES = {
    "IndexFlat": "kith.Index('Flat')",
    "IndexFlatL2": "kith.Index('Flat', metric='sqeuclidean')",
    "IndexFlatIP": "kith.Index('Flat', metric='inner_product')",
    "IndexIVFFlat": "kith.Index('IVF1024,Flat')",
    "IndexIVFPQ": "kith.Index('IVF1024,PQ16')",
    "IndexPQ": "kith.Index('PQ16')",
    "IndexRefineFlat": "kith.Index('PQ16,RFlat')",
    "index_factory": "kith.Index(factory, metric=...)",
    "read_index": "kith.load(path), and kith.read_faiss(path) for FAISS's files",
    "write_index": "index.save(path), and kith.write_faiss(index, path) for FAISS",
    "index_cpu_to_gpu": "index.to('cuda')",
    "index_gpu_to_cpu": "index.to('cpu')",
    "Kmeans": "kith.KMeans(clusters)",
    "NearestNeighbors": "kith.sklearn.NearestNeighbors",
    "omp_set_num_threads": "threads=... in each call",
    "brute_force_knn": "kith.knn(queries, base, k=k)",
    "bfknn": "kith.knn(queries, base, k=k)",
}


def refuse_unknown(call: str, unknown: Mapping[str, object]) -> None:
    """TypeError for keyword arguments that a call does not have, with Kith's name where another library's was used."""
    for name in unknown:
        hint = _ARGUMENTS.get(name)
        raise TypeError(
            f"{call} has no argument {name!r}" + (f"; Kith's way is {hint}" if hint else "; see help(kith.Index)")
        )


def refuse_attribute(name: str) -> NoReturn:
    """AttributeError for what a kith.Index does not have."""
    hint = _ATTRIBUTES.get(name)
    raise AttributeError(f"a kith.Index has no attribute {name!r}" + (f"; Kith's way is {hint}" if hint else ""))


def refuse_module_name(name: str) -> NoReturn:
    """AttributeError for what the module does not have."""
    hint = _MODULE_NAMES.get(name)
    raise AttributeError(f"module 'kith' has no attribute {name!r}" + (f"; Kith's way is {hint}" if hint else ""))


def is_another_name(name: str) -> bool:
    """Whether an attribute of another library's index is called so."""
    return name in _ATTRIBUTES
