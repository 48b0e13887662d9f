"""Transforms: what vectors go through before they are compressed or searched."""

from __future__ import annotations

import os
from functools import partial
from typing import Any, SupportsIndex, TypeVar

import numpy as np
import numpy.typing as npt

from kith import _kith
from kith._arrays import Array, VectorsLike, as_vectors
from kith._device_arrays import fill_on_device
from kith._files import path_bytes
from kith._kith import CallOptions
from kith._libraries import library_of
from kith._options import flag, seed_number, text, whole_number
from kith._other_names import answers_other_names
from kith._progress import Progress
from kith._trainable import PathLike, Trainable
from kith._typing import ByteSize, ByteSizes, DeviceNames

Floats = npt.NDArray[np.float32]
SomeTransform = TypeVar("SomeTransform", bound="Transform")

_LINEAR = 0  # the first kind of a step


class Transform(Trainable[_kith.VectorTransform]):
    """Steps that vectors go through: rotations, fewer or more columns, a common centre or length.

    Parameters
    ----------
    steps : str
        As in FAISS's factory strings, divided by commas: ``"PCA64"`` (centred, then the 64 directions in which vectors
        differ most), ``"OPQ16"`` or ``"OPQ16_64"`` (rotated for product codes of 16 parts, to 64 columns), ``"RR"`` or
        ``"RR64"`` (a random rotation), ``"Centre"`` (less the mean), ``"L2norm"`` (to length 1), ``"Pad128"`` (zeros
        behind).
    seed : int, default 0
        Of the random numbers; not negative.
    device : str, default "auto"
        ``"cpu"``, ``"cuda"``, ``"cuda:N"``, or ``"auto"``: the device of the vectors, or, for host arrays, a GPU if
        there is one and it is predicted to be faster.
    check_finite : bool, default True
        Refuse NaN and infinities, naming the row.

    Notes
    -----
    Training uses a sample of 65,536 vectors, or for PCA 16 per column if that is more. The same vectors and seed
    give the same bytes on every machine. `apply` computes products in float64, rounded once: the same bytes on every
    device.

    Vectors are taken as `kith.knn` takes them; those of float64 and wide integers are rounded to float32. A transform can
    be pickled and copied, trained or not, and saved once it is trained.

    Examples
    --------
    >>> import numpy as np, kith
    >>> x = np.random.default_rng(1).normal(size=(100, 8)).astype(np.float32)
    >>> transform = kith.Transform("L2norm,RR16").train(x)
    >>> y = transform.apply(x)
    >>> y.shape, bool(np.allclose((y**2).sum(1), 1))
    ((100, 16), True)
    """

    _kind = ""  # what the steps of such a transform begin with

    @answers_other_names("kith.Transform()")
    def __init__(
        self,
        steps: str,
        *,
        seed: SupportsIndex = 0,
        device: DeviceNames = "auto",
        check_finite: bool = True,
    ) -> None:
        self._parameters = text(steps, "steps"), seed_number(seed), flag(check_finite, "check_finite")
        self._set_up(device)

    def _set_up(self, device: DeviceNames) -> None:
        super().__init__(device)
        self._compiled = _kith.VectorTransform(*self._parameters)

    @property
    def steps(self) -> str:
        """What was asked for."""
        return self._parameters[0]

    def _trained_steps(self) -> str:
        return self.steps

    @property
    def dimension_in(self) -> int:
        """Columns of the vectors that it takes; 0 before training."""
        return self._compiled.dimension_in

    @property
    def dimension_out(self) -> int:
        """Columns of the vectors that it makes; 0 before training."""
        return self._compiled.dimension_out

    @property
    def learnt(self) -> list[dict[str, Any]]:
        """A copy of the trained steps: name, matrix (out, in) and offset (out,), if the step has them.

        A vector x becomes ``matrix @ x + offset``. PCA is two steps, less the mean and a rotation.
        """
        found = []
        for kind, name, columns, out, matrix, offset in self._compiled.steps():
            part: dict[str, Any] = {"name": name, "in": columns, "out": out}
            if kind == _LINEAR:
                part["matrix"] = matrix.reshape(out, columns)
            if offset.size:
                part["offset"] = offset
            found.append(part)
        return found

    @answers_other_names("apply()")
    def apply(
        self,
        x: VectorsLike,
        *,
        threads: SupportsIndex = 0,
        memory_limit: ByteSize | None = None,
        device_memory_limit: ByteSizes | None = None,
        progress: Progress = False,
    ) -> Array:
        """The transformed vectors: float32, (rows, dimension_out), in `x`'s kind of array and memory."""
        with self._calling(x, threads, memory_limit, device_memory_limit, progress) as options:
            return self._run(x, options, self._compiled.apply, self.dimension_out)

    @answers_other_names("reverse()")
    def reverse(
        self,
        x: VectorsLike,
        *,
        threads: SupportsIndex = 0,
        memory_limit: ByteSize | None = None,
        device_memory_limit: ByteSizes | None = None,
        progress: Progress = False,
    ) -> Array:
        """The way back: vectors of the original space, (rows, dimension_in), as near as what was dropped allows.

        Vectors of unit length stay so: their lengths are not known any more.
        """
        with self._calling(x, threads, memory_limit, device_memory_limit, progress) as options:
            return self._run(x, options, self._compiled.reverse, self.dimension_in)

    def _run(self, x: VectorsLike, options: CallOptions, step: Any, columns: int) -> Array:
        rows = as_vectors(x, "x", options.stream)[0]
        if isinstance(rows, _kith.DeviceArray):
            wanted = (rows.shape[0], columns)
            return fill_on_device(x, wanted, rows.device, options.stream, partial(step, rows, options))
        return library_of(x).from_host(step(rows, options, None), x)

    def save(self, path: PathLike) -> None:
        """Write the trained transform to `path`, a .kith file, under a temporary name first."""
        self._compiled.save(path_bytes(path))

    @classmethod
    def load(cls: type[SomeTransform], path: PathLike, device: DeviceNames = "auto") -> SomeTransform:
        """A transform that `save` has written, as it was trained.

        ``kith.Transform.load`` takes any of them, ``kith.PCA.load`` and the like those of their kind.
        """
        compiled, steps, seed, check_finite = _kith.load_transform(path_bytes(path))
        if not steps.startswith(cls._kind) or (cls._kind and "," in steps):
            raise ValueError(f"{os.fsdecode(path)!r} holds the transform {steps!r}: load it with kith.Transform.load")
        transform = cls.__new__(cls)
        transform._parameters = steps, seed, check_finite
        transform._set_up(device)
        transform._compiled = compiled
        return transform

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy: the parameters and what was trained."""
        trained = self._compiled.steps() if self.trained else None
        return {"device": self._device, "parameters": self._parameters, "trained": trained}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._parameters = state["parameters"]
        self._set_up(state["device"])
        if state["trained"] is not None:
            self._compiled.set_steps(state["trained"])

    def __repr__(self) -> str:
        return f"kith.Transform({self.steps!r})"


class PCA(Transform):
    """The directions in which vectors differ most: ``Transform("PCA64")`` for 64 columns.

    Parameters
    ----------
    dimension : int
        Of the vectors that come out: how many directions are kept.
    seed, device, check_finite
        As in `Transform`.

    Examples
    --------
    >>> import numpy as np, kith
    >>> x = np.outer(np.arange(50.0), [3, 4]).astype(np.float32)
    >>> pca = kith.PCA(1).train(x)
    >>> bool(np.allclose(pca.reverse(pca.apply(x)), x, atol=1e-4))
    True
    """

    _kind = "PCA"

    @answers_other_names("kith.PCA()")
    def __init__(
        self,
        dimension: SupportsIndex,
        *,
        seed: SupportsIndex = 0,
        device: DeviceNames = "auto",
        check_finite: bool = True,
    ) -> None:
        steps = f"PCA{whole_number(dimension, 'dimension')}"
        super().__init__(steps, seed=seed, device=device, check_finite=check_finite)

    @property
    def mean(self) -> Floats:
        """What is taken from every vector."""
        return np.asarray(-self.learnt[0]["offset"], np.float32)

    @property
    def components(self) -> Floats:
        """The directions, one in each row."""
        return np.asarray(self.learnt[1]["matrix"], np.float32)


class OPQ(Transform):
    """A rotation for product codes: ``Transform("OPQ16_64")`` for 16 parts and 64 columns.

    Parameters
    ----------
    parts : int
        Of the product codes; must divide the columns.
    dimension : int, optional
        Of the vectors that come out: less than, equal to or more than that of those that go in; by default equal.
    seed, device, check_finite
        As in `Transform`.
    """

    _kind = "OPQ"

    @answers_other_names("kith.OPQ()")
    def __init__(
        self,
        parts: SupportsIndex,
        dimension: SupportsIndex | None = None,
        *,
        seed: SupportsIndex = 0,
        device: DeviceNames = "auto",
        check_finite: bool = True,
    ) -> None:
        steps = f"OPQ{whole_number(parts, 'parts')}"
        if dimension is not None:
            steps += f"_{whole_number(dimension, 'dimension')}"
        super().__init__(steps, seed=seed, device=device, check_finite=check_finite)

    @property
    def rotation(self) -> Floats:
        """The matrix, (dimension_out, dimension_in)."""
        return np.asarray(self.learnt[0]["matrix"], np.float32)


class RandomRotation(Transform):
    """A random rotation: ``Transform("RR64")`` for 64 columns. Lengths and distances stay, unless columns are dropped.

    Parameters
    ----------
    dimension : int, optional
        Of the vectors that come out: less than, equal to or more than that of those that go in; by default equal.
    seed, device, check_finite
        As in `Transform`.
    """

    _kind = "RR"

    @answers_other_names("kith.RandomRotation()")
    def __init__(
        self,
        dimension: SupportsIndex | None = None,
        *,
        seed: SupportsIndex = 0,
        device: DeviceNames = "auto",
        check_finite: bool = True,
    ) -> None:
        steps = "RR" if dimension is None else f"RR{whole_number(dimension, 'dimension')}"
        super().__init__(steps, seed=seed, device=device, check_finite=check_finite)

    @property
    def rotation(self) -> Floats:
        """The matrix, (dimension_out, dimension_in)."""
        return np.asarray(self.learnt[0]["matrix"], np.float32)
