"""Git, as somebody with a name."""

import os
import subprocess
from pathlib import Path


def git(folder: Path, *arguments: str) -> str:
    entry_row = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    ran = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | entry_row,
    )
    return ran.stdout.strip()
