"""The reference as Markdown: the Python package from its docstrings, the C++ API from its headers."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

_LISTS = ("Parameters", "Attributes", "Returns", "Raises", "Warns")


def python_reference(*modules: ModuleType) -> str:
    """Every public name of the modules, with its signature and docstring."""
    names = {name for module in modules for name in module.__all__}
    text = ["# Python reference", "", "Made from the docstrings: `help(kith.knn)` shows the same."]
    for module in modules:
        text += ["", f"## {module.__name__}", "", _prose(_summary(inspect.getdoc(module) or ""), names)]
        for name in sorted(module.__all__, key=lambda name: (not name[0].islower(), name.lower())):
            thing = getattr(module, name)
            if name.startswith("__") or not inspect.getdoc(thing):
                continue
            text += _entry(f"{module.__name__}.{name}", thing, names, level=3)
            if inspect.isclass(thing):
                for member, method in sorted(_members(thing).items()):
                    documented = isinstance(method, property) or callable(method) or isinstance(method, classmethod)
                    if not member.startswith("_") and documented and inspect.getdoc(getattr(thing, member)):
                        text += _entry(f"{name}.{member}", getattr(thing, member), names, level=4)
    return "\n".join(text) + "\n"


def _members(kind: type) -> dict[str, Any]:
    """What a class has of its own and from classes of this package."""
    own = [base for base in reversed(kind.__mro__) if base.__module__.partition(".")[0] == "kith"]
    return {name: member for base in own for name, member in vars(base).items()}


def _summary(docstring: str) -> str:
    """Without the examples: pages of their own have those."""
    return docstring.split("\n\n")[0]


def _entry(name: str, thing: Any, names: set[str], *, level: int) -> list[str]:
    text = ["", f"{'#' * level} {name}", ""]
    if callable(thing) and not isinstance(thing, property):
        try:
            text += ["```python", f"{name}{_signature(thing)}", "```", ""]
        except (TypeError, ValueError):  # of a type that has none
            pass
    text.append(_docstring(inspect.getdoc(thing) or "", names))
    return text


def _signature(thing: Any) -> str:
    signature = inspect.signature(thing)
    kept = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in signature.parameters.values()
        if parameter.name not in ("self", "unknown")
    ]
    # Without types, which the text gives in words.
    short = str(signature.replace(parameters=kept, return_annotation=inspect.Signature.empty))
    return short if len(short) < 90 else "(\n    " + ",\n    ".join(_split(short[1:-1])) + ",\n)"


def _split(arguments: str) -> list[str]:
    """At the commas that stand in no brackets."""
    return re.split(r", (?![^(\[{]*[)\]}])", arguments)


def _docstring(docstring: str, names: set[str]) -> str:
    """numpy's sections as headings, lists and code."""
    parts = re.split(r"^(\w+)\n-{3,}\n", docstring, flags=re.MULTILINE)
    text = [_prose(parts[0], names)]
    for title, body in zip(parts[1::2], parts[2::2]):
        text += ["", f"**{title}**", "", _definitions(body, names) if title in _LISTS else _prose(body, names)]
    return "\n".join(text)


def _definitions(body: str, names: set[str]) -> str:
    """`name : type` with an indented text, as a list of definitions."""
    text: list[str] = []
    for line in body.splitlines():
        if line and not line.startswith(" "):
            name, _, kind = line.partition(" : ")
            shown = ", ".join(f"`{part.strip()}`" for part in name.split(",")) if kind or re.fullmatch(r"[\w, ]+", name) else name
            text += ["", f"{shown}{': ' + _words(kind, names) if kind else ''}"]
            first = True
        elif line.strip():
            text.append((":   " if first else "    ") + _words(line.strip(), names))
            first = False
    return "\n".join(text)


def _prose(text: str, names: set[str]) -> str:
    """Paragraphs, with examples as code."""
    result = []
    for block in text.strip().split("\n\n"):
        lines = block.splitlines()
        if any(line.lstrip().startswith(">>>") for line in lines):
            shown = re.sub(r" *# doctest: .*", "", inspect.cleandoc(block))
            result.append(f"```pycon\n{shown}\n```")
        elif lines and all(line.startswith("    ") for line in lines):
            result.append("```python\n" + inspect.cleandoc(block) + "\n```")
        else:
            result.append(_words(block, names).replace("::", ":"))
    return "\n\n".join(result)


def _words(text: str, names: set[str]) -> str:
    """reStructuredText's quotes as Markdown's; a name of the package becomes a link to it."""
    text = re.sub(r"``(.+?)``", r"`\1`", text, flags=re.DOTALL)

    def link(match: re.Match[str]) -> str:
        name = match[1].removeprefix("kith.")
        if name not in names or name in ("sklearn",):
            return match[0]
        module = "kithsklearn" if name.startswith("KNeighbors") or name == "NearestNeighbors" else "kith"
        return f"[`{match[1]}`](#{module}{name.lower()})"

    return re.sub(r"`((?:kith\.)?\w+)`", link, text)


def cpp_reference(include: Path) -> str:
    """Every public header: what it says of itself, then what it declares."""
    text = ["# C++ reference", "", "Made from the headers in `include/kith`. `#include <kith/kith.hpp>` has all of them but "
            "those of custom metrics."]
    for header in sorted(include.glob("*.hpp")):
        if header.name in ("kith.hpp", "export.hpp"):
            continue
        about, code = _parts_of(header.read_text(encoding="utf-8"))
        text += ["", f"## kith/{header.name}", "", about, "", "```cpp", code, "```"]
    return "\n".join(text) + "\n"


def _parts_of(header: str) -> tuple[str, str]:
    """The comment at the top as prose, and the declarations."""
    lines = header.splitlines()
    top = 0
    while top < len(lines) and lines[top].startswith("//"):
        top += 1
    about = "\n".join(line.removeprefix("//").removeprefix(" ") for line in lines[:top])
    # What is indented in the comment is set as code.
    indented = re.compile(r"((?:^ {2,}.*\n?)+)", re.MULTILINE)
    about = indented.sub(lambda match: "\n```text\n" + match[1].rstrip("\n") + "\n```\n", about)
    code = "\n".join(line for line in lines[top:] if not re.match(r"#(include|pragma)|namespace kith|}  // namespace", line))
    return about, re.sub(r"\n{3,}", "\n\n", code.replace("KITH_EXPORT ", "")).strip()
