"""``python3 -m kith.explore``: the page of `kith.explore`, from files. ``kith explore`` starts it."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from kith._explore import explore
from kith._explore.command import main


class _Callable(ModuleType):
    """An import of this module puts it in the place of the function `kith.explore`: it can be called as that."""

    def __call__(self, *given: Any, **more: Any) -> Any:
        return explore(*given, **more)


if __name__ == "__main__":
    sys.exit(main())

sys.modules[__name__].__class__ = _Callable
