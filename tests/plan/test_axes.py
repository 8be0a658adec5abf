"""Lists are axes, each link a question of its own, and contestants may be named, placed and pinned."""

import pytest
from tests.plan.made import STACKS, problems, study, with_contestants, with_load

from velodrome.model.load import Closed, Limits, Link, Load, Open, Schedule, Step
from velodrome.model.trial import Contestant
from velodrome.plan.matrix import lay_out

AXES = """\
contestants = ["uvicorn", {stack = "uvicorn", name = "old", python = "3.7", packages = {uvicorn = "0.1"}}]
limits = {cpus = 1}
[[questions]]
name = "far"
recipe = "hello"
loads = [
  {connections = 4, requests = 500, threads = 2, driver = "wrk"},
  {rate = [100, 200], connections = 50, duration = "2s"},
  {connections = 4, duration = 1, idle = [0, 950]},
]
links = ["loopback", {rtt = "160ms"}, "rtt=20ms,loss=1%"]
limits = {cpus = "all"}
contestants = ["old"]
[[questions]]
name = "near"
recipe = "hello"
loads = [{connections = 4, duration = 1}]
"""


def test_lists_are_axes_and_links_are_questions() -> None:
    found = study(AXES)
    assert [(question.name, question.link) for question in found.questions] == [
        ("far", None),
        ("far-rtt160ms", Link(160)),
        ("far-rtt20ms-loss1%", Link(20, loss=0.01)),
        ("near", None),
    ]
    far = found.questions[1]
    assert far.loads == (
        Load(Closed(4), 60, driver="wrk", requests=500, threads=2),
        Load(Open(100, connections=50), 2),
        Load(Open(200, connections=50), 2),
        Load(Closed(4), 1),
        Load(Closed(4), 1, idle=950),
    )
    assert found.contestants[1] == Contestant("uvicorn", {}, {"uvicorn": "0.1"}, "3.7", "old")


def test_trials_take_place_link_and_interpreter_from_where_they_were_given() -> None:
    sessions = lay_out(study(AXES), STACKS, python="3.13").sessions
    trials = {trial.key: trial for session in sessions for trial in session.trials}
    far, near = trials["far-rtt160ms/old/open-100/0"], trials["near/uvicorn@3.13/closed-4/0"]
    assert (far.link, far.limits, far.interpreter) == (Link(160), Limits("all"), "3.7")
    assert (near.link, near.limits, near.interpreter) == (None, Limits(1), "3.13")
    assert not any("far/uvicorn" in key for key in trials)


@pytest.mark.parametrize(
    ("load", "sentence"),
    [
        ("{connections = [4, 0], duration = 1}", "connections: 0 is not a number of connections"),
        ("{connections = [], duration = 1}", "connections: an empty list is not a number of connections"),
        ("{connections = [4, 5], duration = 0}", "duration: 0 is not a span of time"),
        ("{connections = [4, 4], duration = 1}", "'closed-4' is already loads[0]"),
        ("{connections = 4}", 'duration: is missing; give one above 0, such as "1.5s", or requests'),
        ('{connections = 4, duration = 1, driver = "wrq"}', "no driver is called 'wrq'; nearest: wrk"),
        ("{connections = 4, requests = 0}", "requests: 0 is not a number of requests"),
        ("{connections = 4, duration = 1, idle = -1}", "idle: -1 is not a number of idle connections"),
        (
            f"{{connections = {list(range(1, 250))}, duration = 1}}",
            "loads[0]: comes to 249 loads; give at most 200",
        ),
    ],
)
def test_a_bad_axis_is_reported_once_with_its_cure(load: str, sentence: str) -> None:
    found = problems(with_load(load))
    assert len(found) == 1, found
    assert sentence in found[0]


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ('link = {rtt = "160"}', "questions[0].link: the rtt of a link, '160', is not a span of time"),
        ("link = 5", "questions[0].link: 5 is not a link; give one such as"),
        ('links = [{rtt = "1ms"}, {rtt = "1 ms"}]', "questions[0]: 'hello-rtt1ms' is already questions[0]"),
        ('links = ["loopback"]\nlink = "rtt=1ms"', "questions[0].links: stands beside link"),
        ("links = []", "questions[0].links: an empty list is not a list of links"),
        (
            'limits = {cpus = "most"}',
            "questions[0].limits.cpus: 'most' is not a number of CPUs; give a whole",
        ),
        ("limits = {cpus = true}", "questions[0].limits.cpus: true is not a number of CPUs"),
        (
            'contestants = ["uvicron"]',
            "questions[0].contestants[0]: 'uvicron' is no contestant; nearest: uvicorn",
        ),
    ],
)
def test_a_bad_question_is_reported_with_its_cure(keys: str, sentence: str) -> None:
    found = problems(with_load("{connections = 1, duration = 1}") + keys + "\n")
    assert len(found) == 1, found
    assert sentence in found[0]


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ('packages = {uvicorn = ">=1"}', "packages.uvicorn: '>=1' is not a version; give an exact one"),
        ('packages = {uvicorn = "--help"}', "packages.uvicorn: '--help' is not a version"),
        ("packages = {uvicorn = 5}", "packages.uvicorn: 5 is not a version"),
        ('packages = {"-r" = "5"}', "packages.-r: '-r' is not the name of a package"),
        ('packages = "x"', "packages: 'x' is not a table of versions"),
        ("python = 3.12", "python: 3.12 is not an interpreter"),
        ('name = "A b"', "name: 'A b' is not a name"),
        ('pakages = {uvicorn = "1"}', "uvicorn has no such knob; nearest: packages"),
    ],
)
def test_a_bad_version_is_reported_with_its_cure(table: str, sentence: str) -> None:
    found = problems(with_contestants(f'[{{stack = "uvicorn", {table}}}]'))
    assert len(found) == 1, found
    assert sentence in found[0]


def test_a_contestant_that_no_question_asks_for_is_a_mistake() -> None:
    text = with_contestants('["uvicorn", "gunicorn-gevent"]') + 'contestants = ["uvicorn"]\n'
    assert problems(text) == [
        "1:27 contestants[1]: no question has it; leave it out, or name it in a question"
    ]


@pytest.mark.parametrize(
    ("load", "pace", "duration_s"),
    [
        (
            '{rate = "100..200", step = 50, every = "2s", connections = 9}',
            Schedule((Step(100, 2), Step(150, 2), Step(200, 2)), connections=9),
            6,
        ),
        (
            '{rate = "500:1s,0:2s", arrivals = "poisson", duration = "4s"}',
            Schedule((Step(500, 1), Step(0, 2)), "poisson"),
            4,
        ),
    ],
)
def test_a_rate_may_change(load: str, pace: Schedule, duration_s: float) -> None:
    [found] = study(with_load(load)).questions[0].loads
    assert (found.pace, found.duration_s) == (pace, duration_s)


def test_a_ramp_is_reported_in_ten_parts_and_loads_that_differ_have_labels_that_do() -> None:
    loads = '{rate = ["0..200", "0..100"], ramp = "1s"}, {rate = "0..200", ramp = "2s"}, {rate = "9:1s"}'
    found = study(with_load(loads)).questions[0].loads
    assert isinstance(found[0].pace, Schedule)
    assert (len(found[0].pace.steps), found[0].pace.top) == (10, 200)
    assert found[0].pace.rate == pytest.approx(100)
    assert [load.label for load in found] == [
        "schedule-0..200-10in1s",
        "schedule-0..100-10in1s",
        "schedule-0..200-10in2s",
        "schedule-9-1in1s",
    ]


@pytest.mark.parametrize(
    ("load", "sentence"),
    [
        ('{rate = "100..200"}', "rate 100..200 goes from one rate to another: give either step 100 every 5s, or ramp"),
        ('{rate = "fast", duration = 1}', "loads[0].rate: 'fast' is not a rate; give requests per second above 0, or"),
        ('{rate = "1..x", ramp = 1}', "loads[0].rate: 'x' is not a rate; write 5000, 100..5000"),
        ('{rate = "-1..9", ramp = 1}', "loads[0].rate: goes from -1..9; give rates from 0 to 10000000"),
        ('{rate = "0:9s"}', "loads[0].rate: is 0 all the time"),
        ('{rate = "5:0s"}', "loads[0].rate: has a piece of no time"),
        ('{rate = 5, step = 1, duration = 1}', "loads[0].rate: step needs two rates to go between: give rate = "),
        ('{connections = 5, ramp = "1s", duration = 1}', "loads[0].rate: ramp needs two rates to go between"),
    ],
)  # fmt: skip
def test_a_rate_that_changes_wrongly_is_reported_in_its_place(load: str, sentence: str) -> None:
    assert any(sentence in problem for problem in problems(with_load(load))), problems(with_load(load))
