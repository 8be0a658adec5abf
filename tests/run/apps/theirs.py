"""Environments as users have them: made by uv, without pip, with a framework and no server."""

from functools import cache
from pathlib import Path

from velodrome.run import cache as kept
from velodrome.run.environments.installing import run_uv
from velodrome.run.environments.interpreter import find_interpreter

SHOP = Path(__file__).with_name("shop")


@cache
def python_with(*requires: str, version: str | None = None) -> str:
    """Return the interpreter of an environment with these packages, made once for all test runs."""
    home = kept.folder("environments-of-users") / "-".join([version or "own", *requires]).replace("=", "_")
    python = home / "bin" / "python"
    if not (home / "whole").exists():
        made = run_uv(
            ("venv", "--no-project", f"--python={find_interpreter(version).path}", "--clear", str(home)),
            home.parent,
        )
        assert made.returncode == 0, made.stderr
        if requires:
            filled = run_uv(("pip", "install", f"--python={python}", *requires), home.parent)
            assert filled.returncode == 0, filled.stderr
        (home / "whole").touch()
    return str(python)
