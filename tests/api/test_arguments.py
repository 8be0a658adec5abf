"""What the functions of the Python API are given is checked, before anything is started."""

import inspect
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import velodrome
from velodrome.api import arguments
from velodrome.api.apps import app_spec
from velodrome.api.loads import Velodrome
from velodrome.api.runs import raced
from velodrome.model.errors import ResultsError, UsageError

vd: Any = velodrome
"""As who has no type checker uses it."""
URL = "http://127.0.0.1:1/"
APP = "no_such_shop:app"
FUNCTIONS = (vd.load, vd.race, vd.read, vd.compare, vd.capacity, vd.tune, vd.diff, vd.diagnose, vd.requests)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("ask", "cure"),
    [
        (lambda: vd.diagnose(APP, only="nodelay"), 'only=["nodelay"]'),
        (lambda: vd.diagnose(APP, skip="nodelay"), 'skip=["nodelay"]'),
        (lambda: vd.diagnose(APP, requests="GET /"), "requests=["),
        (lambda: vd.compare(APP, stacks="waitress"), 'stacks=["waitress"]'),
        (lambda: vd.tune(APP, stacks="waitress"), 'stacks=["waitress"]'),
        (lambda: vd.capacity(APP, upstreams="A=50ms"), "upstreams=["),
        (lambda: vd.race("first-lap", only="*/waitress"), 'only=["*/waitress"]'),
        (lambda: vd.race("first-lap", load_from="host-a"), 'load_from=["host-a"]'),
        (lambda: vd.diff("a", "b", metrics="p99"), 'metrics=["p99"]'),
        (lambda: vd.diff("HEAD~1", "HEAD", app=APP, stacks="waitress"), 'stacks=["waitress"]'),
        (lambda: vd.load(URL, allow_target="shop.example"), 'allow_target=["shop.example"]'),
        (lambda: vd.load(APP, secrets="SHOP_PIN"), "secrets=["),
        (lambda: vd.requests("GET /", methods="GET"), 'methods=["GET"]'),
    ],
)
def test_a_text_in_place_of_a_list_is_refused_and_not_taken_letter_by_letter(
    ask: Callable[[], object], cure: str
) -> None:
    with pytest.raises(UsageError) as refused:
        ask()
    assert cure in str(refused.value)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("name", "ask"),
    [
        ("rate", lambda: vd.load(URL, rate="fast")),
        ("rate", lambda: vd.load(URL, rate=True)),
        ("blocks", lambda: vd.load(URL, blocks="3")),
        ("blocks", lambda: vd.load(URL, blocks=2.5)),
        ("timeout", lambda: vd.load(URL, timeout=None)),
        ("headers", lambda: vd.load(URL, headers=["X: 1"])),
        ("headers", lambda: vd.load(URL, headers="X: 1")),
        ("headers", lambda: vd.load(URL, headers={"A": 3})),
        ("headers", lambda: vd.load(URL, headers=[("A", "1", "2")])),
        ("headers", lambda: vd.diagnose(APP, headers=["ab"])),
        ("requests", lambda: vd.load(URL, requests=vd.requests("GET /"))),
        ("body", lambda: vd.load(URL, body={"id": 1})),
        ("expect_status", lambda: vd.load(URL, expect_status="201")),
        ("knobs", lambda: vd.load(APP, knobs=["workers=2"])),
        ("knobs", lambda: vd.diagnose(APP, knobs="workers=2")),
        ("memory", lambda: vd.capacity(APP, memory=512)),
        ("cpus", lambda: vd.tune(APP, cpus="2")),
        ("wait", lambda: vd.tune(APP, wait="no")),
        ("trust", lambda: vd.race("first-lap", trust="no")),
        ("study", lambda: vd.race(3)),
        ("run", lambda: vd.read(3)),
        ("before", lambda: vd.diff(3)),
        ("after", lambda: vd.diff("a", 3)),
        ("workers", lambda: vd.diff("HEAD~1", "HEAD", app=APP, workers="2")),
        ("lines", lambda: vd.requests(["GET /"])),
        ("env", lambda: vd.load(APP, env={"A": 1})),
        ("rate", lambda: Velodrome().load(URL, rate="fast")),
    ],
)
def test_an_argument_of_another_kind_is_refused_by_its_name(name: str, ask: Callable[[], object]) -> None:
    with pytest.raises(UsageError) as refused:
        ask()
    assert str(refused.value).startswith(f"{name} cannot be ")
    assert arguments.EXAMPLES[name] in str(refused.value)


@pytest.mark.unit
@pytest.mark.parametrize(
    "app", [None, 3, 2.5, b"shop:app", ["shop:app"], {}, Decimal(1), Path("shop.py"), pytest]
)
@pytest.mark.parametrize("function", [vd.load, vd.compare, vd.capacity, vd.tune, vd.diagnose])
def test_what_can_be_no_app_is_refused_and_not_searched_for(
    function: Callable[..., Any], app: object
) -> None:
    with pytest.raises(UsageError, match=r"cannot be .*shop\.wsgi:application.* the app itself"):
        function(app)


@pytest.mark.unit
@pytest.mark.parametrize("name", ["duration", "warmup", "timeout"])
@pytest.mark.parametrize("span", [float("nan"), float("inf")])
def test_a_load_without_end_is_refused(name: str, span: float) -> None:
    with pytest.raises(UsageError, match="not a span of time"):
        vd.load(URL, **{name: span})


@pytest.mark.unit
@pytest.mark.parametrize(
    "options", [{"env": "A=hush-hush"}, {"headers": "X-Pin: hush-hush"}, {"env": {"A=hush": "1"}}]
)
def test_a_refusal_shows_no_value_that_may_be_a_secret(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as refused:
        vd.load(APP, **options)
    assert "hush" not in str(refused.value)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("name", "ask"),
    [
        ("diagnose", lambda: vd.diagnose(APP, stacks=["waitress"])),
        ("tune", lambda: vd.tune(APP, link="rtt=40ms")),
        ("load", lambda: vd.load(URL, stacs="waitress")),
        ("diff", lambda: vd.diff("HEAD~1", "HEAD", app=APP, looked=3)),
        ("read", lambda: vd.read("runs/x", trust=True)),
    ],
)
def test_an_unknown_argument_is_of_the_function_that_was_called(name: str, ask: Callable[[], object]) -> None:
    with pytest.raises(TypeError, match=rf"^{name}\(\) got an unexpected keyword argument"):
        ask()


@pytest.mark.unit
def test_a_missing_or_surplus_argument_is_reported_as_python_does() -> None:
    with pytest.raises(TypeError, match=r"read\(\) missing 1 required positional argument: 'run'"):
        vd.read()
    with pytest.raises(TypeError, match=r"read\(\) takes 1 positional argument but 2 were given"):
        vd.read("runs/x", "runs/y")


@pytest.mark.unit
def test_variables_by_name_are_pairs_of_name_and_value() -> None:
    by_name = app_spec(APP, (), env={"A": "1", "B": "x=y", "C": ""})
    assert by_name.env == app_spec(APP, (), env=["A=1", "B=x=y", "C="]).env


@pytest.mark.unit
@pytest.mark.parametrize(
    "options", [{"only": None}, {"only": ()}, {"out": None}, {"quick": None}, {"python": None}]
)
def test_none_is_as_good_as_nothing(options: dict[str, Any]) -> None:
    assert _read_by(vd.race, options) in ({"only": ()}, {"out": None}, {})


@pytest.mark.unit
def test_what_others_made_is_taken_as_plain_values() -> None:
    numpy = pytest.importorskip("numpy")
    given = {"rate": numpy.float32(2.5), "blocks": numpy.int64(3), "requests": (line for line in ["GET /"])}
    found = _read_by(vd.load, given)
    assert found == {"rate": 2.5, "blocks": 3, "requests": ("GET /",)}
    assert [type(value) for value in found.values()] == [float, int, tuple]


def _read_by(function: Callable[..., Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return what a function with the arguments of another one gets."""

    def spy(**got: Any) -> dict[str, Any]:
        return got

    spy.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    found: dict[str, Any] = arguments.checked()(spy)(**given)
    return found


@pytest.mark.unit
def test_a_right_kind_is_judged_where_it_is_read(tmp_path: Path) -> None:
    with pytest.raises(ResultsError):
        vd.read(tmp_path / "none")
    with pytest.raises(UsageError, match="stack: only for an app"):
        vd.load(URL, stack="waitress")


@pytest.mark.unit
@pytest.mark.parametrize("function", [*FUNCTIONS, raced, app_spec], ids=lambda function: function.__name__)
def test_every_argument_has_an_example(function: Callable[..., Any]) -> None:
    parameters = inspect.signature(function).parameters.values()
    names = {parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD}
    assert names - {"looked"} <= {*arguments.EXAMPLES, *arguments.LISTS}


def test_an_error_that_names_an_option_notes_the_argument_it_is_in_python(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        velodrome.tune("shop:app", cwd=str(tmp_path / "nowhere"), rate=100)
    assert refused.value.__notes__ == ['In Python: --cwd is cwd="shop"']


@pytest.mark.parametrize(
    ("message", "note"),
    [
        ("say how: --interface wsgi", 'In Python: --interface is interface="wsgi"'),
        ("name one with --stack", 'In Python: --stack is stacks=["waitress"]'),
        ("put it in an --env-file", ""),
        ("look at it with: velodrome doctor --list", ""),
        ("nothing of the kind", ""),
    ],
)
def test_options_are_noted_where_the_function_has_the_argument(message: str, note: str) -> None:
    assert arguments.in_python(message, {"interface", "stacks", "env"}) == note
