"""ARCHITECTURE.md names every room, and a room's README every folder in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "src").rglob("README.md"))


def folders(place: Path) -> list[Path]:
    return sorted(path for path in place.iterdir() if path.is_dir())


def test_every_room_is_named() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    named = set(re.findall(r"^\| `src/(\w+)/`", text, re.MULTILINE))
    assert named == {room.name for room in folders(ROOT / "src")}


@pytest.mark.parametrize("page", PAGES, ids=[str(page.parent.relative_to(ROOT)) for page in PAGES])
def test_a_readme_names_what_is_there(page: Path) -> None:
    text = page.read_text("utf-8")
    room = page.parent
    if room.name != "src":
        missing = [folder.name for folder in folders(room) if f"{folder.name}/`" not in text]
        assert not missing, f"{page} does not name the folders {missing}"
    for table in re.findall(r"^\| what \| where \|\n(?:\|.*\n)+", text, re.MULTILINE):
        for row in table.splitlines()[2:]:
            for name in re.findall(r"`([a-z0-9_]+)(?:/|)`", row.split("|")[2]):
                assert list(room.rglob(f"{name}.[ch]*")) or (room / name).is_dir(), f"{page}: there is no {name}"
    for row in re.findall(r"^\| ((?:`[\w/]+/`(?:, )?)+) \|", text, re.MULTILINE):
        for name in re.findall(r"`([\w/]+)/`", row):
            assert (room / name).is_dir(), f"{page}: there is no folder {name}"
