"""Links on the pages lead somewhere, options exist, and the README shows the pictures that its tool makes."""

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

TOP = Path(__file__).parents[2]
PAGES = [*sorted(TOP.glob("*.md")), *sorted((TOP / "docs").rglob("*.md"))]


@pytest.fixture(scope="module")
def tool() -> Mapping[str, Any]:
    return runpy.run_path(str(TOP / "tools" / "pictures.py"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", text(page))
    for link in links:
        if "://" in link:
            continue
        name, _, heading = link.partition("#")
        there = (page.parent / name).resolve() if name else page
        assert there.exists(), link
        assert not heading or heading in places(there), link


def text(page: Path) -> str:
    return re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def places(page: Path) -> set[str]:
    """Return what a link into a page may name: its headings, as GitHub spells them, and what has an id."""
    titles = [
        re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title) for title in re.findall(r"^#+ (.*)$", text(page), re.M)
    ]
    spelled = {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}
    return spelled | set(re.findall(r'(?:id|name)="([^"]+)"', text(page)))


def test_a_recording_shows_what_stands_on_the_terminal_at_last(tool: Mapping[str, Any]) -> None:
    shown = "\x1b[?25lone\r\n\x1b[1mtwo\x1b[0m\r\n\x1b[1A\x1b[2Kthree\r\nfour\x1b[?25h"
    assert tool["standing"](shown) == ["one", "three", "four"]


def test_the_recording_is_the_transcript_that_is_kept(tool: Mapping[str, Any]) -> None:
    typed, lines = tool["transcript"](TOP / "docs" / "three-apps.md")
    assert typed.startswith("velodrome compare ")
    picture = tool["drawn"](typed, lines)
    assert picture.startswith("<svg")
    assert "velodrome" in picture


def test_the_readme_shows_every_picture_there_is() -> None:
    shown = set(re.findall(r"\]\(docs/pictures/([^)]+)\)", (TOP / "README.md").read_text(encoding="utf-8")))
    assert shown == {picture.name for picture in (TOP / "docs" / "pictures").iterdir()}


def commands() -> dict[str, set[str]]:
    """Return every option that the pages give to a command of velodrome, by command."""
    found: dict[str, set[str]] = {}
    for page in PAGES:
        whole = re.sub(r"\\\n\s*", " ", page.read_text(encoding="utf-8"))
        for line in re.findall(r"(?:^\$? ?|`|&& )velodrome ([a-z]+(?: [^\n`]*)?)", whole, re.M):
            words = line.partition(" #")[0]
            command = re.match(r"cache (?:prune|verify)|cluster (?:start|keys)|[a-z]+", words)
            assert command is not None
            found.setdefault(command[0], set()).update(re.findall(r"(?<=\s)--[a-z][a-z0-9-]*", words))
    return found


@pytest.mark.integration
@pytest.mark.parametrize("command", sorted(command for command, options in commands().items() if options))
def test_every_option_on_a_page_exists(command: str) -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "velodrome", *command.split(), "--help"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"COLUMNS": "240", "NO_COLOR": "1", "TERM": "dumb"},
    ).stdout
    missing = {option for option in commands()[command] if not re.search(rf"{option}(?![\w-])", shown)}
    assert missing == set()
