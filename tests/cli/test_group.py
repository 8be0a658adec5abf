"""A group runs study after study, goes on after one that cannot be run, and ends with all claims."""

from pathlib import Path
from xml.etree import ElementTree as Tree

import pytest
from tests.cli.running import with_own_cache

STUDY = """\
title = "TITLE"
contestants = ["socketserver-single"]
[[questions]]
recipe = "hello"
loads = [{connections = 1, duration = "4s", drain = "0.2s"}]
[[claims]]
name = "NAME"
says = "it is as said"
[[claims.checks]]
metric = "failed_share"
of = "hello/socketserver-single"
BOUND
"""


@pytest.fixture
def group(tmp_path: Path) -> Path:
    folder = tmp_path / "few"
    folder.mkdir()
    for name, bound in (("a", "at_most = 0"), ("b", "at_least = 1")):
        text = STUDY.replace("NAME", name.upper()).replace("BOUND", bound).replace("TITLE", f"Study {name}")
        (folder / f"{name}.toml").write_text(text)
    return tmp_path


def test_a_group_ends_with_all_claims_and_is_resumed(group: Path) -> None:
    (group / "few/broken.toml").write_text("contestants = 3\n")
    ended = with_own_cache(group, "run", "./few", "--quick", "--out", "out")
    assert ended.returncode == 2, ended.stdout + ended.stderr
    assert "All claims: 1 holds, 1 does not hold here" in ended.stdout
    assert "few/broken.toml could not be run to its end: few/broken.toml has" in ended.stdout
    page = (group / "out/few.md").read_text()
    assert "1 holds, 1 does not hold here." in page
    assert "| **B** it is as said | | | **does not hold here** |" in page
    for name in ("a", "b"):
        assert (group / "out" / name / "report.html").exists()
    judged = with_own_cache(group, "judge", "out")
    assert judged.returncode == 0, judged.stdout + judged.stderr
    assert "All claims: 1 holds, 1 does not hold here" in judged.stdout
    (group / "few/broken.toml").unlink()
    (group / "few/b.toml").write_text(
        (group / "few/b.toml").read_text().replace("at_least = 1", "at_most = 0")
    )
    judged = with_own_cache(group, "judge", "out", "--claims", "./few", "--junit", "claims.xml")
    assert judged.returncode == 0, judged.stdout + judged.stderr
    assert "All claims: 2 hold" in judged.stdout
    suites = Tree.parse(group / "claims.xml").getroot().findall("testsuite")
    assert [[len(suite.findall("testcase")), suite.get("failures")] for suite in suites] == [
        [1, "0"],
        [1, "0"],
    ]
    alone = with_own_cache(group, "judge", "out", "--claims", "few/a.toml")
    assert alone.returncode == 2
    assert "--claims few/a.toml: this is a run of a group: name a group" in alone.stderr
    (group / "few/b.toml").write_text(
        (group / "few/b.toml").read_text().replace("at_most = 0", "at_least = 1")
    )
    before = (group / "out/a/results.jsonl").read_bytes()
    again = with_own_cache(group, "run", "./few", "--quick", "--out", "out", "--resume", "--strict")
    assert again.returncode == 1, again.stdout + again.stderr
    assert "B of ./few does not hold here" in again.stderr
    assert (group / "out/a/results.jsonl").read_bytes() == before


def test_a_part_of_a_group_is_refused_with_the_studies_to_run(group: Path) -> None:
    ended = with_own_cache(group, "run", "./few", "--only", "hello")
    assert ended.returncode == 2
    assert "--only hello: it is for one study; run one of: few/a.toml, few/b.toml" in ended.stderr
