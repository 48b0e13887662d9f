"""Draws how often the true nearest neighbour is among the first N, and error and recall over the rounds of the search.

    python bench/lsq_curves.py [--results bench/results/h200] [--images docs/images]

Reads lsq_curves_sift.jsonl, lsq_curves_glove.jsonl and lsq_rounds.jsonl, as `kith_bench lsq_accuracy --curves 1` writes them, and draws
lsq_recall.png (figure 1 of Martinez, Hoos and Little, "Solving multi-codebook quantization in the GPU") and
lsq_rounds.png. Needs matplotlib.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

GREY, GREEN, BLUE, DARK, ORANGE, RED = "#9a9a9a", "#5a8f3c", "#6fa3d8", "#1f5fa8", "#e8a868", "#c2541a"
Curves = dict[tuple[int, str], list[tuple[float, int, float]]]


def read(path: Path) -> Curves:
    """By bytes and code: (error, N, R@N)."""
    curves: Curves = {}
    for line in map(json.loads, path.read_text("utf-8").splitlines()):
        figures = line.get("figures", {})
        points = [(figures["error"], int(name[6:]), value) for name, value in figures.items() if name.startswith("curve@")]
        if points:
            curves.setdefault((int(line["labels"]["bytes"]), line["labels"]["code"]), []).extend(points)
    return curves


def colour_of(code: str) -> tuple[str, str, str]:
    """Colour, kind of line and label."""
    if code.startswith("LSQ"):
        books = code.split()[0].rstrip(",")
        rounds = code.split(", ")[-1].removesuffix(" rounds")
        line = "-" if rounds == "32" else "--"
        if "norm" in code:
            return (RED if rounds == "32" else ORANGE), line, f"{books} + norm, LSQ-{rounds}"
        return (DARK if rounds == "32" else BLUE), line, f"{books}, LSQ-{rounds}"
    return {"PQ": GREY, "OPQ": "black", "RQ": GREEN}[code], "-", code


def draw_recall(axes: Any, curves: Curves, size: int, title: str) -> None:
    for (own, code), points in curves.items():
        if own != size:
            continue
        colour, line, label = colour_of(code)
        axes.plot([p[1] for p in points], [p[2] for p in points], line, color=colour, linewidth=1.3, label=label)
    axes.set_xscale("log")
    axes.set_xticks([1, 2, 5, 10, 20, 50, 100], ["1", "2", "5", "10", "20", "50", "100"])
    axes.minorticks_off()
    axes.set_title(title, fontsize=10)
    finish(axes, "N", "recall@N, %")


def draw_rounds(axes: Any, curves: Curves, size: int) -> None:
    points = [(int(code.split(", ")[-1].removesuffix(" rounds")), values[0]) for (own, code), values in curves.items() if own == size]
    rounds = [r for r, _ in points]
    places = range(len(rounds))
    axes.plot(places, [v[0] / 1000 for _, v in points], "-o", markersize=3.5, color=DARK, label="error")
    axes.set_xticks(list(places), [str(r) for r in rounds])
    axes.set_title(f"SIFT1M, LSQ{size}x8, {size} bytes", fontsize=10)
    finish(axes, "rounds", "mean squared error, thousands")
    right = axes.twinx()
    right.plot(places, [v[2] for _, v in points], "--s", markersize=3.5, color=RED, label="R@1")
    right.set_ylabel("R@1, %")
    lines = axes.get_lines() + right.get_lines()
    axes.legend(lines, [line.get_label() for line in lines], fontsize=8, frameon=False, loc="center right")


def finish(axes: Any, across: str, up: str) -> None:
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(True, which="major", linewidth=0.4, alpha=0.6)
    axes.spines["top"].set_visible(False)


def main() -> None:
    here = Path(__file__).parent
    parser = argparse.ArgumentParser(description="draw the measured curves of additive codes")
    parser.add_argument("--results", type=Path, default=here / "results" / "h200")
    parser.add_argument("--images", type=Path, default=here.parent / "docs" / "images")
    options = parser.parse_args()

    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 2, figsize=(9.2, 7.2), layout="constrained")
    for row, (name, file) in enumerate((("SIFT1M", "lsq_curves_sift.jsonl"), ("GloVe", "lsq_curves_glove.jsonl"))):
        curves = read(options.results / file)
        for column, size in enumerate((8, 16)):
            draw_recall(axes[row][column], curves, size, f"{name}, {8 * size} bits")
    axes[0][0].legend(fontsize=8, frameon=False)
    axes[0][1].legend(fontsize=8, frameon=False)
    figure.savefig(options.images / "lsq_recall.png", dpi=110)
    figure, axes = pyplot.subplots(1, 2, figsize=(9.2, 3.6), layout="constrained")
    curves = read(options.results / "lsq_rounds.jsonl")
    for column, size in enumerate((8, 16)):
        draw_rounds(axes[column], curves, size)
    figure.savefig(options.images / "lsq_rounds.png", dpi=110)
    print(f"written to {options.images}")


if __name__ == "__main__":
    main()
