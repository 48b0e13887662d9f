"""A plugin of pytest that puts Kith's estimators in the place of scikit-learn's, for scikit-learn's own tests.

    pytest -p kith_in_place --pyargs sklearn.neighbors.tests.test_neighbors

Classes are replaced before a test file is read, so that what it imports are Kith's. Tests that are expected to fail are in
`expected_failures`, by reason; each must fail, so that the list cannot outlive its reasons. At the end stands how many
tests used an estimator of Kith, and how many of them needed scikit-learn's own code for a part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from expected_failures import reason_for
from sklearn import cluster, neighbors

from kith import sklearn as ours

_BACKENDS: set[str] = set()  # that fits of Kith's estimators have used in the test that runs
_tests: dict[str, set[str]] = {}
_results: Counter[str] = Counter()
_reasons: Counter[str] = Counter()


def _watched(cls: Any) -> Any:
    """The class, which notes who computed what it was fitted on."""

    def __setattr__(self: Any, name: str, value: object) -> None:
        if name == "backend_":
            _BACKENDS.add(str(value))
        object.__setattr__(self, name, value)

    cls.__setattr__ = __setattr__
    return cls


def pytest_configure() -> None:
    for module, names in (
        (cluster, ("KMeans",)),
        (neighbors, ("NearestNeighbors", "KNeighborsTransformer", "KNeighborsClassifier", "KNeighborsRegressor")),
    ):
        for name in names:
            setattr(module, name, _watched(getattr(ours, name)))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        reason = reason_for(item.name)
        if reason is not None:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    _BACKENDS.clear()
    try:
        return (yield)
    finally:
        _tests[item.nodeid] = set(_BACKENDS)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when != "call":
        return
    if hasattr(report, "wasxfail"):
        outcome = "expected"
        _reasons[report.wasxfail] += 1
    else:
        outcome = report.outcome
    _results[outcome] += 1
    if outcome != "skipped" and _tests[report.nodeid]:
        _results[f"{outcome} with Kith"] += 1


def pytest_terminal_summary(terminalreporter: Any) -> None:
    outcomes = ("passed", "failed", "expected")
    ran = sum(_results[outcome] for outcome in outcomes)
    used = sum(_results[f"{outcome} with Kith"] for outcome in outcomes)
    alone = sum(backends == {"kith"} for backends in _tests.values())
    passed, of_kith = _results["passed"], _results["passed with Kith"]
    write = terminalreporter.write_line
    write(f"{passed} of {ran} tests passed ({passed / max(ran, 1):.1%})")
    write(f"{of_kith} of {used} that fitted an estimator of Kith ({of_kith / max(used, 1):.1%}): in {alone} Kith "
          f"alone computed, in {used - alone} scikit-learn too")
    for reason, count in sorted(_reasons.items()):
        write(f"{count:4} expected failures: {reason}")
