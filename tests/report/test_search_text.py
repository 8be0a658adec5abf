import pytest

from velodrome.model.quantity import Interval
from velodrome.model.search import ConnectionsFound, Ending, Probe, RateFound, Sample
from velodrome.report import searches

PROBES = (Probe(100.0, True), Probe(200.0, False, "p99 was 61.3 ms, and the limit is 50 ms"))


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (
            RateFound(Ending.CONVERGED, Interval(4_118, 4_212, 4_301), "", PROBES),
            "The highest rate without p99 > 50ms (constant arrivals): 4 210/s [4 120, 4 300], 95 %, of 2 loads.",
        ),
        (
            RateFound(Ending.SPENT, Interval(4_000, 4_400, 5_000), "40 trials were spent", PROBES),
            "The highest rate without p99 > 50ms (constant arrivals) "
            "lies between 4 000/s and 5 000/s: 40 trials were spent.",
        ),
        (
            RateFound(Ending.BEYOND, Interval(90e3, 90e3, 90e3), "The generator was the limit.", PROBES),
            "The highest rate without p99 > 50ms (constant arrivals) "
            "is at least 90 000/s: The generator was the limit.",
        ),
        (
            RateFound(Ending.NEVER, None, "p99 was 61.3 ms", PROBES),
            "There is no rate without p99 > 50ms (constant arrivals), because even at 100/s p99 was 61.3 ms.",
        ),
        (
            RateFound(Ending.CANNOT, None, "nothing came", PROBES),
            "Cannot tell the highest rate without p99 > 50ms (constant arrivals): nothing came.",
        ),
    ],
)
def test_a_rate_is_reported_in_a_sentence(found: RateFound, sentence: str) -> None:
    assert searches.search_sentence(found, ["p99 > 50ms"], "constant") == sentence


def test_without_a_condition_the_server_has_to_keep_up() -> None:
    found = RateFound(Ending.CONVERGED, Interval(95, 97, 99), "", PROBES)
    assert (
        "that the server keeps up with (Poisson arrivals): 97.0/s [95.0, 99.0]"
        in searches.search_sentence(found, [], "poisson")
    )


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (
            ConnectionsFound(
                Ending.CONVERGED, Interval(28, 32, 40), Interval(12_100, 12_300, 12_500), "", ()
            ),
            "Throughput stops rising at 32 [28, 40] connections, with 12 300/s [12 100, 12 500]: "
            "more of them only wait.",
        ),
        (
            ConnectionsFound(
                Ending.BEYOND,
                Interval(64, 64, 64),
                Interval(9e4, 9e4, 9e4),
                "the generator was the limit",
                (),
            ),
            "Throughput is at least 90 000/s, with 64 connections: the generator was the limit.",
        ),
    ],
)
def test_connections_are_reported_in_a_sentence(found: ConnectionsFound, sentence: str) -> None:
    assert searches.search_sentence(found, [], "poisson") == sentence


def test_a_trial_is_a_line_without_control_codes() -> None:
    assert searches.probe_line(PROBES[0], 5.214) == "    100/s  held   p99 5.21 ms from due"
    assert "broke  p99 was 61.3 ms" in searches.probe_line(PROBES[1], 5.214)
    assert "does not count: \\x1b" in searches.probe_line(Probe(1.0, None, spoilt="\x1b"), None)
    assert searches.sample_line(Sample(32, 12_300.0), 2.55) == "   32 connections   12 300/s  p50 2.55 ms"


def test_the_document_has_every_trial() -> None:
    found = RateFound(Ending.CONVERGED, Interval(95, 97, 99), "", PROBES)
    document = searches.search_document(found, None, ["p99 > 50ms"], "poisson")
    assert document["interval"] == {"low": 95, "mid": 97, "high": 99}
    assert [trial["rate"] for trial in document["trials"]] == [100.0, 200.0]
