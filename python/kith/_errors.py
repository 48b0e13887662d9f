"""Exceptions and a warning that Python has no type for, and how messages name what was given."""

from __future__ import annotations


def kind_of(value: object) -> str:
    """The type of what was given, for a message: "an int", "a str"."""
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"


class CorruptFileError(ValueError):
    """A file could be read, but does not hold what its format promises.

    Attributes
    ----------
    filename : str
        The file.
    offset : int
        The byte at which that was seen.
    """

    def __init__(self, message: str, filename: str = "", offset: int = 0) -> None:
        super().__init__(message)
        self.filename = filename
        self.offset = offset


class UnfinishedError(RuntimeError):
    """A part of some work, which does not wait, has done its share before the others: run it again later."""


class PrecisionWarning(UserWarning):
    """Rounding to float32, in which Kith reads vectors, may change which of them are nearest."""
