"""The document is one that Ant's schema of JUnit reports, and Jenkins', allow: element by element."""

from collections.abc import Callable
from xml.etree import ElementTree as Tree

import pytest
from tests.report.junit_schema import check
from tests.report.made_up_diff import diff, hostile

from velodrome.model.difference import Diff
from velodrome.report import differences

"""Attributes, all of which the schema wants, and children in their order."""


@pytest.mark.parametrize("what", [diff(), hostile()], ids=["plain", "hostile"])
def test_it_is_as_the_schema_wants_it(what: Diff) -> None:
    root = Tree.fromstring(differences.junit_text(what))
    check(root)
    for suite in root:
        cases = suite.findall("testcase")
        assert int(suite.get("tests", "")) == len(cases)
        assert int(suite.get("failures", "")) == sum(case.find("failure") is not None for case in cases)
        assert len({(case.get("classname"), case.get("name")) for case in cases}) == len(cases)
    assert int(root.get("failures", "")) == sum(int(suite.get("failures", "")) for suite in root)


def test_a_regression_fails_what_cannot_be_told_is_skipped_and_of_a_threshold_an_error(
    golden: Callable[[str, str], None],
) -> None:
    text = differences.junit_text(diff())
    golden("diff.xml", text)
    root = Tree.fromstring(text)
    failed = [case.get("name") for case in root.iter("testcase") if case.find("failure") is not None]
    assert failed == ["p99 open-100", "p99 +50%: hello/uvicorn open-100"]
    assert [case.get("name") for case in root.iter("testcase") if case.find("error") is not None] == [
        "memory +1.2%: hello/uvicorn open-100"
    ]
    skipped = [case.get("name") for case in root.iter("testcase") if case.find("skipped") is not None]
    assert skipped
    assert set(skipped).isdisjoint(failed)
