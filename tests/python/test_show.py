"""kith.show: pictures of images and texts with their neighbours."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import kith


@pytest.fixture
def images(rng):
    return rng.integers(0, 256, (40, 6, 6), dtype=np.uint8)


def texts_in(picture):
    return [text.get_text() for text in picture.findobj(match=lambda thing: hasattr(thing, "get_text")) if text.get_text()]


def drawn(picture):
    return [axes.images[0].get_array() for axes in picture.axes if axes.images]


@pytest.fixture(autouse=True)
def matplotlib():
    return pytest.importorskip("matplotlib")


def test_a_graph_of_images(images):
    graph = kith.knn_graph(images.reshape(40, -1), k=4)
    picture = kith.show(images, graph, rows=3)
    shown = drawn(picture)
    assert len(shown) == 3 * 5
    for row in range(3):
        for image, item in zip(shown[5 * row : 5 * row + 5], [row, *graph.ids[row]]):
            assert (image == images[item]).all()
    assert f"{graph.distances[2, 3]:.4g}" in texts_in(picture)
    assert picture._repr_png_().startswith(b"\x89PNG")


def test_queries_of_their_own(images, rng, tmp_path):
    vectors = images.reshape(40, -1)
    queries = rng.integers(0, 256, (2, 36), dtype=np.uint8)
    picture = kith.show(vectors, kith.knn(queries, vectors, k=3), queries=queries, columns=2)
    shown = drawn(picture)
    assert len(shown) == 2 * 3 and (shown[0] == queries[0].reshape(6, 6)).all()
    picture.savefig(tmp_path / "x.png")
    assert (tmp_path / "x.png").stat().st_size > 1000


def test_other_classes_are_marked(images):
    labels = ["even" if row % 2 == 0 else "odd" for row in range(40)]
    picture = kith.show(images, [[0, 1, -1]], labels=labels)
    assert texts_in(picture).count("odd") == 1 and len(drawn(picture)) == 3


def test_colours_and_shapes(rng):
    colours = rng.random((5, 4 * 3 * 3))
    assert drawn(kith.show(colours, [[1, 2]], shape=(4, 3, 3)))[1].shape == (4, 3, 3)
    assert drawn(kith.show(colours.reshape(5, 4, 3, 3), [1, 2]))[0].shape == (4, 3, 3)


def test_texts():
    items = ["one", "two for $5", "three " * 100]
    picture = kith.show(items, kith.Neighbors(np.array([[1, 2]]), np.array([[0.5, 2.0]], np.float32)))
    said = texts_in(picture)
    assert said[0] == "one" and r"two for \$5" in said and "0.5" in said and any(text.endswith("...") for text in said)
    assert kith.show(np.array(items), [[1]], queries=["what?"])._repr_png_()


@pytest.mark.parametrize(
    "items, ids, more, says",
    [
        (np.zeros((5, 7)), [[1]], {}, "no square.*shape="),
        (np.zeros((5, 7)), [[1]], {"shape": (2, 3)}, "shape is"),
        (np.zeros((5, 4)), [[9]], {}, "id 9, and there are 5 items"),
        (np.zeros((5, 4)), [[1]] * 3, {"queries": np.zeros((2, 4))}, "3 results, but 2 queries"),
        (np.zeros((5, 4)), [[1.5]], {}, "must be ids"),
        (np.zeros((5, 4)), [[1]], {"rows": 0}, "at least 1"),
        (np.zeros(5), [[1]], {}, "give images"),
        (["a", "b"], [[1]], {"queries": np.zeros((1, 4))}, "one kind"),
    ],
)
def test_what_is_refused(items, ids, more, says):
    with pytest.raises(ValueError, match=says):
        kith.show(items, ids, **more)


def test_without_matplotlib():
    program = "import sys; sys.modules['matplotlib'] = None\nimport kith\ntry: kith.show(['a'], [[0]])\nexcept ImportError as e: print(e)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "pip install matplotlib" in done.stdout, done.stderr


def test_what_several_queries_found_within_a_radius(images):
    vectors = images.reshape(40, -1).astype(np.float32)
    found = kith.range_search(vectors[:3], vectors, 800)
    picture = kith.show(images, found)
    shown = drawn(picture)
    wanted = [row for query in range(3) for row in [query, *found.ids[found.offsets[query] : found.offsets[query + 1]][:10]]]
    assert len(shown) == len(wanted)
    for image, item in zip(shown, wanted):
        assert (image == images[item]).all()


def test_a_path_is_a_film_strip(images):
    paths = kith.SmoothPath(np.array([3, 9, 4, 1, 7], np.int64), 2.5)
    picture = kith.show(images, paths, columns=3, labels=list("abcdefghij") * 4)
    shown = drawn(picture)
    assert [(image == images[item]).all() for image, item in zip(shown, [3, 9, 4, 1, 7])] == [True] * 5
    assert "4 steps, the largest 2.5" in texts_in(picture) and "d" in texts_in(picture)
    with pytest.raises(ValueError, match="no path joins"):
        kith.show(images, kith.SmoothPath(np.array([], np.int64), np.inf))


def test_clusters_and_groups(images):
    model = kith.KMeans(3, seed=1).fit(images.reshape(40, -1))
    picture = kith.show(images, model, columns=4)
    sizes = sorted(np.bincount(model.labels_), reverse=True)
    assert [text.split(": ")[1] for text in texts_in(picture) if text.startswith("cluster")] == [str(size) for size in sizes]
    assert len(drawn(kith.show(images, model.labels_, columns=4))) == len(drawn(picture))
    assert len(drawn(kith.show(images, [np.array([1, 2]), np.array([3])]))) == 3
    duplicates = kith.near_duplicates(np.concatenate([np.eye(38, dtype=np.float32), np.eye(38, dtype=np.float32)[:2]]), 0.1)
    assert "2 alike" in texts_in(kith.show(images, duplicates))
    with pytest.raises(ValueError, match="5 labels, and 40 items"):
        kith.show(images, kith.KMeans(2).fit(images[:5].reshape(5, -1)))
    with pytest.raises(ValueError, match="nothing was found"):
        kith.show(images, kith.near_duplicates(np.eye(40, dtype=np.float32), 0.1))


def test_every_image_and_word_lies_within_the_picture(images):
    graph = kith.knn_graph(images.reshape(40, -1), k=9)
    picture = kith.show(images, graph, rows=3, columns=9, labels=list("ab") * 20)
    width, height = picture.get_size_inches() * picture.dpi
    renderer = picture.canvas.get_renderer()
    for axes in picture.axes:
        box = axes.get_tightbbox(renderer)
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height
    words = {text.get_text(): text.get_window_extent(renderer) for text in picture.texts}
    assert words["query"].y1 == pytest.approx(words["nearest"].y1, abs=2)
