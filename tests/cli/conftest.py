"""The program under test. KITH_PROGRAM names it; without it there is nothing to test, which is an error and no skip."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for matrix_files, whatever import mode pytest runs in

TIMEOUT_SECONDS = 120


@dataclass
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


class Program:
    def __init__(self, path):
        self.path = path

    def __call__(self, *arguments, cwd=None):
        """Runs the program to its end and returns what it said."""
        done = subprocess.run(
            [self.path, *map(str, arguments)],
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            stdin=subprocess.DEVNULL,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    def ok(self, *arguments, cwd=None):
        """The same for a run that must succeed, with nothing on stderr."""
        outcome = self(*arguments, cwd=cwd)
        assert outcome.code == 0, outcome.err
        assert outcome.err == ""
        return outcome

    def fails(self, code, *arguments, cwd=None):
        """The same for a run that must fail with `code`, one line of error and no output."""
        outcome = self(*arguments, cwd=cwd)
        assert outcome.code == code, outcome
        assert outcome.err.startswith("kith: ") and outcome.err.count("\n") == 1, outcome.err
        assert outcome.out == ""
        return outcome.err

    @property
    def sanitized(self):
        """Whether a sanitizer is built in: its shadow memory and slowness are no property of Kith."""
        content = Path(self.path).read_bytes()
        return b"__asan_" in content or b"__tsan_" in content


@pytest.fixture(scope="session")
def kith():
    path = os.environ.get("KITH_PROGRAM")
    if not path or not os.access(path, os.X_OK):
        pytest.exit(f"set KITH_PROGRAM to the built program kith; it is {path!r}", returncode=2)
    return Program(os.path.abspath(path))


@pytest.fixture
def kith_unsanitized(kith):
    if kith.sanitized:
        pytest.skip("memory and time of a sanitized build say nothing about Kith")
    return kith
