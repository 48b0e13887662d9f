#!python
"""Starts the program kith, which lies in the package: found without importing it, which would load numpy."""

import os
import sys
from importlib.util import find_spec

package = find_spec("kith")
assert package is not None and package.submodule_search_locations, "the package kith is not installed"
program = os.path.join(package.submodule_search_locations[0], "_program", "kith")
os.environ.setdefault("KITH_PYTHON", sys.executable)  # which kith explore starts
os.execv(program, ["kith", *sys.argv[1:]])
