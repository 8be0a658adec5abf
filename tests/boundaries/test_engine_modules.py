"""The modules of the Rust engine depend on one another in one direction only."""

import re
import runpy
from pathlib import Path

TOP = Path(__file__).parents[2]
SOURCES = TOP / "crates" / "engine" / "src"

COMMENT = re.compile(r"//.*")
TESTS = re.compile(r"^#\[cfg\(test\)\]\nmod \w+ \{\n.*?^\}\n", re.MULTILINE | re.DOTALL)
GROUP = re.compile(r"\bcrate::\{([^;]*)\}")
NAME = re.compile(r"\bcrate::(\w+)")


def dependencies() -> dict[str, set[str]]:
    """Returns for each module directly under the crate's root the modules it names, tests left out."""
    found: dict[str, set[str]] = {}
    for path in SOURCES.rglob("*.rs"):
        place = path.relative_to(SOURCES)
        if place.name in ("lib.rs", "tests.rs") or "tests" in place.parts:
            continue
        module = place.parts[0].removesuffix(".rs")
        text = TESTS.sub("", COMMENT.sub("", path.read_text()))
        named = set(NAME.findall(text))
        for group in GROUP.findall(text):
            named |= set(re.findall(r"(?:^|,)\s*(\w+)", group))
        found.setdefault(module, set()).update(named - {module})
    return found


def cycles(edges: dict[str, set[str]]) -> list[set[str]]:
    """Returns the sets of modules that can reach one another."""

    def reachable(start: str) -> set[str]:
        seen: set[str] = set()
        ahead = [start]
        while ahead:
            for module in edges.get(ahead.pop(), set()) - seen:
                seen.add(module)
                ahead.append(module)
        return seen

    reach = {module: reachable(module) for module in edges}
    found: list[set[str]] = []
    for module in sorted(edges):
        if module in reach[module]:
            cycle = {other for other in reach[module] if module in reach.get(other, set())}
            if cycle not in found:
                found.append(cycle)
    return found


def test_no_modules_of_the_engine_form_a_cycle() -> None:
    edges = dependencies()
    assert {"worker", "transport", "protocol"} <= edges.keys(), "the sources were not found"
    assert cycles(edges) == []


def test_a_cycle_is_found() -> None:
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == [{"b", "c"}]


def test_the_way_of_a_request_is_on_the_first_page_and_leads_through_files_that_exist() -> None:
    way = runpy.run_path(str(TOP / "tools" / "walks.py"))["request"]()  # exits where one does not exist
    assert way[0] == "worker.rs"
    assert len(way) <= 8
