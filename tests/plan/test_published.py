"""Published tables name what the study measures, with a figure for each metric; all mistakes are reported at once."""

import pytest
from tests.plan.made import KNOWN, STACKS, problems, study
from tests.plan.study_text import BASE

from velodrome.model.claim import PublishedRow, PublishedTable
from velodrome.plan.matrix import lay_out, narrow
from velodrome.plan.study_file import parse

TABLE = """
[[tables]]
title = "wrk -c 40"
metrics = ["throughput_rps", "p99_service_ms"]
loads = ["closed-40", "closed-9-n1000"]
rows = [
  {of = "hello/uvicorn", published = [3532, 12]},
  {of = "hello/sync", published = ["clearly less", ""], loads = ["closed-40"]},
]
"""


def test_a_table_is_read_whole() -> None:
    (table,) = study(BASE + TABLE).tables
    assert table == PublishedTable(
        "wrk -c 40",
        ("throughput_rps", "p99_service_ms"),
        (
            PublishedRow("hello/uvicorn", (3532, 12)),
            PublishedRow("hello/sync", ("clearly less", None), ("closed-40",)),
        ),
        ("closed-40", "closed-9-n1000"),
    )
    assert all(isinstance(figure, float) for figure in table.rows[0].published)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('"p99_service_ms"', '"p99_sevice_ms"', "'p99_sevice_ms' is no metric; nearest: p99_service_ms"),
        (
            '"hello/sync"',
            '"hello/snyc"',
            "'hello/snyc' is no question/contestant of this study; nearest: hello/sync",
        ),
        (
            'loads = ["closed-40"]',
            'loads = ["closed-41"]',
            "'closed-41' is no load of that question; nearest: closed-40",
        ),
        ("[3532, 12]", "[3532]", '1 figures stand for 2 metrics; give one for each, "" where none is given'),
        ("[3532, 12]", "[3532, true]", "true is not a figure; give a number, a text"),
        ('title = "wrk -c 40"\n', "", "title: is missing; give a text"),
    ],
)
def test_what_is_wrong_is_reported_with_the_cure(old: str, new: str, sentence: str) -> None:
    assert TABLE.count(old) == 1
    assert sentence in "\n".join(problems(BASE + TABLE.replace(old, new)))


def test_the_quick_form_names_the_loads_as_they_are_called_in_it() -> None:
    quick = parse(f"{BASE}{TABLE}[quick]\nscale = 0.5\n", "mine.toml", KNOWN, quick=True)
    assert [row.loads for row in quick.tables[0].rows] == [("closed-40", "closed-9-n500"), ("closed-40",)]


def test_rows_of_what_is_not_run_are_left_out() -> None:
    whole = study(BASE + TABLE)
    some = narrow(whole, lay_out(whole, STACKS, only=["hello/uvicorn"]))
    assert [row.of for row in some.tables[0].rows] == ["hello/uvicorn"]
