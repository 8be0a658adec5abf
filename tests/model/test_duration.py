"""Spans of time as people type them."""

import pytest

from velodrome.model import amounts


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10s", 10),
        ("500ms", 0.5),
        ("1.5m", 90),
        ("2h", 7200),
        ("30d", 2592000),
        ("3", 3),
        (" 250 us ", 0.00025),
        ("1min", 60),
        (".5s", 0.5),
    ],
)
def test_a_span_is_read_in_seconds(text: str, seconds: float) -> None:
    assert amounts.seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "s", "soon", "-1s", "1w", "1 s s", "1e3s", "٣s", "1..5s"])
def test_anything_else_is_refused_with_the_forms_allowed(text: str) -> None:
    with pytest.raises(ValueError, match="500ms"):
        amounts.seconds(text)
