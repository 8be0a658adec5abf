"""What a JUnit document may hold, as its readers take it."""

from xml.etree import ElementTree as Tree

ALLOWED = {
    "testsuites": ({"name", "tests", "failures", "errors"}, ["testsuite"]),
    "testsuite": (
        {"name", "timestamp", "hostname", "tests", "failures", "errors", "skipped", "time"},
        ["properties", "testcase", "system-out", "system-err"],
    ),
    "properties": (set(), ["property"]),
    "property": ({"name", "value"}, []),
    "testcase": ({"classname", "name", "time"}, ["failure", "error", "skipped"]),
    "failure": ({"type", "message"}, []),
    "error": ({"type", "message"}, []),
    "skipped": ({"message"}, []),
    "system-out": (set(), []),
    "system-err": (set(), []),
}


def check(element: Tree.Element) -> None:
    attributes, children = ALLOWED[element.tag]
    assert set(element.keys()) == attributes
    order = [children.index(child.tag) for child in element]
    assert order == sorted(order)
    for child in element:
        check(child)
