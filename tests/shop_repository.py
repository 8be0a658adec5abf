"""A repository of git with an app whose revisions wait differently long."""

import os
import subprocess
from pathlib import Path

SHOP = """
import time

def app(environ, start_response):
    time.sleep({seconds})
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"ok"]
"""
ME = {f"GIT_{who}_{what}": "a" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def git(folder: Path, *arguments: str) -> str:
    """Run git there and return what it prints."""
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | ME).stdout


def commit(folder: Path, message: str, seconds: float, end: str = "") -> None:
    """Commit an app that waits so long."""
    (folder / "shop.py").write_text(SHOP.format(seconds=seconds) + end)
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", message)


def slower(folder: Path) -> Path:
    """Make one whose last commit made the app wait 20 ms instead of 2."""
    folder.mkdir()
    git(folder, "init", "--quiet")
    for seconds in (0.002, 0.02):
        commit(folder, f"wait {seconds}", seconds)
    return folder
