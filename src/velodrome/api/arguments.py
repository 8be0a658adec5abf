"""What the functions of the Python API are given: each argument is what its annotation says, or refused with a cure.

    @refusals()
    @checked(app_spec)               # whose options `**of_app` takes
    def tune(app: object, *, rate: float | None = None, **of_app: Any) -> Tuning: ...

    tune("shop:app", rate="fast")    # UsageError: rate cannot be a str; write rate=200
    tune("shop:app", link="x")       # TypeError: tune() got an unexpected keyword argument 'link'

Here is what Python would take as something else, or refuse far from the cause: a text where several are expected is its
letters, a mapping where there is a list of lines is its keys. What a right kind of value says is judged where it is
read. No message shows a value that may be a secret.
"""

import inspect
import json
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import wraps
from numbers import Integral, Number, Real
from os import PathLike
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

from velodrome.model.errors import UsageError, VelodromeError

P = ParamSpec("P")
R = TypeVar("R")
APP = 'the import path of an app, such as "shop.wsgi:application"'
RUN = 'the folder of a run, such as "runs/study"'
EXAMPLES = {
    "after": RUN,
    "agents": 'agents="tls://host:8786", or how many of this machine: agents=2',
    "access_log": 'access_log="access.log"',
    "allow_sdist": "allow_sdist=True",
    "app": APP,
    "arrivals": 'arrivals="constant"',
    "before": RUN,
    "blocks": "blocks=3",
    "body": 'body="text"',
    "budget": 'budget="10m", or seconds: budget=600',
    "closed": "closed=True",
    "connections": "connections=64",
    "cpus": "cpus=2",
    "cwd": 'cwd="shop"',
    "duration": 'duration="10s", or seconds: duration=10',
    "env": 'env=["DEBUG=0", "DATABASE_URL"], or env={"DEBUG": "0"}',
    "expect_body": 'expect_body="text"',
    "expect_status": "expect_status=201",
    "file": 'file="requests.txt"',
    "goal": 'goal="memory"',
    "headers": 'headers={"Host": "shop.example"}, or pairs: headers=[("Host", "shop.example")]',
    "interface": 'interface="wsgi"',
    "keys": 'keys="keys"',
    "knobs": 'knobs={"workers": 2}',
    "lines": 'requests("GET /cart?id=7", "GET /")',
    "link": 'link="rtt=40ms"',
    "memory": 'memory="512MB"',
    "method": 'method="POST"',
    "openapi": 'openapi="openapi.yaml"',
    "out": 'out="runs/mine"',
    "paste": "paste=True",
    "path": 'path="/cart"',
    "proto": 'proto="shop.proto"',
    "python": 'python="3.12"',
    "quick": "quick=True",
    "rate": "rate=200",
    "requests": 'requests=["GET /cart?id=7"], or requests=mix.requests where mix is from velodrome.requests',
    "resume": "resume=True",
    "revision": 'revision="HEAD~1"',
    "run": RUN,
    "secrets": 'secrets=["SHOP_PIN"]',
    "seed": "seed=1",
    "send": "send=True",
    "server_on": 'server_on="host"',
    "setup": 'setup="./fill-database"',
    "slo": 'slo="p99 < 200ms", or several: slo=["p99 < 200ms", "errors < 0.1%"]',
    "stack": 'stack="waitress"',
    "study": 'the name of a study, such as "first-lap", or its file, "./study.toml"',
    "target": f'a URL, such as "http://127.0.0.1:8000/", or {APP}',
    "teardown": 'teardown="./empty-database"',
    "third_party_on": 'third_party_on="host"',
    "timeout": 'timeout="10s", or seconds: timeout=10',
    "trust": "trust=True",
    "upstreams": 'upstreams=["PAYMENTS_URL=50ms"]',
    "user": 'user="www-data"',
    "wait": "wait=True",
    "warmup": 'warmup="1s", or seconds: warmup=1',
    "workers": "workers=2",
}
"""How each argument is written."""
LISTS = {
    "allow_target": "shop.example",
    "load_from": "host",
    "margins": "throughput=5%",
    "methods": "GET",
    "metrics": "p99",
    "only": "…",
    "skip": "…",
    "stacks": "waitress",
    "thresholds": "p99 +10%",
}
"""Arguments that are lists of names, which are no secrets: the cure shows the one that was given."""
LONGEST = 80


def checked(*passed_to: Callable[..., Any]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Check the arguments of a function by its annotations; `passed_to` are those that its `**options` go to.

    What was not given is left to the default, and so is None where the default is nothing (`""`, `()`). Raises
    UsageError for an argument of another kind, and TypeError, as Python does, for one that nothing takes.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        own = inspect.signature(function).parameters.values()
        # Of the others by keyword alone: what stands before it is given by the function itself.
        more = [
            parameter
            for other in passed_to
            for parameter in inspect.signature(other).parameters.values()
            if parameter.kind is parameter.KEYWORD_ONLY
        ]
        named = {
            parameter.name: parameter
            for parameter in (*more, *own)
            if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        }
        several = next((parameter for parameter in own if parameter.kind is parameter.VAR_POSITIONAL), None)
        in_order = [parameter for parameter in own if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]

        @wraps(function)
        def check_and_call(*args: P.args, **kwargs: P.kwargs) -> R:
            for name in kwargs:
                if name not in named:
                    raise TypeError(f"{function.__name__}() got an unexpected keyword argument '{name}'")
            rest = [several] * (len(args) - len(in_order)) if several else []
            # More than there are places for are left to Python, which counts them.
            places = dict(enumerate([*in_order, *rest]))
            given = [
                read(places[place], value) if place in places else value for place, value in enumerate(args)
            ]
            options = {
                name: read(named[name], value)
                for name, value in kwargs.items()
                if not (value is None and _is_nothing(named[name].default))
            }
            try:
                return function(*given, **options)  # type: ignore[arg-type]
            except VelodromeError as error:
                if note := in_python(str(error), named):
                    error.add_note(note)
                raise

        return check_and_call

    return decorate


def in_python(message: str, taken: Container[str]) -> str:
    """Return how the options that a message names are given to a function that takes these arguments; "": none."""
    said = []
    for option in dict.fromkeys(re.findall(r"(?<![\w-])--([a-z][a-z-]+)", message)):
        name = option.replace("-", "_")
        if name := next((written for written in (name, f"{name}s") if written in taken), ""):
            said.append(f"--{option} is {_example(name)}")
    return f"In Python: {'; '.join(said)}" if said else ""


def read(parameter: inspect.Parameter, value: Any) -> Any:
    """Return the value of an argument in plain types. Raises UsageError where it is of another kind."""
    wanted = parameter.annotation
    plain = value if wanted is object else _plain(value)
    if not (_is_app(plain) if wanted is object else _fits(plain, wanted)):
        raise UsageError(f"{parameter.name} cannot be {_describe(plain)}; write {_cure(parameter, plain)}")
    return plain


def lines_of(variables: Sequence[str] | Mapping[str, str]) -> tuple[str, ...]:
    """Return variables as `NAME=value`, or `NAME` alone, given so or by name. Raises UsageError."""
    if not isinstance(variables, Mapping):
        return tuple(variables)
    if any("=" in name or not name for name in variables):
        raise UsageError(f"env: a name is empty or contains '='; write {EXAMPLES['env']}")
    return tuple(f"{name}={value}" for name, value in variables.items())


def _is_nothing(default: object) -> bool:
    """Whether a default stands for "not given", as None does elsewhere; a number does not: no budget is not 0 s."""
    return default is None or default in ("", (), b"") or default is False


def _plain(value: Any) -> Any:
    """Return what others made (numpy's numbers, a generator, a set) as what this project knows."""
    if not isinstance(value, int | float) and isinstance(value, Real):
        return int(value) if isinstance(value, Integral) else float(value)
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping | Sequence):
        return tuple(value)
    return value


def _fits(value: object, wanted: Any) -> bool:
    """Whether a value is what an annotation says; a text is no sequence."""
    if get_origin(wanted) is not None or isinstance(wanted, UnionType):
        return _fits_inside(value, get_origin(wanted), get_args(wanted))
    if wanted is bool:
        # Any text is true, also "no"; numbers and what numpy says are as true as ever.
        return not isinstance(value, str | bytes)
    if wanted in (int, float):
        return isinstance(value, Integral if wanted is int else Real) and not isinstance(value, bool)
    return isinstance(value, PathLike if wanted is Path else wanted or NoneType)


def _fits_inside(value: object, origin: Any, inner: tuple[Any, ...]) -> bool:
    """Whether a value is what an annotation with others in it says, and what is in it, too."""
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is Literal:
        return isinstance(value, str)  # which one, is judged where it is read
    if origin is Mapping:
        return isinstance(value, Mapping) and all(
            _fits(key, inner[0]) and _fits(one, inner[1]) for key, one in value.items()
        )
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return False
    kinds = inner if origin is tuple else inner * len(value)
    return len(value) == len(kinds) and all(_fits(one, kind) for one, kind in zip(value, kinds, strict=True))


def _is_app(value: object) -> bool:
    """Whether something can be an app, or its name: also what cannot be called, such as a servicer of gRPC."""
    if isinstance(value, str) or callable(value):
        return True
    return type(value).__module__ != "builtins" and not isinstance(value, Number | PathLike)


def _describe(value: object) -> str:
    """Return the kind of a value, and of what is in it."""
    kind = _with_article(type(value).__name__) if value is not None else "None"
    if isinstance(value, Mapping):
        return (
            f"{kind} of {_kinds(value)} to {_kinds(value.values())}" if value else f"{kind} without entries"
        )
    if isinstance(value, Sequence) and not isinstance(value, str | bytes) and value:
        return f"{kind} of {_kinds(value)}"
    return kind


def _kinds(values: Iterable[object]) -> str:
    return " and ".join(sorted({"None" if value is None else type(value).__name__ for value in values}))


def _with_article(word: str) -> str:
    return f"{'an' if word[:1].lower() in 'aeiou' else 'a'} {word}"


def _cure(parameter: inspect.Parameter, value: object) -> str:
    given = value[:LONGEST] if isinstance(value, str) else ""
    return _example(parameter.name, given) + (
        ", or give the app itself" if parameter.annotation is object else ""
    )


def _example(name: str, given: str = "") -> str:
    """Return how an argument is written; of a list of names with the one that was given."""
    if name in LISTS:
        return f"{name}=[{json.dumps(given or LISTS[name], ensure_ascii=False)}]"
    return EXAMPLES.get(name, name)
