"""The common part of quantizers and transforms: training, one call at a time, on a device."""

from __future__ import annotations

import os
import threading
from contextlib import AbstractContextManager
from typing import Any, Generic, NoReturn, SupportsIndex, TypeVar, Union

from kith import _kith
from kith._arrays import VectorsLike, as_vectors
from kith._kith import CallOptions
from kith._options import calling, check_device
from kith._other_names import refuse_learner_name, answers_other_names
from kith._progress import Progress
from kith._sources import SourceLike, array_of, as_source
from kith._training_time import warn_of_long_training
from kith._typing import ByteSize, ByteSizes, DeviceNames

PathLike = Union[str, "os.PathLike[str]"]
Compiled = TypeVar(
    "Compiled",
    _kith.ProductQuantizer,
    _kith.ScalarQuantizer,
    _kith.LocalSearchQuantizer,
    _kith.ResidualQuantizer,
    _kith.VectorTransform,
)
Self = TypeVar("Self", bound="Trainable[Any]")


class Trainable(Generic[Compiled]):
    """An object that is trained on vectors."""

    _compiled: Compiled

    def __init__(self, device: DeviceNames) -> None:
        self._device = check_device(device)
        self._training = threading.Lock()

    @property
    def trained(self) -> bool:
        """Whether it is ready to be used."""
        return self._compiled.trained

    def __getattr__(self, name: str) -> NoReturn:
        refuse_learner_name(type(self).__name__, dir(type(self)), name)

    @answers_other_names("train()")
    def train(
        self: Self,
        x: VectorsLike | SourceLike,
        *,
        threads: SupportsIndex = 0,
        memory_limit: ByteSize | None = None,
        device_memory_limit: ByteSizes | None = None,
        progress: Progress = False,
    ) -> Self:
        """Learn from `x`.

        Parameters
        ----------
        x : array_like (rows, dimension), or path
            Vectors like those that will come, or files of them, as in `Index.train`.
        threads, memory_limit, device_memory_limit, progress
            As in `knn`.

        Returns
        -------
        This object.
        """
        with self._training, self._calling(x, threads, memory_limit, device_memory_limit, progress) as options:
            warn_of_long_training(self._trained_steps(), x, self._device, threads, progress)
            source = as_source(x)
            if source is not None:
                self._compiled.train_file(source, options)
            else:
                self._compiled.train(as_vectors(array_of(x), "x", options.stream)[0], options)
        return self

    def _trained_steps(self) -> str:
        return ""

    def _calling(
        self,
        x: object,
        threads: SupportsIndex,
        memory_limit: ByteSize | None,
        device_memory_limit: ByteSizes | None,
        progress: Progress,
    ) -> AbstractContextManager[CallOptions]:
        return calling(self._device, threads, memory_limit, device_memory_limit, progress, arrays=(x,))
