"""What `--profile` asks: a profile of every cell, where a study does not ask for its own."""

from dataclasses import replace

from velodrome.model.load import Load, Open
from velodrome.model.study import Question, Study

SECONDS = 5.0
"""Five hundred samples: a share of them is known to two or three per cent."""


def profiled(study: Study) -> Study:
    """Return the study with a profile in every question."""
    return replace(study, questions=tuple(_with_profile(question) for question in study.questions))


def _with_profile(question: Question) -> Question:
    """Add one under the first open loop, where all contestants do the same work, or else under the first load."""
    if question.profile is not None or not question.loads:
        return question
    load = next((one for one in question.loads if isinstance(one.pace, Open)), question.loads[0])
    return replace(question, profile=_as_profile(load))


def _as_profile(load: Load) -> Load:
    # By our own generator: it can be ended when the samples are taken.
    return replace(load, duration_s=SECONDS, requests=None, driver="velodrome", threads=1)
