"""Every public call refuses every mistake of error_audit.py with a typed error, in Kith's words, that names what was given."""

from __future__ import annotations

import inspect
import warnings

import error_audit
import pytest

import kith


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(error_audit.calls(tmp_path_factory.mktemp("audit")))


def test_calls_work_as_they_are(calls):
    for call in calls:
        for argument, (_, value) in call.arguments.items():
            if value is not None:
                assert error_audit.outcome(call, argument, value) is None, (call.name, error_audit.outcome(call, argument, value))
                break


def test_every_mistake_is_answered(calls):
    wrong, tried = [], 0
    for call in calls:
        for argument, mistake, value in error_audit.attempts(call):
            error = error_audit.outcome(call, argument, value)
            tried += 1
            if fault := error_audit.complaint(argument, value, error):
                wrong.append(f"{call.name}({argument}: {mistake}): {fault}: {type(error).__name__}: {error}")
    assert tried > 2000
    assert not wrong, "\n".join(wrong)


# What other libraries call things, and what nothing is called.
FOREIGN = {"nprobe": 4, "n_neighbors": 5, "n_jobs": 2, "random_state": 0, "gpu": True, "verbose": True, "no_such_thing": 1}


def _takes_foreign_names(call):
    parameters = inspect.signature(call).parameters
    return "unknown" in parameters


@pytest.mark.parametrize("name", [name for name in kith.__all__ if inspect.isfunction(getattr(kith, name, None))])
def test_foreign_keywords_are_answered(name):
    call = getattr(kith, name)
    if not _takes_foreign_names(call):
        pytest.skip("it has none to confuse")
    needed = [p.name for p in inspect.signature(call).parameters.values() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    for keyword, value in FOREIGN.items():
        if keyword in inspect.signature(call).parameters:
            continue
        with pytest.raises(TypeError, match=f"has no argument {keyword!r}; (Kith's way is|did you mean|it has|see help)"):
            call(**dict.fromkeys(needed), **{keyword: value})


def test_calls_without_their_arguments_say_which():
    for name in ("knn", "range_search", "knn_graph", "near_duplicates", "recall", "load"):
        with pytest.raises(TypeError, match="missing .* required positional argument"):
            getattr(kith, name)()
