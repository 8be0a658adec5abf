"""Finds what a figure names: a cell with its results, an experiment with its facts, or why there is neither."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from velodrome.guest.catalog import serves
from velodrome.guest.stack import Stack
from velodrome.judge.field import Runner, runners
from velodrome.judge.figures.cell import Cell
from velodrome.judge.figures.number import Missing
from velodrome.model.claim import Figure
from velodrome.model.experiment import Finding
from velodrome.model.load import Load
from velodrome.model.profile import Profile
from velodrome.model.results import Result
from velodrome.model.study import Question, Study
from velodrome.model.trial import Contestant


@dataclass(frozen=True)
class Evidence:
    """All that a study measured."""

    study: Study
    results: Sequence[Result]
    stacks: Mapping[str, Stack]
    findings: Sequence[Finding] = ()
    profiles: Sequence[Profile] = ()
    _fields: dict[str, list[Runner]] = field(default_factory=dict)
    """By question, made once."""

    def cell(self, figure: Figure, bound_ms: float | None = None) -> Cell | Missing:
        """Return the cell a figure names, or why it has no result."""
        for question, contestant in self._every_pair():
            if figure.cell == f"{question.name}/{contestant.label}":
                break
        else:
            return Missing(f"{figure.cell} is not in this study")
        for runner in self._field(question):
            if runner.contestant == contestant:
                profiles = [
                    one
                    for one in self.profiles
                    if one.trial.question == question.name and one.trial.contestant == contestant
                ]
                return Cell(question, runner, profiles, bound_ms)
        return Missing(self._why_not(question, contestant))

    def finding(self, name: str) -> Finding | Missing:
        """Return what an experiment came to, or why it came to nothing."""
        found = [one for one in self.findings if one.experiment.name == name]
        if not found:
            skipped = " (the quick form leaves it out)" if self.study.skips(name) else ""
            return Missing(f"the experiment {name} was not run{skipped}")
        last = found[-1]
        return Missing(f"the experiment {name} could not be tried: {last.failed}") if last.failed else last

    def load(self, question: Question, label: str) -> Load | Missing:
        """Return the load of a question by its label."""
        found = next((load for load in question.loads if load.label == label), None)
        return found or Missing(f"{question.name} has no load {label}")

    def _every_pair(self) -> list[tuple[Question, Contestant]]:
        return [(question, one) for question in self.study.questions for one in self.study.contestants]

    def _field(self, question: Question) -> list[Runner]:
        if question.name not in self._fields:
            self._fields[question.name] = runners(question, self.results, self.stacks)
        return self._fields[question.name]

    def _why_not(self, question: Question, contestant: Contestant) -> str:
        name = f"{question.name}/{contestant.label}"
        if self.study.skips(name):
            return f"the {self.study.form} form leaves {name} out"
        stack = self.stacks.get(contestant.stack)
        refused = serves(stack, question.recipe) if stack else None
        return f"{name} cannot be served: {refused}" if refused else f"{name} was not run"
