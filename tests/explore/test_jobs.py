"""What is computed when it is asked for, beside all other questions."""

from __future__ import annotations

import threading

import pytest

from kith._explore import jobs
from kith._explore.jobs import Jobs, NotReady


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(jobs, "_PATIENCE", 0.4)


def waited(ask):
    """The result of what is said to be coming."""
    for _ in range(400):
        try:
            return ask()
        except NotReady as absent:
            assert absent.coming
    pytest.fail("it did not come")


def test_what_takes_long_is_coming_and_made_once():
    some, go_on, made = Jobs(), threading.Event(), []

    def make(report):
        made.append(1)
        report("", 1, 4)
        assert go_on.wait(30)
        return "it"

    with pytest.raises(NotReady, match="The thing: being computed") as absent:
        some.get("a", "The thing", make)
    assert absent.value.coming
    assert some.get("b", "Another", lambda _: 7) == 7, "others do not wait for it"
    go_on.set()
    assert waited(lambda: some.get("a", "The thing", make)) == "it" and len(made) == 1
    some.close()


def test_what_is_made_alone_takes_turns():
    some, go_on = Jobs(), threading.Event()
    running = []

    def make(_):
        running.append(1)
        assert go_on.wait(30)
        return running.pop()

    for key in "ab":
        with pytest.raises(NotReady):
            some.get(key, key, make, alone=True)
    assert len(running) == 1
    go_on.set()
    for key in "ab":
        assert waited(lambda key=key: some.get(key, key, make, alone=True)) == 1


def test_what_nobody_asks_for_is_given_up(monkeypatch):
    monkeypatch.setattr(jobs, "_FORGOTTEN", 0.1)
    some, given_up = Jobs(), threading.Event()

    def make(report):
        try:
            for _ in range(3000):
                threading.Event().wait(0.01)
                report("", 1, 2)
        except KeyboardInterrupt:
            given_up.set()
            raise

    with pytest.raises(NotReady):
        some.get("a", "The thing", make)
    assert given_up.wait(20)
    assert waited(lambda: some.get("a", "The thing", lambda _: 3)) == 3, "it can be asked for again"


def test_closing_ends_it():
    some, ended = Jobs(), threading.Event()

    def make(report):
        try:
            while True:
                threading.Event().wait(0.01)
                report("", 1, 2)
        except KeyboardInterrupt:
            ended.set()
            raise

    with pytest.raises(NotReady):
        some.get("a", "The thing", make)
    some.close()
    assert ended.is_set()


def test_errors_are_told_and_the_next_question_tries_again():
    some = Jobs()

    def broken(_):
        raise ValueError("not on a Tuesday")

    with pytest.raises(NotReady, match="The thing: not on a Tuesday") as absent:
        some.get("a", "The thing", broken)
    assert not absent.value.coming
    assert some.get("a", "The thing", lambda _: 1) == 1


def test_the_newest_are_kept(monkeypatch):
    monkeypatch.setattr(jobs, "_PATIENCE", 60)
    some, made = Jobs(), []
    for key in [*range(jobs._KEPT + 1), 0]:
        some.get(key, "", lambda _, key=key: made.append(key) or key, kept=False)
    assert made == [*range(jobs._KEPT + 1), 0]
    some.get(0, "", lambda _: pytest.fail("it is kept"), kept=False)


def test_clusters_that_take_long_hold_up_nothing(page, monkeypatch):
    page.computed()
    go_on, work = threading.Event(), page.explorer.work
    real = work._cells_of
    monkeypatch.setattr(work, "_cells_of", lambda count, report: go_on.wait(30) and real(count, report))
    try:
        assert "9 clusters: being computed" in page.refused("api/clusters/9", 202)
        for address in ("api/pairs", "api/outliers", "api/linkage", "api/path/0/1", "api/clusters/3"):
            page.get(address)
    finally:
        go_on.set()
    assert waited(lambda: work.cells(9)) is not None
    assert page.get("api/clusters/9")["count"] == 9
