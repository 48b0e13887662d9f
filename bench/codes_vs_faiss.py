"""Recall of product codes that Kith and FAISS have trained, seed by seed: how far apart two trainings are by chance.

    python bench/codes_vs_faiss.py --data FOLDER [--seeds 5] [--codes PQ16 OPQ16] [--rows 100000]

FOLDER holds sift1m_learn.u8bin, sift1m_base.u8bin and sift1m_query.u8bin. Both sides' codewords are encoded and searched by Kith,
so that training alone is compared.
"""

from __future__ import annotations

from pathlib import Path

import faiss
import kith
import numpy as np
import numpy.typing as npt
from report import parser_of, report_of

Floats = npt.NDArray[np.float32]
FIGURES = ("error", "recall@1", "recall@10", "recall@100")


def read(path: Path) -> Floats:
    return np.asarray(kith.read_vectors(path), dtype=np.float32)


def of_faiss(learn: Floats, parts: int, seed: int, rotated: bool) -> tuple[Floats, Floats | None]:
    """FAISS's codewords, and the rotation before them."""
    columns = learn.shape[1]
    rotation = None
    if rotated:
        opq = faiss.OPQMatrix(columns, parts)
        opq.max_train_points = len(learn)
        opq.train(learn)
        rotation = faiss.vector_to_array(opq.A).reshape(columns, columns)
        learn = np.ascontiguousarray(learn @ rotation.T)
    product = faiss.ProductQuantizer(columns, parts, 8)
    product.cp.seed = 1234 + seed
    product.train(learn)
    return faiss.vector_to_array(product.centroids).reshape(parts, 256, -1), rotation


def of_kith(learn: Floats, parts: int, seed: int, rotated: bool) -> tuple[Floats, Floats | None]:
    rotation = None
    if rotated:
        transform = kith.OPQ(parts, seed=seed).train(learn)
        learn, rotation = transform.apply(learn), transform.apply(np.eye(learn.shape[1], dtype=np.float32)).T
    return kith.ProductQuantizer(parts, seed=seed).train(learn).codewords, rotation


def measured(codewords: Floats, rotation: Floats | None, base: Floats, queries: Floats, truth: npt.NDArray[np.int64]) -> list[float]:
    """FIGURES: the mean squared error, and the recalls in percent."""
    if rotation is not None:
        base, queries = np.ascontiguousarray(base @ rotation.T), np.ascontiguousarray(queries @ rotation.T)
    quantizer = kith.ProductQuantizer.of_codewords(codewords)
    decoded = quantizer.decode(quantizer.encode(base))
    found = kith.knn(queries, decoded, k=100).ids
    hits = [100 * float((found[:, :k] == truth[:, None]).any(1).mean()) for k in (1, 10, 100)]
    return [float(((decoded - base) ** 2).sum(1).mean()), *hits]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--codes", nargs="+", default=["PQ16", "OPQ16"])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--learn", type=int, default=65_536)
    options = parser.parse_args()
    report = report_of("codes_vs_faiss", options, faiss=faiss.__version__)
    learn = read(options.data / "sift1m_learn.u8bin")[: options.learn]
    base = read(options.data / "sift1m_base.u8bin")[: options.rows]
    queries = read(options.data / "sift1m_query.u8bin")
    truth = np.asarray(kith.knn(queries, base, k=1).ids)[:, 0]
    shape = f"{len(learn)} trained with, {len(base)} coded, {len(queries)} queries"
    for code in options.codes:
        rotated, parts = code.startswith("O"), int(code.lstrip("OPQ"))
        sides: dict[str, list[list[float]]] = {"faiss": [], "kith": []}
        for seed in range(options.seeds):
            for name, train in (("faiss", of_faiss), ("kith", of_kith)):
                sides[name].append(measured(*train(learn, parts, seed, rotated), base, queries, truth))
                figures = dict(zip(FIGURES, sides[name][-1], strict=True))
                report.row(f"{code}, seed {seed}, {name}", shape=shape, figures=figures)
        for name, rows in sides.items():
            mean, spread = np.mean(rows, 0), np.std(rows, 0, ddof=min(1, len(rows) - 1))
            figures = {figure: float(value) for figure, value in zip(FIGURES, mean, strict=True)}
            figures |= {f"{figure}_deviation": float(value) for figure, value in zip(FIGURES, spread, strict=True)}
            report.row(f"{code}, mean of {len(rows)} seeds, {name}", shape=shape, figures=figures)


if __name__ == "__main__":
    main()
