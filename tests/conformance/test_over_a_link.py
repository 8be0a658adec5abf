"""A real stack over a link, end to end: the round trips come out, one for a small answer, several for a large one."""

from dataclasses import replace

import pytest
from tests.run.link.possible import NEEDS_LINK

from velodrome.guest import catalog
from velodrome.guest.recipe import Recipe
from velodrome.model.load import Closed, Limits, Link, Load
from velodrome.model.measurement import Measurement
from velodrome.model.trial import Contestant, Session, Trial
from velodrome.run.environments import guest_tree
from velodrome.run.lab import Lab
from velodrome.run.racing.session import run_alone

pytestmark = [NEEDS_LINK, pytest.mark.measured]

FAR = Link(20.0)
STACK = "uvicorn"
KEPT = Load(Closed(2), duration_s=1.5, warmup_s=0.3)


@pytest.fixture(scope="module")
def lab() -> Lab:
    return Lab(catalog.stacks(), guest_tree.export())


def measured(recipe: str, load: Load, lab: Lab, stack: str = STACK) -> Measurement:
    loaded: Recipe = catalog.recipes()[recipe]
    trial = Trial("link", recipe, loaded, Contestant(stack), load, Limits(), 0, link=FAR)
    (result,) = run_alone(Session((trial,)), lab)
    assert isinstance(result, Measurement), result
    assert result.load.outcomes["ok"] == result.load.requests - result.load.outcomes.get("unfinished", 0)
    assert result.link is not None
    return result


def test_a_small_answer_takes_one_round_trip(lab: Lab) -> None:
    found = measured("hello", KEPT, lab)
    assert found.load.due.p50 == pytest.approx(20.0, abs=5.0), "two would be 40 ms"
    assert found.link
    assert found.link.overrun == 0


@pytest.mark.exhaustive
def test_a_large_answer_on_a_new_connection_takes_as_many_as_slow_start_needs(lab: Lab) -> None:
    """220 kB are 152 segments: windows of 10, 20, 40, 80 and 2, after one round trip to connect."""
    load = replace(KEPT, keepalive=False, duration_s=2.5)
    found = measured("large", load, lab)
    assert FAR.fetch_s(0, 220_000) == pytest.approx(0.12)
    assert found.load.due.p50 == pytest.approx(120.0, rel=0.1)
    assert found.link
    assert found.link.back.packets > 100 * found.load.ok
    # On a connection that is kept the window has grown by then, and one round trip is nearly enough.
    kept = measured("large", KEPT, lab)
    assert kept.load.due.p50 is not None
    assert kept.load.due.p50 < 60.0


def test_a_third_party_is_next_to_the_server(lab: Lab) -> None:
    found = measured("third-party-200ms", KEPT, lab)
    assert found.load.due.p50 == pytest.approx(
        220.0, abs=8.0
    )  # the round trip once: the call is no part of it
    assert found.upstream
    assert found.upstream.requests >= found.load.ok - 2
