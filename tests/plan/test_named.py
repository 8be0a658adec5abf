"""All that a study names and that is executed or installed is listed; versions of interpreters are nobody's file."""

import pytest
from tests.plan.made import problems, study

from velodrome.model.errors import UntrustedError
from velodrome.model.files import Deed, Named
from velodrome.plan import untrusted

QUESTION = '\n[[questions]]\nrecipe = "hello"\nloads = [{connections = 1, duration = "1s"}]\n'


def of(contestants: str, more: str = "") -> tuple[Named, ...]:
    return untrusted.of_study(study(f"contestants = [{contestants}]{QUESTION}{more}"))


@pytest.mark.parametrize("python", ["3", "3.12", "3.12.1", "3.13t", "pypy3.10", "cpython-3.11"])
def test_a_version_of_an_interpreter_is_no_file(python: str) -> None:
    assert of(f'{{stack = "uvicorn", python = "{python}"}}') == ()


@pytest.mark.parametrize(
    "python", ["./x.sh", "/usr/bin/env", "evil", "3.12/bin/python", "..", "-c", "3.12\u202e"]
)
def test_all_else_is_executed(python: str) -> None:
    (named,) = of(f'{{stack = "uvicorn", name = "old", python = "{python}"}}')
    assert named == Named(Deed.EXECUTES, python, "contestant old")


def test_packages_are_named_as_sorted_requirements() -> None:
    (named,) = of('{stack = "uvicorn", name = "old", packages = {uvloop = "0.19", httptools = "0.6"}}')
    assert named == Named(Deed.INSTALLS, "httptools==0.6 uvloop==0.19", "contestant old")


def test_what_several_name_is_reported_once() -> None:
    found = of(
        '{stack = "uvicorn", name = "a", python = "./x"}, {stack = "uvicorn", name = "b", python = "./x"}, "picky"'
    )
    assert [named.place for named in found] == ["contestant a"]


def test_experiments_name_them_too() -> None:
    tried = '[[experiments]]\nkind = "versions"\npython = "./y.sh"\npackages = ["tornado=5.1.1"]\n'
    assert of('"uvicorn"', tried) == (
        Named(Deed.EXECUTES, "./y.sh", "experiment versions"),
        Named(Deed.INSTALLS, "tornado==5.1.1", "experiment versions"),
    )


@pytest.mark.parametrize(
    "line",
    [
        "tornado",
        "tornado=",
        "=1",
        "tornado=1\\n--index-url=http://x",
        "tornado=1 --pre",
        "t o=1",
        "a=@file:///x",
    ],
)
def test_packages_of_experiments_are_exact_versions_and_nothing_else(line: str) -> None:
    text = f'contestants = ["uvicorn"]{QUESTION}[[experiments]]\nkind = "versions"\npackages = ["{line}"]\n'
    assert "is not a version of a package" in problems(text)[0]


def test_what_is_refused_is_reported_without_its_control_characters() -> None:
    with pytest.raises(UntrustedError) as caught:
        untrusted.refuse("mine.toml", [Named(Deed.EXECUTES, "\x1b]0;x\x07\u202e", "request \x1b[2J")])
    assert caught.value.exit_code == 2
    assert all(letter.isprintable() or letter == "\n" for letter in str(caught.value))


def test_much_is_reported_in_part() -> None:
    with pytest.raises(UntrustedError) as caught:
        untrusted.refuse(
            "mine.toml", [Named(Deed.EXECUTES, f"./{number}", "contestant x") for number in range(1_000)]
        )
    assert len(str(caught.value)) < 5_000
    assert len(caught.value.named) == 1_000
