"""A race that goes on where its answer is open: when it is looked at, and which cells a look leaves.

    still_open(study, stacks, results, SHIPPED, blocks=2)      {"hello/uvicorn", "hello/granian-asgi"}
    still_open(study, stacks, results, SHIPPED, blocks=3)      None: it is not looked at after three blocks

A look after 2, 4 and 8 blocks asks the judge. A contestant that is clearly behind is not started again and keeps the
figures it has; a question whose answer is settled (a contestant leads, or those who lead are equal, or it does not
matter) is left. The others race on.

Each look could err, so each spends a part of the 5 % by which the whole may be wrong. The three looks have 0.5 % each,
and the verdict in the end has what is left, 3.5 %: a race that must not be stopped for a chance effect is stopped only
where there is no doubt, and the verdict hardly pays for it (Haybittle, «Repeated assessment of results in clinical
trials of cancer treatment», British Journal of Radiology 44, 1971; Peto and others, British Journal of Cancer 34,
1976). The parts add up whatever the looks have to do with each other (Bonferroni).
`benchmarks/intervals.py --table settling` simulates it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from velodrome.guest.stack import Stack
from velodrome.judge.answering import answer
from velodrome.judge.own_share import own_share
from velodrome.judge.statistics import CONFIDENCE
from velodrome.judge.words import list_names
from velodrome.model.measurement import Failed, Measurement
from velodrome.model.noise import Noise
from velodrome.model.study import Question, Study
from velodrome.model.verdict import Answer, Outcome

LOOKS = (2, 4, 8)
"""After how many blocks it is looked at."""
SPENT = 0.005
"""Chance that a look calls something clear that is not."""
MOST_BLOCKS = 12
"""What is open after so many stays open: four times as many would halve the intervals again."""
STEPS = (
    f"after {list_names([str(blocks) for blocks in LOOKS])} blocks, a contestant that is clearly behind stops, "
    "and so does a question that is settled; the time saved goes into further blocks of the others, "
    f"{MOST_BLOCKS} at most",
)
"""What a race does that depends on what it shows, as sentences."""
SETTLED = (Outcome.WINNER, Outcome.TIE, Outcome.DOES_NOT_MATTER)


def confidence(study: Study) -> float:
    """Return the confidence with which a verdict on a race holds in the end."""
    return CONFIDENCE + SPENT * len(LOOKS) if study.until_settled else CONFIDENCE


def still_open(
    study: Study,
    stacks: Mapping[str, Stack],
    results: Sequence[Measurement | Failed],
    noise: Noise,
    blocks: int,
) -> frozenset[str] | None:
    """Return the cells (`question/contestant`) that race on after so many blocks; None: no look is due then."""
    if blocks not in LOOKS:
        return None
    known = [measurement for measurement in results if measurement.trial.block < blocks]
    going: set[str] = set()
    for question in study.answered:
        share = own_share(study, question, known, noise=noise)
        found = answer(question, known, stacks, noise, share=share, confidence=1 - SPENT)
        labels = _open(question, known, found)
        going |= {f"{question.name}/{label}" for label in labels}
        if labels:  # how much of a request is the app's own is measured in the same blocks
            going |= {
                f"{baseline.name}/{label}"
                for baseline in study.baselines(question.name)
                for label in baseline.contestants
            }
    return frozenset(going)


def _open(
    question: Question, results: Sequence[Measurement | Failed], found: Answer | None
) -> frozenset[str]:
    """Return who races on, as the study labels them: who may be first, and whom too few blocks kept from a rank."""
    if found is None or found.outcome in SETTLED:
        return frozenset()
    going = {standing.contestant for standing in found.standings if standing.rank_low in (None, 1)}
    return frozenset(
        measurement.trial.contestant.label
        for measurement in results
        if isinstance(measurement, Measurement)
        and measurement.trial.question == question.name
        and measurement.trial.label in going
    )


def with_stops(found: Answer) -> Answer:
    """Return an answer that says of whom a look was the last: others raced on."""
    most = max((standing.blocks_done for standing in found.standings), default=0)
    rows = [
        replace(row, stopped=f"Clearly behind after {row.blocks_done} blocks, and not run any further.")
        if row.blocks_done in LOOKS and row.blocks_done < most and (row.rank_low or 0) > 1
        else row
        for row in found.standings
    ]
    return replace(found, standings=tuple(rows))
