"""Every public call refuses every mistake of error_audit.py with a typed error, in Kith's words, that names what was given."""

from __future__ import annotations

import inspect
import warnings

import error_audit
import numpy as np
import pytest

import kith


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(error_audit.calls(tmp_path_factory.mktemp("audit")))


def test_calls_work_as_they_are(calls):
    for call in calls:
        for argument, (_, value) in call.arguments.items():
            if value is not None:
                assert error_audit.outcome(call, argument, value) is None, (call.name, error_audit.outcome(call, argument, value))
                break


def test_every_mistake_is_answered(calls):
    wrong, tried = [], 0
    for call in calls:
        for argument, mistake, value in error_audit.attempts(call):
            error = error_audit.outcome(call, argument, value)
            tried += 1
            if fault := error_audit.complaint(argument, value, error):
                wrong.append(f"{call.name}({argument}: {mistake}): {fault}: {type(error).__name__}: {error}")
    assert tried > 2000
    assert not wrong, "\n".join(wrong)


# What other libraries call things, and what nothing is called.
FOREIGN = {"nprobe": 4, "n_neighbors": 5, "n_jobs": 2, "random_state": 0, "gpu": True, "verbose": True, "no_such_thing": 1}


@pytest.mark.parametrize("name", [name for name in kith.__all__ if inspect.isfunction(getattr(kith, name, None))])
def test_foreign_keywords_are_answered(name):
    call = getattr(kith, name)
    if not hasattr(call, "__wrapped__"):
        pytest.skip("it has none to confuse")
    needed = [p.name for p in inspect.signature(call).parameters.values() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    for keyword, value in FOREIGN.items():
        if keyword in inspect.signature(call).parameters:
            continue
        with pytest.raises(TypeError, match=f"has no argument {keyword!r}; (Kith's way is|did you mean|it has)"):
            call(**dict.fromkeys(needed), **{keyword: value})
        with pytest.raises(TypeError, match=f"has no argument {keyword!r}"):  # in place of one that is needed
            call(**{keyword: value})


def test_calls_without_their_arguments_say_which():
    for name in ("knn", "range_search", "knn_graph", "near_duplicates", "recall", "load"):
        with pytest.raises(TypeError, match="missing .* required positional argument"):
            getattr(kith, name)()


def test_classes_and_graphs_answer_foreign_keywords_too(tmp_path):
    graph = kith.knn_graph(np.eye(9, dtype=np.float32), k=2)
    for call, says in (
        (lambda: kith.PCA(2, random_state=0), r"kith.PCA\(\) has no argument 'random_state'; Kith's way is seed"),
        (lambda: kith.PCA(2, whiten=True), "it has dimension, seed, device, check_finite"),
        (lambda: kith.PCA(columns=2), "Kith's way is dimension"),
        (lambda: kith.OPQ(2, dimensions=1), "did you mean 'dimension'"),
        (lambda: kith.RandomRotation(gpu=True), "Kith's way is device='cuda'"),
        (lambda: kith.Transform("RR", random_state=0), "Kith's way is seed"),
        (lambda: graph.labels(1, eps=2), r"labels\(\) has no argument 'eps'; Kith's way is height"),
        (lambda: graph.spanning_tree().labels(1, threshold=2), "Kith's way is height"),
        (lambda: graph.to_csr(n_jobs=2), "Kith's way is threads"),
        (lambda: graph.symmetric(shape=3), "it has threads, memory_limit, progress"),
        (lambda: graph.components(n_jobs=2), "Kith's way is threads"),
        (lambda: graph.smoothest_path(0, 1, verbose=True), "Kith's way is progress"),
        (lambda: kith.KnnGraph.load(tmp_path, space="l2"), "Kith's way is metric"),
    ):
        with pytest.raises(TypeError, match=says):
            call()


def test_more_names_of_others_are_answered():
    for name, way in (("cluster", "KMeans"), ("plot", "kith.show"), ("umap", "to_umap"), ("read_csv", "kith.read_vectors"), ("Client", "kith.open")):
        with pytest.raises(AttributeError, match=way):
            getattr(kith, name)


def test_attributes_of_others_and_slips_are_answered(tmp_path):
    graph, index = kith.knn_graph(np.eye(9, dtype=np.float32), k=2), kith.Index()
    for thing, name, says in (
        (graph, "indices", "a kith.KnnGraph has no attribute 'indices'; Kith's way is graph.ids"),
        (graph, "conponents", "did you mean 'components'"),
        (graph, "plot", "kith.show"),
        (index, "serch", "a kith.Index has no attribute 'serch'; did you mean 'search'"),
        (index, "zap", "a kith.Index has no attribute 'zap'; it has add, clone, compact,"),
        (index, "get_current_count", r"Kith's way is len\(index\)"),
        (index, "resize_index", "nothing: an index grows"),
        (kith, "SearchParametersIVF", "probes="),
        (kith, "zap", r"help\(kith\) tells what it has"),
        (kith, "sklern", "Kith's way is kith.sklearn"),
        (kith, "HNSW", "Graph64"),
    ):
        with pytest.raises(AttributeError, match=says):
            getattr(thing, name)
    with pytest.raises(TypeError, match="has no argument 'n_neighbors'; it has none"):
        graph.to_umap(n_neighbors=3)
    sklearn = pytest.importorskip("kith.sklearn")
    for name, says in (("Birch", "it has DBSCAN.*scikit-learn's own work beside them"), ("KMean", "did you mean 'KMeans'")):
        with pytest.raises(AttributeError, match=says):
            getattr(sklearn, name)
    with pytest.raises(FileNotFoundError):
        kith.KnnGraph.load(tmp_path / "none")


def test_names_of_results_are_answered():
    x = np.eye(3, dtype=np.float32)
    near, within = kith.knn(x, x, k=1), kith.range_search(x, x, 0.5)
    for found, name, way in (
        (near, "indices", "found.ids"), (near, "I", "found.ids"), (near, "scores", "found.distances"), (within, "lims", "found.offsets"),
        (near, "lims", r"it is a named tuple \(ids, distances\)"), (near, "to_list", "found.ids.tolist"), (within, "keys", "found.ids"),
    ):  # fmt: skip
        with pytest.raises(AttributeError, match=way):
            getattr(found, name)
    assert not hasattr(near, "__array_interface__")


def test_an_index_keeps_no_attribute_that_changes_nothing():
    index = kith.Index("Flat")
    for name in ("ef", "nprobe", "prob", "anything"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
            setattr(index, name, 64)

    class Named(kith.Index):
        pass

    mine = Named("Flat")
    mine.title = "films"
    assert mine.title == "films"


def test_what_stands_in_the_wrong_place_is_told_where_it_belongs(tmp_path):
    x = np.eye(4, dtype=np.float32)
    collection = kith.open(tmp_path / "films", dimension=4, columns={"year": int})
    for call, says in (
        (lambda: kith.Index("cosine"), r"factory is 'cosine', which is a metric: kith.Index\('Flat', metric='cosine'\)"),
        (lambda: kith.Index("Flat", metric=4), "metric is an int; it must be a str, such as 'l2'"),
        (lambda: kith.knn(x, x, metric=lambda a, b: 0), "metric is a function.*examples/custom_metric"),
        (lambda: kith.knn(x, x, device=0), 'device is an int; it must be a str, such as "cpu" or "cuda:0"'),
        (lambda: kith.knn(x, k=2), r"missing .* 'base'; among themselves the neighbours of x are kith.knn_graph\(x, k=k\)"),
        (lambda: kith.Index().add(42, x[0]), r"x is an int; vectors come first: index.add\(x, ids=ids\)"),
        (lambda: collection.search("a film"), "queries is a str; your model makes vectors of texts"),
        (lambda: collection.search(x[:1], where={"year": 3}), 'where is a dict; it must be a str: "year > \\?", with params'),
        (lambda: collection.add(x[:1], columns=[{"year": 3}]), "columns is a list; give a dict"),
        (lambda: collection.add(x[:1], year=3), r"values of a column are columns=\{'year': \[...\]\}"),
        (lambda: collection.add(x[:1], payloads=[{"a": 1}]), r"encode it: json.dumps"),
        (lambda: collection[3], r"Kith's way is collection.get\(id\)"),
    ):
        with pytest.raises((TypeError, ValueError), match=says):
            call()
