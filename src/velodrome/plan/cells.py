"""Cells and loads that a study file names in its claims and tables: those there are, and what to say of others."""

from collections.abc import Sequence
from dataclasses import dataclass

from velodrome.model.study import Study
from velodrome.plan.findings import Findings, nearest
from velodrome.plan.toml_map import Path


@dataclass(frozen=True)
class Cells:
    """Looks names up in one study; what is wrong with them is in `findings`."""

    study: Study
    findings: Findings

    def loads(self, cell: str) -> list[str] | None:
        """Return the labels of the loads under which a cell is measured; None: there is no such cell."""
        for question, contestant in self.study.pairs():
            if cell == f"{question.name}/{contestant.label}":
                return [load.label for load in question.loads]
        return None

    def found(self, cell: str, at: Path) -> list[str] | None:
        """Return the same, after telling at `at` that there is no such cell."""
        loads = self.loads(cell)
        if loads is None:
            cells = [f"{question.name}/{contestant.label}" for question, contestant in self.study.pairs()]
            self.findings.add(at, f"'{cell}' is no question/contestant of this study; {nearest(cell, cells)}")
        return loads

    def check_load(self, load: str, loads: Sequence[str], at: Path) -> None:
        """Tell at `at` if a question has no such load."""
        if load not in loads:
            self.findings.add(at, f"'{load}' is no load of that question; {nearest(load, loads)}")
