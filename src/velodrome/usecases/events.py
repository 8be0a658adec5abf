"""The sink of the events of every use case: what happens while it runs. This sink ignores all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from velodrome.model.claim import Experiment, Finding
from velodrome.model.diagnosis import Diagnosis, Evidence
from velodrome.model.measurement import Measurement
from velodrome.model.profile import Profile
from velodrome.model.results import Result
from velodrome.model.search import Probe, Sample
from velodrome.model.trial import Trial
from velodrome.model.tuning import Candidate, Observation

if TYPE_CHECKING:
    from velodrome.usecases.race import Race, Raced


class Events:
    """Ignores every event; a subclass takes those that it shows."""

    def said(self, sentence: str) -> None:
        """A sentence on what goes on, outside of a race."""

    def begins(self, race: Race) -> None:
        """A race is laid out and begins now."""

    def ended(self, raced: Raced) -> None:
        """A race has ended; the user's command for after it has not run yet."""

    def preparing(self, text: str) -> None:
        """Report what is done before the first server session."""

    def session_started(self, label: str, seconds_left: float | None) -> None:
        """Report the server session that begins."""

    def experiment_started(self, experiment: Experiment) -> None:
        """Report the experiment that begins."""

    def found(self, finding: Finding) -> None:
        """Report what an experiment found."""

    def profile_started(self, trial: Trial) -> None:
        """Report the profile that begins."""

    def profiled(self, profile: Profile) -> None:
        """Report each profile."""

    def finished(self, result: Result) -> None:
        """Report each result."""

    def tried(self, probe: Probe, measured: Measurement | None) -> None:
        """Report each rate of a search; no measurement: the server died. On resume first those that were there."""

    def sampled(self, sample: Sample, measured: Measurement | None) -> None:
        """Report each closed loop of a search."""

    def screened(self, screens: Sequence[Evidence]) -> None:
        """Report what the screens of a doctor saw."""

    def trying(self, fault: str, why: str, seconds: float) -> None:
        """Report the fault that is looked into next, and how long that takes at least."""

    def diagnosed(self, diagnosis: Diagnosis) -> None:
        """Report each diagnosis that an experiment came to."""

    def observed(self, candidate: Candidate, observed: Observation) -> None:
        """Report each load of a tuning; on resume first those that were there already."""
