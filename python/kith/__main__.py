"""``python -m kith``: the program kith, with the same arguments."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    program = Path(__file__).parent / "_program" / "kith"
    if not program.is_file():
        sys.exit(f"kith: this package was built without the program; there is no {program}")
    os.environ.setdefault("KITH_PYTHON", sys.executable)  # which kith explore starts
    os.execv(program, ["kith", *sys.argv[1:]])


if __name__ == "__main__":
    main()
