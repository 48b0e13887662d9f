"""What a graph or an index will take, before it is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import SupportsIndex

from kith import _kith
from kith._info import info
from kith._metrics import Metric
from kith._options import byte_size, flag, real_number, text, whole_number
from kith._other_names import answers_other_names
from kith._typing import ByteSize


@dataclass(frozen=True)
class PlanPhase:
    """One phase of a `WorkPlan`."""

    name: str
    read_bytes: int
    written_bytes: int
    blocks: int
    """That the rows are cut into, each of which fits into memory."""
    host_bytes: int
    device_bytes: int
    disk_bytes: int
    """On disk at its end, results included, sources not."""
    seconds: float
    bound: str
    """What takes this time: ``"products"``, ``"reading"`` or ``"writing"``."""


@dataclass(frozen=True)
class WorkPlan:
    """What `plan` returns."""

    method: str
    """``"exact"``, ``"cells"``, ``"nn_descent"``, or the factory string."""
    from_disk: bool
    """It does not fit into memory."""
    result_bytes: int
    phases: list[PlanPhase]
    advice: list[str]
    """What would help, most first."""
    seconds: float
    host_bytes: int
    device_bytes: int
    disk_bytes: int

_MOST_THREADS = 1 << 16


@answers_other_names("kith.plan()")
def plan(
    rows: SupportsIndex,
    cols: SupportsIndex,
    dtype: str = "f32",
    *,
    factory: str = "",
    k: SupportsIndex = 10,
    metric: Metric = "l2",
    recall: float = 0.99,
    probes: float = 0,
    ids_only: bool = False,
    int32_ids: bool = False,
    memory_limit: ByteSize | None = None,
    device_memory_limit: ByteSize | None = None,
    gpu: bool = False,
    threads: SupportsIndex = 0,
    instruction_set: str | None = None,
    disk_read: float = 2e9,
    disk_write: float = 1e9,
) -> WorkPlan:
    """Predict what building a k-NN graph or an index will take, phase by phase.

    Nothing is read or measured: times come from the model by which Kith chooses devices (the page "Scaling").

    Parameters
    ----------
    rows, cols : int
        Vectors and their length.
    dtype : str, default "f32"
        ``"f32"``, ``"f16"``, ``"bf16"``, ``"u8"`` or ``"i8"``.
    factory : str, optional
        Plan an index (``"IVF4096,PQ32"``) instead of a graph.
    k, metric, recall
        Of the graph, as in `knn_graph`; a recall of 1 is exact.
    probes : float, default 0
        Of the graph's cells, where a run has reported them; 0: those of data like SIFT.
    ids_only, int32_ids : bool, default False
        A graph without distances, and with ids of 4 bytes, as by `knn_graph_ids`.
    memory_limit, device_memory_limit : int or str, optional
        Bytes of memory (``"16G"``), of the host and of the GPU; what does not fit is planned from disk.
    gpu : bool, default False
        Plan for an H200 instead of the CPU.
    threads : int, default 0
        Of the CPU; 0: those of this machine.
    instruction_set : str, optional
        Of the CPU, as ``kith.info()["instruction_set"]`` names it; None: this machine's, ``""``: any small CPU.
    disk_read, disk_write : float
        What the disk moves, bytes a second.

    Examples
    --------
    >>> import kith
    >>> made = kith.plan(20_000_000, 96, "u8", memory_limit="1G", threads=8)
    >>> made.method, made.from_disk
    ('cells', True)
    """
    count = whole_number(threads, "threads")
    if not 0 <= count <= _MOST_THREADS:
        raise ValueError(f"threads = {count}; allowed are 0 (those of this machine) to {_MOST_THREADS}")
    told = _kith.plan(
        whole_number(rows, "rows"),
        whole_number(cols, "cols"),
        text(dtype, "dtype"),
        text(factory, "factory"),
        whole_number(k, "k"),
        text(metric, "metric"),
        real_number(recall, "recall"),
        real_number(probes, "probes"),
        flag(ids_only, "ids_only"),
        flag(int32_ids, "int32_ids"),
        None if memory_limit is None else byte_size(memory_limit, "memory_limit"),
        None if device_memory_limit is None else byte_size(device_memory_limit, "device_memory_limit"),
        flag(gpu, "gpu"),
        count if count != 0 else info()["threads"],
        info()["instruction_set"] if instruction_set is None else text(instruction_set, "instruction_set"),
        real_number(disk_read, "disk_read"),
        real_number(disk_write, "disk_write"),
    )
    return WorkPlan(**{**told, "phases": [PlanPhase(**phase) for phase in told["phases"]]})
