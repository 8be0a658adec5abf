from collections.abc import Callable

import pytest

from velodrome.model.measurement import AnswerForm, Flag, FlagKind, HostFacts, Severity

Flags = Callable[..., dict[FlagKind, Flag]]


@pytest.mark.parametrize(
    ("closed", "noted"), [(None, False), (0, False), (400, False), (401, True), (40_000, True)]
)
def test_closes_with_data_unread_are_noted_from_one_in_a_hundred_on(
    raised: Flags, closed: int | None, noted: bool
) -> None:
    host = HostFacts(0.0, 0.0, closed_unread=closed)
    flag = raised(sampled={"host": host}).get(FlagKind.CLOSED_UNREAD)
    assert (flag is not None) is noted
    assert flag is None or "no answer was lost by that" in flag.sentence


def test_what_such_closes_cost_is_reported(raised: Flags) -> None:
    host = HostFacts(0.0, 0.0, closed_unread=40_000)
    flags = raised({"outcomes": {"ok": 10_000, "reset": 30_000}}, {"host": host})
    assert "30,000 of 40,000 requests failed by that" in flags[FlagKind.CLOSED_UNREAD].sentence
    assert flags[FlagKind.ERRORS].severity is Severity.INVALID


def test_an_answer_of_untold_length_and_bare_ends_of_lines_are_reported(raised: Flags) -> None:
    assert {FlagKind.LENGTH_NOT_TOLD, FlagKind.BARE_LINE_ENDS} <= set(raised(form=AnswerForm(False, "LF")))
    for form in (None, AnswerForm(True, "CRLF")):
        assert not {FlagKind.LENGTH_NOT_TOLD, FlagKind.BARE_LINE_ENDS} & set(raised(form=form))
