"""Draws what graph_curves.py and graph_figures_cuda_bench measured, as the figures of GNND's paper that they stand beside.

    python bench/plot_graphs.py [--results bench/results/h200] [--images docs/images]

graph_curves.jsonl becomes graph_recall_over_time.png (figure 6), graph_figure4.jsonl graph_phi.png (figure 4), graph_figure5.jsonl
graph_updates.png (figure 5) and graph_figure7.jsonl graph_merge.png (figure 7); index_graph_curves.jsonl, of index_graph_curves.py,
becomes graph_by_codes.png (figure 5 of "Billion-scale similarity search with GPUs"). Files that are not there are left out.
Needs matplotlib.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

BLUE, ORANGE, GREEN, GREY = "#1f5fa8", "#d9772b", "#3a8f5c", "#7a7a7a"
NAMES = {"sift": "SIFT", "glove": "GloVe (cosine)", "fashion": "Fashion-MNIST"}
Line = dict[str, str]


def read(path: Path) -> list[Line]:
    """The cases of a file: labels and figures by name, with the shape and the seconds."""
    cases = [case for case in map(json.loads, path.read_text("utf-8").splitlines()) if "case" in case]
    return [
        {
            **case["labels"],
            **{name: str(value) for name, value in case["figures"].items()},
            "shape": case["shape"],
            "seconds": str(case["ms"] / 1e3),
        }
        for case in cases
    ]


def finish(axes: Any, title: str, across: str, up: str) -> None:
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(True, which="major", linewidth=0.4, alpha=0.6)
    axes.legend(fontsize=7, frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def seconds_scale(axes: Any) -> None:
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(FormatStrFormatter("%g"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def missing(recall: str) -> float:
    """What is drawn, downwards: the share of neighbours that are not found. 0 cannot be drawn, and is put at the edge."""
    return max(1 - float(recall), 1e-5)


def missing_scale(axes: Any) -> None:
    axes.set_yscale("log")
    axes.set_ylim(0.3, 8e-6)
    axes.set_yticks([0.1, 0.05, 0.01, 0.001, 0.0001, 0.00001], ["0.9", "0.95", "0.99", "0.999", "0.9999", "all"])
    axes.set_yticks([], minor=True)


def draw_curves(figure: Any, lines: list[Line]) -> None:
    sets = list(dict.fromkeys(line["set"] for line in lines))
    for place, name in enumerate(sets):
        axes = figure.add_subplot(1, len(sets), place + 1)
        mine = [line for line in lines if line["set"] == name]

        def points(method: str, length: str = "", mine: list[Line] = mine) -> tuple[list[float], list[float]]:
            chosen = [line for line in mine if line["method"] == method and line.get("list_length", "") == length]
            return [float(line["seconds"]) for line in chosen], [missing(line["recall@10"]) for line in chosen]

        for length, colour in (("64", ORANGE), ("96", "#b5562a"), ("128", "#7d3517")):
            axes.plot(*points("nn_descent", length), marker="o", markersize=3, color=colour,
                      label=f"NN-Descent, lists of {length}, 10 to 42 samples")  # fmt: skip
        axes.plot(*points("cells"), marker="s", markersize=3, color=BLUE, label="cells, for 0.8 to 0.999")
        axes.plot(*points("exact"), marker="*", markersize=9, linestyle="none", color=GREEN, label="exact")
        seconds_scale(axes)
        missing_scale(axes)
        rows, cols = (int(part) for part in mine[0]["shape"].split(" x "))
        finish(axes, f"{NAMES.get(name, name)}, {rows:,} × {cols}", "seconds", "recall@10")
        axes.get_legend().remove()
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8, frameon=False)


def draw_phi(figure: Any, lines: list[Line]) -> None:
    axes = figure.add_subplot(1, 1, 1)
    for device, marker, fill in (("cuda", "o", "full"), ("gpu", "o", "full"), ("cpu", "s", "none")):
        for update, colour in (("selective", BLUE), ("all", ORANGE)):
            mine = [line for line in lines if line["device"].startswith(device) and line["update"] == update]
            if mine:
                rounds = [int(line["round"]) for line in mine]
                label = f"{'CPU' if device == 'cpu' else 'GPU'}, {'the nearest of each sample' if update == 'selective' else 'all pairs'}"
                axes.plot(rounds, [float(line["phi"]) for line in mine], marker=marker, markersize=7 if fill == "none" else 4,
                          fillstyle=fill, linestyle="-" if fill == "full" else "none", color=colour, label=label)  # fmt: skip
    axes.set_xticks(range(max(int(line["round"]) for line in lines) + 1))
    finish(axes, "φ(G), the sum of all neighbours' distances, by round", "round", "φ(G)")


def draw_times(figure: Any, lines: list[Line], by: str, title: str) -> None:
    axes = figure.add_subplot(1, 1, 1)
    for name, colour in zip(dict.fromkeys(line[by] for line in lines), (BLUE, ORANGE, GREEN, GREY, "#8a4fa0", "#333333"), strict=False):
        mine = [line for line in lines if line[by] == name]
        axes.plot([float(line["seconds"]) for line in mine], [missing(line["recall@10"]) for line in mine], marker="o",
                  markersize=3.5, color=colour, label=name.replace("_", " "))  # fmt: skip
    seconds_scale(axes)
    missing_scale(axes)
    finish(axes, title, "seconds", "recall@10")


def draw_codes(figure: Any, lines: list[Line]) -> None:
    axes = figure.add_subplot(1, 1, 1)
    for code, colour in zip(dict.fromkeys(line["code_bytes"] for line in lines), (BLUE, ORANGE, GREEN), strict=False):
        mine = [line for line in lines if line["code_bytes"] == code]
        axes.plot([float(line["seconds"]) for line in mine], [float(line["recall@10"]) for line in mine], marker="o",
                  markersize=3.5, color=colour, label=f"codes of {code} bytes")  # fmt: skip
    seconds_scale(axes)
    probes = [line["probes"] for line in lines]
    finish(axes, f"The graph by compressed codes, {probes[0]} to {probes[-1]} lists probed", "seconds", "recall@10")


def main() -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    root = Path(__file__).parent.parent
    parser = argparse.ArgumentParser(description="draws the measured curves of graphs")
    parser.add_argument("--results", type=Path, default=root / "bench" / "results" / "h200")
    parser.add_argument("--images", type=Path, default=root / "docs" / "images")
    options = parser.parse_args()
    draw = {
        "graph_curves.jsonl": ("graph_recall_over_time.png", (12, 4), draw_curves),
        "graph_figure4.jsonl": ("graph_phi.png", (5.5, 3.6), draw_phi),
        "graph_figure5.jsonl": (
            "graph_updates.png",
            (5.5, 3.6),
            lambda figure, lines: draw_times(figure, lines, "update", "Rounds of NN-Descent by how lists are updated"),
        ),
        "graph_figure7.jsonl": (
            "graph_merge.png",
            (5.5, 3.6),
            lambda figure, lines: draw_times(figure, lines, "method", "The graph of two halves, from theirs"),
        ),
        "index_graph_curves.jsonl": ("graph_by_codes.png", (5.5, 3.6), draw_codes),
    }
    for source, (image, size, how) in draw.items():
        if not (options.results / source).exists():
            print(f"{source} is not there")
            continue
        figure = plt.figure(figsize=size, constrained_layout=True)
        how(figure, read(options.results / source))
        figure.savefig(options.images / image, dpi=120)
        plt.close(figure)
        print(f"drew {options.images / image}")


if __name__ == "__main__":
    main()
