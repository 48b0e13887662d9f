"""Local search quantization beside faiss-cpu, in turns on the same machine.

    PYTHONPATH=… python bench/lsq_vs_faiss.py learn.u8bin base.u8bin [--codebooks 7] [--train 100000] [--rows 20000]

Both on the CPU with --threads threads. Times are for each vector: of the processor, all threads together, so that other work
on the machine does not count, and on the wall; errors are mean squared distances of vectors and what their codes stand
for. --codebooks-file: codebooks that FAISS has trained, an npy file (codebooks, 256, dimension), in place of its training.
--unit: vectors of length 1.
"""

from __future__ import annotations

import faiss
import kith
import numpy as np
from report import parser_of, report_of
from turns import timed


def error(x, decoded):
    return float(((x - decoded) ** 2).sum(axis=1, dtype=np.float64).mean())


def read(path, first, count, unit):
    x = kith.read_vectors(path)[first : first + count].astype(np.float32)
    return x / np.linalg.norm(x.astype(np.float64), axis=1, keepdims=True).astype(np.float32) if unit else x


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("learn")
    parser.add_argument("base")
    parser.add_argument("--codebooks", type=int, default=7)
    parser.add_argument("--learn-first", type=int, default=0)
    parser.add_argument("--train", type=int, default=100000)
    parser.add_argument("--rows", type=int, default=20000)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--search-rounds", type=int, default=16)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--unit", action="store_true")
    parser.add_argument("--codebooks-file")
    parser.add_argument("--no-faiss-training", action="store_true")
    parser.add_argument("--device", default="cpu", help="of Kith's training, where only errors are compared")
    options = parser.parse_args()
    learn = read(options.learn, options.learn_first, options.train, options.unit)
    base = read(options.base, 0, options.rows, options.unit)
    m = options.codebooks
    faiss.omp_set_num_threads(options.threads)
    threads = {"threads": options.threads}

    report = report_of("lsq_vs_faiss", options, faiss=faiss.__version__)

    def row(case: str, seconds: list[float], rows: int, mean_error: float) -> None:
        wall, processor = (1e6 * one / rows for one in seconds)
        figures = {"wall_us": wall, "error": mean_error}
        case = f"{m} codebooks, {options.search_rounds} rounds, {case}"
        report.row(case, shape=f"{rows} x {base.shape[1]}, a vector", ms=processor / 1e3, clock="processor", figures=figures)

    ours = kith.LocalSearchQuantizer(m, rounds=options.rounds, device=options.device)
    _, *seconds = timed(lambda: ours.train(learn, **threads))
    row(f"kith: training, {options.rounds} rounds", seconds, len(learn), ours.history[-1] / len(learn))
    theirs = faiss.LocalSearchQuantizer(learn.shape[1], m, 8)
    theirs.train_iters = options.rounds
    theirs.encode_ils_iters = options.search_rounds
    if options.no_faiss_training or options.codebooks_file:
        theirs.is_trained = True
        books = np.load(options.codebooks_file) if options.codebooks_file else ours.codebooks
        faiss.copy_array_to_vector(np.ascontiguousarray(books, dtype=np.float32).reshape(-1), theirs.codebooks)
    else:
        _, *seconds = timed(lambda: theirs.train(learn))
        some = learn[:2000]
        err = error(some, theirs.decode(theirs.compute_codes(some)))
        row(f"faiss: training, {options.rounds} rounds", seconds, len(learn), err)
    whose = "Kith's" if options.no_faiss_training else "faiss's"
    books = faiss.vector_to_array(theirs.codebooks).reshape(m, 256, -1)
    loaded = kith.LocalSearchQuantizer.of_codebooks(books, device="cpu")
    own = kith.LocalSearchQuantizer.of_codebooks(ours.codebooks, device="cpu")
    rounds = {"rounds": options.search_rounds, **threads}
    for _ in range(options.turns):
        codes, *seconds = timed(lambda: loaded.encode(base, **rounds))
        row(f"kith: encoding with {whose} codebooks", seconds, len(base), error(base, loaded.decode(codes)))
        codes, *seconds = timed(lambda: theirs.compute_codes(base))
        row(f"faiss: encoding with {whose} codebooks", seconds, len(base), error(base, theirs.decode(codes)))
        if options.no_faiss_training:
            continue
        codes, *seconds = timed(lambda: own.encode(base, **rounds))
        row("kith: encoding with its own codebooks", seconds, len(base), error(base, own.decode(codes)))


if __name__ == "__main__":
    main()
