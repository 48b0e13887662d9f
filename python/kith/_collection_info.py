"""What a collection says of itself."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class CollectionSegment:
    """An immutable file of vectors.

    Attributes
    ----------
    file : str
        In the collection's directory.
    rows, removed : int
        The vectors in it, and how many of these are not found any more.
    bytes : int
        Of the file.
    index : str
        The factory string of its index; empty: none, it is searched exactly.
    index_file : str
        The index, which may be deleted: searches are exact then, and `Collection.reindex` makes it again.
    """

    file: str
    rows: int
    removed: int
    bytes: int
    index: str
    index_file: str


@dataclass(frozen=True)
class CollectionInfo:
    """What a collection holds, as `Collection.info` tells it.

    Attributes
    ----------
    path : str
        Its directory.
    version : int
        Grows with every write.
    size : int
        The items.
    newest : int
        Vectors that are still in SQLite, and become a segment at the next fold.
    removed : int
        Vectors that are stored, but not found any more; `Collection.compact` drops them.
    not_indexed : int
        The items that no index covers: they are searched exactly.
    bytes_on_disk : int
        Of all its files.
    segments : list of CollectionSegment
        The files of vectors.
    """

    path: str
    version: int
    size: int
    newest: int
    removed: int
    not_indexed: int
    bytes_on_disk: int
    segments: list[CollectionSegment] = field(default_factory=list)


@dataclass(frozen=True)
class VerifyReport:
    """What `Collection.verify` found.

    Attributes
    ----------
    files, bytes, items : int
        How much was read and compared with its hashes.
    problems : list of (file, reason)
        Empty where all is as it was written.
    sound : bool
        Whether there are none.
    """

    files: int
    bytes: int
    items: int
    problems: list[tuple[str, str]] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        return not self.problems
