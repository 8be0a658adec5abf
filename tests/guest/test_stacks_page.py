"""The page of stacks is what the catalog says."""

import runpy
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "stacks_page.py"


def test_the_page_of_stacks_is_current() -> None:
    tool = runpy.run_path(str(TOOL))
    assert tool["PAGE"].read_text() == tool["page"](), "run: .venv/bin/python tools/stacks_page.py"
