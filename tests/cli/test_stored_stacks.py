"""Stacks that profiles stored are read from the folder of the run, and from nowhere else."""

import dataclasses
from pathlib import Path

from tests.report.made_up_profiles import verdict, view

from velodrome.cli import judge


def test_stacks_are_read_from_the_folder_of_the_run_alone(tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "profiles").mkdir(parents=True)
    (run / "profiles" / "a.txt").write_text("x (a.py) 1\n")
    (tmp_path / "secret.txt").write_text("x (a.py) 1\n")
    there = view("tornado", "profiles/a.txt", 0.5)
    others = [
        dataclasses.replace(there, collapsed=path)
        for path in ("../secret.txt", "/etc/passwd", "profiles/gone")
    ]
    assert judge._stacks(verdict(there, *others), [run]) == {"profiles/a.txt": "x (a.py) 1\n"}
