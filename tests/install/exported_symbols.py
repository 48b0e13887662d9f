"""What a shared libkith shows to the outside: the functions of kith/kith.h, and of C++ what the public headers name.

    python exported_symbols.py PREFIX/lib/libkith.so PREFIX/include/kith
    python exported_symbols.py PREFIX/lib/libkith-collection.so PREFIX/include/kith collection

Whatever else is exported becomes a part of the ABI that nobody has promised, and may clash with another library in the
same process.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

NAME = re.compile(r"kith::(?:\(anonymous namespace\)::)?(\w+(?:::\w+)*)")


def exported(library: Path) -> list[str]:
    """The demangled names of all symbols that the dynamic linker sees."""
    lines = subprocess.run(["nm", "-D", "-C", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return [line.split(maxsplit=2)[2] for line in lines.splitlines()]


COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
TYPE = re.compile(r"\b(?:struct|class|enum class|enum|union)\s+(?:KITH_EXPORT\s+)?(\w+)")
FUNCTION = re.compile(r"\b(operator|\w+)\s*(?:[^\s\w(]{1,3}\s*)?\(")
NAMESPACE = re.compile(r"\bnamespace\s+kith::(\w+)")
CALL = re.compile(r"\breturn\b[^;]*;")


def declared(header: str) -> set[str]:
    """The types and functions that a header's text declares: comments, strings and what functions call do not count."""
    code = CALL.sub(";", re.sub(r'"(?:[^"\\]|\\.)*"', '""', COMMENT.sub("", header)))
    return {*TYPE.findall(code), *FUNCTION.findall(code)}


def not_public(symbols: list[str], headers: str, c_header: str) -> list[str]:
    """The symbols that no header declares; `headers` and `c_header` are their texts."""
    words = declared(headers)
    namespaces = set(NAMESPACE.findall(headers))
    functions = set(re.findall(r"\b(kith_\w+)\(", COMMENT.sub("", c_header)))
    found = []
    for symbol in symbols:
        # What is declared stands before the first parenthesis or template argument; "typeinfo for" and the like before it.
        name = NAME.match(symbol.split(" for ")[-1])
        if name is None:
            if symbol not in functions:
                found.append(symbol)
        elif next((part for part in name[1].split("::") if part not in namespaces), "") not in words:
            found.append(symbol)
    return found


def main() -> None:
    library, folder = Path(sys.argv[1]), Path(sys.argv[2])
    headers = "".join(path.read_text("utf-8") for path in sorted(folder.iterdir()))
    c_header = (folder / "kith.h").read_text("utf-8")
    symbols = exported(library)
    if len(sys.argv) > 3:  # a library beside libkith has no C functions
        c_header = ""
    c_header = COMMENT.sub("", c_header)
    missing = set(re.findall(r"^KITH_C_API[^;(]*?\b(kith_\w+)\(", c_header, re.MULTILINE)) - set(symbols)
    wrong = not_public(symbols, headers, c_header)
    for symbol in wrong:
        print(f"exported, but in no public header: {symbol}")
    for symbol in sorted(missing):
        print(f"declared in kith.h, but not exported: {symbol}")
    if wrong or missing:
        sys.exit(1)
    print(f"{len(symbols)} symbols, all of them public")


if __name__ == "__main__":
    main()
