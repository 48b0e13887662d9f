"""What is computed when it is asked for: once, by a thread of its own, while all other questions are answered.

Who asks waits a moment; what takes longer is said to be coming, and the page asks again. What nobody asks for any more is given up.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

Report = Callable[[str, int, int], None]

_PATIENCE = 1.0  # seconds that a question waits
_FORGOTTEN = 15.0  # seconds without a question until it is given up; the page asks every second
_KEPT = 6  # results that do not stay


class NotReady(Exception):
    """What was asked for is being computed, or cannot be: the words are for the page."""

    def __init__(self, words: str, *, coming: bool, share: float | None = None) -> None:
        super().__init__(words)
        self.coming = coming
        self.share = share
        """How much of it is done, where that is known."""


class _Job:
    def __init__(self) -> None:
        self.ended = threading.Event()
        self.asked = time.monotonic()
        self.share: float | None = None
        self.result: Any = None
        self.error: BaseException | None = None


class Jobs:
    """Results by name."""

    def __init__(self) -> None:
        self._results: OrderedDict[Any, Any] = OrderedDict()
        self._passing: OrderedDict[Any, Any] = OrderedDict()
        self._running: dict[Any, _Job] = {}
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._closed = False

    def get(self, key: Any, title: str, make: Callable[[Report], Any], *, kept: bool = True, alone: bool = False) -> Any:
        """The result of `make`; NotReady while it is being made. `make` calls the report that it is given, now and then.

        `kept` results stay; of the others the newest few do. What is made `alone` waits for others of that kind.
        """
        with self._lock:
            for results in (self._results, self._passing):
                if key in results:
                    results.move_to_end(key)
                    return results[key]
            job = self._running.get(key)
            if job is None:
                job = self._running[key] = _Job()
                threading.Thread(target=self._run, args=(key, job, make, kept, alone), name=f"kith explore: {title}", daemon=True).start()
            job.asked = time.monotonic()
        if not job.ended.wait(_PATIENCE):
            raise NotReady(f"{title}: being computed", coming=True, share=job.share)
        if isinstance(job.error, (NotReady, MemoryError)):
            raise job.error
        if job.error is not None:
            raise NotReady(f"{title}: {job.error}", coming=False)
        return job.result

    def close(self) -> None:
        """Ends what is being made, at its next word of progress."""
        self._closed = True
        with self._lock:
            running = list(self._running.values())
        for job in running:
            job.ended.wait(10)

    def _run(self, key: Any, job: _Job, make: Callable[[Report], Any], kept: bool, alone: bool) -> None:
        def report(_: str, done: int, total: int) -> None:
            if self._closed or time.monotonic() - job.asked > _FORGOTTEN:
                raise KeyboardInterrupt
            job.share = done / total if total > 0 else None

        try:
            with self._turn if alone else nullcontext():
                report("", 0, 0)
                job.result = make(report)
        except KeyboardInterrupt:
            job.error = NotReady("it was given up, since nobody asked for it any more", coming=True)
        except Exception as error:  # told to those who ask; the next question tries again
            job.error = error
        with self._lock:
            del self._running[key]
            if job.error is None:
                (self._results if kept else self._passing)[key] = job.result
                while len(self._passing) > _KEPT:
                    self._passing.popitem(last=False)
        job.ended.set()
