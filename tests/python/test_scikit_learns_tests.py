"""scikit-learn's own tests of k-means and of graphs pass with Kith's estimators in the place of its own.

Those of neighbours take minutes and are a stage of `scripts/test --slow`, which runs `tests/sklearn/run` whole.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sklearn")

RUN = Path(__file__).parents[1] / "sklearn" / "run"


def run(*modules: str) -> str:
    import kith

    environment = {**os.environ, "PYTHONPATH": str(Path(kith.__file__).parents[1])}
    done = subprocess.run([RUN, sys.executable, *modules], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr
    return done.stdout


@pytest.mark.parametrize("module", ["sklearn.cluster.tests.test_k_means", "sklearn.neighbors.tests.test_graph"])
def test_quick_ones(module):
    assert "that fitted an estimator of Kith (100.0%)" in run(module)
