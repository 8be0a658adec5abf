"""Whoever shows a race while it runs."""

from typing import Protocol

from velodrome.model.claim import Experiment, Finding
from velodrome.model.profile import Profile
from velodrome.model.results import Result
from velodrome.model.trial import Trial


class Preparing(Protocol):
    """Whoever is told what is done before anything is measured."""

    def preparing(self, text: str) -> None:
        """Told what is done before the first heat, and while waiting for another velodrome; by any thread."""


class Follower(Preparing, Protocol):
    """Whoever shows a race. All are called on the thread that called `run`, but `preparing`."""

    def heat_started(self, label: str, seconds_left: float | None) -> None:
        """Told `question/contestant` of the heat that begins, and how long it and the rest will take."""

    def experiment_started(self, experiment: Experiment) -> None:
        """Told the experiment that begins."""

    def found(self, finding: Finding) -> None:
        """Told what an experiment came to, when it is on the disk; on resume also what was there already."""

    def profile_started(self, trial: Trial) -> None:
        """Told of whom a profile begins."""

    def profiled(self, profile: Profile) -> None:
        """Told each profile, when it is on the disk; on resume also those that were there already."""

    def finished(self, result: Result) -> None:
        """Told each result, when it is on the disk; on resume first those that were there already."""
