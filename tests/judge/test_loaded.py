from dataclasses import replace

import pytest
from tests.judge import made

from velodrome.judge.loaded import Block, Blocks
from velodrome.model.condition import mb, ms, per_second, percent, us
from velodrome.model.errors import InsufficientDataError
from velodrome.model.measurement import Flag, FlagKind, Measurement, Severity

LATENCIES = [5.0] * 396 + [50.0] * 4
ERRORS = Flag(FlagKind.ERRORS, Severity.INVALID, "3 % of the requests failed.", "Look why.")


def measured(count: int = 5, **facts: object) -> list[Measurement]:
    given = {"rps": 100, "latencies_ms": LATENCIES, "mean_ms": 5.4, **facts}
    return [made.measured(made.trial("uvicorn", block=n, load=made.OPEN), **given) for n in range(count)]  # type: ignore[arg-type]


def blocks(found: list[Measurement]) -> Blocks:
    return Blocks(made.OPEN, tuple(map(Block.of, found)))


def test_all_figures_of_a_watched_server_are_reported() -> None:
    found = blocks(measured())
    assert found.percentile(50) < ms(6)
    assert found.percentile(99) < ms(15)
    assert found.percentile(99.5) > ms(20)
    assert found.throughput > per_second(95)
    assert found.cpu < us(1500)
    assert found.memory < mb(45)
    assert found.mean < ms(7)


def test_a_server_of_somebody_else_tells_no_cpu_and_says_why() -> None:
    found = Blocks(made.OPEN, tuple(Block.of_url(measurement.load) for measurement in measured()))
    assert found.percentile(50) < ms(6)
    with pytest.raises(
        InsufficientDataError, match="cpu was not measured: of a server that is not started here"
    ):
        found.cpu < us(1500)  # noqa: B015


def test_too_few_requests_tell_no_percentile() -> None:
    short = blocks(measured(2, latencies_ms=[5.0] * 100))
    with pytest.raises(InsufficientDataError, match="it needs 300 requests, and there were 200: load longer"):
        short.percentile(99) < ms(50)  # noqa: B015


def test_blocks_that_are_set_aside_do_not_count_and_where_all_are_the_reason_is_reported() -> None:
    found = measured()
    found[0] = replace(found[0], flags=(made.INVALID,), load=replace(found[0].load, throughput_rps=1.0))
    assert blocks(found).throughput > per_second(95)
    with pytest.raises(
        InsufficientDataError, match=r"p50 was not measured: The generator used 99 % of its CPU\."
    ):
        blocks([replace(measurement, flags=(made.INVALID,)) for measurement in found]).percentile(50) < ms(6)  # noqa: B015


def test_failed_requests_are_counted_of_just_the_blocks_they_set_aside() -> None:
    failing = [
        replace(measurement, flags=(ERRORS,), load=replace(measurement.load, requests=10_000, ok=9700))
        for measurement in measured()
    ]
    assert blocks(failing).errors > percent(2)
    right = [
        replace(measurement, load=replace(measurement.load, requests=10_000, ok=10_000))
        for measurement in measured()
    ]
    assert blocks(right).errors < percent(0.1)


def test_no_failure_of_few_requests_is_no_proof() -> None:
    with pytest.raises(InsufficientDataError, match=r"it takes 4 000 requests to measure so small a share"):
        blocks(measured()).errors < percent(0.1)  # noqa: B015


def test_a_saturated_generator_tells_nothing() -> None:
    facts = [replace(measurement.load, generator_saturated=True) for measurement in measured()]
    found = Blocks(made.OPEN, tuple(map(Block.of_url, facts)))
    with pytest.raises(InsufficientDataError, match="the generator had used up its CPU"):
        found.percentile(99) < ms(50)  # noqa: B015
