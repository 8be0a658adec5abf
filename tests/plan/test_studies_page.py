"""The page on study files tells the truth: its examples are read, its mistakes are made."""

import re
from pathlib import Path

import pytest

from velodrome.guest import catalog
from velodrome.guest.recipe import STEPS
from velodrome.model.condition import METRICS
from velodrome.model.errors import StudyFileError
from velodrome.plan import schema
from velodrome.plan.findings import Known
from velodrome.plan.study_file import parse
from velodrome.run.drivers import driver
from velodrome.run.experiments import experiment as experiments

PAGE = (Path(__file__).parents[2] / "docs/studies.md").read_text()
SMALLEST, WHOLE, WRONG = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)

TABLES = (
    schema.StudyTable,
    schema.QuestionTable,
    schema.LoadTable,
    schema.ContestantTable,
    schema.ExperimentTable,
    schema.ClaimTable,
    schema.CheckTable,
    schema.ArithmeticTable,
    schema.ContradictionTable,
    schema.QuickTable,
)


def known() -> Known:
    kinds = {"canary": {"requests": 1}} | experiments.settings()
    return Known(catalog.stacks(), catalog.recipes(), driver.driver_names(), kinds)


@pytest.mark.parametrize("text", [SMALLEST, WHOLE])
def test_the_examples_are_studies(text: str) -> None:
    assert parse(text, "mine.toml", known()).questions


def test_the_example_with_mistakes_gives_what_the_page_shows() -> None:
    with pytest.raises(StudyFileError) as caught:
        parse(WRONG, "mine.toml", known())
    lines = str(caught.value).splitlines()
    # Which names are nearest depends on which stacks there are, so that part is not compared.
    for line in lines:
        assert line.partition("; nearest: uvicorn")[0] in PAGE


def test_every_metric_is_on_the_page() -> None:
    for name, metric in METRICS.items():
        assert f"| `{name}` | {metric.about} |" in PAGE


def test_every_key_is_on_the_page() -> None:
    for table in TABLES:
        for key in table.model_fields:
            assert re.search(rf"\b{key} = |`{key}`|[.\[]{key}\]", PAGE), key
    for kind in STEPS:
        assert f"| `{kind}` |" in PAGE
