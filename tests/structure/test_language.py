"""Comments begin with their subject, and types are not called by words that say nothing.

A comment that begins with "Of", "And of", "So many" or "As many as" has lost its subject: the reader has to find it in the
code below. A type called ...Wish or ...Facts does not say what of: parameters, a shape, needs, terms, counts.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = "src include cli python tests bench examples scripts cmake".split()
COMMENTS = {
    **dict.fromkeys([".h", ".hpp", ".c", ".cpp", ".cu", ".cuh"], re.compile(r"(?://+|/\*+|^\s*\*)\s*(.*)")),
    **dict.fromkeys([".py", ".cmake", ".sh"], re.compile(r"(?:^|\s)#+\s(.*)")),
}
WITHOUT_SUBJECT = re.compile(r"(?:And of|Of|So many|As many as)\b")
EMPTY_NAME = re.compile(r"\b(?:struct|class|enum class|using)\s+(\w*(?:Wish|Facts|Again|Somewhere))\b(?!\s*;)")


def texts() -> dict[str, str]:
    files = [
        path
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and (path.suffix in COMMENTS or path.name == "CMakeLists.txt") and path != Path(__file__)
    ]
    assert len(files) > 1000
    return {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in sorted(files)}


def comments_without_subject(file: str, text: str) -> list[str]:
    """The lines, in comments of this file, that a comment or a paragraph of one begins with so."""
    pattern = COMMENTS.get(Path(file).suffix, COMMENTS[".py"])
    found, before = [], ""
    for number, line in enumerate(text.split("\n"), 1):
        match = pattern.search(line)
        words = match.group(1).strip() if match else ""
        if (not before or before.endswith((".", ":"))) and WITHOUT_SUBJECT.match(words):
            found.append(f"{file}:{number}: {words}")
        before = words
    return found


def empty_names(text: str) -> set[str]:
    return set(EMPTY_NAME.findall(text))


def test_comments_have_a_subject() -> None:
    found = [line for file, text in texts().items() for line in comments_without_subject(file, text)]
    assert not found, "\n".join(found)


def test_types_are_called_by_what_they_are() -> None:
    names = {name for file, text in texts().items() if not file.endswith(".py") for name in empty_names(text)}
    assert not names, f"say what these are: {sorted(names)}"


def test_what_is_wrong_is_found() -> None:
    assert comments_without_subject("a.cpp", "int a;  // Of rows.\n") == ["a.cpp:1: Of rows."]
    assert comments_without_subject("a.cpp", "// The rows.\n// So many as fit.\n") == ["a.cpp:2: So many as fit."]
    assert comments_without_subject("a.cpp", "// The sum\n// Of is no word to begin with, but this goes on.\n") == []
    assert comments_without_subject("a.py", "# As many as fit.\n") == ["a.py:1: As many as fit."]
    assert comments_without_subject("a.h", "/* Of the last call. */\n") == ["a.h:1: Of the last call. */"]
    assert comments_without_subject("a.cpp", "// Office hours.\n") == []
    assert empty_names("struct SearchWish {\nclass ListFacts;\nusing Wish = int;") == {"SearchWish", "Wish"}
