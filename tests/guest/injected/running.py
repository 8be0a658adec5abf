"""Programs that run with treatments, and what these noted."""

import json
import os
import subprocess
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from velodrome.guest.injected.treating import VARIABLE
from velodrome.run.environments import guest_tree
from velodrome.run.environments.interpreter import find_interpreter
from velodrome.run.injecting import SITE


class Injected:
    """Runs programs with treatments."""

    def __init__(self, folder: Path) -> None:
        self.app, self.seen = folder / "app", folder / "seen"
        self.app.mkdir()
        self.seen.mkdir()

    def run(self, program: str, give: Mapping[str, Any], version: str | None = None, **env: str) -> str:
        tree = guest_tree.export()
        told = json.dumps({"folder": str(self.seen), "give": give})
        path = os.pathsep.join([str(tree), str(tree / SITE), str(self.app)])
        done = subprocess.run(
            [str(find_interpreter(version).path), "-c", textwrap.dedent(program)],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": path, VARIABLE: told, **env},
            cwd=self.app,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def lines(self, beginning: str) -> list[dict[str, Any]]:
        files = sorted(self.seen.glob(f"{beginning}-*.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]

    def took(self) -> set[str]:
        return {line["took"] for line in self.lines("took")}
