"""Programs that run with treatments in them."""

import json
import os
import subprocess
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.run.apps.theirs import python_with

from velodrome.guest.injected.treating import VARIABLE
from velodrome.run.environments import guest_tree
from velodrome.run.environments.interpreter import find_interpreter
from velodrome.run.injecting import SITE

HEARTBEAT = {"heartbeat": {"late_s": 0.008}}
UNTIL_REPORTED = "\nimport time; time.sleep(1.2)\n"
"""Until the heartbeat has written what it saw."""


class Injected:
    """Runs programs with treatments."""

    def __init__(self, folder: Path) -> None:
        self.app, self.seen = folder / "app", folder / "seen"
        self.app.mkdir()
        self.seen.mkdir()

    def run(
        self,
        program: str,
        give: Mapping[str, Any],
        version: str | None = None,
        requires: tuple[str, ...] = (),
        **env: str,
    ) -> str:
        tree = guest_tree.export()
        give_text = json.dumps({"folder": str(self.seen), "give": give})
        path = os.pathsep.join([str(tree), str(tree / SITE), str(self.app)])
        python = python_with(*requires) if requires else str(find_interpreter(version).path)
        done = subprocess.run(
            [python, "-c", textwrap.dedent(program)],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": path, VARIABLE: give_text, **env},
            cwd=self.app,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout

    def lines(self, beginning: str) -> list[dict[str, Any]]:
        files = sorted(self.seen.glob(f"{beginning}-*.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]

    def took(self) -> set[str]:
        return {line["took"] for line in self.lines("took")}


@pytest.fixture
def injected(tmp_path: Path) -> Injected:
    return Injected(tmp_path)
