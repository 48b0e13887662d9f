"""What the page of kith.explore says: neighbours, clusters, paths, the map, search."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

import kith


@pytest.fixture
def page(one_page):
    return one_page


def rows_of(items):
    return [item["row"] for item in items]


def test_state_and_what_is_computed(page):
    assert page.explorer.work.wait(120)
    state = page.get("api/state")
    assert (state["rows"], state["columns"], state["kind"], state["metric"]) == (300, 64, "images", "l2")
    assert state["noun"] == "image"
    assert state["labels"] == ["kind 0", "kind 1", "kind 2"] and state["clusters"] == 3
    assert {stage["name"]: stage["state"] for stage in state["stages"]} == dict.fromkeys(
        ["map", "clusters", "graph", "paths", "linkage"], "done"
    )


@pytest.mark.parametrize("k", [1, 20, 37, 200])
@pytest.mark.parametrize("metric", ["l2", "cosine", "inner_product", "l1"])
def test_neighbours_are_those_of_knn(explore, images, k, metric):
    x = images.reshape(300, -1).astype(np.float32)
    page = explore(images, x, metric=metric)
    expected = kith.knn(x[7:8], x, k=k + 1, metric=metric)
    kept = expected.ids[0] != 7
    for _ in range(2):  # before and after the graph is there
        told = page.get(f"api/neighbours/7?k={k}")
        assert told["item"]["row"] == 7
        assert rows_of(told["found"]) == expected.ids[0][kept][:k].tolist()
        np.testing.assert_allclose([item["distance"] for item in told["found"]], expected.distances[0][kept][:k])
        page.computed()


def test_cards_have_labels(page):
    found = page.get("api/neighbours/4?k=10")["found"]
    assert all(item["label"] == f"kind {item['row'] % 3}" for item in found)


def test_browsing(page):
    assert rows_of(page.get("api/browse?first=290&page=60")["items"]) == list(range(290, 300))
    spread = rows_of(page.get("api/spread?count=4")["items"])
    assert spread[0] == 0 and spread[-1] == 299 and len(spread) == 4


@pytest.mark.parametrize("rows, count, expected", [(14, 96, range(14)), (14, 14, range(14)), (1, 96, [0]), (2, 1, [0]), (5, 3, [0, 2, 4])])
def test_the_first_page_shows_all_of_a_few(explore, rows, count, expected):
    page = explore(None, np.arange(rows, dtype=np.float32)[:, None])
    assert rows_of(page.get(f"api/spread?count={count}")["items"]) == list(expected)


def test_images_are_png(page, images):
    pil = pytest.importorskip("PIL.Image")
    reply = page.ask("image/17?side=240")
    assert reply.status == 200 and reply.headers["Content-Type"] == "image/png"
    assert (np.asarray(pil.open(io.BytesIO(reply.content))) == images[17]).all()


def test_clusters_hold_every_row_once(page, images):
    page.computed()
    for count in (3, 5):
        told = page.get(f"api/clusters/{count}")
        assert told["count"] == count and sum(sheet["size"] for sheet in told["sheets"]) == 300
        assert [sheet["size"] for sheet in told["sheets"]] == sorted((sheet["size"] for sheet in told["sheets"]), reverse=True)
        rows = []
        for sheet in told["sheets"]:
            first = 0
            while some := page.get(f"api/cluster/{count}/{sheet['cell']}?first={first}")["items"]:
                rows += rows_of(some)
                first += len(some)
        assert sorted(rows) == list(range(300))
    three = page.get("api/clusters/3")["sheets"]
    assert all(sheet["shares"][0]["share"] == 1 for sheet in three), "the kinds are far apart"
    for sheet in three:
        kind = images[int(sheet["shares"][0]["label"][-1]) :: 3].reshape(100, -1).astype(np.float64)
        assert sheet["spread"] == pytest.approx(np.sqrt(((kind - kind.mean(0)) ** 2).sum(1).mean()), rel=1e-4)
    assert "200" in page.refused("api/clusters/201", 400) and page.refused("api/cluster/3/3", 404)


def test_linkage_is_that_of_the_graph(page, images):
    page.computed()
    told = page.get("api/linkage")
    graph = kith.knn_graph(images.reshape(300, -1), k=20)
    labels = graph.labels(told["height"])
    assert told["clusters"] == labels.max() + 1
    assert told["sheets"][0]["size"] == np.bincount(labels).max()
    assert told["single"] == (np.bincount(labels) == 1).sum()
    at_most = page.get(f"api/linkage?height={told['curve']['heights'][-1]}")
    assert at_most["clusters"] == graph.components()[0]
    rows = rows_of(page.get(f"api/linked/0?height={told['height']}")["items"])
    assert len({int(labels[row]) for row in rows}) == 1
    assert "which height" in page.refused("api/linked/0", 400)


@pytest.mark.parametrize("by", ["steps", "tree"])
def test_paths_are_the_smoothest(page, images, by):
    page.computed()
    x = images.reshape(300, -1)
    graph = kith.knn_graph(x, k=20)
    expected = kith.SmoothPaths(graph).path(3, 150, by)
    told = page.get(f"api/path/3/150?by={by}")
    assert rows_of(told["items"]) == expected.rows.tolist() and told["width"] == pytest.approx(expected.width)
    assert len(told["steps"]) == len(expected.rows) - 1 and told["steps"][told["largest"]] == max(told["steps"])
    assert max(told["steps"]) == pytest.approx(expected.width)
    assert told["direct"] == pytest.approx(np.linalg.norm(x[3].astype(float) - x[150]), rel=1e-5)


def test_no_path_is_an_answer(explore, rng):
    x = rng.standard_normal((60, 4), dtype=np.float32)
    x[35:] += 1000
    page = explore(None, x).computed()
    told = page.get("api/path/1/50")
    assert told["steps"] == [] and told["width"] is None and told["parts"] == 2 and told["sizes"] == [35, 25]
    same = page.get("api/path/5/5")
    assert rows_of(same["items"]) == [5] and same["width"] == 0 and same["steps"] == []


def test_a_given_graph_and_places_are_used(explore, images, rng):
    x = images.reshape(300, -1)
    graph = kith.knn_graph(x, k=3)
    xy = rng.standard_normal((300, 2))
    page = explore(images, x, graph=graph, xy=xy).computed()
    assert page.get("api/path/0/3")["count"] == len(kith.SmoothPaths(graph).path(0, 3).rows)
    words = page.get("api/map")
    assert "xy=" in words["axes"] and words["points"] == 300
    content = page.ask("api/points").content
    rows = np.frombuffer(content[8 * 300 : 12 * 300], "<u4")
    assert sorted(rows.tolist()) == list(range(300))
    np.testing.assert_array_equal(np.frombuffer(content[: 4 * 300], "<f4"), xy[rows, 0].astype(np.float32))
    np.testing.assert_array_equal(np.frombuffer(content[4 * 300 : 8 * 300], "<f4"), xy[rows, 1].astype(np.float32))


def test_the_map_by_principal_components(page, images):
    page.computed()
    words = page.get("api/map")
    assert "principal components" in words["axes"] and words["names"] == ["kind 0", "kind 1", "kind 2"] and words["counts"] == [100] * 3
    content = page.ask("api/points").content
    rows = np.frombuffer(content[8 * 300 : 12 * 300], "<u4")
    assert (np.frombuffer(content[12 * 300 :], np.uint8) == rows % 3).all()
    x = images.reshape(300, -1).astype(np.float64)
    values = np.linalg.svd(x - x.mean(0), compute_uv=False) ** 2
    assert f"{values[:2].sum() / values.sum():.0%}" in words["axes"]


def test_many_classes_share_a_colour_and_numbers_are_a_scale(explore, images):
    x = images.reshape(300, -1)
    many = explore(images, x, labels=[f"class {row % 40}" for row in range(300)]).computed().get("api/map")
    assert len(many["names"]) == 12 and many["names"][-1] == "29 others" and sum(many["counts"]) == 300
    scale = explore(images, x, labels=np.linspace(-1, 5, 300)).computed()
    assert scale.get("api/map")["names"] == [] and scale.get("api/map")["by"] == "-1 to 5"
    assert scale.get("api/item/299")["label"] == "5"


def test_near_duplicates_and_outliers(explore, rng):
    x = rng.standard_normal((200, 6)).astype(np.float32)
    x[150] = x[20]
    x[151] = x[21] + 1e-4
    x[77] += 40
    page = explore(None, x).computed()
    told = page.get("api/pairs")
    assert [rows_of(pair["items"]) for pair in told["pairs"][:2]] == [[20, 150], [21, 151]]
    assert told["pairs"][0]["distance"] == 0 and told["same"] == 2
    far = page.get("api/outliers")
    assert far["found"][0]["row"] == 77 and far["place"] == 10
    graph = kith.knn_graph(x, k=20)
    assert far["found"][0]["distance"] == pytest.approx(float(graph.distances[77, 9]))


def test_search_by_parts_of_texts(explore, rng):
    texts = [f"the {word} number {row}" for row, word in enumerate(["cat", "Dog", "ΣΑΣ"] * 40)]
    page = explore(texts, rng.standard_normal((120, 5)), labels=["odd" if row % 2 else "even" for row in range(120)])
    found = page.post("api/search/text?k=60", b"dog")
    assert found["how"] == "contained" and rows_of(found["found"]) == list(range(1, 120, 3)) and not found["more"]
    assert rows_of(page.post("api/search/text", "σας".encode())["found"])[:2] == [2, 5]
    assert rows_of(page.post("api/search/text", b"17")["found"])[0] == 17
    assert rows_of(page.post("api/search/text", b"even")["found"])[:3] == [0, 2, 4]
    assert page.post("api/search/text", b"even")["more"] is False
    assert page.post("api/search/text", b"e")["more"] and page.post("api/search/text", b"nowhere")["found"] == []


def test_search_by_encode(explore, rng):
    x = rng.standard_normal((50, 3)).astype(np.float32)

    def encode(query):
        if not isinstance(query, str):
            raise TypeError("texts alone")
        return x[int(query)] * 1.001

    page = explore([f"text {row}" for row in range(50)], x, encode=encode)
    found = page.post("api/search/text?k=5", b"31")
    assert found["how"] == "encoded" and found["found"][0]["row"] == 31 and len(found["found"]) == 5
    told = page.post("api/search/text", b"text 4")
    assert told["how"] == "contained" and "ValueError" in told["words"] and rows_of(told["found"])[0] == 4
    pytest.importorskip("PIL")
    from kith._png import png

    words = page.refused("api/search/image", 400, method="POST", body=png(np.zeros((2, 2), np.uint8)))
    assert "texts alone" in words


def test_an_upload_is_a_vector_where_vectors_are_pixels(explore, images):
    pytest.importorskip("PIL")
    from kith._png import png

    scaled = images.reshape(300, -1).astype(np.float32) / 255
    for x in (images.reshape(300, -1), scaled, images.reshape(300, -1).astype(np.float32)):
        page = explore(images, x)
        assert page.get("api/state")["search_image"] and not page.get("api/state")["search_text"]
        found = page.post("api/search/image?k=3", png(images[123]))
        assert found["found"][0]["row"] == 123 and found["found"][0]["distance"] == pytest.approx(0, abs=1e-4)
        assert "no image that Pillow can read" in page.refused("api/search/image", 400, method="POST", body=b"nonsense")
    other = explore(images, np.random.default_rng(0).standard_normal((300, 64)))
    assert not other.get("api/state")["search_image"]
    assert "encode=" in other.refused("api/search/image", 400, method="POST", body=b"x")


@pytest.mark.parametrize(
    "given, says",
    [
        ({"items": ["a"]}, "there are 1 items and 4 vectors"),
        ({"labels": ["a"]}, r"labels have shape \(1,\)"),
        ({"x": np.zeros(4)}, "x has shape"),
        ({"x": np.zeros((0, 4))}, "x has shape"),
        ({"x": np.full((4, 2), np.nan)}, "row 0"),
        ({"xy": np.zeros((4, 3))}, "xy is"),
        ({"xy": np.full((4, 2), np.inf)}, "xy: row 0"),
        ({"metric": "nearness"}, "nearness"),
        ({"port": 70000}, "port is 70000"),
        ({"graph": kith.KnnGraph(np.array([[1], [0]]), np.ones((2, 1), np.float32))}, "the graph has 2 rows"),
        (
            {"graph": kith.KnnGraph(np.array([[1], [0], [1], [1]]), np.ones((4, 1), np.float32)), "metric": "cosine"},
            "the graph is of 'l2'",
        ),
    ],
)
def test_mistakes_are_told_at_once(explore, given, says):
    with pytest.raises(ValueError, match=says):
        explore(**{"items": ["a", "b", "c", "d"], "x": np.eye(4), **given})


def test_types_of_mistakes(explore):
    with pytest.raises(TypeError, match="encode is a str"):
        explore(["a"], np.eye(1), encode="clip")
    with pytest.raises(TypeError, match="graph is a list"):
        explore(["a"], np.eye(1), graph=[[0]])


def test_closing_ends_the_page(explore, images):
    with kith.explore(images, images.reshape(300, -1), browser=False, block=False) as closed:
        assert "(closed)" not in repr(closed)
    assert "(closed)" in repr(closed)
    closed.close()
    again = explore(images, images.reshape(300, -1), port=int(closed.url.split(":")[2].split("/")[0]))
    assert again.get("api/state")["rows"] == 300


def test_answers_are_json_without_infinities(page):
    page.computed()
    for address in ("api/linkage", "api/pairs", "api/outliers", "api/path/0/1", "api/map", "api/neighbours/1"):
        json.loads(page.ask(address).content, parse_constant=lambda name: pytest.fail(name))


def test_the_module_is_called_as_the_function():
    import kith.explore

    with kith.explore(["a", "b"], np.eye(2), browser=False, block=False) as page:
        assert page.url.startswith("http://127.0.0.1:")
    with pytest.raises(ValueError, match="there are 1 items and 2 vectors"):
        kith.explore(["a"], np.eye(2))


def test_numbers_of_any_length_can_be_searched_for(page):
    for digits in (b"9" * 5000, b"0" * 5000, b"9" * 19):
        assert page.post("api/search/text", digits)["found"] == []
    assert rows_of(page.post("api/search/text", b"000017")["found"])[0] == 17


def test_encode_that_makes_no_numbers(explore, rng):
    made = [None]
    page = explore([f"text {row}" for row in range(9)], rng.standard_normal((9, 3)), encode=lambda _: made[0])
    for made[0] in (["a", "b", "c"], np.array([1j, 2, 3]), np.array(["1", "2", "3"]), [None] * 3, [1, "x", 2], [True, False, True], np.array([1e300, 0, 0]), object()):
        reply = page.ask("api/search/text", method="POST", body=b"text 4")
        assert reply.status in (200, 400), (made, reply.content)
        told = json.loads(reply.content)
        assert "encode=" in told.get("words", told.get("error", "")), made
    made[0] = [1, 0, 1]
    assert page.post("api/search/text", b"text 4")["how"] == "encoded"


def test_a_long_label_takes_its_room_once(tracked):
    from kith._explore.given import Labels

    given = ["x" * 200_000] + ["a"] * 1999
    labels = Labels(given, 2000)
    assert labels.names == ["a", given[0]] and labels[0] == given[0] and labels[5] == "a"
    assert tracked() < 8 << 20


@pytest.fixture
def tracked():
    import tracemalloc

    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()


def test_labels_of_every_kind(explore):
    from kith._explore.given import Labels

    for given, names in (
        (["b", None, "a", "b"], ["", "a", "b"]),
        ([b"b", "a", 3, 2.5], ["2.5", "3", "a", "b"]),
        ([True, False, True, True], ["False", "True"]),
        (np.array(["z", "y", "z", "z"]), ["y", "z"]),
        (np.array([3, 1, 3, 3]), ["1", "3"]),
        (np.array([0.1, 2.5, 0.1, 1 / 3]), ["0.1", "0.333333333", "2.5"]),
        (np.array([3.0, 1, 3, 3]), ["1", "3"]),
    ):
        labels = Labels(given, 4)
        assert labels.names == names
        assert [labels[row] for row in range(4)] == [names[code] for code in labels.codes.tolist()]
    assert Labels(np.arange(20) / 3, 20).values is not None and Labels(np.arange(20.0), 20).values is None


def test_many_labels_are_not_told_every_half_second(explore, rng):
    names = [f"a label of its own, number {row} {'x' * 300}" for row in range(4000)]
    page = explore(None, rng.standard_normal((4000, 4)), labels=names).computed()
    content = page.ask("api/state").content
    assert len(content) < 3000 and page.get("api/state")["classes"] == 4000
    sheet = page.get("api/clusters/5")["sheets"][0]
    assert len(sheet["shares"]) == 4 and sheet["shares"][0]["share"] == pytest.approx(1 / sheet["size"])
    few = explore(None, rng.standard_normal((40, 4)), labels=["y" * 300, "z"] * 20).computed()
    assert few.get("api/state")["labels"] == [few.get("api/item/0")["label"], "z"], "the page finds a label's colour"


def test_the_largest_step_may_be_behind_what_is_drawn(explore):
    rows = 1000
    lengths = np.ones(rows, np.float32)
    lengths[700] = 5
    places = np.concatenate([[0], np.cumsum(lengths[:-1])])
    ids = np.arange(rows)[:, None] + [-1, 1]
    ids[-1, 1] = -1
    distances = np.where(ids < 0, np.inf, np.abs(places[ids] - places[:, None])).astype(np.float32)
    order = np.argsort(distances, axis=1, kind="stable")
    graph = kith.KnnGraph(np.take_along_axis(ids, order, 1), np.take_along_axis(distances, order, 1))
    page = explore(None, places[:, None], graph=graph).computed()
    told = page.get(f"api/path/0/{rows - 1}")
    assert told["cut"] and len(told["steps"]) == 400 and len(told["items"]) == 401 and told["width"] == 5
    assert told["largest"] == 700 and rows_of(told["beyond"]) == [700, 701] and told["rows"] == list(range(rows))
    near = page.get("api/path/690/720")
    assert near["largest"] == 10 and near["beyond"] == [] and near["steps"][10] == 5


def test_the_map_is_made_once(page):
    page.computed()
    answers = page.explorer._server.routes._answers
    assert answers.map_points() is answers.map_points()


def test_the_map_takes_its_colours_when_clusters_come(explore, images, monkeypatch):
    import threading

    from kith._explore.work import Work

    go_on, real = threading.Event(), Work._cells_of
    monkeypatch.setattr(Work, "_cells_of", lambda self, count, report: go_on.wait(60) and real(self, count, report))
    page = explore(images, images.reshape(300, -1))
    try:
        for _ in range(1000):
            reply = page.ask("api/points")
            if reply.status == 200:
                break
        assert set(reply.content[12 * 300 :]) == {0}
    finally:
        go_on.set()
    page.computed()
    assert len(set(page.ask("api/points").content[12 * 300 :])) > 1


@pytest.mark.parametrize(
    "given, says",
    [
        ({"texts": []}, "Kith's way is items"),
        ({"hue": []}, "Kith's way is labels"),
        ({"encoder": len}, "Kith's way is encode"),
        ({"umap": 1}, "Kith's way is xy"),
        ({"n_neighbors": 3}, "it has items, x"),
        ({"label": 3}, "did you mean 'labels'"),
        ({"open_browser": False}, "Kith's way is browser"),
    ],
)
def test_names_of_other_libraries(given, says):
    with pytest.raises(TypeError, match=says):
        kith.explore(["a", "b"], np.eye(2), **given)


def test_rows_without_items_are_called_rows(explore):
    x = np.eye(4, dtype=np.float32)
    assert explore(None, x).get("api/state")["noun"] == "row"
    assert explore(None, x, shape=(2, 2)).get("api/state")["noun"] == "image"
    assert explore(list("abcd"), x).get("api/state")["noun"] == "text"
