"""Quantizers: vectors as codes of a few bytes, and back."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, SupportsIndex, TypeVar, cast

import numpy as np
import numpy.typing as npt

from kith import _kith
from kith._arrays import Array, VectorsLike, as_queries, as_vectors, to_numpy
from kith._device_arrays import fill_on_device
from kith._files import path_bytes
from kith._libraries import library_of
from kith._metrics import Metric, metric_name
from kith._options import flag, seed_number, text, whole_number
from kith._other_names import answers_other_names
from kith._progress import Progress
from kith._sources import SourceLike, array_of, as_source
from kith._trainable import PathLike, Trainable
from kith._typing import ByteSize, ByteSizes, DeviceNames

Floats = npt.NDArray[np.float32]
Compiled = TypeVar(
    "Compiled", _kith.ProductQuantizer, _kith.ScalarQuantizer, _kith.LocalSearchQuantizer, _kith.ResidualQuantizer
)


class _Quantizer(Trainable[Compiled]):
    """The common part of all quantizers."""

    _kind: ClassVar[Callable[..., Any]]  # of the compiled quantizer, made of `_parameters`
    _parameters: tuple[Any, ...]

    @property
    def dimension(self) -> int:
        """Columns of the vectors; 0 before training."""
        return self._compiled.dimension

    @property
    def code_bytes(self) -> int:
        """Bytes per code; 0 before training."""
        return self._compiled.code_bytes

    def encode(
        self,
        x: VectorsLike | SourceLike,
        *,
        threads: SupportsIndex = 0,
        memory_limit: ByteSize | None = None,
        device_memory_limit: ByteSizes | None = None,
        progress: Progress = False,
    ) -> Array:
        """The codes of `x`: uint8, (rows, code_bytes), in `x`'s kind of array and memory.

        Files, and what is sliced, as in `train`, are read piece by piece; their codes are a numpy array.
        """
        with self._calling(x, threads, memory_limit, device_memory_limit, progress) as options:
            source = as_source(x)
            if source is not None:
                return self._compiled.encode_file(source, options)
            rows = as_vectors(array_of(x), "x", options.stream)[0]
            if isinstance(rows, _kith.DeviceArray):
                wanted = rows.shape[0], self.code_bytes
                step = partial(self._compiled.encode, rows, options)
                return fill_on_device(x, wanted, rows.device, options.stream, step, "uint8")
            return library_of(x).from_host(self._compiled.encode(rows, options, None), x)

    def decode(
        self,
        codes: VectorsLike,
        *,
        threads: SupportsIndex = 0,
        memory_limit: ByteSize | None = None,
        device_memory_limit: ByteSizes | None = None,
        progress: Progress = False,
    ) -> Array:
        """The decoded vectors: float32, (rows, dimension), in the codes' kind of array and memory."""
        with self._calling(codes, threads, memory_limit, device_memory_limit, progress) as options:
            rows = as_vectors(codes, "codes", options.stream)[0]
            if isinstance(rows, _kith.DeviceArray):
                wanted = rows.shape[0], self.dimension
                return fill_on_device(
                    codes, wanted, rows.device, options.stream, partial(self._compiled.decode, rows, options)
                )
            return library_of(codes).from_host(self._compiled.decode(rows, options, None), codes)

    def save(self, path: PathLike) -> None:
        """Write what was trained to a ``.kith`` file, which `load` reads."""
        _kith.save_quantizer(self._compiled, path_bytes(path))

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy: the parameters and what was trained."""
        values = self._compiled.values().reshape(-1) if self.trained else None
        return {"device": self._device, "parameters": self._parameters, "dimension": self.dimension, "values": values}

    def __setstate__(self, state: dict[str, Any]) -> None:
        _Quantizer.__init__(self, state["device"])
        self._parameters = state["parameters"]
        self._compiled = type(self)._kind(*self._parameters)
        if state["values"] is not None:
            self._set_values(state["values"], state["dimension"])

    def _table(self, queries: VectorsLike, metric: Metric, axes: tuple[int, int], threads: SupportsIndex) -> Floats:
        with self._calling(queries, threads, None, None, progress=False) as options:
            rows, single = as_queries(to_numpy(queries, "queries"), options.stream)
            table = self._compiled.lookup_table(rows, metric_name(metric), axes[0] * axes[1], options)
            return table.reshape(axes if single else (table.shape[0], *axes))

    def _set_values(self, values: Floats, dimension: int) -> None:
        """Take what was trained, of that many columns."""
        del dimension  # follows from the number of values
        cast(Any, self._compiled).set_values(values)


def _other_kind(path: PathLike, compiled: object) -> ValueError:
    """What loading a quantizer of another class raises."""
    words = {"ProductQuantizer": "product", "ScalarQuantizer": "scalar", "LocalSearchQuantizer": "local search"}
    name = type(compiled).__name__
    kind = words.get(name, "residual")
    return ValueError(f"{os.fspath(path)} holds a {kind} quantizer: kith.{name}.load reads it")


class ProductQuantizer(_Quantizer[_kith.ProductQuantizer]):
    """A vector as the numbers of the codewords nearest to its sub-vectors.

    Training is a k-means of each sub-vector; codes are exact. The same vectors, parameters and seed give the same bytes
    for any number of threads and on every device.

    Parameters
    ----------
    parts : int
        Sub-vectors; must divide the dimension.
    bits : int, default 8
        Of a sub-vector's code, 4 to 8: 2**bits codewords for each.
    seed : int, default 0
        Of the random numbers; not negative.
    device : str, default "auto"
        ``"cpu"``, ``"cuda"``, ``"cuda:N"``, or ``"auto"``: the device of the vectors, or, for host arrays, a GPU if
        there is one and it is predicted to be faster.
    check_finite : bool, default True
        Refuse NaN and infinities, naming the row.

    Notes
    -----
    A code takes ``(parts * bits + 7) // 8`` bytes: sub-codes one after the other from the lowest bit on, as in FAISS.
    Vectors are taken as `kith.knn` takes them; those of float64 and wide integers are rounded to float32.

    A quantizer can be pickled and copied, trained or not.

    Examples
    --------
    >>> import numpy as np, kith
    >>> x = np.repeat(np.arange(16, dtype=np.float32), 80).reshape(-1, 2)
    >>> quantizer = kith.ProductQuantizer(2, bits=4).train(x)
    >>> codes = quantizer.encode(x)
    >>> codes.shape, codes.dtype
    ((640, 1), dtype('uint8'))
    >>> bool((quantizer.decode(codes) == x).all())
    True
    """

    _kind = _kith.ProductQuantizer

    @answers_other_names("kith.ProductQuantizer()")
    def __init__(
        self,
        parts: SupportsIndex,
        *,
        bits: SupportsIndex = 8,
        seed: SupportsIndex = 0,
        device: DeviceNames = "auto",
        check_finite: bool = True,
    ) -> None:
        super().__init__(device)
        self._parameters = (
            whole_number(parts, "parts"),
            whole_number(bits, "bits"),
            seed_number(seed),
            flag(check_finite, "check_finite"),
        )
        self._compiled = _kith.ProductQuantizer(*self._parameters)

    @classmethod
    def of_codewords(cls, codewords: npt.ArrayLike, **parameters: Any) -> ProductQuantizer:
        """A quantizer with these codewords, (parts, 2**bits, columns of a part), as if trained.

        `parameters` are those of `ProductQuantizer`, without `parts` and `bits`.
        """
        given = np.ascontiguousarray(to_numpy(codewords, "codewords"), dtype=np.float32)
        bits = given.shape[1].bit_length() - 1 if given.ndim == 3 else -1
        if given.ndim != 3 or 1 << max(bits, 0) != given.shape[1]:
            raise ValueError(f"codewords have the shape {given.shape}; it must be (parts, 2**bits, columns of a part)")
        quantizer = cls(given.shape[0], bits=bits, **parameters)
        quantizer._compiled.set_values(given.reshape(-1))
        return quantizer

    @classmethod
    def load(cls, path: PathLike, device: DeviceNames = "auto") -> ProductQuantizer:
        """A quantizer that `save` or ``kith train`` has written, as it was trained."""
        compiled, parts, bits, seed, check_finite = _kith.load_quantizer(path_bytes(path))
        if not isinstance(compiled, _kith.ProductQuantizer):
            raise _other_kind(path, compiled)
        quantizer = cls(parts, bits=bits, seed=seed, device=device, check_finite=check_finite)
        quantizer._compiled = compiled
        return quantizer

    @property
    def parts(self) -> int:
        """Sub-vectors."""
        return int(self._parameters[0])

    @property
    def bits(self) -> int:
        """Of a sub-vector's code."""
        return int(self._parameters[1])

    @property
    def codewords(self) -> Floats:
        """A copy of what was trained: (parts, 2**bits, columns of a part)."""
        return self._compiled.values().reshape(self.parts, 1 << self.bits, -1)

    def lookup_table(
        self, queries: VectorsLike, metric: Metric = "sqeuclidean", *, threads: SupportsIndex = 0
    ) -> Floats:
        """What each codeword adds to the distance of a query and a code: (queries, parts, 2**bits).

        `metric` is ``"sqeuclidean"`` or ``"inner_product"``. For one query, given as a 1-D array, (parts, 2**bits).
        """
        return self._table(queries, metric, (self.parts, 1 << self.bits), threads)

    def __repr__(self) -> str:
        return f"kith.ProductQuantizer({self.parts}, bits={self.bits})"


class ScalarQuantizer(_Quantizer[_kith.ScalarQuantizer]):
    """A vector with each value rounded to a few bits, between the least and largest of its column in training.

    Codes are FAISS's for the same ranges, and the same on every device.

    Parameters
    ----------
    bits : {8, 6, 4, 16}, default 8
        Of a value; 16 stores float16 and needs nothing from the vectors that it is trained with but their dimension.
    device : str, default "auto"
        As in `ProductQuantizer`.
    check_finite : bool, default True
        Refuse NaN and infinities, naming the row.

    Notes
    -----
    A code takes ``(dimension * bits + 7) // 8`` bytes. Values beyond a range go to its end; with 16 bits a value that
    float16 cannot hold is refused.

    A quantizer can be pickled and copied, trained or not.

    Examples
    --------
    >>> import numpy as np, kith
    >>> x = np.linspace(0, 1, 256, dtype=np.float32).reshape(-1, 1)
    >>> quantizer = kith.ScalarQuantizer(8).train(x)
    >>> bool(np.abs(quantizer.decode(quantizer.encode(x)) - x).max() < 0.002)
    True
    """

    _kind = _kith.ScalarQuantizer

    @answers_other_names("kith.ScalarQuantizer()")
    def __init__(
        self,
        bits: SupportsIndex = 8,
        *,
        device: DeviceNames = "auto",
        check_finite: bool = True,
    ) -> None:
        super().__init__(device)
        self._parameters = whole_number(bits, "bits"), flag(check_finite, "check_finite")
        self._compiled = _kith.ScalarQuantizer(*self._parameters)

    @classmethod
    def of_ranges(cls, least: npt.ArrayLike, span: npt.ArrayLike, **parameters: Any) -> ScalarQuantizer:
        """A quantizer with these ranges, one value of each for every column, as if trained.

        `parameters` are those of `ScalarQuantizer`.
        """
        given = [np.asarray(to_numpy(x, name), dtype=np.float32) for x, name in ((least, "least"), (span, "span"))]
        if given[0].ndim != 1 or given[0].shape != given[1].shape:
            raise ValueError(f"least and span have the shapes {given[0].shape} and {given[1].shape}; both must be 1-D")
        quantizer = cls(**parameters)
        quantizer._compiled.set_values(given[0].size, np.concatenate(given))
        return quantizer

    @classmethod
    def load(cls, path: PathLike, device: DeviceNames = "auto") -> ScalarQuantizer:
        """A quantizer that `save` or ``kith train`` has written, as it was trained."""
        compiled, _, bits, _, check_finite = _kith.load_quantizer(path_bytes(path))
        if not isinstance(compiled, _kith.ScalarQuantizer):
            raise _other_kind(path, compiled)
        quantizer = cls(bits=bits, device=device, check_finite=check_finite)
        quantizer._compiled = compiled
        return quantizer

    @property
    def bits(self) -> int:
        """Of a value's code."""
        return int(self._parameters[0])

    @property
    def least(self) -> Floats:
        """The least value of each column in training; none for 16 bits."""
        return self._compiled.values().reshape(-1)[: self.dimension]

    @property
    def span(self) -> Floats:
        """How far the largest value of each column was from the least; none for 16 bits."""
        return self._compiled.values().reshape(-1)[self.dimension :]

    def lookup_table(
        self, queries: VectorsLike, metric: Metric = "sqeuclidean", *, threads: SupportsIndex = 0
    ) -> Floats:
        """What each code of each column adds to the distance of a query and a vector: (queries, dimension, 2**bits).

        `metric` is ``"sqeuclidean"`` or ``"inner_product"``. For one query, given as a 1-D array, (dimension, 2**bits).
        There is none for 16 bits.
        """
        return self._table(queries, metric, (self.dimension, 0 if self.bits == 16 else 1 << self.bits), threads)

    def _set_values(self, values: Floats, dimension: int) -> None:
        self._compiled.set_values(dimension, values)

    def __repr__(self) -> str:
        return f"kith.ScalarQuantizer({self.bits})"
