"""Writes the site: `make_site.py FOLDER`. Exits with the dead links, if there are any."""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urldefrag

import markdown  # type: ignore[import-untyped]
from markdown.extensions.toc import TocExtension  # type: ignore[import-untyped]
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]

import kith
import kith.sklearn
from api_reference import cpp_reference, python_reference

ROOT = Path(__file__).parents[1]

# What the pages are called, in the order in which they are listed.
PAGES = {
    "Start": {"README.md": "Kith", "docs/quickstart.md": "Quickstart", "docs/gallery.md": "Gallery", "docs/explore.md": "Look at vectors",
              "docs/coming-from.md": "Coming from FAISS, scikit-learn or hnswlib"},
    "Choose": {"docs/metrics.md": "Metrics", "docs/indexes.md": "Indexes", "docs/knn-graph.md": "k-NN graphs",
               "docs/collections.md": "Collections"},
    "Tune": {"docs/tuning.md": "Tuning an index", "docs/performance.md": "What is fast when",
             "docs/scaling.md": "Scaling", "docs/devices.md": "Several devices", "docs/clusters.md": "Clusters"},
    "Each kind": {"docs/graph-index.md": "Graph indexes", "docs/quantizers.md": "Quantizers",
                  "docs/lsq.md": "LSQ and RQ", "docs/transforms.md": "Transforms", "docs/kmeans.md": "k-means",
                  "docs/graph-paths.md": "Paths and trees", "docs/exact-search-on-gpus.md": "Exact search on GPUs"},
    "Guides": {},  # the other pages of docs/, by their titles
    "Reference": {"docs/python-arrays.md": "Arrays in Python", "docs/c-api.md": "C API",
                  "docs/file-formats.md": "File formats", "docs/collection-schema.md": "A collection's directory",
                  "api/python.md": "Python", "api/cpp.md": "C++", "api/command-line.md": "Command line"},
    "Project": {"CHANGELOG.md": "Changes", "ARCHITECTURE.md": "Architecture", "CONTRIBUTING.md": "Contributing",
                "SECURITY.md": "Security", "LICENSE": "Licence"},
}

STYLE = """
:root { --ink: #24292f; --quiet: #57606a; --line: #d8dee4; --accent: #2f6f9f; --paper: #fff; --code: #f6f8fa; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #d5dbe1; --quiet: #8b949e; --line: #30363d; --accent: #79b8e0; --paper: #0d1117; --code: #161b22; }
}
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: var(--paper); font: 16px/1.6 system-ui, sans-serif; display: flex; }
nav { flex: 0 0 16rem; height: 100vh; position: sticky; top: 0; overflow: auto; padding: 1.5rem; font-size: .9rem;
      border-right: 1px solid var(--line); }
nav b { display: block; margin-top: 1rem; color: var(--quiet); font-weight: 600; }
nav a { display: block; padding: .1rem 0; color: var(--ink); text-decoration: none; }
nav a.here { color: var(--accent); font-weight: 600; }
main { flex: 1; min-width: 0; max-width: 56rem; padding: 2rem 3rem 6rem; }
a { color: var(--accent); }
h1, h2, h3, h4 { line-height: 1.25; margin: 2em 0 .6em; }
h1 { margin-top: 0; }
h2 { border-bottom: 1px solid var(--line); padding-bottom: .3em; }
img { max-width: 100%; }
pre, code { font: .875em/1.5 ui-monospace, Menlo, Consolas, monospace; background: var(--code); border-radius: 6px; }
code { padding: .15em .35em; }
pre { padding: 1rem; overflow: auto; }
pre code { padding: 0; }
table { border-collapse: collapse; display: block; overflow: auto; }
th, td { border: 1px solid var(--line); padding: .35rem .75rem; text-align: left; vertical-align: top; }
dt { margin-top: .6em; }
dd { margin-left: 1.5rem; color: var(--quiet); }
@media (max-width: 50rem) { body { display: block; } nav { height: auto; position: static; border: 0; } main { padding: 1.5rem; } }
"""


def github_slug(text: str, separator: str) -> str:
    """Anchors as GitHub makes them, so that links work in both places."""
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", separator)


def sources() -> dict[str, dict[str, tuple[str, str]]]:
    """By section and path: each page's title and Markdown."""
    program = os.environ.get("KITH_PROGRAM") or shutil.which("kith", path=str(Path(sys.executable).parent))
    made = {
        "api/python.md": python_reference(kith, kith.sklearn),
        "api/cpp.md": cpp_reference(ROOT / "include" / "kith"),
        "api/command-line.md": command_reference(program),
    }
    found: dict[str, dict[str, tuple[str, str]]] = {}
    for section, pages in PAGES.items():
        found[section] = {}
        for path, title in pages.items():
            text = made.get(path) or (ROOT / path).read_text(encoding="utf-8")
            found[section][path] = title, f"# {title}\n\n```text\n{text}```\n" if path == "LICENSE" else text
    listed = {path for pages in PAGES.values() for path in pages}
    for page in sorted((ROOT / "docs").glob("*.md")):
        path = f"docs/{page.name}"
        if path not in listed:
            text = page.read_text(encoding="utf-8")
            found["Guides"][path] = text.splitlines()[0].removeprefix("# "), text
    return found


def command_reference(program: str | None) -> str:
    """The help of every command, as the program prints it."""
    text = ["# Command line", "", "What `kith COMMAND --help` prints. `kith manual | man -l -` shows all of it in a terminal."]
    if program is None:
        return "\n".join([*text, "", "This site was built without the program."])

    def add(*path: str) -> None:
        shown = subprocess.run([program, *path, "--help"], capture_output=True, text=True, check=True).stdout
        text.extend(["", f"## {' '.join(('kith', *path))}", "", "```text", shown.rstrip(), "```"])
        below = re.search(r"^Subcommands:\n((?:  .*\n)+)", shown, re.MULTILINE)
        for name in re.findall(r"^  ([a-z]+) ", below[1], re.MULTILINE) if below else ():
            add(*path, name)

    add()
    return "\n".join(text) + "\n"


def target_of(path: str) -> str:
    """Where a page lies in the site."""
    return "index.html" if path == "README.md" else f"{Path(path).with_suffix('.html')}"


def with_links(text: str, path: str, pages: set[str]) -> str:
    """The page's links, which lead to files of the repository, as links of the site."""

    def rewrite(match: re.Match[str]) -> str:
        link, anchor = urldefrag(match[2])
        if re.match(r"\w+:", match[2]) or not link:
            return match[0]
        wanted = os.path.normpath(os.path.join(os.path.dirname(path), link))
        if wanted not in pages and wanted.endswith(".md") and (ROOT / wanted).is_file():
            return f'title="{wanted}, in the source"'  # of a room; it is no page of the site
        place = target_of(wanted) if wanted in pages else wanted
        relative = os.path.relpath(place, os.path.dirname(target_of(path)) or ".")
        return f'{match[1]}="{relative}{"#" + anchor if anchor else ""}"'

    return re.sub(r'(href|src)="([^"]+)"', rewrite, text)


def navigation(found: dict[str, dict[str, tuple[str, str]]], here: str) -> str:
    text = []
    for section, pages in found.items():
        text.append(f"<b>{section}</b>")
        for path, (title, _) in pages.items():
            place = os.path.relpath(target_of(path), os.path.dirname(target_of(here)) or ".")
            text.append(f'<a href="{place}"{" class=here" if path == here else ""}>{html.escape(title)}</a>')
    return "\n".join(text)


def build(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    found = sources()
    pages = {path for section in found.values() for path in section}
    colours = HtmlFormatter(style="default").get_style_defs(".codehilite")
    for section in found.values():
        for path, (title, text) in section.items():
            toc = TocExtension(slugify=github_slug)
            converter = markdown.Markdown(extensions=["tables", "fenced_code", "codehilite", "def_list", "sane_lists", toc],
                                          extension_configs={"codehilite": {"guess_lang": False}})
            # Markdown's fences have one word; how a block is tested does not matter here.
            text = text.replace("```python gpu\n", "```python\n").replace("```cuda\n", "```cpp\n")
            body = with_links(converter.convert(text), path, pages)
            depth = "../" * target_of(path).count("/")
            place = folder / target_of(path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(
                f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
                '<meta name="viewport" content="width=device-width, initial-scale=1">'
                f'<link rel="stylesheet" href="{depth}style.css"></head>\n<body><nav>{navigation(found, path)}</nav>\n'
                f"<main>{body}</main></body></html>\n", encoding="utf-8")
    (folder / "style.css").write_text(STYLE + colours, encoding="utf-8")
    shutil.copytree(ROOT / "docs" / "images", folder / "docs" / "images")
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))


class Links(HTMLParser):
    """What a page links to, and the anchors it has."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if value is not None and name in ("href", "src"):
                self.links.append(value)
            if value is not None and name == "id":
                self.anchors.add(value)


def dead_links(folder: Path) -> list[str]:
    """Links within the site that lead nowhere; those to other sites are not tried."""
    pages = {}
    for page in folder.rglob("*.html"):
        pages[page.resolve()] = Links()
        pages[page.resolve()].feed(page.read_text(encoding="utf-8"))
    dead = []
    for page, parsed in pages.items():
        for link in parsed.links:
            if re.match(r"\w+:", link):
                continue
            place, anchor = urldefrag(link)
            target = (page.parent / place).resolve() if place else page
            if not target.exists() or (anchor and anchor not in pages[target].anchors):
                dead.append(f"{page.relative_to(folder.resolve())}: {link}")
    return dead


def main() -> None:
    folder = Path(sys.argv[1])
    build(folder)
    dead = dead_links(folder)
    if dead:
        sys.exit("dead links:\n" + "\n".join(dead))
    print(f"{folder}/index.html and {sum(1 for _ in folder.rglob('*.html')) - 1} other pages, no dead link")


if __name__ == "__main__":
    main()
