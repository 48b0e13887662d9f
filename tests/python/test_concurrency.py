"""Ctrl-C, the GIL, threads and forks."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import kith

# Minutes of work for any CPU: a call that does not stop is noticed.
LONG = textwrap.dedent(
    """
    import os, signal, sys, threading, time
    import numpy as np
    import kith

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background inherits that it is ignored
    base = np.random.default_rng(1).standard_normal((400_000, 96)).astype(np.float32)
    index = kith.Index(device="cpu")
    index.add(base)
    calls = {
        "knn": lambda **more: kith.knn(base, base, k=10, device="cpu", **more),
        "search": lambda **more: index.search(base, k=10, **more),
        "range_search": lambda **more: index.range_search(base, radius=1.0, **more),
        "knn_graph": lambda **more: kith.knn_graph(base, k=10, device="cpu", **more),
    }
    """
)


def run(program, *arguments, timeout=60):
    return subprocess.run([sys.executable, "-c", LONG + textwrap.dedent(program), *arguments], timeout=timeout,
                          capture_output=True, text=True)


@pytest.mark.parametrize("call", ["knn", "search", "range_search", "knn_graph"])
@pytest.mark.parametrize("threads", ["1", "2"])
def test_ctrl_c(call, threads):
    done = run(
        """
        sent = []
        def interrupt():
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)
        threading.Timer(0.5, interrupt).start()
        try:
            calls[sys.argv[1]](threads=int(sys.argv[2]))
            print("finished")
        except KeyboardInterrupt:
            print(time.monotonic() - sent[0])
        print(kith.knn(base[:1], base, k=1).ids[0, 0])
        """,
        call,
        threads,
    )
    assert done.returncode == 0, done.stderr
    delay, usable = done.stdout.split()
    print("stopped after", delay, "s")
    assert float(delay) < 20 and usable == "0"  # the work would take minutes


def test_a_signal_handler_may_raise_anything():
    done = run(
        """
        class Alarm(Exception): pass
        def handler(number, frame): raise Alarm("ring")
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            calls["knn"]()
        except Alarm as alarm:
            print("alarm", alarm)
        """
    )
    assert done.stdout == "alarm ring\n", done.stderr


def test_a_handler_that_returns_stops_nothing(vectors):
    rung = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: rung.append(number))
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    try:
        base = vectors(20_000, 64)
        true = kith.knn(base[:2], base).ids
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            assert (kith.knn(base[:200], base).ids[:2] == true).all()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert rung


def test_other_threads_run_meanwhile(vectors):
    base = vectors(60_000, 64)
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.002)

    ticker = threading.Thread(target=tick)
    ticker.start()
    try:
        began = time.monotonic()
        kith.knn(base[:2000], base, k=10, device="cpu")
        ended = time.monotonic()
    finally:
        stop.set()
        ticker.join()
    during = [t for t in ticks if began < t < ended]
    # With the GIL held there would be none.
    assert len(during) >= 3, (len(during), ended - began)


def search_in_child(pipe, index, base, threads):
    found = index.search(base[:3], k=2, threads=threads)
    again = kith.knn(base[:3], base, k=2, threads=threads)
    pipe.send((found.ids.tolist(), again.ids.tolist()))
    pipe.close()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("threads", [0, 2])
def test_after_a_fork(threads, vectors):
    base = vectors(5000, 16)
    index = kith.Index()
    index.add(base)
    true = index.search(base[:3], k=2, threads=threads).ids.tolist()  # starts threads, which the child will not have
    context = multiprocessing.get_context("fork")
    for _ in range(3):
        receiver, sender = context.Pipe(duplex=False)
        child = context.Process(target=search_in_child, args=(sender, index, base, threads))
        child.start()
        assert receiver.poll(20), "the child hangs"
        assert receiver.recv() == (true, true)
        child.join(20)
        assert child.exitcode == 0
    assert index.search(base[:3], k=2, threads=threads).ids.tolist() == true


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_while_another_thread_searches(vectors):
    base = vectors(20_000, 32)
    stop = threading.Event()

    def search():
        while not stop.is_set():
            kith.knn(base[:200], base, k=5, threads=2)

    searcher = threading.Thread(target=search)
    searcher.start()
    try:
        for _ in range(5):
            time.sleep(0.02)
            child = os.fork()
            if child == 0:
                ids = kith.knn(base[:3], base, k=1, threads=2).ids[:, 0]
                os._exit(0 if (ids == np.arange(3)).all() else 1)
            until = time.monotonic() + 20
            while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < until:
                time.sleep(0.01)
            if ended == (0, 0):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                pytest.fail("the child hangs")
            assert os.waitstatus_to_exitcode(ended[1]) == 0
    finally:
        stop.set()
        searcher.join()


def test_an_exit_while_a_thread_searches():
    done = run(
        """
        threading.Thread(target=calls["knn"], kwargs={"threads": 2}, daemon=True).start()
        time.sleep(0.3)
        print("leaving")
        """
    )
    assert done.stdout == "leaving\n" and done.returncode == 0, done


def test_many_thread_counts(vectors):
    base = vectors(500, 8)
    true = kith.knn(base, base, k=3).ids
    for threads in [*range(1, 12), 1, 5]:
        assert (kith.knn(base, base, k=3, threads=threads).ids == true).all()
