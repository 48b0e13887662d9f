"""Additive quantizers: a vector as a sum of codewords, one of each codebook."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, SupportsFloat, SupportsIndex, Union, cast

import numpy as np
import numpy.typing as npt

from kith import _kith
from kith._arrays import Array, VectorsLike, as_vectors, to_numpy
from kith._device_arrays import fill_on_device, on_device
from kith._files import path_bytes
from kith._libraries import library_of
from kith._metrics import Metric
from kith._options import flag, real_number, seed_number, text, whole_number
from kith._other_names import answers_other_names
from kith._progress import Progress
from kith._sources import SourceLike, array_of, as_source
from kith._quantize import Compiled, Floats, _other_kind, _Quantizer
from kith._trainable import PathLike
from kith._typing import ByteSize, ByteSizes, DeviceNames

TrainStart = Literal["opq", "residual", "random"]
Order = Literal["fixed", "random"]
Start = Union[Literal["greedy", "random"], npt.ArrayLike]


def _codebooks(codebooks: npt.ArrayLike) -> tuple[Floats, int]:
    """The array and the bits of a code."""
    given = np.ascontiguousarray(to_numpy(codebooks, "codebooks"), dtype=np.float32)
    bits = given.shape[1].bit_length() - 1 if given.ndim == 3 else -1
    if given.ndim != 3 or 1 << max(bits, 0) != given.shape[1]:
        raise ValueError(f"codebooks have the shape {given.shape}; it must be (codebooks, 2**bits, dimension)")
    return given, bits


class _Additive(_Quantizer[Compiled]):
    """What both additive quantizers do alike."""

    @property
    def bits(self) -> int:
        """Of each code."""
        return int(self._parameters[1])

    @property
    def codebooks(self) -> Floats:
        """A copy of what was trained: (codebooks, 2**bits, dimension)."""
        return self._compiled.values().reshape(self._parameters[0], 1 << self.bits, -1)

    def lookup_table(
        self, queries: VectorsLike, metric: Metric = "inner_product", *, threads: SupportsIndex = 0
    ) -> Floats:
        """The inner products of queries and all codewords: (queries, codebooks, 2**bits).

        Those of a code's codewords add up to the inner product of the query and the vector that the code stands for.
        Squared distances are no such sums: `metric` is ``"inner_product"``. For one query, given as a 1-D array,
        (codebooks, 2**bits).
        """
        return self._table(queries, metric, (int(self._parameters[0]), 1 << self.bits), threads)

    def __repr__(self) -> str:
        return f"kith.{type(self).__name__}({self._parameters[0]}, bits={self.bits})"


class LocalSearchQuantizer(_Additive[_kith.LocalSearchQuantizer]):
    """A vector as a sum of codewords that local search has found (LSQ): the most accurate of the classical codes.

    At the same bytes the error is well below that of product codes; training and encoding take longer. The same vectors,
    parameters and seed give the same bytes for any number of threads and any memory limit. Codes are the same on every
    device; trained codebooks differ in their last bits from one to the other.

    Parameters
    ----------
    codebooks : int
        Codewords that are added up, 1 to 128.
    bits : int, default 8
        Of each code, 1 to 8: 2**bits codewords in each codebook.
    rounds : int, default 25
        Of training: codebooks for the codes, then codes for the codebooks.
    train_search_rounds : int, default 8
        Rounds of local search in each of these.
    train_start : {"opq", "residual", "random"}, default "opq"
        Where training begins: product codes behind a rotation, k-means of residuals, or codes drawn at random.
    regularization : float, default 10
        Added to how often a codeword is used: keeps codewords that few vectors use near the mean; above 0.
    anneal : float, default 0.35
        Move codewords at random while training, by less and less: a lower error at the end. At first sums of codewords
        move by about this multiple of their distance from the vectors; 0: not at all.
    sweeps : int, default 4
        Over the codebooks in each round of local search.
    perturbed : int, default 0
        Codes that are drawn anew at the start of a round; 0: 4 of up to 10 codebooks, 2 of more.
    order : {"fixed", "random"}, default "fixed"
        Of the codebooks in a sweep.
    seed : int, default 0
        Of training's random numbers; not negative.
    device : str, default "auto"
        ``"cpu"``, ``"cuda"``, ``"cuda:N"``, or ``"auto"``: the device of the vectors, or, for host arrays, a GPU if
        that is expected to be faster.
    check_finite : bool, default True
        Refuse NaN and infinities, naming the row.

    Notes
    -----
    A code takes ``(codebooks * bits + 7) // 8`` bytes: one code after the other from the lowest bit on, as in FAISS.
    When training is interrupted, the codebooks of the last complete round stay.

    A quantizer can be pickled and copied, trained or not; `history` is not kept.

    Examples
    --------
    >>> import numpy as np, kith
    >>> x = np.random.default_rng(0).standard_normal((1000, 8), dtype=np.float32)
    >>> quantizer = kith.LocalSearchQuantizer(2, bits=4, rounds=5).train(x)
    >>> codes = quantizer.encode(x, rounds=4)
    >>> codes.shape, codes.dtype
    ((1000, 1), dtype('uint8'))
    >>> better = quantizer.encode(x, rounds=4, from_round=4, start=codes)
    >>> bool((better == quantizer.encode(x, rounds=8)).all())
    True
    """

    _kind = _kith.LocalSearchQuantizer

    @answers_other_names("kith.LocalSearchQuantizer()")
    def __init__(
        self,
        codebooks: SupportsIndex,
        *,
        bits: SupportsIndex = 8,
        rounds: SupportsIndex = 25,
        train_search_rounds: SupportsIndex = 8,
        train_start: TrainStart = "opq",
        regularization: SupportsFloat = 10.0,
        anneal: SupportsFloat = 0.35,
        sweeps: SupportsIndex = 4,
        perturbed: SupportsIndex = 0,
        order: Order = "fixed",
        seed: SupportsIndex = 0,
        device: DeviceNames = "auto",
        check_finite: bool = True,
    ) -> None:
        super().__init__(device)
        self._parameters = (
            whole_number(codebooks, "codebooks"),
            whole_number(bits, "bits"),
            whole_number(rounds, "rounds"),
            whole_number(train_search_rounds, "train_search_rounds"),
            text(train_start, "train_start"),
            real_number(regularization, "regularization"),
            real_number(anneal, "anneal"),
            whole_number(sweeps, "sweeps"),
            whole_number(perturbed, "perturbed"),
            text(order, "order"),
            seed_number(seed),
            flag(check_finite, "check_finite"),
        )
        self._compiled = _kith.LocalSearchQuantizer(*self._parameters)

    @classmethod
    def of_codebooks(cls, codebooks: npt.ArrayLike, **parameters: Any) -> LocalSearchQuantizer:
        """A quantizer with these codebooks, (codebooks, 2**bits, dimension), as if trained.

        `parameters` are those of `LocalSearchQuantizer`, without `codebooks` and `bits`. Codes are decoded with the
        codebooks as they are; for encoding these are rounded to a grid on which sums are exact.
        """
        given, bits = _codebooks(codebooks)
        quantizer = cls(given.shape[0], bits=bits, **parameters)
        quantizer._compiled.set_values(given.reshape(-1))
        return quantizer

    @classmethod
    def load(cls, path: PathLike, device: DeviceNames = "auto") -> LocalSearchQuantizer:
        """A quantizer that `save` or ``kith train`` has written: its codebooks and how codes are searched for.

        What only training uses has its defaults.
        """
        compiled, books, bits, seed, check_finite = _kith.load_quantizer(path_bytes(path))
        if not isinstance(compiled, _kith.LocalSearchQuantizer):
            raise _other_kind(path, compiled)
        quantizer = cls(
            books,
            bits=bits,
            sweeps=compiled.sweeps,
            perturbed=compiled.perturbed,
            order=cast(Order, compiled.order),
            seed=seed,
            device=device,
            check_finite=check_finite,
        )
        quantizer._compiled = compiled
        return quantizer

    @property
    def history(self) -> list[float]:
        """The objective after each round of the last training: squared errors of all rows, and the regularization."""
        return self._compiled.history()

    def encode(
        self,
        x: VectorsLike | SourceLike,
        *,
        rounds: SupportsIndex = 16,
        from_round: SupportsIndex = 0,
        first_row: SupportsIndex = 0,
        start: Start = "greedy",
        seed: SupportsIndex = 0,
        threads: SupportsIndex = 0,
        memory_limit: ByteSize | None = None,
        device_memory_limit: ByteSizes | None = None,
        progress: Progress = False,
    ) -> Array:
        """The codes of `x`: uint8, (rows, code_bytes), in `x`'s kind of array and memory.

        Parameters
        ----------
        x : array_like (rows, dimension), or path
            Files, and what is sliced, as in `train`, are read piece by piece; their codes are a numpy array.
        rounds : int, default 16
            Of local search. More never raise the error of a vector; with 0 the start is the answer.
        from_round : int, default 0
            The number of the first round: with ``start=codes`` an earlier call is continued.
        first_row : int, default 0
            The number of the first row, where rows are encoded in several calls.
        start : {"greedy", "random"} or array of codes, default "greedy"
            Where the search begins. Codes in a GPU's memory are copied to the host.
        seed : int, default 0
            Of the random numbers; not negative.
        threads, memory_limit, device_memory_limit, progress
            As in `knn`.
        """
        kind, given = "given", None
        if isinstance(start, str):
            if start not in ("greedy", "random"):
                raise ValueError(f"start = '{start}'; give 'greedy', 'random' or an array of codes")
            kind = start
        else:
            codes = library_of(start).to_host(start) if on_device(start) else to_numpy(start, "start")
            given = np.ascontiguousarray(codes)
            if given.dtype != np.uint8 or given.ndim != 2:
                raise TypeError(f"start is {given.ndim}-D {given.dtype}; codes are 2-D uint8")
        with self._calling(x, threads, memory_limit, device_memory_limit, progress) as options:
            numbers = (
                whole_number(rounds, "rounds"),
                whole_number(from_round, "from_round"),
                whole_number(first_row, "first_row"),
                seed_number(seed),
            )
            source = as_source(x)
            if source is not None:
                if given is not None:
                    raise ValueError("codes as start go with an array of vectors; with files give 'greedy' or 'random'")
                return self._compiled.encode_file(source, *numbers, kind, options)
            rows = as_vectors(array_of(x), "x", options.stream)[0]
            wanted = rows.shape[0], self.code_bytes
            if given is not None and self.trained and given.shape != wanted:
                raise ValueError(f"start has the shape {given.shape}; codes of these rows have {wanted}")
            step = partial(self._compiled.encode, rows, *numbers, kind, given, options)
            if given is None and isinstance(rows, _kith.DeviceArray):
                return fill_on_device(x, wanted, rows.device, options.stream, step, "uint8")
            return library_of(x).from_host(step(None), x)


class ResidualQuantizer(_Additive[_kith.ResidualQuantizer]):
    """A vector as a sum of codewords, each book trained on what those before it leave (RQ), found by beam search.

    Parameters
    ----------
    codebooks : int
        Codewords that are added up, 1 to 128.
    bits : int, default 8
        Of each code, 1 to 8: 2**bits codewords in each codebook.
    beam : int, default 5
        Sums that are kept after each book, 1 to 64; 1 is the greedy choice.
    seed : int, default 0
        Of the random numbers; not negative.
    device : str, default "auto"
        ``"cpu"``, ``"cuda"``, ``"cuda:N"``, or ``"auto"``: the device of the vectors, or, for host arrays, a GPU if
        that is expected to be faster.
    check_finite : bool, default True
        Refuse NaN and infinities, naming the row.

    Notes
    -----
    A code takes ``(codebooks * bits + 7) // 8`` bytes.

    A quantizer can be pickled and copied, trained or not.

    Examples
    --------
    >>> import numpy as np, kith
    >>> x = np.random.default_rng(0).standard_normal((1000, 8), dtype=np.float32)
    >>> quantizer = kith.ResidualQuantizer(2, bits=4).train(x)
    >>> quantizer.decode(quantizer.encode(x)).shape
    (1000, 8)
    """

    _kind = _kith.ResidualQuantizer

    @answers_other_names("kith.ResidualQuantizer()")
    def __init__(
        self,
        codebooks: SupportsIndex,
        *,
        bits: SupportsIndex = 8,
        beam: SupportsIndex = 5,
        seed: SupportsIndex = 0,
        device: DeviceNames = "auto",
        check_finite: bool = True,
    ) -> None:
        super().__init__(device)
        self._parameters = (
            whole_number(codebooks, "codebooks"),
            whole_number(bits, "bits"),
            whole_number(beam, "beam"),
            seed_number(seed),
            flag(check_finite, "check_finite"),
        )
        self._compiled = _kith.ResidualQuantizer(*self._parameters)

    @classmethod
    def of_codebooks(cls, codebooks: npt.ArrayLike, **parameters: Any) -> ResidualQuantizer:
        """A quantizer with these codebooks, (codebooks, 2**bits, dimension), as if trained.

        `parameters` are those of `ResidualQuantizer`, without `codebooks` and `bits`.
        """
        given, bits = _codebooks(codebooks)
        quantizer = cls(given.shape[0], bits=bits, **parameters)
        quantizer._compiled.set_values(given.reshape(-1))
        return quantizer

    @classmethod
    def load(cls, path: PathLike, device: DeviceNames = "auto") -> ResidualQuantizer:
        """A quantizer that `save` or ``kith train`` has written, as it was trained."""
        compiled, books, bits, seed, check_finite = _kith.load_quantizer(path_bytes(path))
        if not isinstance(compiled, _kith.ResidualQuantizer):
            raise _other_kind(path, compiled)
        quantizer = cls(books, bits=bits, beam=compiled.beam, seed=seed, device=device, check_finite=check_finite)
        quantizer._compiled = compiled
        return quantizer
