"""Claims name only what the study measures, and can fail; all that is wrong with them is reported at once."""

import pytest
from tests.plan.made import KNOWN, STACKS, problems, study
from tests.plan.study_text import BASE

from velodrome.model.claim import Arithmetic, Check, Claim, Contradiction, Figure
from velodrome.plan.matrix import lay_out, narrow
from velodrome.plan.study_file import parse

CLAIM = '[[claims]]\nname = "G1"\nsays = "it is faster"\n'


def with_check(keys: str) -> str:
    return f"{BASE}{CLAIM}[[claims.checks]]\n{keys}\n"


def test_a_claim_is_read_whole() -> None:
    text = f"""{BASE}
[[claims]]
name = "G1"
says = "it is faster"
needs_cpus = 2
remark = "Not on Sundays."
arithmetic = {{slots = 3, wait_ms = 200, published_rps = 37.86}}
[[claims.checks]]
about = "throughput"
metric = "throughput_rps"
of = "hello/uvicorn"
over = "hello/sync"
load = "closed-40"
published = 2.63
at_least = 1.5
[[claims.checks]]
metric = "cpu_us"
of = "hello/uvicorn"
over = "hello/uvicorn"
load = "closed-40-idle95"
over_load = "closed-40"
at_most = 1.2
[[claims.checks]]
experiment = "canary"
metric = "thread_us"
over = "task_us"
at_least = 2
[[claims.checks]]
experiment = "canary"
metric = "hangs"
equals = true
[[claims.checks]]
metric = "throughput_rps"
of = "hello/uvicorn"
over = "hello/sync"
than = ["hello/sync", "hello/uvicorn"]
at_least = 1
[[claims.contradictions]]
about = "a over b"
says = 0.3
a = 42
b = 100
"""
    whole, idle = Figure("cpu_us", "hello/uvicorn", "closed-40"), "closed-40-idle95"
    rps = "throughput_rps"
    assert study(text).claims == (
        Claim(
            "G1",
            "it is faster",
            (
                Check(
                    Figure(rps, "hello/uvicorn", "closed-40"),
                    Figure(rps, "hello/sync", "closed-40"),
                    1.5,
                    None,
                    2.63,
                    about="throughput",
                ),
                Check(Figure("cpu_us", "hello/uvicorn", idle), whole, None, 1.2),
                Check(
                    Figure("thread_us", experiment="canary"), Figure("task_us", experiment="canary"), 2, None
                ),
                Check(Figure("hangs", experiment="canary"), None, None, None, equals=True),
                Check(
                    Figure(rps, "hello/uvicorn"),
                    Figure(rps, "hello/sync"),
                    1,
                    None,
                    than=(Figure(rps, "hello/sync"), Figure(rps, "hello/uvicorn")),
                ),
            ),
            2,
            "Not on Sundays.",
            (Arithmetic(3, "workers", 200, 37.86),),
            (Contradiction("a over b", 0.3, 42, 100),),
        ),
    )


def test_the_quick_form_names_loads_as_they_are_called_in_it() -> None:
    text = with_check('metric = "cpu_us"\nof = "hello/uvicorn"\nload = "closed-9-n1000"\nat_most = 9')
    quick = parse(text, "mine.toml", KNOWN, quick=True)
    assert quick.questions[0].loads[1].label == "closed-9-n500"
    assert quick.claims[0].checks[0].figure.load == "closed-9-n500"


def test_a_part_of_a_study_keeps_the_claims_it_is_about() -> None:
    text = with_check('metric = "cpu_us"\nof = "hello/uvicorn"\nat_most = 9')
    whole = study(text)
    assert len(narrow(whole, lay_out(whole, STACKS, ["hello/uvicorn"])).claims) == 1
    assert narrow(whole, lay_out(whole, STACKS, ["hello/sync"])).claims == ()


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ('metric = "cpu_us"\nof = "hello/uvicorn"', "checks[0]: does not state when it holds; give at_least"),
        (
            'metric = "cpu"\nof = "hello/uvicorn"\nat_most = 1',
            "checks[0].metric: 'cpu' is no metric; nearest: cpu_us",
        ),
        ('of = "hello/uvicorn"\nat_most = 1', "checks[0].metric: is missing; give the name of one"),
        ('metric = "cpu_us"\nat_most = 1', "checks[0].of: is missing; give a question/contestant"),
        (
            'metric = "cpu_us"\nof = "helo/uvicorn"\nat_most = 1',
            "checks[0].of: 'helo/uvicorn' is no question/contestant of this study; nearest: hello/uvicorn",
        ),
        (
            'metric = "cpu_us"\nof = "hello/uvicorn"\nover = "hello/snc"\nat_most = 1',
            "checks[0].over: 'hello/snc' is no question/contestant of this study; nearest: hello/sync",
        ),
        (
            'metric = "cpu_us"\nof = "hello/uvicorn"\nload = "closed-4"\nat_most = 1',
            "checks[0].load: 'closed-4' is no load of that question; nearest: closed-40",
        ),
        (
            'metric = "cpu_us"\nof = "hello/sync"\nover = "hello/sync"\nover_load = "closed-4"\nat_most = 1',
            "checks[0].over_load: 'closed-4' is no load of that question",
        ),
        (
            'metric = "cpu_us"\nof = "hello/sync"\nat_least = 2\nat_most = 1',
            "checks[0].at_least: 2 is above at_most, 1; no number is both",
        ),
        (
            'metric = "cpu_us"\nof = "hello/sync"\nequals = true',
            "checks[0].equals: is for a fact of an experiment",
        ),
        (
            'metric = "x"\nexperiment = "canary"\nequals = true\nat_most = 1',
            "checks[0].equals: stands beside a bound",
        ),
        ('metric = "x"\nexperiment = "canary"\nequals = 3', "checks[0].equals: 3 is not a fact"),
        (
            'metric = "x"\nexperiment = "canari"\nat_most = 1',
            "checks[0].experiment: 'canari' is no experiment of this study; nearest: canary",
        ),
        (
            'metric = "x"\nexperiment = "canary"\nof = "hello/sync"\nat_most = 1',
            "checks[0].of: stands beside experiment; give one of the two",
        ),
        (
            'metric = "cpu_us"\nof = "hello/sync"\nthan = ["hello/sync", "hello/uvicorn"]\nat_most = 1',
            "checks[0].than: compares two ratios of cells; give of and over as well",
        ),
        (
            'metric = "cpu_us"\nof = "hello/sync"\nthan = ["hello/sync"]\nat_most = 1',
            "checks[0].than: a list is not a pair of cells",
        ),
        ('metric = "cpu_us"\nof = "hello/sync"\nat_most = inf', "checks[0].at_most: inf is not a bound"),
        (
            'metric = "cpu_us"\nof = "hello/sync"\natmost = 1',
            "atmost: there is no such key here; nearest: at_most",
        ),
    ],
)
def test_a_bad_check_is_reported_with_its_cure(keys: str, sentence: str) -> None:
    found = problems(with_check(keys))
    assert any(f"claims[0].{sentence}" in problem or sentence in problem for problem in found), found


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (CLAIM, "claims[0]: has nothing to be judged by; give it [[claims.checks]], arithmetic"),
        ('[[claims]]\nname = "a b"\nsays = "x"\n', "claims[0].name: 'a b' is not a name"),
        ('[[claims]]\nname = "a"\n', "claims[0].says: is missing"),
        (
            f"{CLAIM}arithmetic = {{slots = 0, wait_ms = 1, published_rps = 1}}",
            "slots: 0 is not a number of slots",
        ),
        (f"{CLAIM}arithmetic = 3", "claims[0].arithmetic: 3 is not a table of arithmetic"),
        (f"{CLAIM}contradictions = [{{about = 'x', says = 1, a = 1}}]", "contradictions[0].b: is missing"),
        (f"{CLAIM}checks = [3]", "claims[0].checks[0]: 3 is not a check; give a [[claims.checks]] table"),
    ],
)
def test_a_bad_claim_is_reported_with_its_cure(text: str, sentence: str) -> None:
    assert any(sentence in problem for problem in problems(BASE + text + "\n")), problems(BASE + text + "\n")


def test_two_claims_of_one_name_are_refused() -> None:
    check = '[[claims.checks]]\nmetric = "cpu_us"\nof = "hello/sync"\nat_most = 1\n'
    assert any("'G1' is already claims[0]" in problem for problem in problems(BASE + (CLAIM + check) * 2))


def test_a_check_may_inform_beside_one_that_decides() -> None:
    check = '[[claims.checks]]\nmetric = "throughput_rps"\nof = "hello/uvicorn"\nat_least = 1\n'
    text = f'{BASE}{CLAIM}{check}{check}informs = "on one CPU"\n'
    (claim,) = study(text).claims
    assert [criterion.informs for criterion in claim.checks] == ["", "on one CPU"]
    alone = problems(f'{BASE}{CLAIM}{check}informs = "on one CPU"\n')
    assert "checks that inform alone" in str(alone)
