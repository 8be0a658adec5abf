import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from jsonschema import Draft202012Validator
from tests.report import made_up
from tests.report.made_up_verdict import verdict

from velodrome.model import results
from velodrome.model.errors import UnreadableVerdictError
from velodrome.report import json as verdict_json
from velodrome.report import schema

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def lines() -> Draft202012Validator:
    """Checks lines of results: to make their schema, and to check it, takes a second."""
    return Draft202012Validator(schema.results())


def test_a_verdict_comes_back_as_it_was_written(tmp_path: Path) -> None:
    verdict_json.write(tmp_path / "verdict.json", verdict())
    assert verdict_json.read(tmp_path / "verdict.json") == verdict()


def test_a_verdict_obeys_its_published_schema() -> None:
    document = verdict_json.document(verdict())
    jsonschema.validate(document, schema.verdict())
    del document["answers"][0]["sentence"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema.verdict())


@pytest.mark.parametrize("number", [0, 19, 90, 179])
def test_a_line_of_results_obeys_its_published_schema(number: int, lines: Draft202012Validator) -> None:
    line = json.loads(results.dump(made_up.results()[number]))
    lines.validate(line)
    line["trial"]["recipe"]["steps"][0]["do"] = "nonsense"
    with pytest.raises(jsonschema.ValidationError):
        lines.validate(line)


def test_the_header_of_results_obeys_its_published_schema(lines: Draft202012Validator) -> None:
    header = results.Header(made_up.STUDY, 4711, made_up.MACHINE, "0.1.0", "2026-11-20T12:00:00Z")
    lines.validate(json.loads(results.dump_header(header)))


@pytest.mark.parametrize("name", schema.DOCUMENTS)
def test_the_published_schemas_are_those_of_the_nouns(name: str, golden: Callable[..., None]) -> None:
    Draft202012Validator.check_schema(schema.DOCUMENTS[name]())
    golden(name, schema.text(name), DOCS)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "it is not JSON"),
        ("[]", "its schema is not velodrome/verdict/1"),
        ('{"schema": "velodrome/verdict/9"}', "its schema is not velodrome/verdict/1"),
        ('{"schema": "velodrome/verdict/1", "study": 3}', "study"),
    ],
)
def test_a_verdict_that_cannot_be_read_says_what_is_wrong(content: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "verdict.json"
    path.write_text(content)
    with pytest.raises(UnreadableVerdictError, match=problem):
        verdict_json.read(path)
    with pytest.raises(UnreadableVerdictError, match="No such file"):
        verdict_json.read(tmp_path / "none.json")
