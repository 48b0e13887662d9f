"""progress=: tqdm's bars, callables, and exceptions out of them."""

from __future__ import annotations

import builtins
import sys

import numpy as np
import pytest

import kith


def test_a_callable_hears_of_it(vectors):
    heard = []
    kith.knn(vectors(300, 32), vectors(5000, 32), progress=lambda *report: heard.append(report))
    assert heard
    for stage, done, total in heard:
        assert isinstance(stage, str) and 0 <= done <= total
    stage, done, total = heard[-1]
    assert done == total > 0


def test_an_index_reports_too(vectors):
    heard = []
    index = kith.Index()
    index.add(vectors(5000, 32))
    index.search(vectors(300, 32), progress=lambda *report: heard.append(report))
    assert heard and heard[-1][1] == heard[-1][2]


def test_an_exception_comes_out_as_it_is(vectors):
    class Enough(Exception):
        pass

    reason = Enough("no more")

    def stop(stage, done, total):
        raise reason

    for _ in range(3):
        with pytest.raises(Enough) as caught:
            kith.knn(vectors(300, 32), vectors(5000, 32), progress=stop)
        assert caught.value is reason
    assert kith.knn(vectors(3, 32), vectors(50, 32)).ids.shape == (3, 10)


def test_a_callback_may_search(vectors):
    queries, base = vectors(300, 32), vectors(5000, 32)
    inner = []
    kith.knn(queries, base, progress=lambda *_: inner.append(kith.knn(queries[:2], base, k=1).ids))
    assert inner and all((ids == kith.knn(queries[:2], base, k=1).ids).all() for ids in inner)


def test_a_bar_is_drawn(vectors, capsys):
    kith.knn(vectors(300, 32), vectors(5000, 32), progress=True)
    drawn = capsys.readouterr()
    assert "100%" in drawn.err and drawn.out == ""


def test_without_tqdm(vectors, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "tqdm"]:
        monkeypatch.delitem(sys.modules, name)
    real = builtins.__import__

    def refuse(name, *arguments, **named):
        if name.split(".")[0] == "tqdm":
            raise ImportError(name)
        return real(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match="pip install tqdm"):
        kith.knn(vectors(3, 4), vectors(9, 4), progress=True)
    assert kith.knn(vectors(3, 4), vectors(9, 4), k=5, progress=False).ids.shape == (3, 5)


def test_silent_unless_asked(vectors, capfd):
    kith.knn(np.ones((3, 4), np.float32), vectors(2000, 4))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "call",
    [
        lambda graph, x, progress: graph.measure_recall(x, progress=progress),
        lambda graph, x, progress: graph.smoothest_path(1, 2, progress=progress),
        lambda graph, x, progress: graph.labels(0.5, progress=progress),
        lambda graph, x, progress: graph.single_linkage(unconnected="at_inf", progress=progress),
        lambda graph, x, progress: kith.near_duplicates(x, 0.1, progress=progress),
        lambda graph, x, progress: kith.near_duplicates(x, 0.1, exact=True, device="cpu", progress=progress),
        lambda graph, x, progress: graph.in_degrees(progress=progress),
        lambda graph, x, progress: graph.components(progress=progress),
        lambda graph, x, progress: graph.to_csr(progress=progress),
        lambda graph, x, progress: graph.reversed(progress=progress),
        lambda graph, x, progress: graph.symmetric(progress=progress),
        lambda graph, x, progress: graph.mutual(progress=progress),
        lambda graph, x, progress: kith.KMeans(5).fit_predict(x, progress=progress),
    ],
)
def test_what_goes_through_all_rows_reports(call, vectors):
    x, heard = vectors(5000, 8), []
    call(kith.knn_graph(x, k=4), x, lambda *report: heard.append(report))
    assert heard


def test_files_of_a_graph_report(vectors, tmp_path):
    graph, heard = kith.knn_graph(vectors(3000, 8), k=4), []
    graph.save(tmp_path / "i.ivecs", tmp_path / "d.fvecs", progress=lambda *report: heard.append(report))
    assert heard
    heard.clear()
    kith.KnnGraph.load(tmp_path / "i.ivecs", tmp_path / "d.fvecs", progress=lambda *report: heard.append(report))
    assert heard
