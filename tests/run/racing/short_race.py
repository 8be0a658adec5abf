"""A race of a few seconds in a process of its own, to be killed: `python -m tests.run.racing.short_race OUT`.

Tells each result on standard output when it is on the disk. Its servers are the hardest to end: they ignore
SIGTERM and have grandchildren in sessions of their own.
"""

import signal
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tests.run import made
from tests.run.link.possible import REFUSAL
from tests.run.racing.plain_driver import plain

from velodrome.guest import catalog
from velodrome.guest.recipe import Body, Call, Recipe
from velodrome.guest.stack import Stack
from velodrome.model.claim import Experiment, Finding
from velodrome.model.errors import VelodromeError
from velodrome.model.load import Closed, Limits, Link, Load
from velodrome.model.measurement import Failed, Measurement
from velodrome.model.profile import Profile
from velodrome.model.results import Result
from velodrome.model.study import Question, Study
from velodrome.model.trial import Contestant, Session, Trial
from velodrome.run.drivers.driver import choose_driver
from velodrome.run.environments import guest_tree
from velodrome.run.environments.environment import AS_PINNED, Environment
from velodrome.run.environments.interpreter import find_interpreter
from velodrome.run.lab import DriverOf, Lab
from velodrome.run.racing import race
from velodrome.run.racing.race import Race

HOSTILE = str(Path(__file__).parents[2] / "truth" / "targets" / "hostile.py")
CALLS = Recipe("calls", "asks a third party", (Call(latency_ms=5), Body(84)))
LOADS = (Load(Closed(1), duration_s=0.1, drain_s=0.2), Load(Closed(2), duration_s=0.1, drain_s=0.2))
CONTESTANTS = (
    Contestant("hostile", {"does": "ignore-stop"}),
    Contestant("hostile", {"does": "leave-children"}),
)


def bare(
    stack: Stack, python: str | None, packages: Mapping[str, str] = AS_PINNED, served: Recipe | None = None
) -> Environment:
    """No environment at all: targets need none."""
    interpreter = find_interpreter(python)
    return Environment(interpreter.path, interpreter.version, {}, locked=False)


def study(recipe: Recipe = made.HELLO, blocks: int = 2, budget_s: float | None = None) -> Study:
    question = Question(recipe.name, recipe, LOADS)
    return Study("short", "A short race", (question,), CONTESTANTS, blocks=blocks, budget_s=budget_s)


def sessions(of: Study, limits: Limits | None = None) -> tuple[Session, ...]:
    return tuple(
        Session(
            tuple(
                Trial(
                    of.name,
                    question.name,
                    question.recipe,
                    contestant,
                    load,
                    limits or Limits(),
                    block,
                    link=question.link,
                )
                for load in question.loads
            )
        )
        for block in range(of.blocks)
        for question in of.questions
        for contestant in of.contestants
    )


def whole() -> Study:
    """The study this process runs: with engine, third party and link, so that there is most to leave behind."""
    short = study(CALLS, blocks=1)
    between = None if REFUSAL else Link(2.0)
    return replace(short, questions=tuple(replace(question, link=between) for question in short.questions))


def lab(driver: DriverOf = plain) -> Lab:
    return Lab(
        stacks=catalog.stacks([HOSTILE]),
        guest_tree=guest_tree.export([HOSTILE]),
        driver=driver,
        environment=bare,
        stop_seconds=0.2,
    )


class Recorder:
    """A follower that writes down what it receives."""

    def __init__(self, aloud: bool = False) -> None:
        self.aloud = aloud
        self.prepared: list[str] = []
        self.sessions: list[tuple[str, float | None]] = []
        self.results: list[Result] = []
        self.findings: list[Finding] = []
        self.profiles: list[Profile] = []
        self.order: list[str] = []

    def preparing(self, text: str) -> None:
        self.prepared.append(text)

    def session_started(self, label: str, seconds_left: float | None) -> None:
        self.sessions.append((label, seconds_left))
        self.order.append(f"session {label}")

    def step(self, step: race.Step) -> None:
        match step:
            case race.Begins(Trial() as trial):
                self.order.append(f"profile {trial.cell}")
            case race.Begins(Experiment() as experiment):
                self.order.append(f"experiment {experiment.name}")
            case Finding():
                self.findings.append(step)
            case Profile():
                self.profiles.append(step)
            case Measurement() | Failed():
                self.finished(step)

    def finished(self, result: Result) -> None:
        self.results.append(result)
        if self.aloud:
            print(result.trial.key, type(result).__name__, flush=True)


def raced(whole_race: Race, within: Lab, recorder: Recorder) -> race.Finished:
    """Take all steps of a race, and write them down."""
    with race.start(whole_race, within, recorder) as running:
        for step in running.steps():
            recorder.step(step)
        for step in running.profiles():
            recorder.step(step)
    return running.finished


def main() -> int:
    # A shell that runs the tests in the background has Ctrl-C ignored, and that is inherited.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    race.AGAIN_TIMES = 0  # whoever reads this counts trials, whatever disturbs them
    out, *options = sys.argv[1:]
    short = whole()
    whole_race = Race(short, sessions(short), Path(out), resume="--resume" in options, wait_s=20)
    try:
        raced(whole_race, lab(choose_driver), Recorder(aloud=True))
    except VelodromeError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
