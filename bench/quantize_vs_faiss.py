"""Quantizers against faiss-cpu, both measured in this run, turn by turn: training, encoding, decoding, and the error.

1,000,000 x 128 vectors of a mixture: 1,000 centres of N(0,1), a point is a centre + N(0,1) / 2. Each time is the shortest
of the rounds. The error is the mean squared distance of a vector from what its code decodes to, by the same routine.
`equal_codes` says how many of 100,000 codes are FAISS's where its trained values are taken.

    .venv/bin/python bench/quantize_vs_faiss.py [--threads 1] [--rows 1000000] [--rounds 3] [--out FILE]

Needs the package kith; installs faiss-cpu beside it where it is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from report import parser_of, report_of
from turns import install_missing, timed

import kith

Vectors = npt.NDArray[np.float32]
Codes = npt.NDArray[np.uint8]
KINDS = ("PQ16", "PQ8", "PQ32", "PQ32x4", "SQ8", "SQ6", "SQ4", "SQfp16")


def mixture(rows: int, cols: int) -> Vectors:
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((1000, cols), dtype=np.float32)
    out = np.empty((rows, cols), np.float32)
    for first in range(0, rows, 50_000):
        count = min(50_000, rows - first)
        noise = rng.standard_normal((count, cols), dtype=np.float32)
        out[first : first + count] = centres[rng.integers(0, 1000, count)] + noise / 2
    return out


def ours(kind: str, x: Vectors, threads: int) -> dict[str, Callable[..., Any]]:
    quantizer: Any
    if kind.startswith("PQ"):
        parts, bits = (kind[2:] + "x8").split("x")[:2]
        quantizer = kith.ProductQuantizer(int(parts), bits=int(bits), seed=1)
    else:
        quantizer = kith.ScalarQuantizer(16 if kind == "SQfp16" else int(kind[2:]))
    return {
        "train": lambda: quantizer.train(x, threads=threads),
        "encode": lambda: quantizer.encode(x, threads=threads),
        "decode": lambda codes: quantizer.decode(codes, threads=threads),
    }


def faiss_quantizer(kind: str, cols: int) -> Any:
    import faiss

    if kind.startswith("PQ"):
        parts, bits = (kind[2:] + "x8").split("x")[:2]
        return faiss.ProductQuantizer(cols, int(parts), int(bits))
    names = {"SQ8": "QT_8bit", "SQ6": "QT_6bit", "SQ4": "QT_4bit", "SQfp16": "QT_fp16"}
    return faiss.ScalarQuantizer(cols, getattr(faiss.ScalarQuantizer, names[kind]))


def theirs(kind: str, x: Vectors) -> dict[str, Callable[..., Any]]:
    quantizer = faiss_quantizer(kind, x.shape[1])
    return {
        "train": lambda: quantizer.train(x),
        "encode": lambda: quantizer.compute_codes(x),
        "decode": lambda codes: quantizer.decode(codes),
    }


def error(x: Vectors, back: Vectors) -> float:
    total = 0.0
    for first in range(0, len(x), 100_000):
        total += float(((x[first : first + 100_000] - back[first : first + 100_000]) ** 2).sum(dtype=np.float64))
    return total / len(x)


def same_codes(kind: str, x: Vectors) -> int:
    """How many of FAISS's codes Kith gives with FAISS's ranges or codewords, of len(x)."""
    import faiss

    other = faiss_quantizer(kind, x.shape[1])
    other.train(x)
    values: Any
    if kind.startswith("PQ"):
        values = faiss.vector_to_array(other.centroids).reshape(other.M, other.ksub, other.dsub)
        quantizer: Any = kith.ProductQuantizer.of_codewords(values)
    elif kind == "SQfp16":
        quantizer = kith.ScalarQuantizer(16).train(x)
    else:
        values = faiss.vector_to_array(other.trained).reshape(2, -1)
        quantizer = kith.ScalarQuantizer.of_ranges(values[0], values[1], bits=int(kind[2:]))
    return int((quantizer.encode(x) == other.compute_codes(x)).all(axis=1).sum())


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS))
    options = parser.parse_args()
    install_missing("faiss-cpu")
    import faiss

    faiss.omp_set_num_threads(options.threads)
    x = mixture(options.rows, 128)
    report = report_of("quantize_vs_faiss", options, faiss=faiss.__version__)
    for kind in options.kinds:
        best: dict[str, dict[str, float]] = {"kith": {}, "faiss": {}}
        for _ in range(options.rounds):
            for name, calls in (("kith", ours(kind, x, options.threads)), ("faiss", theirs(kind, x))):
                seconds = best[name]
                _, train, _ = timed(calls["train"])
                codes, encode, _ = timed(calls["encode"])
                back, decode, _ = timed(lambda: calls["decode"](codes))  # noqa: B023
                for stage, took in (("train", train), ("encode", encode), ("decode", decode)):
                    seconds[stage] = min(seconds.get(stage, took), took)
                seconds["error"] = error(x, back)
        errors = {"error": best["kith"]["error"], "error_faiss": best["faiss"]["error"]}
        errors["equal_codes"] = same_codes(kind, x[:100_000])
        for stage in ("train", "encode", "decode"):
            report.row(
                f"{kind}, {stage}",
                shape=f"{options.rows} x 128 f32",
                ms=1e3 * best["kith"][stage],
                runs=options.rounds,
                clock="wall",
                peers_ms={"faiss": 1e3 * best["faiss"][stage]},
                figures=errors if stage == "decode" else {},
            )


if __name__ == "__main__":
    main()
