"""Follows a race or a search without a word, for whoever wants only its results."""

from velodrome.model.claim import Experiment, Finding
from velodrome.model.measurement import Measurement
from velodrome.model.profile import Profile
from velodrome.model.results import Result
from velodrome.model.search import Probe, Sample
from velodrome.model.trial import Trial
from velodrome.model.tuning import Candidate, Told


class Quiet:
    """A `Follower` that does nothing; heir of what wants to hear only some of it."""

    def preparing(self, text: str) -> None:
        """Told what is done before the first heat."""

    def heat_started(self, label: str, seconds_left: float | None) -> None:
        """Told of the heat that begins."""

    def experiment_started(self, experiment: Experiment) -> None:
        """Told of the experiment that begins."""

    def found(self, finding: Finding) -> None:
        """Told what an experiment came to."""

    def profile_started(self, trial: Trial) -> None:
        """Told of the profile that begins."""

    def profiled(self, profile: Profile) -> None:
        """Told each profile."""

    def finished(self, result: Result) -> None:
        """Told each result."""

    def tried(self, probe: Probe, measured: Measurement | None) -> None:
        """Told each rate of a search."""

    def sampled(self, sample: Sample, measured: Measurement | None) -> None:
        """Told each closed loop of a search."""

    def told(self, candidate: Candidate, told: Told) -> None:
        """Told each load of a tuning."""
