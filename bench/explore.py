"""The page of kith explore in headless Chromium: how long until it is there, until all is computed, and until a press is answered.

    python bench/explore.py [--data fashion|made] [--rows N] [--presses N] [--out FILE] [--write]

`fashion` are the 60,000 images of Fashion-MNIST as pixels (Debian: dataset-fashion-mnist), `made` are N rows (a million) of 128
columns of float32 around 1,000 centres. The program is started as a user starts it, in a process of its own; the browser draws in
software, at 1,280 x 800. Times are those of the wall; beside them stand those of processors, of the server's process and of
the browser's, which a busy machine stretches less. Goals are those that the page was built for.
"""

from __future__ import annotations

import contextlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from report import Report, parser_of, report_of

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "explore"))

from chromium import Chromium  # noqa: E402

FASHION = Path("/usr/share/datasets/fashion-mnist")
TICKS = os.sysconf("SC_CLK_TCK")
DRAWN = "document.getElementById('main').dataset.route"
SHOWN = "document.querySelector('main > *') && !document.querySelector('main .notice progress')"
CARDS = "document.querySelector('section .grid a.card')"
# In a page, from `began` on: milliseconds until what was pressed is drawn, and until its last picture is; ends when nothing is left to do.
DRAWN_AND_WHOLE = """
while ({drawn} || !({shown})) await new Promise((go) => setTimeout(go, 2));
const drawn = performance.now() - began;
const seen = [...main.querySelectorAll('img')].filter((i) => i.getBoundingClientRect().top < innerHeight);
await Promise.all(seen.map((i) => i.complete || new Promise((go) => (i.onload = i.onerror = go))));
const whole = performance.now() - began;
await new Promise((go) => requestAnimationFrame(() => requestIdleCallback(go, {{ timeout: 500 }})));
return [drawn, whole];"""


def processor_seconds(process: int) -> float:
    """Of a process and those that it started."""
    total, waiting = 0.0, [process]
    while waiting:
        one = waiting.pop()
        try:
            words = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            total += (int(words[11]) + int(words[12])) / TICKS
            for thread in Path(f"/proc/{one}/task").iterdir():
                waiting += map(int, (thread / "children").read_text().split())
        except OSError:
            continue  # it has ended
    return total


class Bench:
    """One page and one browser, and the report of what was measured."""

    def __init__(self, arguments: list[str], browser: Chromium, report: Report, shape: str) -> None:
        self.browser, self.report, self.shape = browser, report, shape
        self.began = time.monotonic()
        command = [sys.executable, "-m", "kith.explore", *arguments, "--no-browser"]
        self.server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.server.stdout is not None
        self.url = self.server.stdout.readline().removeprefix("kith explore: ").strip()

    def spent(self) -> tuple[float, float, float]:
        return time.monotonic(), processor_seconds(self.server.pid), processor_seconds(self.browser.process_id)

    def add(self, what: str, took: tuple[float, ...], goal_ms: float = 0, **figures: float) -> None:
        wall, server, page = (1000 * one for one in took)
        times = {"server_processor_ms": server, "browser_processor_ms": page}
        goal = {"goal_ms": goal_ms} if goal_ms else {}
        self.report.row(what, shape=self.shape, ms=wall, clock="wall", figures={**times, **goal, **figures})

    def until(self, condition: str) -> None:
        self.browser.until(condition, 900)

    def measured(self, act: Callable[[], None]) -> tuple[float, float, float]:
        before = self.spent()
        act()
        return tuple(b - a for a, b in zip(before, self.spent()))  # type: ignore[return-value]

    def presses(self, hash_of: Callable[[int], str], count: int, shown: str) -> tuple[tuple[float, float, float], float]:
        """The median time in the page from a press to what it shows, with processor seconds a press; and to its last picture.

        Each begins when what the one before has drawn is on the screen, as a reader's does.
        """
        drawn, whole = [], []
        before = self.spent()
        for number in range(count):
            took = self.browser.evaluate(
                f"""(async () => {{
                  const main = document.getElementById('main'), wanted = {hash_of(number)!r};
                  const began = performance.now();
                  location.hash = wanted;
                  {DRAWN_AND_WHOLE.format(drawn="main.dataset.route !== wanted", shown=shown)} }})()"""
            )
            drawn.append(took[0] / 1000)
            whole.append(took[1] / 1000)
        after = self.spent()
        return (statistics.median(drawn), (after[1] - before[1]) / count, (after[2] - before[2]) / count), statistics.median(whole)

    def clicks(self, count: int, shown: str) -> tuple[tuple[float, float, float], float]:
        """The same for clicks with the mouse from neighbour to neighbour, whose button is down for 80 ms: from when it is let go."""
        drawn, whole = [], []
        before = self.spent()
        for number in range(count):
            left, top = self.browser.evaluate(
                f"""(() => {{
                  const box = document.querySelectorAll('section .grid a.card')[{number % 5}].getBoundingClientRect();
                  window.let_go = new Promise((go) => addEventListener('pointerup', go, {{ capture: true, once: true }}));
                  window.was = document.getElementById('main').dataset.route;
                  return [box.left + box.width / 2, box.top + box.height / 2]; }})()"""
            )
            self.browser.mouse("mouseMoved", left, top)
            self.browser.mouse("mousePressed", left, top, button="left", clickCount=1)
            time.sleep(0.08)
            self.browser.mouse("mouseReleased", left, top, button="left", clickCount=1)
            took = self.browser.evaluate(
                f"""(async () => {{
                  const main = document.getElementById('main'), began = (await window.let_go).timeStamp;
                  {DRAWN_AND_WHOLE.format(drawn="main.dataset.route === window.was", shown=shown)} }})()"""
            )
            drawn.append(took[0] / 1000)
            whole.append(took[1] / 1000)
        after = self.spent()
        return (statistics.median(drawn), (after[1] - before[1]) / count, (after[2] - before[2]) / count), statistics.median(whole)

    def frames(self, seconds: float) -> tuple[float, str, float]:
        """Frames a second while the map is zoomed, what it says that it draws, and the median milliseconds between two frames."""
        told = self.browser.evaluate(
            f"""(async () => {{
              const canvas = document.querySelector('.map canvas'), box = canvas.getBoundingClientRect();
              const words = [], times = [];
              const began = performance.now();
              let frames = 0;
              while (performance.now() - began < {1000 * seconds}) {{
                const at = {{ clientX: box.left + box.width * (0.3 + 0.4 * Math.random()), clientY: box.top + box.height / 2, bubbles: true, cancelable: true }};
                canvas.dispatchEvent(new WheelEvent('wheel', {{ ...at, deltaY: frames % 40 < 20 ? -40 : 40 }}));
                const from = performance.now();
                await new Promise((go) => requestAnimationFrame(go));
                words.push(document.querySelector('.map .told').innerText);
                times.push(performance.now() - from);
                frames++;
              }}
              words.sort();
              times.sort((a, b) => a - b);
              return [frames / ((performance.now() - began) / 1000), words[words.length >> 1], times[times.length >> 1]]; }})()"""
        )
        return told[0], told[1], told[2]

    def close(self) -> None:
        self.server.send_signal(signal.SIGINT)
        self.server.wait(60)


@contextlib.contextmanager
def busy_cores(count: int) -> Iterator[None]:
    """So many processes that compute without an end, beside what is measured."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def made(folder: str, rows: int) -> list[str]:
    """A file of vectors around centres, written by blocks."""
    random = np.random.default_rng(0)
    centres = 4 * random.standard_normal((1000, 128), dtype=np.float32)
    path = f"{folder}/made.npy"
    array = np.lib.format.open_memmap(path, "w+", np.float32, (rows, 128))
    for first in range(0, rows, 50_000):
        some = min(50_000, rows - first)
        array[first : first + some] = centres[random.integers(0, 1000, some)] + random.standard_normal((some, 128), dtype=np.float32)
    array.flush()
    return ["--vectors", path]


def walk(bench: Bench, total: int, presses: int, goals: dict[str, float]) -> None:
    browser, random = bench.browser, np.random.default_rng(1)
    bench.add("the address is printed", (time.monotonic() - bench.began, *bench.spent()[1:]))
    browser.goto(bench.url)
    bench.until(SHOWN)
    bench.add("the first page is drawn", (time.monotonic() - bench.began, *bench.spent()[1:]), goals["first"])
    some = random.integers(0, total, presses)
    for name in ("map", "clusters", "graph", "paths", "linkage"):
        if name == "graph":  # which takes the processors that searches want
            took, whole = bench.presses(lambda number: f"#/neighbours/{some[number]}", presses // 4, CARDS)
            bench.add("a press, while it is computed", took, with_pictures_ms=1000 * whole)
        state = f"fetch('api/state').then(r => r.json()).then(s => s.stages.find(one => one.name === {name!r}).state)"
        while browser.evaluate(state) != "done":
            time.sleep(0.05)
        bench.add(f"{name}: computed", (time.monotonic() - bench.began, *bench.spent()[1:]), goals["all"] if name == "linkage" else 0)
    bench.until("!document.querySelector('#work.on')")
    for name, route in (
        ("clusters", "#/clusters"),
        ("single linkage", "#/clusters/linkage"),
        ("near duplicates", "#/near"),
        ("outliers", "#/outliers"),
        ("search for 'row 12'", "#/search/row%2012"),
    ):
        took, _ = bench.presses(lambda _, route=route: route, 1, SHOWN)
        bench.add(f"{name}: drawn", took)
    rows = random.integers(0, total, (2, presses))
    for beside in (0, 1):
        with busy_cores(beside):
            where = f", {beside} core busy" if beside else ""
            took, whole = bench.presses(lambda number: f"#/neighbours/{rows[0, number]}", presses, CARDS)
            bench.add(f"a press: neighbours{where}", took, goals["press"], with_pictures_ms=1000 * whole)
            took, whole = bench.clicks(presses, CARDS)
            bench.add(f"a click with the mouse{where}", took, goals["press"], with_pictures_ms=1000 * whole)
    took, whole = bench.presses(lambda number: f"#/path/{rows[0, number]}/{rows[1, number]}", presses, "document.querySelector('.strip, .notice')")
    bench.add("a path", took, goals["path"], with_pictures_ms=1000 * whole)
    to_map, drawn = "location.hash = '#/map'", "document.querySelector('.map canvas')?.width > 300"
    bench.add("the map: drawn", bench.measured(lambda: (browser.evaluate(to_map), bench.until(drawn))[-1]))
    rate, words, middle = bench.frames(5)
    figures = {"frames_per_second": rate, "frame_ms": middle, "goal_frames_per_second": 30}
    bench.report.row("the map while it moves", shape=bench.shape, figures=figures, labels={"draws": words})
    assert not browser.problems, browser.problems
    peak = next(line for line in Path(f"/proc/{bench.server.pid}/status").read_text().splitlines() if line.startswith("VmHWM")).split()[1]
    bench.report.row("the server's memory at its peak", shape=bench.shape, figures={"mib": int(peak) / 1024})


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--data", choices=["fashion", "made"], default="fashion")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of made data")
    parser.add_argument("--presses", type=int, default=40)
    given = parser.parse_args()
    report = report_of("explore", given, cores=os.cpu_count(), load=round(os.getloadavg()[1], 1))
    with tempfile.TemporaryDirectory() as folder:
        labels = ["--labels", str(FASHION / "train-labels-idx1-ubyte.gz")]
        fashion = ["--vectors", str(FASHION / "train-images-idx3-ubyte.gz"), "--shape", "28,28", *labels]
        arguments = fashion if given.data == "fashion" else made(folder, given.rows)
        total = 60_000 if given.data == "fashion" else given.rows
        goals: dict[str, float] = {"first": 3000, "all": 20_000, "press": 50, "path": 100}
        if given.data == "made":
            goals |= {"first": 10_000, "all": 0}
        shape = "60,000 x 784 u8, Fashion-MNIST" if given.data == "fashion" else f"{given.rows:,} x 128 f32, made"
        browser = Chromium(Path(folder) / "profile")
        bench = None
        try:
            bench = Bench(arguments, browser, report, shape)
            walk(bench, total, given.presses, goals)
        finally:
            if bench is not None:
                bench.close()
            browser.close()


if __name__ == "__main__":
    main()
