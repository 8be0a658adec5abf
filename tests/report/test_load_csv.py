import csv
from typing import Any

from velodrome.report import load_files

SECOND: dict[str, Any] = {
    "at_s": 0.0,
    "requests": 5,
    "ok": 4,
    "errors": 1,
    "in_flight": 2,
    "waiting": 0,
    "p50_ms": 0.312,
    "p99_ms": 1.5,
    "max_ms": 2.0,
}


def test_each_second_is_a_line_and_each_line_says_where_the_limit_was() -> None:
    silent = {**SECOND, "at_s": 1.0, "p50_ms": None, "p99_ms": None, "max_ms": None}
    document = {"series": [SECOND, silent], "limit": {"at": "cannot tell"}}
    rows = list(csv.DictReader(load_files.csv_text(document).splitlines()))
    assert rows[0] == {
        "at_s": "0",
        "requests": "5",
        "ok": "4",
        "errors": "1",
        "in_flight": "2",
        "waiting": "0",
        "p50_ms": "0.312",
        "p99_ms": "1.5",
        "max_ms": "2",
        "limit": "cannot tell",
    }
    assert rows[1]["p50_ms"] == "", "what was not measured is empty, not 0"
