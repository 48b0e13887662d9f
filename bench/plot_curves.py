"""Draws the curves that were measured on a GPU, beside the two figures of the paper that they are to be compared with.

    python bench/plot_curves.py [--results bench/results/h200] [--images docs/images]

Reads select_cuda.jsonl and curves_cuda.jsonl, as scripts/gpu bench-select and bench-curves write them, and draws
select_over_length.png (figure 3 of Johnson, Douze and Jégou, "Billion-scale similarity search with GPUs") and
exact_over_k.png (figure 4). Needs matplotlib.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from turns import peers

BLUE, ORANGE, GREY = "#1f5fa8", "#d9772b", "#7a7a7a"


def read(path: Path) -> list[dict[str, Any]]:
    return [line for line in map(json.loads, path.read_text("utf-8").splitlines()) if "case" in line]


def finish(axes: Any, title: str, across: str) -> None:
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(across)
    axes.set_ylabel("milliseconds")
    axes.grid(True, which="major", linewidth=0.4, alpha=0.6)
    axes.legend(fontsize=8, frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def draw_selection(axes: Any, path: Path) -> None:
    rows = [
        (int(shape[1]), int(shape[2]), line["median_ms"], line["floor_ms"])
        for line in read(path)
        if (shape := re.match(r"over the row length, \d+ x (\d+), k = (\d+)", line["case"]))
    ]
    known = peers("select")
    for k, colour in ((100, BLUE), (1000, ORANGE)):
        mine = [(length, ms, floor) for length, own, ms, floor in rows if own == k]
        lengths = [length for length, _, _ in mine]
        axes.plot(lengths, [ms for _, ms, _ in mine], marker="o", markersize=3.5, color=colour, label=f"Kith, k = {k}")
        axes.plot(lengths, [floor for _, _, floor in mine], ":", color=colour, linewidth=1, label=f"floor, k = {k}")
        for library, marker in (("FAISS", "^"), ("cuVS", "s")):
            there = [(n, known.get(f"10000 x {n} k={k}", {}).get(library)) for n in lengths]
            points = [(n, ms) for n, ms in there if ms is not None]
            axes.plot(*zip(*points), marker, color=colour, fillstyle="none", label=f"{library}, k = {k}")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(lengths, [f"{n // 1000}k" for n in lengths])
    finish(axes, "The k smallest of 10,000 rows, on one H200", "row length")


def draw_exact(axes: Any, path: Path) -> None:
    lines = read(path)
    ks = [int(line["case"].removeprefix("k = ")) for line in lines]
    axes.plot(ks, [line["median_ms"] for line in lines], marker="o", markersize=3.5, color=BLUE, label="Kith, fused and exact")
    apart = [(k, line["peers_ms"]["unfused"]) for k, line in zip(ks, lines, strict=True) if "peers_ms" in line]
    if apart:
        label = "not fused: cuBLAS, then selection (not exact)"
        axes.plot(*zip(*apart), marker="s", markersize=3.5, color=ORANGE, label=label)
    axes.plot(ks, [line["floor_ms"] for line in lines], ":", color=BLUE, linewidth=1, label="floor: the product alone")
    reads = [line["figures"]["read_ms"] for line in lines]
    axes.plot(ks, reads, ":", color=ORANGE, linewidth=1, label="floor: one read of all distances")
    known = peers("exact")
    for library, marker in (("FAISS", "^"), ("cuVS", "s")):
        points = [(k, known[f"f32 k={k}"][library]) for k in (10, 100, 1000)]
        axes.plot(*zip(*points), marker, color=GREY, fillstyle="none", label=library)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    finish(axes, "10,000 queries in 1,000,000 x 128 vectors, on one H200", "k")


def main() -> None:
    here = Path(__file__).parent
    parser = argparse.ArgumentParser(description="draw the measured curves")
    parser.add_argument("--results", type=Path, default=here / "results" / "h200")
    parser.add_argument("--images", type=Path, default=here.parent / "docs" / "images")
    options = parser.parse_args()

    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    for name, draw, source in (
        ("select_over_length.png", draw_selection, "select_cuda.jsonl"),
        ("exact_over_k.png", draw_exact, "curves_cuda.jsonl"),
    ):
        figure, axes = pyplot.subplots(figsize=(6.2, 4.0), layout="constrained")
        draw(axes, options.results / source)
        figure.savefig(options.images / name, dpi=130)
        print(f"written to {options.images / name}")


if __name__ == "__main__":
    main()
