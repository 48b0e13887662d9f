"""Names that FAISS, cuVS, hnswlib, scikit-learn and vector databases use, answered with Kith's."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Container, Sequence
from typing import NoReturn, ParamSpec, TypeVar

_IN_FACTORY = "the factory string, such as kith.Index('IVF4096,PQ16') or 'Graph32'"
_FROM_VECTORS = "nothing: the dimension is that of the first vectors"
_PROBES = ("probes", "index.search(..., probes=...) of an index with lists")
_BEAM = ("beam", "probes", "index.search(..., beam=...) of a Graph")
_SEARCH = ("probes and refine, given by themselves",)
_NO_TREE = ("nothing: no tree is built",)
_WITH_DISTANCES = ("nothing: ids and distances come as a named tuple",)
_PIECES = ("batch_size", "nothing: pieces are as large as memory_limit lets them be")
_NO_SELF = ("without_self", "kith.knn_graph(x, k=k), in which no row finds itself")
_ENTRIES = ("graph.to_csr(), whose entries are distances",)

# Hints of one word are given only if the call has such an argument; others always.
_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "nprobe": _PROBES,
    "n_probe": _PROBES,
    "n_probes": _PROBES,
    "nprobes": _PROBES,
    "probe": _PROBES,
    "ef": _BEAM,
    "efSearch": _BEAM,
    "ef_search": _BEAM,
    "efConstruction": (_IN_FACTORY,),
    "ef_construction": (_IN_FACTORY,),
    "k_factor": ("refine", "index.search(..., refine=...)"),
    "refine_ratio": ("refine", "index.search(..., refine=...)"),
    "params": _SEARCH,
    "search_params": _SEARCH,
    "n_neighbors": ("k", "clusters"),
    "n_neighbours": ("k",),
    "top_k": ("k",),
    "topk": ("k",),
    "limit": ("k",),
    "k": ("clusters",),
    "n_clusters": ("clusters",),
    "nclusters": ("clusters",),
    "num_clusters": ("clusters",),
    "n_components": ("components", "columns", "dimension", "k"),
    "n_iter": ("iterations",),
    "niter": ("iterations",),
    "max_iter": ("iterations",),
    "nredo": ("n_init",),
    "verbose": ("progress", "progress=True in the call that computes, such as fit or train"),
    "show_progress": ("progress",),
    "num_threads": ("threads",),
    "n_threads": ("threads",),
    "n_jobs": ("threads",),
    "workers": ("threads",),
    "metric_type": ("metric",),
    "space": ("metric",),
    "distance": ("metric",),
    "D": ("out", "out=(ids, distances)"),
    "I": ("out", "out=(ids, distances)"),
    "sel": ("filter",),
    "selector": ("filter",),
    "mask": ("filter",),
    "where": ("filter",),
    "nlist": (_IN_FACTORY,),
    "n_lists": (_IN_FACTORY,),
    "nlists": (_IN_FACTORY,),
    "m": (_IN_FACTORY,),
    "M": (_IN_FACTORY,),
    "pq_dim": (_IN_FACTORY,),
    "nbits": ("bits", _IN_FACTORY),
    "description": ("factory",),
    "spec": ("factory",),
    "columns": ("dimension",),
    "d": ("dimension", _FROM_VECTORS),
    "dim": ("dimension", _FROM_VECTORS),
    "dimension": (_FROM_VECTORS,),
    "max_elements": ("expected_rows, for 'IVF' without a number",),
    "random_state": ("seed",),
    "random_seed": ("seed",),
    "check_finite": ("check_finite", "kith.Index(..., check_finite=False), for all of its calls"),
    "thresh": ("radius",),
    "threshold": ("radius", "height"),
    "eps": ("radius", "height"),
    "distance_threshold": ("radius", "height"),
    "cutoff": ("height", "radius"),
    "r": ("radius",),
    "xids": ("ids",),
    "labels": ("ids",),
    "upsert": ("replace=True, with ids",),
    "overwrite": ("replace=True, with ids",),
    "X": ("x", "base"),
    "data": ("x", "base"),
    "vectors": ("x", "base"),
    "embeddings": ("x", "base"),
    "xb": ("x", "base"),
    "dataset": ("base", "x"),
    "xq": ("queries",),
    "query": ("queries",),
    "images": ("items",),
    "texts": ("items",),
    "documents": ("items",),
    "thumbnails": ("items",),
    "collection": ("items",),
    "y": ("labels",),
    "hue": ("labels",),
    "color": ("labels",),
    "colors": ("labels",),
    "classes": ("labels",),
    "targets": ("labels",),
    "coords": ("xy",),
    "umap": ("xy",),
    "projection": ("xy",),
    "model": ("encode",),
    "encoder": ("encode",),
    "embed": ("encode",),
    "embedding_function": ("encode",),
    "address": ("host",),
    "open_browser": ("browser",),
    "image_shape": ("shape",),
    "column": ("text",),
    "algorithm": _NO_TREE,
    "leaf_size": _NO_TREE,
    "n_trees": _NO_TREE,
    "return_distance": _WITH_DISTANCES,
    "return_distances": _WITH_DISTANCES,
    "include_distances": _WITH_DISTANCES,
    "with_distances": _WITH_DISTANCES,
    "prepare": ("prepare", "kith.Index(..., prepare=False) before vectors are added, or kith.load(path, mmap=True), which processes share"),
    "sorted": ("nothing: the nearest come first",),
    "sort_results": ("nothing: the nearest come first",),
    "batch_size": _PIECES,
    "chunk_size": _PIECES,
    "block_size": _PIECES,
    "exclude_self": _NO_SELF,
    "include_self": _NO_SELF,
    "without_self": _NO_SELF,
    "mode": _ENTRIES,
    "p": ("metric='l1', 'l2' or 'linf'",),
    "radius": ("radius", "range_search, which takes a radius"),
    "max_distance": ("radius", "range_search, which takes a radius"),
    "normalize": ("metric='cosine'",),
    "normalized": ("metric='cosine'",),
    "ndim": ("dimension", _FROM_VECTORS),
    "dims": ("dimension", _FROM_VECTORS),
    "connectivity": (_IN_FACTORY,),
    "expansion_add": (_IN_FACTORY,),
    "expansion_search": _BEAM,
    "index_type": ("factory",),
    "kind": ("factory",),
    "n_results": ("k",),
    "num_results": ("k",),
    "num_neighbors": ("k",),
    "n": ("k", "clusters", "rows"),
    "q": ("queries",),
    "show_progress_bar": ("progress",),
    "parallel": ("threads",),
    "use_cuda": ("device='cuda'",),
    "cuda": ("device='cuda'",),
    "cpu": ("device='cpu'",),
    "metric_params": ("the metric by its name",),
    "gpu": ("device='cuda'",),
    "use_gpu": ("device='cuda'",),
    "memory": ("memory_limit",),
    "recall_target": ("recall",),
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
    "upsert": "index.add(x, ids, replace=True)",
    "update": "index.add(x, ids, replace=True)",
    "merge_from": "index.merge(other, shift_ids=True)",
    "reset": "index.remove(index.ids()), or a new kith.Index",
    "clear": "index.remove(index.ids()), or a new kith.Index",
    "quantizer": "index.info().lists; centres are not given out",
    "keys": "index.ids()",
    "get_ids_list": "index.ids()",
    "id_map": "index.ids()",
    "search_and_reconstruct": "index.search(...), then index.reconstruct(ids)",
    "reconstruct_n": "index.reconstruct(range(first, last))",
    "reconstruct_batch": "index.reconstruct(ids)",
    "get_items": "index.reconstruct(ids)",
    "save_index": "index.save(path)",
    "load_index": "kith.load(path)",
    "fit": "index.train(x), then index.add(x)",
    "build": "index.train(x), then index.add(x)",
    "extend": "index.add(x, ids=ids)",
    "efSearch": "index.search(queries, beam=...) of a Graph",
    "hnsw": "index.search(queries, beam=...) of a Graph",
    "probes": "index.search(queries, probes=...), or index.tune(...) and recall=...",
    "write": "index.save(path)",
    "size": "len(index)",
    "shape": "(len(index), index.dimension)",
    "transform": "index.search(queries, k=k), which gives (ids, distances)",
    "make_direct_map": "nothing: reconstruct() needs no map",
    "ef": "index.search(queries, beam=...) of a Graph",
    "efConstruction": "the factory string, such as 'Graph64' for better graphs",
    "init_index": "nothing: an index grows as vectors are added",
    "resize_index": "nothing: an index grows as vectors are added",
    "max_elements": "nothing: an index grows as vectors are added",
    "get_max_elements": "nothing: an index grows as vectors are added",
    "reserve": "nothing: an index grows as vectors are added",
    "element_count": "len(index)",
    "get_current_count": "len(index)",
    "get_n_items": "len(index)",
    "count": "len(index)",
    "rows": "len(index)",
    "set_num_threads": "threads=... in each call",
    "num_threads": "threads=... in each call",
    "verbose": "progress=True in each call",
    "M": "index.factory",
    "space": "index.metric",
    "add_item": "index.add(vector, ids=id)",
    "add_vectors": "index.add(x, ids=ids)",
    "add_documents": "index.add(x, ids=ids), with vectors that your model makes",
    "insert": "index.add(x, ids=ids)",
    "append": "index.add(x, ids=ids)",
    "unmark_deleted": "index.add(x, ids=ids) again",
    "drop": "index.remove(ids)",
    "pop": "index.remove(ids)",
    "discard": "index.remove(ids)",
    "contains": "id in index",
    "get": "index.reconstruct(ids)",
    "get_item_vector": "index.reconstruct(id)",
    "vectors": "index.reconstruct(index.ids())",
    "xb": "index.reconstruct(index.ids())",
    "to_numpy": "index.reconstruct(index.ids())",
    "get_nns_by_vector": "index.search(vector, k=k), which gives (ids, distances)",
    "get_nns_by_item": "index.search(index.reconstruct(id), k=k)",
    "nearest": "index.search(queries, k=k), which gives (ids, distances)",
    "assign": "index.search(queries, k=k).ids",
    "predict": "index.search(queries, k=k).ids",
    "radius_search": "index.range_search(queries, radius)",
    "invlists": "index.info(), which tells of lists",
    "get_list_size": "index.info(), which tells of lists",
    "stats": "index.info()",
    "describe": "index.info()",
    "memory_usage": "index.info(), with bytes by part",
    "nbytes": "index.info(), with bytes by part",
    "view": "kith.load(path, mmap=True)",
    "restore": "kith.load(path)",
    "load": "kith.load(path)",
    "dump": "index.save(path)",
    "serialize": "pickle.dumps(index), or index.save(path)",
    "to_gpu": "index.to('cuda')",
    "cuda": "index.to('cuda')",
    "cpu": "index.to('cpu')",
    "copy": "index.clone()",
    "close": "nothing: memory is given back with the last reference",
    "freeze": "nothing: searches and adds go on side by side",
    "optimize": "index.compact()",
    "rebuild": "index.compact()",
}

_WHERE = 'where="year > ?", params=(2020,)'
_COLUMNS = 'columns={"year": [...], ...}'

_COLLECTION_ARGUMENTS = {
    "n_results": "k",
    "top_k": "k",
    "topk": "k",
    "limit": "k",
    "n_neighbors": "k",
    "query_embeddings": "queries, the first argument",
    "query_vector": "queries, the first argument",
    "query": "queries, the first argument",
    "query_texts": "queries: vectors, which your model makes of texts",
    "embeddings": "vectors, the first argument",
    "embedding": "vectors, the first argument",
    "metadatas": _COLUMNS,
    "metadata": _COLUMNS,
    "documents": "payloads, as bytes, or a column of str",
    "payload": "payloads, or columns for what you filter by",
    "where_document": _WHERE,
    "query_filter": _WHERE,
    "prefilter": "where: filters always come first",
    "expr": _WHERE,
    "filters": "filter: a mask, or ids; and where, an expression with params",
    "dim": "dimension",
    "d": "dimension",
    "size": "dimension",
    "vector_size": "dimension",
    "distance": "metric",
    "space": "metric",
    "metric_type": "metric",
    "schema": 'columns={"year": int, ...}',
    "nprobe": "probes",
    "nprobes": "probes",
    "n_probes": "probes",
    "ef": "beam, of a Graph",
    "refine_factor": "refine, how many times k candidates are compared again",
    "num_threads": "threads",
    "read_only": 'mode="r"',
    "readonly": 'mode="r"',
    "points": "vectors, ids, columns and payloads, each by itself",
    "include": "nothing: get(ids) returns all that belongs to items",
    "with_payload": "nothing: get(ids) returns all that belongs to items",
}

_COLLECTION_ATTRIBUTES = {
    "query": "collection.search(queries, k=k, where=...), which gives (ids, distances)",
    "query_points": "collection.search(queries, k=k, where=...), which gives (ids, distances)",
    "knn_query": "collection.search(queries, k=k, where=...), which gives (ids, distances)",
    "similarity_search": "collection.search(queries, k=k), with vectors that your model makes of texts",
    "delete": "collection.remove(ids), or collection.remove(where=...)",
    "delete_items": "collection.remove(ids)",
    "insert": "collection.add(vectors, ids=..., columns=...)",
    "add_items": "collection.add(vectors, ids=..., columns=...)",
    "update": "collection.upsert(vectors, ids=..., columns=...)",
    "merge_insert": "collection.upsert(vectors, ids=..., columns=...)",
    "peek": "collection.get(collection.ids()[:10])",
    "fetch": "collection.get(ids)",
    "retrieve": "collection.get(ids)",
    "scroll": "collection.ids(where=...), then collection.get(ids)",
    "count_rows": "len(collection), or collection.count(where=...)",
    "optimize": "collection.compact()",
    "vacuum": "collection.compact()",
    "flush": "nothing: what was written is on the disk; collection.fold() makes a segment",
    "persist": "nothing: what was written is on the disk",
    "save": "nothing: what was written is on the disk; collection.snapshot(path) makes a copy",
    "commit": "with collection.batch(): ..., for calls that belong together",
    "checkout_latest": "collection.refresh()",
    "create_scalar_index": "collection.create_index(column)",
    "create_payload_index": "collection.create_index(column)",
    "backup": "collection.snapshot(path)",
    "train": "collection.compact(), which builds the index",
    "ntotal": "len(collection)",
    "rows": "len(collection)",
    "size": "len(collection)",
    "list": "collection.ids(where=...)",
    "keys": "collection.ids()",
    "all": "collection.get(collection.ids())",
    "items": "collection.get(collection.ids())",
    "schema": "collection.columns",
    "dtypes": "collection.columns",
    "drop": "collection.close(), then shutil.rmtree(path)",
    "describe": "collection.info()",
    "stats": "collection.info()",
    "filter": "collection.ids(where=...), or collection.search(queries, where=...)",
    "vectors": "collection.get(ids).vectors",
}

_MODULE_NAMES = {
    "PersistentClient": "kith.open(path, dimension=...)",
    "QdrantClient": "kith.open(path, dimension=...)",
    "connect": "kith.open(path, dimension=...)",
    "IndexFlat": "kith.Index('Flat')",
    "IndexFlatL2": "kith.Index('Flat', metric='sqeuclidean')",
    "IndexFlatIP": "kith.Index('Flat', metric='inner_product')",
    "IndexIVFFlat": "kith.Index('IVF1024,Flat')",
    "IndexIVFPQ": "kith.Index('IVF1024,PQ16')",
    "IndexPQ": "kith.Index('PQ16')",
    "IndexFlatCodes": "kith.Index('SQ8')",
    "IndexHNSWFlat": "kith.Index('Graph64'), or kith.read_faiss(path) for its files",
    "IndexHNSW": "kith.Index('Graph64')",
    "HNSW": "kith.Index('Graph64')",
    "IndexHNSWSQ": "kith.Index('Graph64,SQ8')",
    "IndexNSGFlat": "kith.Index('Graph32')",
    "IndexLSH": "kith.Index('RaBitQ')",
    "IndexRaBitQ": "kith.Index('RaBitQ')",
    "IndexScalarQuantizer": "kith.Index('SQ8')",
    "IndexIVFScalarQuantizer": "kith.Index('IVF1024,SQ8')",
    "IndexPQFastScan": "kith.Index('PQ16x4')",
    "IndexIVFPQFastScan": "kith.Index('IVF1024,PQ16x4')",
    "IndexIDMap": "kith.Index('Flat'): every index takes ids, add(x, ids=...)",
    "IndexIDMap2": "kith.Index('Flat'): every index takes ids, add(x, ids=...)",
    "IndexPreTransform": "kith.Index('PCA64,IVF1024,SQ8')",
    "IndexBinaryFlat": "kith.Index('Flat', metric='hamming') of uint8 rows",
    "IndexBinaryIVF": "kith.Index('Flat', metric='hamming') of uint8 rows",
    "IndexShards": "index.to(['cuda:0', 'cuda:1'], copies=1)",
    "IndexReplicas": "index.to(['cuda:0', 'cuda:1'])",
    "GpuIndexFlatL2": "kith.Index('Flat', metric='sqeuclidean', device='cuda')",
    "GpuIndexIVFPQ": "kith.Index('IVF1024,PQ16', device='cuda')",
    "StandardGpuResources": "nothing: device='cuda' in a call or kith.Index",
    "GpuClonerOptions": "nothing: device='cuda' in a call or kith.Index",
    "index_cpu_to_all_gpus": "index.to('cuda:all')",
    "METRIC_L2": "metric='sqeuclidean' (or 'l2', its root)",
    "METRIC_INNER_PRODUCT": "metric='inner_product'",
    "normalize_L2": "metric='cosine', or 'L2norm,...' in a factory string",
    "ParameterSpace": "index.tune(queries, recall=0.95)",
    "IDSelectorBatch": "filter=ids in a search",
    "IDSelectorRange": "filter=ids in a search",
    "PCAMatrix": "kith.PCA(dimension)",
    "OPQMatrix": "kith.OPQ(parts)",
    "knn_gpu": "kith.knn(queries, base, k=k, device='cuda')",
    "pairwise_distance_gpu": "kith.pairwise_distances(a, b, device='cuda')",
    "eval_intersection": "kith.recall(found, truth)",
    "vector_to_array": "nothing: results are arrays",
    "read_VectorTransform": "kith.Transform.load(path)",
    "hnswlib": "kith.Index('Graph32'), and kith.read_hnswlib(path, metric)",
    "AnnoyIndex": "kith.Index('Graph32')",
    "KDTree": "kith.Index('Flat'), or kith.knn(queries, base, k=k)",
    "BallTree": "kith.Index('Flat'), or kith.knn(queries, base, k=k)",
    "cKDTree": "kith.Index('Flat'), or kith.knn(queries, base, k=k)",
    "KNeighborsClassifier": "kith.sklearn.KNeighborsClassifier",
    "KNeighborsRegressor": "kith.sklearn.KNeighborsRegressor",
    "DBSCAN": "kith.sklearn.DBSCAN",
    "HDBSCAN": "kith.sklearn.HDBSCAN",
    "LocalOutlierFactor": "kith.sklearn.LocalOutlierFactor",
    "MiniBatchKMeans": "kith.KMeans(clusters, batch_size=4096)",
    "kmeans": "kith.KMeans(clusters).fit(x)",
    "search": "kith.knn(queries, base, k=k), or index.search(queries, k=k)",
    "nearest_neighbors": "kith.knn(queries, base, k=k)",
    "kneighbors_graph": "kith.knn_graph(x, k=k).to_csr()",
    "NNDescent": "kith.knn_graph(x, k=k, method='nn_descent')",
    "cdist": "kith.pairwise_distances(a, b)",
    "save": "index.save(path)",
    "dedup": "kith.near_duplicates(x, radius)",
    "find_duplicates": "kith.near_duplicates(x, radius)",
    "IndexRefineFlat": "kith.Index('PQ16,RFlat')",
    "cluster": "kith.KMeans(clusters).fit(x), or kith.sklearn.DBSCAN and HDBSCAN",
    "umap": "kith.knn_graph(x, k=14).to_umap(), which umap.UMAP(precomputed_knn=...) takes",
    "plot": "kith.show(items, found), or kith.explore(items, x)",
    "browse": "kith.explore(items, x)",
    "pca": "kith.PCA(columns).train(x).apply(x)",
    "read": "kith.read_vectors(path)",
    "read_csv": "kith.read_vectors(path)",
    "read_parquet": "kith.read_vectors(path)",
    "load_vectors": "kith.read_vectors(path)",
    "read_fvecs": "kith.read_vectors(path)",
    "save_vectors": "kith.write_vectors(path, array)",
    "radius_neighbors": "kith.range_search(queries, base, radius)",
    "radius_search": "kith.range_search(queries, base, radius)",
    "knn_search": "kith.knn(queries, base, k=k)",
    "minimum_spanning_tree": "kith.knn_graph(x, k=15).spanning_tree()",
    "shortest_path": "kith.knn_graph(x, k=15).smoothest_path(a, b)",
    "recall_at_k": "kith.recall(found, truth)",
    "create_collection": "kith.open(path, dimension=...)",
    "Client": "kith.open(path, dimension=...)",
    "index_factory": "kith.Index(factory, metric=...)",
    "read_index": "kith.load(path), and kith.read_faiss(path) for FAISS's files",
    "write_index": "index.save(path), and kith.write_faiss(index, path) for FAISS",
    "index_cpu_to_gpu": "index.to('cuda')",
    "index_gpu_to_cpu": "index.to('cpu')",
    "Kmeans": "kith.KMeans(clusters)",
    "NearestNeighbors": "kith.sklearn.NearestNeighbors",
    "omp_set_num_threads": "threads=... in each call",
    "SearchParametersIVF": "index.search(queries, probes=...)",
    "SearchParametersHNSW": "index.search(queries, beam=...) of a Graph",
    "SearchParametersPQ": "index.search(queries, refine=...)",
    "get_num_gpus": "len(kith.info()['cuda_devices'])",
    "extract_index_ivf": "nothing: an index is one object, and index.info() tells of its lists",
    "downcast_index": "nothing: an index is one object",
    "kmeans_clustering": "kith.KMeans(clusters).fit(x).cluster_centers_",
    "Clustering": "kith.KMeans(clusters).fit(x)",
    "serialize_index": "pickle.dumps(index), or index.save(path)",
    "deserialize_index": "pickle.loads(bytes), or kith.load(path)",
    "clone_index": "index.clone()",
    "load_index": "kith.load(path)",
    "save_index": "index.save(path)",
    "set_num_threads": "threads=... in each call",
    "DB": "kith.open(path, dimension=...)",
    "Database": "kith.open(path, dimension=...)",
    "HNSWIndex": "kith.Index('Graph32')",
    "topk": "kith.knn(queries, base, k=k)",
    "pdist": "kith.pairwise_distances(x)",
    "euclidean_distances": "kith.pairwise_distances(a, b)",
    "cosine_distances": "kith.pairwise_distances(a, b, metric='cosine')",
    "cosine_similarity": "1 - kith.pairwise_distances(a, b, metric='cosine')",
    "radius_neighbors_graph": "kith.range_search(x, x, radius).to_csr()",
    "nn_descent": "kith.knn_graph(x, k=k, method='nn_descent')",
    "normalize": "metric='cosine', or 'L2norm,...' in a factory string",
    "brute_force_knn": "kith.knn(queries, base, k=k)",
    "bfknn": "kith.knn(queries, base, k=k)",
}


Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


def _names_of(function: Callable[..., object]) -> list[str]:
    code = function.__code__
    return [one for one in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if one not in ("self", "cls")]


def unknown_argument(call: str, name: str, function: Callable[..., object]) -> TypeError:
    """What to raise for a keyword that a function does not have, with Kith's where another library's was used."""
    known = _names_of(function)
    hint = next((one for one in _ARGUMENTS.get(name, ()) if one in known or not one.isidentifier()), "")
    return TypeError(f"{call} has no argument {name!r}; {_told(name, known, hint)}")


def _unknown_in_collection(call: str, name: str, function: Callable[..., object]) -> TypeError:
    known = _names_of(function)
    told = _told(name, known, _COLLECTION_ARGUMENTS.get(name, ""))
    if "payloads" in known and told.startswith("it has"):
        told += f'; the values of a column are columns={{{name!r}: [...]}}'
    return TypeError(f"{call} has no argument {name!r}; {told}")


def _told(name: str, known: Sequence[str], hint: str) -> str:
    if hint:
        return f"Kith's way is {hint}"
    near = difflib.get_close_matches(name, known, 1, 0.75)
    return f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known) or 'none'}"


def answers_other_names(
    call: str, unknown: Callable[[str, str, Callable[..., object]], TypeError] = unknown_argument, missing: str = ""
) -> Callable[[Callable[Arguments, Answer]], Callable[Arguments, Answer]]:
    """Decorates a function that others know by other arguments: a keyword that it does not have is a TypeError with Kith's.

    It is looked at before Python does, which would miss `radius` in ``near_duplicates(x, threshold=0.1)``. `missing` is added to
    what Python says where an argument is left out.
    """

    def decorate(function: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
        known = frozenset(_names_of(function))

        @functools.wraps(function)
        def checked(*args: Arguments.args, **keywords: Arguments.kwargs) -> Answer:
            if not keywords.keys() <= known:
                raise unknown(call, next(name for name in keywords if name not in known), function)
            if not missing:
                return function(*args, **keywords)
            try:
                return function(*args, **keywords)
            except TypeError as error:
                if str(error).startswith(f"{function.__name__}() missing "):
                    raise TypeError(f"{error}{missing}") from None
                raise

        return checked

    return decorate


def answers_collection_names(call: str) -> Callable[[Callable[Arguments, Answer]], Callable[Arguments, Answer]]:
    """The same for calls of a collection, with the names of vector databases."""
    return answers_other_names(call, _unknown_in_collection)


def _no_attribute(kind: str, name: str, hint: str | None) -> AttributeError:
    """What to raise for an attribute that a class of this package does not have."""
    told = f"; Kith's way is {hint}" if hint else ""
    if not told and not name.startswith("_"):
        import kith

        has = [one for one in dir(getattr(kith, kind)) if one[0] != "_"]
        near = difflib.get_close_matches(name, has, 1, 0.75)
        told = f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(has)}"
    return AttributeError(f"a kith.{kind} has no attribute {name!r}{told}")


def refuse_collection_attribute(name: str) -> NoReturn:
    """AttributeError for what a kith.Collection does not have."""
    raise _no_attribute("Collection", name, _COLLECTION_ATTRIBUTES.get(name))


def refuse_attribute(name: str) -> NoReturn:
    """AttributeError for what a kith.Index does not have."""
    raise _no_attribute("Index", name, _ATTRIBUTES.get(name))


_GRAPH_NAMES = {
    "indices": "graph.ids",
    "neighbors": "graph.ids",
    "neighbours": "graph.ids",
    "knn_indices": "graph.ids",
    "knn_dists": "graph.distances",
    "weights": "graph.distances",
    "dists": "graph.distances",
    "neighbor_graph": "(graph.ids, graph.distances)",
    "n_neighbors": "graph.k",
    "rows": "len(graph)",
    "size": "len(graph)",
    "shape": "graph.ids.shape",
    "recall": "graph.report.recall, or graph.measure_recall(x)",
    "tocsr": "graph.to_csr()",
    "to_scipy": "graph.to_csr()",
    "shortest_path": "graph.smoothest_path(a, b)",
    "connected_components": "graph.components()",
    "minimum_spanning_tree": "graph.spanning_tree()",
    "plot": "kith.show(items, graph), or kith.explore(items, x, graph=graph)",
    "show": "kith.show(items, graph), or kith.explore(items, x, graph=graph)",
    "query": "an index for new queries: kith.Index('Graph32'), add(x), search(queries)",
    "search": "an index for new queries: kith.Index('Graph32'), add(x), search(queries)",
    "extend": "kith.extend_graph(graph, x, new)",
    "merge": "kith.merge_graphs(graph, x, other, y)",
    "connectivities": "graph.to_scanpy(adata), or graph.to_csr() for distances",
    "to_networkx": "networkx.from_scipy_sparse_array(graph.to_csr())",
    "to_igraph": "graph.to_csr(), a sparse matrix of distances",
    "mst": "graph.spanning_tree()",
    "cluster": "graph.labels(height), or kith.sklearn.HDBSCAN",
    "degree": "graph.k",
}


def refuse_subscript(kind: str, hint: str) -> NoReturn:
    """TypeError for what is no sequence, and no mapping."""
    raise TypeError(f"a kith.{kind} is not subscripted; Kith's way is {hint}")


def refuse_graph_attribute(name: str) -> NoReturn:
    """AttributeError for what a kith.KnnGraph does not have."""
    raise _no_attribute("KnnGraph", name, _GRAPH_NAMES.get(name))


_RESULT_NAMES = {
    "ids": ("I", "indices", "indexes", "labels", "keys", "neighbors", "neighbours", "rows", "documents"),
    "distances": ("D", "dists", "distance", "scores", "score", "similarities", "weights"),
    "offsets": ("lims", "indptr"),
}
_OF_RESULTS = {
    "to_pandas": "pandas.DataFrame({'id': found.ids[0], 'distance': found.distances[0]}) for one query",
    "to_list": "found.ids.tolist()",
    "tolist": "found.ids.tolist()",
    "shape": "found.ids.shape",
    "matches": "zip(found.ids[0], found.distances[0]) for one query",
}


def refuse_result_name(kind: str, fields: Sequence[str], name: str) -> NoReturn:
    """AttributeError for what a result, a named tuple of these fields, does not have."""
    hint = next((f"found.{one}" for one in fields if name in _RESULT_NAMES[one]), _OF_RESULTS.get(name))
    told = f"Kith's way is {hint}" if hint else f"it is a named tuple ({', '.join(fields)})"
    raise AttributeError(f"a kith.{kind} has no attribute {name!r}; {told}")


_LEARNER_NAMES = {
    "fit": "train(x)",
    "transform": "apply(x)",
    "fit_transform": "train(x), then apply(x)",
    "inverse_transform": "reverse(x)",
    "compute_codes": "encode(x)",
    "predict": "encode(x)",
    "is_trained": "trained",
}


def refuse_learner_name(kind: str, has: Container[str], name: str) -> NoReturn:
    """AttributeError for what a quantizer or a transform does not have."""
    hint = _LEARNER_NAMES.get(name, "")
    told = f"; Kith's way is {hint}" if hint and hint.partition("(")[0] in has else ""
    raise AttributeError(f"a kith.{kind} has no attribute {name!r}{told}")


_KMEANS_NAMES = {
    "centroids": "cluster_centers_",
    "centers": "cluster_centers_",
    "centres": "cluster_centers_",
    "cluster_centers": "cluster_centers_",
    "labels": "labels_",
    "obj": "objective_history_",
    "train": "fit(x)",
    "index": "predict(x)",
    "n_clusters": "len(model.cluster_centers_)",
    "score": "-model.inertia_ of what was fitted; model.assign(x) has the distances of other vectors",
    "get_params": "kith.sklearn.KMeans, which has scikit-learn's methods",
    "set_params": "kith.sklearn.KMeans, which has scikit-learn's methods",
}


def refuse_kmeans_name(name: str) -> NoReturn:
    """AttributeError for what a kith.KMeans does not have, or not yet."""
    if name.endswith("_") and not name.startswith("_"):
        raise AttributeError(f"'KMeans' object has no attribute {name!r}; call fit first")
    raise _no_attribute("KMeans", name, _KMEANS_NAMES.get(name))


def refuse_module_name(name: str) -> NoReturn:
    """AttributeError for what the module does not have."""
    hint = _MODULE_NAMES.get(name)
    if hint is None and not name.startswith("_"):
        import kith

        near = difflib.get_close_matches(name, [*kith.__all__, "sklearn"], 1)
        hint = f"kith.{near[0]}" if near else None
    told = "" if name.startswith("_") else f"; Kith's way is {hint}" if hint else "; help(kith) tells what it has"
    raise AttributeError(f"module 'kith' has no attribute {name!r}{told}")


def refuse_estimator(name: str, known: Sequence[str]) -> NoReturn:
    """AttributeError for an estimator of scikit-learn that kith.sklearn has not."""
    near = difflib.get_close_matches(name, known, 1, 0.8)
    told = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known)}; scikit-learn's own work beside them"
    raise AttributeError(f"module 'kith.sklearn' has no attribute {name!r}; {told}")


def is_another_name(name: str) -> bool:
    """Whether an attribute of another library's index is called so."""
    return name in _ATTRIBUTES
