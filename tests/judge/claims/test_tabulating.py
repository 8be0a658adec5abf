"""Every published figure stands beside what was measured, or beside why nothing was."""

from dataclasses import replace

import pytest
from tests.judge import made

from velodrome.judge.verdict import judge
from velodrome.model.claim import Compared, PublishedRow, PublishedTable
from velodrome.model.load import Closed, Load
from velodrome.model.measurement import Latency, Measurement

LATENCY = Latency(2.0, 1.0, 1.5, 3.0, 4.0, 5.0, 6.0, 8.0, stdev=0.7)


def tabulated(table: PublishedTable, trials: list[Measurement]) -> Compared:
    run = made.results(trials, (made.HELLO_Q,))
    header = replace(run.header, study=replace(run.header.study, tables=(table,)))
    (found,) = judge([replace(run, header=header)], made.STACKS).tables
    return found


def with_service_times(measurement: Measurement) -> Measurement:
    return replace(
        measurement,
        load=replace(measurement.load, sent=LATENCY, hdr_sent=made.encode([1_000_000, 3_000_000])),
    )


def test_a_number_stands_beside_the_published_one_with_its_interval() -> None:
    rows = (PublishedRow("hello/granian", (3532.0, "fast")), PublishedRow("hello/sync", (None, None)))
    table = PublishedTable("ab -c 100", ("throughput_rps", "p50_service_ms"), rows, ("closed-40",))
    rate, median, *missing = tabulated(
        table, [with_service_times(measurement) for measurement in made.FAST]
    ).lines
    assert (rate.published, rate.of, rate.called) == (3532.0, "hello/granian", "granian · rsgi")
    assert rate.here[0].measured is not None
    assert rate.here[0].measured.mid == pytest.approx((4000 * 4100 * 3950) ** (1 / 3))
    assert (median.published, rate.here[0].driver) == ("fast", "velodrome")
    assert median.here[0].measured is not None
    assert median.here[0].measured.mid == pytest.approx(1.0)
    assert [(line.called, line.here[0].reason) for line in missing] == [
        ("hello/sync", "hello/sync is not in this study")
    ] * 2


def test_extremes_and_deviation_are_taken_from_the_histogram_else_as_the_driver_reports_them() -> None:
    metrics = ("min_service_ms", "max_service_ms", "stdev_service_ms", "p75_service_ms")
    table = PublishedTable("ghz", metrics, (PublishedRow("hello/granian", (1, 2, 3, 4)),), ("closed-40",))
    found = [with_service_times(measurement) for measurement in made.FAST]
    mids = [line.here[0].measured for line in tabulated(table, found).lines]
    assert [round(mid.mid, 1) if mid else None for mid in mids] == [1.0, 8.0, 1.0, 1.5]
    bare = [replace(measurement, load=replace(measurement.load, hdr_sent=None)) for measurement in found]
    fastest, _, deviation, _ = tabulated(table, bare).lines
    assert fastest.here[0].reason == "velodrome reported no fastest request under closed-40"
    assert deviation.here[0].measured is not None
    assert deviation.here[0].measured.mid == pytest.approx(0.7)


def test_how_long_a_load_took_is_a_figure_of_a_load_of_so_many_requests_only() -> None:
    table = PublishedTable("ab", ("span_s",), (PublishedRow("hello/granian", (2.67,)),), ("closed-40",))
    (line,) = tabulated(table, made.FAST).lines
    assert line.here[0].reason == "closed-40 lasts as long as it is set to"
    counted = Load(Closed(40), 60.0, requests=1000)
    question = replace(made.HELLO_Q, loads=(counted,))
    trials = [made.measured(made.trial("granian", question, block, counted), 4000) for block in range(3)]
    run = made.results(trials, (question,))
    table = replace(table, loads=(counted.label,))
    header = replace(run.header, study=replace(run.header.study, tables=(table,)))
    (found,) = judge([replace(run, header=header)], made.STACKS).tables
    assert found.lines[0].here[0].measured is not None
