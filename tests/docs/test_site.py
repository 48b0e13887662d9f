"""The site is built without the network, has the reference in it, and no link of it leads nowhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("markdown")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "site"
    done = subprocess.run([sys.executable, ROOT / "scripts" / "make_site.py", folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no dead link" in done.stdout
    return folder


def test_pages(site: Path) -> None:
    for page in (ROOT / "docs").glob("*.md"):
        assert (site / "docs" / f"{page.stem}.html").exists()
    assert (site / "index.html").read_text().count("<h1") == 1
    assert (site / "docs" / "images" / "fashion_neighbours.png").exists()


def test_reference(site: Path) -> None:
    python = (site / "api" / "python.html").read_text()
    for anchor in ("kithknn", "kithindex", "kithrange_search", "rangeneighborsto_csr", "indexsearch", "kithsklearnkmeans"):
        assert f'id="{anchor}"' in python, anchor
    cpp = (site / "api" / "cpp.html").read_text()
    assert 'id="kithknnhpp"' in cpp and "check_finite" in cpp
    assert 'id="kith-index-build"' in (site / "api" / "command-line.html").read_text()


def test_a_dead_link_is_found(site: Path) -> None:
    sys.path.insert(0, str(ROOT / "scripts"))
    from make_site import dead_links

    assert dead_links(site) == []
    (site / "more.html").write_text('<a href="index.html#nowhere">a</a><a href="gone.html">b</a><a href="index.html">c</a>')
    assert sorted(dead_links(site)) == ["more.html: gone.html", "more.html: index.html#nowhere"]
