"""The folders of src/ keep their order, and no components include each other in a circle.

A folder includes only itself and folders before it in ORDER. A component is a file's path without its extension, so that
x.hpp, x.cpp and x.cu are one; a circle of components cannot be understood, tested or moved piece by piece.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
PUBLIC = ROOT / "include"
ORDER = "core cuda io rows ranks kernels exact cluster transform quantize ivf graph paths index interop capi plan distributed collection".split()
INNER_ORDER = {
    "cluster": "data search draw steps start run shared".split(),
    "quantize": "product additive".split(),
    "ivf": "model segment scan search".split(),
    "graph": "lists handle build search".split(),
    "graph/build": "exact cells cells_on_disk exact_on_disk nn_descent descent_on_disk ggm method merge custom".split(),
}
"""The folders within a folder, where they have an order too; what lies beside them comes last."""
CLIENTS = "cli python/src src/capi examples".split()
"""Who uses the library as any program does: by public headers alone."""
ENDINGS = {".h", ".hpp", ".cpp", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<(kith/[^>]+)>)', re.MULTILINE)

Includes = dict[str, list[str]]
"""The includes of each file; both are paths as an #include writes them."""


def includes_under(root: Path) -> Includes:
    files = sorted(path for path in root.rglob("*") if path.suffix in ENDINGS)
    assert files, root
    return {str(path.relative_to(root)): [a or b for a, b in INCLUDE.findall(path.read_text("utf-8"))] for path in files}


def against_the_order(includes: Includes) -> list[str]:
    """Every include of a later folder, or of a file that no folder of src/ holds."""
    found = []
    for file, included in includes.items():
        for other in included:
            if other.startswith("kith/"):
                continue
            folder = other.split("/")[0]
            if other not in includes:
                found.append(f"{file} includes {other}, which is not a path from src/")
            elif folder not in ORDER or ORDER.index(folder) > ORDER.index(file.split("/")[0]):
                found.append(f"{file} includes the later {other}")
    return found


def against_the_inner_order(includes: Includes) -> list[str]:
    """Every include of a later folder within the same folder of src/, or within a folder of that."""

    def place(file: str, folder: str) -> int | None:
        if not file.startswith(folder + "/"):
            return None
        inner, _, rest = file[len(folder) + 1 :].partition("/")
        return INNER_ORDER[folder].index(inner) if rest else len(INNER_ORDER[folder])

    found = []
    for folder in INNER_ORDER:
        for file, included in includes.items():
            here = place(file, folder)
            for other in included:
                there = place(other, folder)
                if here is not None and there is not None and there > here:
                    found.append(f"{file} includes the later {other}")
    return found


def component_of(file: str) -> str:
    """A .cuh, which the caller's own CUDA code is compiled with, is a component of its own."""
    return file if file.endswith(".cuh") else str(Path(file).with_suffix(""))


def circles(includes: Includes) -> list[str]:
    """The groups of components that reach each other (Tarjan's algorithm), each with its includes."""
    graph: dict[str, set[str]] = {component_of(file): set() for file in includes}
    for file, included in includes.items():
        graph[component_of(file)] |= {component_of(other) for other in included if other in includes}
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[str] = []

    def visit(component: str) -> None:
        index[component] = low[component] = len(index)
        stack.append(component)
        for other in sorted(graph[component]):
            if other not in index:
                visit(other)
                low[component] = min(low[component], low[other])
            elif other in stack:
                low[component] = min(low[component], index[other])
        if low[component] == index[component]:
            at = stack.index(component)
            group = stack[at:]
            del stack[at:]
            if len(group) > 1:
                inside = (f"{a} -> {b}" for a in sorted(group) for b in sorted(graph[a] & set(group) - {a}))
                found.append("; ".join(inside))

    for component in graph:
        if component not in index:
            visit(component)
    return found


def test_the_order_names_every_folder() -> None:
    assert {path.name for path in SOURCE.iterdir() if path.is_dir()} <= set(ORDER)


def test_no_folder_includes_a_later_one() -> None:
    found = against_the_order(includes_under(SOURCE))
    assert not found, "\n".join(found)


def test_no_folder_within_a_folder_includes_a_later_one() -> None:
    for folder, inner in INNER_ORDER.items():
        assert {path.name for path in (SOURCE / folder).iterdir() if path.is_dir()} == set(inner)
    found = against_the_inner_order(includes_under(SOURCE))
    assert not found, "\n".join(found)


def test_no_components_include_each_other_in_a_circle() -> None:
    found = circles(includes_under(SOURCE))
    assert not found, "\n".join(found)


def test_public_headers_stand_alone() -> None:
    headers = includes_under(PUBLIC)
    assert headers
    missing = [f"{file} includes {other}" for file, included in headers.items() for other in included if other not in headers]
    assert missing == []
    assert circles(headers) == []


def test_clients_include_public_headers() -> None:
    library = {str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*") if path.suffix in ENDINGS}
    for folder in CLIENTS:
        own = folder.removeprefix("src/") + "/" if folder.startswith("src/") else None
        inside = {
            other
            for included in includes_under(ROOT / folder).values()
            for other in included
            if other in library and not (own and other.startswith(own))
        }
        assert not inside, f"{folder} includes from inside the library: {sorted(inside)}"


def test_what_is_wrong_is_found() -> None:
    assert against_the_order({"core/a.hpp": ["io/b.hpp"], "io/b.hpp": ["core/a.hpp", "kith/view.hpp"]}) == [
        "core/a.hpp includes the later io/b.hpp"
    ]
    assert against_the_order({"core/a.hpp": ["b.hpp"]}) == ["core/a.hpp includes b.hpp, which is not a path from src/"]
    inner = {"ivf/scan/a.cpp": ["ivf/model/b.hpp", "ivf/search/c.hpp", "ivf/d.hpp"], "ivf/a.cpp": ["ivf/search/c.hpp"]}
    assert against_the_inner_order(inner) == [
        "ivf/scan/a.cpp includes the later ivf/search/c.hpp",
        "ivf/scan/a.cpp includes the later ivf/d.hpp",
    ]
    nested = {"graph/build/cells/a.cpp": ["graph/lists/b.hpp", "graph/build/merge/c.hpp"], "graph/lists/b.hpp": []}
    assert against_the_inner_order(nested) == ["graph/build/cells/a.cpp includes the later graph/build/merge/c.hpp"]
    chain = {"io/a.cpp": ["io/a.hpp", "io/b.hpp"], "io/a.hpp": [], "io/b.hpp": ["io/c.hpp"], "io/c.hpp": []}
    assert circles(chain) == []
    assert circles({**chain, "io/c.hpp": ["io/a.hpp"]}) == ["io/a -> io/b; io/b -> io/c; io/c -> io/a"]
