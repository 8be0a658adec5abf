"""Reports of real tools, read: what each says, what is refused, and that no text at all does harm."""

import contextlib
import dataclasses
import json
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.run.drivers import samples
from tests.run.drivers.record import DIALECTS, RATE, SHORT, TIMED

from velodrome.model.errors import DriverError, DriverOutputError
from velodrome.model.load import Load
from velodrome.model.measurement import UNKNOWN_LATENCY
from velodrome.run.calls import GrpcCall
from velodrome.run.drivers import ab, oha
from velodrome.run.drivers.driver import Target
from velodrome.run.drivers.foreign import Dialect, Finished, Report, understand

WITH_STATUS_0 = [case for case in samples.cases() if samples.finished(case).status == 0]
TOOLS = sorted(DIALECTS)


def load_of(case: str) -> Load:
    return SHORT if case.endswith(("count", "closing", "refused-count")) else TIMED


def read(case: str) -> Report:
    return understand(DIALECTS[case.partition("/")[0]], "1.0", samples.finished(case), load_of(case))


@pytest.mark.parametrize("case", WITH_STATUS_0)
def test_what_a_tool_reported_is_read_as_it_was(case: str, golden: Callable[..., None]) -> None:
    try:
        document = dataclasses.asdict(read(case))
        for histogram in ("hdr_due", "hdr_sent"):
            document[histogram] = document[histogram] and f"{len(document[histogram])} letters"
    except DriverError as error:
        document = {"error": str(error)}
    golden("told.json", json.dumps(document, indent=1) + "\n", samples.FOLDER / case)


@pytest.mark.parametrize("case", WITH_STATUS_0)
def test_the_outcomes_add_up_to_the_requests(case: str) -> None:
    report = read(case)
    assert sum(report.outcomes.values()) == report.requests
    assert report.outcomes["ok"] == report.ok


@pytest.mark.parametrize("case", [case for case in WITH_STATUS_0 if case.endswith("/all-failed")])
def test_a_run_in_which_all_failed_has_no_right_answer_whatever_rate_it_prints(case: str) -> None:
    report = read(case)
    assert report.ok == 0
    assert report.throughput_rps == 0
    assert report.failed > 0.9 * report.requests


@pytest.mark.parametrize("case", ["ghz/grpc-refused", "oha/refused"])
def test_calls_that_all_failed_are_counted_as_such_although_a_rate_was_printed(case: str) -> None:
    report = read(case)
    assert (report.ok, report.failed + report.outcomes.get("unfinished", 0)) == (0, report.requests)
    assert report.sent == report.due == UNKNOWN_LATENCY


def test_calls_that_were_late_are_timed_out() -> None:
    report = read("ghz/grpc-late")
    assert report.outcomes["timeout"] > 0
    assert report.ok + report.outcomes["timeout"] == report.requests


def test_h2load_counts_calls_that_failed_in_grpc_as_answered() -> None:
    report = read("h2load/grpc-unknown")
    assert report.ok == report.requests, "if it reads grpc-status now, do not call it blind any more"
    called = Target("grpc://127.0.0.1:1/a.B/c", call=GrpcCall("/a.B/c", "unary", ()))
    assert DIALECTS["h2load"].blind(called)
    assert not DIALECTS["h2load"].blind(Target("http://127.0.0.1:1/"))


def test_wrk_tells_four_percentiles_and_no_others() -> None:
    latency = read("wrk/timed").sent
    assert None not in (latency.p50, latency.p75, latency.p90, latency.p99, latency.mean, latency.max)
    assert latency.p95 is latency.p99_9 is None


def test_ab_tells_percentiles_finer_than_it_prints_and_no_mean_of_whole_milliseconds() -> None:
    latency = read("ab/count").sent
    assert latency.p50 is not None
    assert latency.p50 != round(latency.p50)
    assert latency.mean is latency.p99_9 is None


def test_ab_says_when_connections_were_not_kept() -> None:
    kept = samples.finished("ab/count")
    assert read("ab/count").notes == ()
    output = re.sub("(Keep-Alive requests: +)200", r"\g<1>0", kept.output)
    assert "0 kept their connection" in ab.read(dataclasses.replace(kept, output=output), SHORT).notes[0]


def test_ab_counts_an_error_page_of_another_length_twice_and_is_not_believed() -> None:
    report = read("ab/some-failed")
    assert report.ok == pytest.approx(report.requests * 2 / 3, rel=0.01)
    assert "not how many were both" in report.notes[0]


def test_oha_tells_latency_from_when_due_at_a_rate_and_from_when_sent_without() -> None:
    rate = oha.read(samples.finished("oha/rate"), dataclasses.replace(TIMED, pace=RATE.pace))
    assert rate.sent == UNKNOWN_LATENCY
    assert rate.due.p50 is not None
    assert read("oha/timed").due == UNKNOWN_LATENCY


@pytest.mark.parametrize("case", ["ghz/grpc-timed", "oha/timed", "h2load/timed"])
def test_what_was_in_flight_at_the_end_is_unfinished_and_not_failed(case: str) -> None:
    report = read(case)
    assert report.outcomes["unfinished"] > 0
    assert report.failed == 0


@pytest.mark.parametrize(("call", "outcome"), [(-1, "unfinished"), (10, "reset")])
def test_a_connection_that_breaks_when_ghz_says_goodbye_is_not_the_servers_doing(
    call: int, outcome: str
) -> None:
    broken = "rpc error: code = Unavailable desc = error reading from server: EOF"
    case = samples.finished("ghz/grpc-timed")
    report = json.loads(case.output)
    for detail in report["details"]:
        if detail["error"]:
            detail |= {"error": "", "status": "OK"}
    report["details"][call] |= {"error": broken, "status": "Unavailable"}
    report["errorDistribution"] = {broken: 1}
    report["statusCodeDistribution"] = {"OK": report["count"] - 1, "Unavailable": 1}
    read_back = DIALECTS["ghz"].read(dataclasses.replace(case, output=json.dumps(report)), TIMED)
    assert read_back.outcomes == {"ok": report["count"] - 1, outcome: 1}


@pytest.mark.parametrize("case", ["ghz/grpc-count", "h2load/count"])
def test_a_tool_that_tells_each_request_gives_a_histogram_and_each_second(case: str) -> None:
    report = read(case)
    assert report.hdr_sent
    assert sum(second.requests for second in report.series) == report.requests


def changed(tool: str, output: str) -> tuple[Dialect, Finished]:
    """A report with another output, and the files that a good one leaves."""
    good = samples.finished(next(case for case in WITH_STATUS_0 if case.startswith(f"{tool}/")))
    return DIALECTS[tool], dataclasses.replace(good, output=output)


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize(
    "output", ["", "Segmentation fault", "{}", "[]", "null", '{"count": "many"}', "[" * 100_000]
)
def test_an_unforeseen_output_is_an_error_that_names_the_tool(tool: str, output: str) -> None:
    dialect, run = changed(tool, output)
    with pytest.raises(DriverOutputError, match=f"{tool} 9.9 printed unexpected output"):
        understand(dialect, "9.9", run, TIMED)


def test_a_table_of_percentiles_that_is_none_is_an_error_of_the_driver() -> None:
    report = samples.finished("ab/all-failed")
    dialect, _ = changed("ab", "")
    files = dict.fromkeys(report.files, b"\r\x00")
    text = (
        "\nTime taken for tests: 1.0 seconds\nComplete requests: 21209\nFailed requests: 0\n"
        "Requests per second: 21250.9 [#/sec] (mean)"
    )
    with pytest.raises(DriverOutputError, match="its table of percentiles is none"):
        understand(dialect, "1.0", dataclasses.replace(report, output=text, files=files), TIMED)


@pytest.mark.parametrize("tool", TOOLS)
@given(some.data())
def test_any_text_is_facts_or_an_error_of_the_driver(tool: str, data: some.DataObject) -> None:
    """Pieces of a real report, with letters changed, lines lost and numbers grown, and text of any kind."""
    dialect, run = changed(tool, "")
    good = data.draw(some.sampled_from([case for case in WITH_STATUS_0 if case.startswith(f"{tool}/")]))
    report = samples.finished(good)
    text = data.draw(some.one_of(some.text(), mangled(report.output)))
    files = {
        name: data.draw(some.one_of(some.binary(), mangled(content.decode()).map(str.encode)))
        for name, content in report.files.items()
    }
    with contextlib.suppress(DriverError):
        understand(dialect, "1.0", dataclasses.replace(run, output=text, files=files), load_of(good))


@some.composite
def mangled(draw: some.DrawFn, report: str) -> str:
    report = report[:3000]
    for _ in range(draw(some.integers(0, 3))):
        at, length = draw(some.integers(0, len(report))), draw(some.integers(0, 30))
        piece = draw(
            some.sampled_from(["", "0", "-1", "9" * 30, "NaN", "1e999", "null", "{}", "[]", '"', ",", "\n"])
        )
        report = report[:at] + piece + report[at + length :]
    return report
