"""Files that are compiled together give no name to two things.

With KITH_JOIN_SOURCES the C++ files of a folder are compiled several at a time (cmake/KithJoin.cmake), in groups that
change when a file is added. So what a file keeps in its anonymous namespace has a name that no other file of the folder
uses, neither for itself nor in a header; functions may share one if their parameters differ.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
ALONE = re.compile(r"HWY_TARGET_INCLUDE")
"""In files that Highway includes once for each instruction set, and that are compiled alone."""
APART = ("src/kernels", "tests/fuzz")
"""Folders whose files are never joined."""
VALUE = re.compile(r"^(?:inline |static )?(?:constexpr|const|thread_local)\b[^=({]*?\b(\w+)(?:\[\w*\])? ?[={]")
HEADERS = re.compile(r"^inline constexpr\b[^=({]*?\b(\w+)(?:\[\w*\])? ?[={]", re.MULTILINE)
"""The constants of a header."""
TYPE = re.compile(r"^(?:struct|class|enum class) (\w+)|^using (\w+) =")
FUNCTION = re.compile(r"^[A-Za-z_][\w:<>,*&\s\[\]]*?\b(\w+)\([^;]*$")
LAST_WORD = re.compile(r"\s*\b\w+(?=[,)])")


def private_names(text: str) -> set[str]:
    """Of constants, types and functions in anonymous namespaces, which this code does not indent; behind a function's
    name stand the types of its parameters."""
    found = set()
    inside = False
    lines = text.split("\n")
    for at, line in enumerate(lines):
        if line.startswith("namespace {"):
            inside = True
        elif line.startswith("}  // namespace"):
            inside = False
        elif inside and (match := VALUE.match(line) or TYPE.match(line)):
            found.add(next(name for name in match.groups() if name))
        elif inside and (match := FUNCTION.match(line)):
            head = " ".join(part.strip() for part in lines[at : at + 8]).split(" {")[0]
            found.add(match.group(1) + LAST_WORD.sub("", head[match.end(1) :]))
    return found


def shared_names(files: dict[str, str]) -> list[str]:
    """The names that several of the files of one folder use, privately or, in headers, for all; each with those files."""
    users: dict[str, list[str]] = defaultdict(list)
    headers: dict[str, list[str]] = defaultdict(list)
    for file, text in files.items():
        if file.endswith(".hpp"):
            for name in HEADERS.findall(text):
                headers[name].append(file)
        elif not ALONE.search(text):
            for name in private_names(text):
                users[name].append(file)
    found = {name: sorted(by + headers[name]) for name, by in sorted(users.items())}
    return [f"{name}: {', '.join(by)}" for name, by in found.items() if len(by) > 1]


def test_private_names_of_a_folder_differ() -> None:
    found = []
    for folder in sorted({path.parent for top in ("src", "cli", "tests") for path in (ROOT / top).rglob("*.cpp")}):
        place = folder.relative_to(ROOT).as_posix()
        if not place.startswith(APART):
            files = {path.name: path.read_text("utf-8") for path in folder.glob("*.[ch]pp")}
            found += [f"{place}: {shared}" for shared in shared_names(files)]
    assert not found, "\n".join(found)


def test_what_is_shared_is_found() -> None:
    def file(*lines: str) -> str:
        return "\n".join(["namespace {", *lines, "}  // namespace"])

    same = file("constexpr int64_t kRows = 8;  // at a time", "struct Job {", "  int kInside = 1;", "};")
    assert shared_names({"a.cpp": same, "b.cpp": same}) == ["Job: a.cpp, b.cpp", "kRows: a.cpp, b.cpp"]
    one = file("void add(const Rows& rows, int64_t count) {")
    other = file("void add(const Rows& others,", "         int64_t many) {")
    third = file("void add(const Rows& rows) {")
    assert shared_names({"a.cpp": one, "b.cpp": other, "c.cpp": third}) == ["add(const Rows&, int64_t): a.cpp, b.cpp"]
    header = "inline constexpr int64_t kRows = 9;\n"
    assert shared_names({"a.cpp": same, "b.hpp": header}) == ["kRows: a.cpp, b.hpp"]
    outside = "constexpr int kRows = 8;\n"
    assert shared_names({"a.cpp": outside, "b.cpp": same, "c.cpp": "// HWY_TARGET_INCLUDE\n" + same}) == []
