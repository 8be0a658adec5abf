"""Help and version wait for nothing heavy, name every command, and show options in groups."""

import subprocess
import sys

import pytest

from velodrome.cli._application import COMMANDS, command

HEAVY = {"numpy", "scipy", "altair", "pydantic", "rich", "psutil", "asyncio", "jinja2"}
"""What takes long to import, and nothing in a help text needs."""
MAIN = "from velodrome.cli.main import main; main()"
SHOW = "import atexit, sys; atexit.register(lambda: print('modules:', *sys.modules, file=sys.stderr)); "


def imported(*words: str) -> tuple[str, set[str]]:
    """Run a command line; return what it printed and the modules it imported."""
    ended = subprocess.run(
        [sys.executable, "-c", SHOW + MAIN, *words], capture_output=True, text=True, check=True
    )
    return ended.stdout, set(ended.stderr.partition("modules:")[2].split())


@pytest.mark.parametrize(
    "words", [["--version"], ["--help"], *([name, "--help"] for name in COMMANDS)], ids=" ".join
)
def test_help_and_version_import_nothing_heavy(words: list[str]) -> None:
    sentence, modules = imported(*words)
    assert sentence
    assert modules & HEAVY == set()
    if len(words) == 2:
        module, _ = COMMANDS[words[0]]
        others = {f"velodrome.cli.{name}" for name, _ in COMMANDS.values()} - {f"velodrome.cli.{module}"}
        # `run` has an option of the lists.
        assert modules & others <= {"velodrome.cli.lists"}


def test_the_version_does_without_typer() -> None:
    sentence, modules = imported("--version")
    assert sentence.startswith("velodrome ")
    assert "typer" not in modules


def test_help_names_every_command_and_each_of_them_can_be_had() -> None:
    sentence, _ = imported("--help")
    for name, (_, about) in COMMANDS.items():
        assert f"  {name} " in sentence
        assert about in " ".join(sentence.split())
        assert command(name).name == name


@pytest.mark.parametrize("name", ["load", "compare", "capacity", "tune", "diff", "run"])
def test_options_stand_in_groups_of_their_own(name: str) -> None:
    sentence, _ = imported(name, "--help")
    groups = [line for line in sentence.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert groups[0] == "Arguments:"
    assert len(groups) >= 5
    assert groups[-1] == "Options:"
    rest = sentence.partition("\nOptions:\n")[2]
    assert (
        len([line for line in rest.splitlines() if line.startswith("  -")]) <= 3
    )  # --help, and of all else little
