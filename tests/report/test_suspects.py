"""Suspects in every output: as a suspect, with the command to paste whole, and nothing at all where nobody is."""

import json
from dataclasses import replace
from io import StringIO

import jsonschema
import pytest
from rich.console import Console
from tests.report import made_up
from tests.report.made_up_capacity import TITLE, knee, rate
from tests.report.made_up_diff import diff
from tests.report.made_up_tune import recommended
from tests.report.made_up_verdict import verdict

from velodrome.model.diagnosis import Suspected
from velodrome.model.quantity import Interval
from velodrome.model.search import Ending
from velodrome.report import differences, html, markdown, recommendation, schema, searches, terminal
from velodrome.report import json as verdict_json
from velodrome.report.diagnoses import suspect_lines

pytestmark = pytest.mark.unit
WHY = "p50 42.5 ms on reused connections, 0.4 ms on the first request of one"
PROVE = (
    "velodrome doctor shop:app --stack uvicorn-h11 --workers 2 --python /srv/venv/bin/python --cwd /srv/shop --only "
    "nodelay"
)
TWO = (
    Suspected("nodelay", "uvicorn · h11 ×2", WHY, PROVE),
    Suspected("nodelay", "hypercorn ×2", WHY, "other"),
)


def shown(lines: object) -> str:
    out = Console(file=StringIO(), width=80, force_terminal=False)
    for line in lines:  # type: ignore[attr-defined]
        out.print(line, soft_wrap=True)
    return out.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_a_fault_is_reported_once_with_everybody_who_is_suspected_of_it() -> None:
    first, proves, command = suspect_lines(TWO)
    assert first == f"Suspect: nodelay (uvicorn · h11 ×2; also hypercorn ×2): {WHY}."
    assert "Nothing is proven" in proves
    assert command.strip() == PROVE
    assert suspect_lines(()) == []


def test_a_verdict_shows_them_in_each_of_its_reports() -> None:
    found = replace(verdict(), suspects=TWO)
    sentence = shown(terminal.verdict_lines(found, {}, 80))
    assert "Suspect: nodelay" in sentence
    assert f"{PROVE}\n" in sentence, "a command is there to be copied, and never broken"
    page = html.render(found, made_up.results(), made_up.HEADER)
    assert "Suspect: nodelay" in page
    assert "Suspect: nodelay" in markdown.text(found)
    assert PROVE in markdown.text(found)
    document = verdict_json.document(found)
    jsonschema.validate(document, schema.verdict())
    assert [suspect["id"] for suspect in document["suspects"]] == ["nodelay", "nodelay"]


def test_searches_show_them() -> None:
    for found in (rate(Ending.CONVERGED, Interval(404, 412, 420)), knee(0.0005)):
        named = replace(found, suspects=TWO)
        assert f"  {PROVE}" in "\n".join(searches.lines(named, TITLE))
        document = json.loads(json.dumps(searches.document(named, TITLE)))
        jsonschema.validate(document, schema.capacity())
        assert document["suspects"][0]["prove"] == PROVE
        assert "Suspect" not in "\n".join(searches.lines(found, TITLE))


def test_a_tuning_shows_them() -> None:
    found = replace(recommended(), suspects=TWO)
    assert PROVE in "\n".join(recommendation.lines(found))
    document = json.loads(json.dumps(recommendation.document(found)))
    jsonschema.validate(document, schema.tune())
    assert document["suspects"][0]["id"] == "nodelay"


def test_a_diff_shows_them() -> None:
    found = replace(diff(), suspects=TWO)
    assert f"{PROVE}\n" in shown(differences.lines(found, 80))
    assert PROVE in differences.markdown_text(found)
    document = differences.document(found)
    jsonschema.validate(document, schema.diff())
    assert len(document["suspects"]) == 2
