"""Time to train PCA and OPQ, and the error of product codes behind OPQ, beside faiss, in one run.

    python bench/transforms_vs_faiss.py x.u8bin [--parts 16] [--columns 0] [--threads 2] [--base base.u8bin] [--out FILE]

Errors are mean squared distances, in the space of the vectors, between vectors and what faiss's ProductQuantizer makes
of them behind either rotation, trained on the same vectors: rotations alone are compared. faiss is asked for its
defaults: 50 rounds, 256 rows a codeword.
"""

from __future__ import annotations

import faiss
import kith
import numpy as np
from report import parser_of, report_of
from turns import timed


def code_error(rotation, learn, base, parts):
    """What product codes lose of vectors behind a rotation."""
    quantizer = faiss.ProductQuantizer(rotation.shape[0], parts, 8)
    quantizer.train(np.ascontiguousarray(learn @ rotation.T))
    turned = np.ascontiguousarray(base @ rotation.T)
    near = quantizer.decode(quantizer.compute_codes(turned)) @ rotation
    return float(((base - near) ** 2).sum(1).mean())


def main():
    """Report a line for each transform."""
    parser = parser_of(__doc__)
    parser.add_argument("learn", help="vectors to train with")
    parser.add_argument("--base", help="vectors to code; by default those that were trained with")
    parser.add_argument("--parts", type=int, default=16)
    parser.add_argument("--columns", type=int, default=0, help="that come out; 0: as many as go in")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--skip-faiss-opq", action="store_true", help="it takes minutes")
    arguments = parser.parse_args()
    report = report_of("transforms_vs_faiss", arguments, faiss=faiss.__version__)
    learn = kith.read_vectors(arguments.learn)[: arguments.rows].astype(np.float32)
    base = learn if arguments.base is None else kith.read_vectors(arguments.base)[: arguments.rows].astype(np.float32)
    dimension = learn.shape[1]
    columns = arguments.columns or dimension
    faiss.omp_set_num_threads(arguments.threads)

    kept = min(columns, dimension // 2)
    pca, ours, _ = timed(lambda: kith.PCA(kept, device="cpu").train(learn, threads=arguments.threads))
    theirs = faiss.PCAMatrix(dimension, kept)
    _, other, _ = timed(lambda: theirs.train(learn))
    turned = theirs.apply(base)
    variance = {"variance": float(pca.apply(base).var(0).sum()), "variance_faiss": float(turned.var(0).sum())}
    report.row(f"PCA{kept}, train", ms=1e3 * ours, clock="wall", peers_ms={"faiss": 1e3 * other}, figures=variance)
    _, ours, _ = timed(lambda: pca.apply(base, threads=arguments.threads))
    _, other, _ = timed(lambda: theirs.apply(base))
    sums = {"sums": "float64; faiss: float32"}
    report.row(f"PCA{kept}, apply to {len(base)} rows", ms=1e3 * ours, clock="wall", peers_ms={"faiss": 1e3 * other}, labels=sums)

    name = f"OPQ{arguments.parts}_{columns}"
    opq, ours, _ = timed(
        lambda: kith.OPQ(arguments.parts, columns, device="cpu").train(learn, threads=arguments.threads)
    )
    errors = {"error": code_error(opq.rotation, learn, base, arguments.parts)}
    if columns == dimension:
        errors["error_unrotated"] = code_error(np.eye(dimension, dtype=np.float32), learn, base, arguments.parts)
    peers = {}
    if not arguments.skip_faiss_opq:
        theirs = faiss.OPQMatrix(dimension, arguments.parts, columns)
        _, other, _ = timed(lambda: theirs.train(learn))
        rotation = faiss.vector_to_array(theirs.A).reshape(columns, dimension)
        peers["faiss"] = 1e3 * other
        errors["error_faiss"] = code_error(rotation, learn, base, arguments.parts)
    report.row(f"{name}, train", ms=1e3 * ours, clock="wall", peers_ms=peers, figures=errors)


if __name__ == "__main__":
    main()
