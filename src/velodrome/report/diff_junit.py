"""A diff as a JUnit report: each figure a test case, a regression a failure, what cannot be told a skipped one.

Of thresholds, which somebody asked for, one that cannot be told is an error: it did not pass.
Elements and attributes are those that Ant's schema and Jenkins' have in common, in Ant's order.
"""

from xml.etree import ElementTree as Tree

from velodrome.model.difference import Change, Diff, Gate
from velodrome.report.diff_rows import Row, gate, sections, side
from velodrome.report.typeset import visible


def text(diff: Diff) -> str:
    """Return the whole document."""
    made, _ = sections(diff)
    root = Tree.Element("testsuites", name="velodrome diff")
    for section in made:
        suite = _suite(root, section.title, diff)
        cell = f"velodrome.diff.{section.question}.{section.contestant}"
        for row in section.rows:
            _figure(suite, cell, row)
        _close(suite, diff.sentence)
    if diff.gates:
        suite = _suite(root, "thresholds", diff)
        for one in diff.gates:
            _threshold(suite, one)
        _close(suite, "")
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    Tree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Tree.tostring(root, encoding="unicode") + "\n"


def _suite(root: Tree.Element, name: str, diff: Diff) -> Tree.Element:
    suite = Tree.SubElement(root, "testsuite", name=visible(name), hostname="localhost", time="0")
    suite.set("timestamp", _timestamp(diff))
    properties = Tree.SubElement(suite, "properties")
    for key, value in (
        ("before", side(diff.before.name, diff.before.told)),
        ("after", side(diff.after.name, diff.after.told)),
        *diff.environment.items(),
    ):
        Tree.SubElement(properties, "property", name=visible(key), value=visible(value))
    return suite


def _timestamp(diff: Diff) -> str:
    """Return when it was measured, as the schema wants it: seconds, without a zone."""
    at = diff.environment.get("started", "")[:19]
    return at if len(at) == 19 else "1970-01-01T00:00:00"


def _close(suite: Tree.Element, said: str) -> None:
    """Count the cases; the schema wants output elements last."""
    cases = suite.findall("testcase")
    suite.set("tests", str(len(cases)))
    for name, element in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(sum(case.find(element) is not None for case in cases)))
    Tree.SubElement(suite, "system-out").text = visible(said)
    Tree.SubElement(suite, "system-err")


def _figure(suite: Tree.Element, cell: str, row: Row) -> None:
    one = row.difference
    case = Tree.SubElement(
        suite, "testcase", classname=visible(cell), name=f"{one.metric} {one.load}", time="0"
    )
    _, before, after, moved, said = row.texts
    told = f"{one.metric}: {before} before, {after} after: {moved}"
    if one.change is Change.REGRESSION:
        message = visible(one.reason) or f"{told}: regression"
        Tree.SubElement(case, "failure", type="regression", message=message).text = message
    elif one.change is Change.INSUFFICIENT:
        reason = f": {visible(one.reason)}" if one.more_blocks is None and one.reason else ""
        Tree.SubElement(case, "skipped", message=f"{told}: {said.partition(' [')[0]}{reason}")


def _threshold(suite: Tree.Element, one: Gate) -> None:
    name = f"{one.threshold.text}: {one.difference.cell} {one.difference.load}"
    case = Tree.SubElement(
        suite, "testcase", classname="velodrome.diff.thresholds", name=visible(name), time="0"
    )
    if one.held is False:
        Tree.SubElement(case, "failure", type="threshold", message=gate(one)).text = gate(one)
    elif one.held is None:
        Tree.SubElement(case, "error", type="insufficient data", message=gate(one)).text = gate(one)
