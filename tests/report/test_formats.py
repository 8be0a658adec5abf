"""Formats of reports are found, each writes its file, and what limited the winner stands in all of them."""

import json as plain_json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from tests.report import made_up
from tests.report.made_up_verdict import verdict

from velodrome.guest import plugins
from velodrome.model.verdict import Verdict
from velodrome.report import formats, html, json, markdown, terminal
from velodrome.report.formats import Format, JudgedRun

LIMIT = "its CPU is in use to 97 % <b>"


def limited() -> Verdict:
    whole = verdict()
    return replace(whole, answers=(replace(whole.answers[0], limit=LIMIT), *whole.answers[1:]))


def test_every_format_that_ships_is_found_and_writes_its_file(tmp_path: Path) -> None:
    found = plugins.healthy(formats.FORMATS)
    assert {"html", "json", "markdown"} <= set(found)
    assert formats.write_reports(tmp_path, JudgedRun(verdict(), made_up.results(), made_up.HEADER)) == {}
    assert {path.name for path in tmp_path.iterdir()} == {shipped.file for shipped in found.values()}


def test_a_format_of_another_package_writes_beside_them_and_a_broken_one_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(path: Path, run: JudgedRun) -> None:
        path.write_text(run.verdict.study)

    here = plugins.Entry("text", "entry point mine:report", Format("text", "mine.txt", write))
    broken = plugins.Entry("torn", "entry point torn:report", error="No module named 'torn'")
    monkeypatch.setattr(plugins, "entries", lambda _kind: [here, broken])
    failures = formats.write_reports(tmp_path, JudgedRun(verdict(), (), {}))
    assert failures == {"entry point torn:report": "No module named 'torn'"}
    assert (tmp_path / "mine.txt").read_text() == verdict().study


def test_what_limited_the_winner_stands_on_its_card() -> None:
    shown = StringIO()
    terminal.show(limited(), {}, terminal.console(shown))
    assert LIMIT in shown.getvalue()
    assert "97 % &lt;b&gt;" in markdown.text(limited())
    page = html.render(limited(), made_up.results(), made_up.HEADER)
    assert page.count("97 % &lt;b&gt;") == 1


def test_a_verdict_that_does_not_say_what_the_limit_was_is_still_read(tmp_path: Path) -> None:
    old = json.document(verdict())
    for answer in old["answers"]:
        del answer["limit"]
    path = tmp_path / "verdict.json"
    path.write_text(plain_json.dumps(old))
    assert {answer.limit for answer in json.read(path).answers} == {""}
