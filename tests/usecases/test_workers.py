"""A setting that is good with one worker and fails with more is found by measuring, whatever it is called."""

import sys
from pathlib import Path

import pytest
from tests.usecases.planted import APP, plant

from velodrome.judge import verdict
from velodrome.judge.workers import judge_check
from velodrome.model.results import Result
from velodrome.model.trial import Contestant
from velodrome.model.workers import WorkerCheck
from velodrome.run.racing import store
from velodrome.run.racing.opening import open_lab
from velodrome.run.racing.race import session_runner
from velodrome.usecases import workers
from velodrome.usecases.apps import AppSpec, ServedSpec, prepare_app
from velodrome.usecases.bench import UNLIMITED, trial_of
from velodrome.usecases.compare import CompareSpec, compare
from velodrome.usecases.events import Events
from velodrome.usecases.terms import Terms

ASGI_APP = """async def application(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"6")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"bought"})
"""


class Heard(Events):
    """Remembers what is reported before and between trials."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def preparing(self, text: str) -> None:
        self.lines.append(text)


def app(folder: Path, source: str = APP) -> AppSpec:
    (folder / "shop.py").write_text(source)
    return AppSpec("shop:application", sys.executable, str(folder))


def settled(folder: Path, fault: str, at: int, counts: tuple[int, ...]) -> WorkerCheck:
    """Check a planted stack, without a race before it."""
    path = plant(folder, "planted", fault, at)
    spec = ServedSpec(app(folder))
    with prepare_app(spec, (path,), lambda _: None) as served:
        trial = trial_of("planted", served.recipe, Contestant("planted"), UNLIMITED, app=served.app)
        results: list[Result] = []
        with open_lab([trial], served.lab, "planted", Events()) as lab:
            results += workers.settle(
                trial, workers.loads(3000.0, fresh=True, connections=40), counts, session_runner(lab)
            )
        found = judge_check(trial.contestant, served.lab.stacks["planted"], counts, results)
    assert found is not None
    return found


PLANTED = [
    pytest.param("collapses", 2, (1, 2), "in a closed loop", marks=pytest.mark.exhaustive),
    pytest.param("collapses", 4, (1, 2, 4), "4 workers", marks=pytest.mark.exhaustive),
    pytest.param("slow", 2, (1, 2), "ms with 2 workers", marks=pytest.mark.exhaustive),
    pytest.param("slow-when-reused", 2, (1, 2), "on reused connections"),
    pytest.param("fails", 2, (1, 2), "of the requests fail", marks=pytest.mark.exhaustive),
    pytest.param("idles", 2, (1, 2), "one of 2 workers", marks=pytest.mark.exhaustive),
]


@pytest.mark.measured
@pytest.mark.parametrize(("fault", "at", "counts", "sentence"), PLANTED)
def test_a_planted_fault_is_found(
    tmp_path: Path, fault: str, at: int, counts: tuple[int, ...], sentence: str
) -> None:
    found = settled(tmp_path, fault, at, counts)
    assert found.survived is False, found
    assert sentence in found.sentence
    if fault == "slow-when-reused":
        assert "fresh" not in found.sentence


@pytest.mark.measured
@pytest.mark.exhaustive
@pytest.mark.parametrize(("fault", "at"), [("none", 2), ("collapses", 4)])
def test_a_sound_setting_survives(tmp_path: Path, fault: str, at: int) -> None:
    found = settled(tmp_path, fault, at, (1, 2))
    assert found.survived is True, found


@pytest.mark.measured
@pytest.mark.exhaustive
def test_a_comparison_recommends_the_next_best_and_judging_again_does_too(tmp_path: Path) -> None:
    stacks = (plant(tmp_path, "quick", "slow"), plant(tmp_path, "sound", cost_s=0.0005))
    terms = Terms(blocks=1, seconds=1.0, stacks=("quick", "sound"))
    heard = Heard()
    raced = compare(CompareSpec((app(tmp_path),), terms, stacks), tmp_path / "out", heard)
    results = store.read(raced.folder)
    (answer,) = verdict.judge([results], raced.race.lab.stacks).answers
    assert answer.best == ("sound",)
    assert [(check.contestant, check.survived) for check in answer.checks] == [
        ("sound", True),
        ("quick", False),
    ]
    assert any(reason.startswith("quick is not recommended") for reason in answer.why)
    assert sum(line.startswith("checking") for line in heard.lines) == 2
    again = compare(CompareSpec((app(tmp_path),), terms, stacks, resume=True), tmp_path / "out", Events())
    assert len(store.read(again.folder).checks) == len(results.checks)


@pytest.mark.measured
@pytest.mark.exhaustive
def test_uvicorn_on_asyncio_with_two_workers_waits_for_delayed_acknowledgements(tmp_path: Path) -> None:
    """Kludex/uvicorn#3149, in the version that the stack pins: its second worker's listener lacks TCP_NODELAY."""
    terms = Terms(blocks=1, seconds=1.0, stacks=("uvicorn-h11", "hypercorn"))
    raced = compare(CompareSpec((app(tmp_path, ASGI_APP),), terms), tmp_path / "out", Events())
    results = store.read(raced.folder)
    (answer,) = verdict.judge([results], raced.race.lab.stacks).answers
    by_label = {check.contestant: check for check in answer.checks}
    assert by_label["uvicorn-h11"].survived is False
    assert "on reused connections" in by_label["uvicorn-h11"].sentence
    assert answer.best == ("hypercorn",)
