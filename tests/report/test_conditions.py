from velodrome.model.condition import Beyond, Figure, decide, read
from velodrome.report.load_text import condition_documents, condition_sentence


def sentence(text: str, figure: Figure) -> str:
    return condition_sentence(decide(read(text), lambda *_: figure))


def test_a_condition_is_reported_with_its_figure_and_its_limit() -> None:
    assert (
        sentence("p99 > 50ms", Figure(61.3)) == "Fails: p99 > 50ms. p99 was 61.3 ms, and the limit is 50 ms."
    )
    assert (
        sentence("errors > 0.1%", Figure(0.00052))
        == "Passes: errors > 0.1%. errors was 0.052 %, and the limit is 0.1 %."
    )
    assert (
        sentence("timeout > 1", Figure(1))
        == "Passes: timeout > 1. timeout was 1 request, and the limit is 1 request."
    )
    assert "rate was 900/s, and the limit is 950/s" in sentence("rate < 950/s", Figure(900.0))


def test_what_was_not_measured_is_reported_with_the_reason() -> None:
    assert sentence("tls.p99 > 5ms", Figure(None, "no connection had a TLS handshake")) == (
        "Cannot tell: tls.p99 > 5ms. tls.p99 was not measured: no connection had a TLS handshake."
    )


def test_a_lower_bound_is_called_one() -> None:
    text = sentence("p99 > 20s", Figure(10_000.0, lower_bound=True))
    assert text.startswith("Cannot tell")
    assert "at least 10 000 ms" in text
    assert "raise --timeout" in text


def test_a_figure_of_a_part_is_reported_with_what_it_leaves_out() -> None:
    found = Figure(3.2, beyond=Beyond.ABOVE, but="60 % of the requests have no latency")
    assert sentence("p99 > 50ms", found) == (
        "Fails: p99 > 50ms. p99 was 3.2 ms, and the limit is 50 ms; but 60 % of the requests have no latency."
    )


def test_for_json_a_share_stays_one_and_a_count_is_one() -> None:
    (found,) = condition_documents([decide(read("errors > 0.1%"), lambda *_: Figure(0.5))])
    assert found["holds"] is True
    assert found["because"][0] | {"lower_bound": None} == {
        "metric": "errors",
        "value": 0.5,
        "limit": 0.001,
        "unit": "share",
        "lower_bound": None,
        "missing": "",
        "but": "",
    }
    (found,) = condition_documents([decide(read("errors > 3"), lambda *_: Figure(5.0))])
    assert found["because"][0]["unit"] == ""
