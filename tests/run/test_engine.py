"""The specification of a load: every field of the engine's, no other, and fixed once it is made."""

import json
import re
from pathlib import Path

import pytest

from velodrome.model.errors import UsageError
from velodrome.run import engine
from velodrome.run.engine import LoadSpec

pytestmark = pytest.mark.unit

RUST = Path(__file__).parents[2] / "crates/engine/src/spec.rs"
BODIES = {"body", "expect_body"}
"""They go beside the JSON."""
OF_TESTS = {"check_every", "max_examples"}
"""Fields of the engine that only its own tests and benchmarks set."""
NOWHERE = "http://127.0.0.1:9/"


def test_it_has_the_fields_of_the_engine() -> None:
    struct = RUST.read_text().partition("pub struct LoadSpec {")[2].partition("\n}")[0]
    assert (
        set(re.findall(r"^    pub (\w+):", struct, re.M)) - OF_TESTS == set(LoadSpec.__annotations__) - BODIES
    )


def test_the_engine_is_sent_every_default_so_that_it_is_the_one_shown_here() -> None:
    sent = json.loads(LoadSpec(url=NOWHERE).json())
    assert (sent["connections"], sent["timeout_s"], sent["method"]) == (50, 10.0, "GET")
    without = {name for name in LoadSpec.__annotations__ if getattr(LoadSpec, name, None) is None} - {"url"}
    assert set(sent) == set(LoadSpec.__annotations__) - without - BODIES


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (name, wrong)
        for name, (least, most) in engine.BOUNDS.items()
        for wrong in (least - 1, most + 1, 10**30)
    ],
)
def test_a_whole_number_out_of_bounds_is_refused_by_name(name: str, value: int) -> None:
    with pytest.raises(UsageError, match=f"{name} {value}: give a whole number from"):
        LoadSpec(url=NOWHERE, requests=1).changed(**{name: value}).json()


def test_the_engine_takes_whole_numbers_up_to_the_bounds() -> None:
    for at in (0, 1):
        within = {
            name: bounds[at] for name, bounds in engine.BOUNDS.items() if name not in {"streams", "threads"}
        }
        assert engine.schedule(LoadSpec(url=NOWHERE, rate=10.0).changed(**within), 1)


def test_the_engine_takes_it() -> None:
    with pytest.raises(UsageError, match="connections"):
        engine.load(LoadSpec(url=NOWHERE, connections=0, requests=1))


def test_a_changed_one_leaves_the_first_as_it_was() -> None:
    first = LoadSpec(url=NOWHERE, rate=500.0)
    other = first.changed(rate=None, connections=7)
    assert (first.rate, first.connections, other.rate, other.connections) == (500.0, 50, None, 7)
    with pytest.raises(AttributeError):
        first.rate = 1.0  # type: ignore[misc]


def test_a_field_that_is_none_is_refused() -> None:
    with pytest.raises(TypeError, match="connection"):
        LoadSpec(url=NOWHERE, connection=3)  # type: ignore[call-arg]
