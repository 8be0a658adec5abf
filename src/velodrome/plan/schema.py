"""The form of a study file as pydantic models, and what each key wants, in words.

Each table is a model of its own and holds the tables inside it as they were read: `study_file` checks them
one by one, so that a mistake in one hides none in another.
"""

from math import isfinite
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator

from velodrome.model.amounts import seconds
from velodrome.model.load import Arrivals

DAY = 86_400.0
MEMORY_UNITS = {"kB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000}
MOST_CPUS = 4096
MOST_RATE = 1e7
MOST_CONNECTIONS = 60_000  # more do not fit between two addresses: a port has 16 bits


def _seconds(value: object) -> object:
    return seconds(value) if isinstance(value, str) else value


def _bytes(value: object) -> object:
    if not isinstance(value, str):
        return value
    for unit, size in MEMORY_UNITS.items():
        if value.endswith(unit):
            found = float(value.removesuffix(unit)) * size
            if not isfinite(found):
                raise ValueError("no amount")
            return round(found)
    raise ValueError("no unit")


Number = Annotated[float, Field(allow_inf_nan=False)]
Seconds = Annotated[Number, BeforeValidator(_seconds)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=60)]


class Table(BaseModel):
    """Nothing is converted and no key is ignored: a study file that is misread measures the wrong thing."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    required: ClassVar[tuple[str, ...]] = ()


def _cpus(value: object) -> object:
    if value == "all" or (isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_CPUS):
        return value
    raise ValueError("neither a count nor all")


def _fact(value: object) -> object:
    if isinstance(value, str | bool):
        return value
    raise ValueError("neither a text nor a switch")


def _published(value: object) -> object:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
        return float(value)
    raise ValueError("neither a number nor a text")


def _rate(value: object) -> object:
    if value is None or (isinstance(value, str) and (":" in value or ".." in value)):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= MOST_RATE:
        return float(value)
    raise ValueError("neither a rate nor a schedule")


class LimitsTable(Table):
    """`limits = {cpus = 1, memory = "512MB"}`; `cpus = "all"` lets the server share CPUs with the generator."""

    cpus: Annotated[int | Literal["all"] | None, PlainValidator(_cpus)] = None
    memory: Annotated[int, Field(ge=16_000_000, le=10**15), BeforeValidator(_bytes)] | None = None


class ContestantTable(Table):
    """`"uvicorn"`, or a table: the stack, its versions, and knobs under their own names, which only it knows."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    required = ("stack",)

    stack: Annotated[str, Field(min_length=1)] = ""
    name: Name | None = None
    python: Annotated[str, Field(pattern=r"^[^\s]{1,400}$")] = ""
    packages: dict[str, Any] = {}


class LoadTable(Table):
    """Closed loop without `rate`, open loop with it. `requests` or `duration` ends it."""

    connections: Annotated[int, Field(ge=1, le=MOST_CONNECTIONS)] | None = None
    rate: Annotated[float | str | None, PlainValidator(_rate)] = None
    """A text is of a rate that changes (`schedule_text`), with `step` and `every`, with `ramp`, or of pieces."""
    step: Annotated[Number, Field(gt=0, le=1e7)] | None = None
    every: Annotated[Seconds, Field(gt=0, le=DAY)] | None = None
    ramp: Annotated[Seconds, Field(gt=0, le=DAY)] | None = None
    arrivals: Arrivals | None = None
    duration: Annotated[Seconds, Field(gt=0, le=DAY)] | None = None
    requests: Annotated[int, Field(ge=1, le=10**9)] | None = None
    warmup: Annotated[Seconds, Field(ge=0, le=DAY)] = 0.0
    timeout: Annotated[Seconds, Field(gt=0, le=DAY)] = 10.0
    drain: Annotated[Seconds, Field(ge=0, le=DAY)] = 2.0
    keepalive: bool = True
    driver: Annotated[str, Field(min_length=1)] = "velodrome"
    threads: Annotated[int, Field(ge=1, le=1000)] = 1
    streams: Annotated[int, Field(ge=1, le=10_000)] = 1
    idle: Annotated[int, Field(ge=0, le=MOST_CONNECTIONS)] = 0


class RecipeTable(Table):
    """A recipe that ships, by name, or one written here: then it has `steps`."""

    name: Name | None = None
    about: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    steps: Annotated[list[Any], Field(min_length=1, max_length=100)] | None = None
    method: Annotated[str, Field(pattern="^[A-Z]{1,20}$")] = "GET"
    upload_bytes: Annotated[int, Field(ge=0, le=10**9)] = 0
    cookie_bytes: Annotated[int, Field(ge=0, le=60_000)] = 0


class QuestionTable(Table):
    """One `[[questions]]`."""

    required = ("recipe", "loads")

    name: Name | None = None
    recipe: Any = None
    loads: Annotated[list[Any], Field(min_length=1)] = []
    link: Any = None
    links: Annotated[list[Any], Field(min_length=1)] | None = None
    limits: Any = None
    contestants: list[str] = []
    profile: Any = None


class ExperimentTable(Table):
    """One `[[experiments]]`: its kind, and settings under their own names, which only the kind knows."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    required = ("kind",)

    kind: Annotated[str, Field(min_length=1)] = ""
    name: Name | None = None
    deadline: Annotated[Seconds, Field(gt=0, le=DAY)] | None = None


class CheckTable(Table):
    """One `[[claims.checks]]`."""

    required = ("metric",)

    metric: Annotated[str, Field(min_length=1, max_length=200)] = ""
    of: Annotated[str, Field(min_length=1)] | None = None
    over: Annotated[str, Field(min_length=1)] | None = None
    than: Annotated[list[str], Field(min_length=2, max_length=2)] | None = None
    load: str = ""
    over_load: str | None = None
    experiment: Annotated[str, Field(min_length=1)] | None = None
    about: Annotated[str, Field(max_length=200)] = ""
    published: Number | None = None
    at_least: Number | None = None
    at_most: Number | None = None
    equals: Annotated[str | bool | None, PlainValidator(_fact)] = None
    bound_ms: Annotated[Number, Field(gt=0)] | None = None
    informs: Annotated[str, Field(max_length=300)] = ""


class ArithmeticTable(Table):
    """`arithmetic = {slots = 3, wait_ms = 200, published_rps = 37.86}` of a claim."""

    required = ("slots", "wait_ms", "published_rps")

    slots: Annotated[int, Field(ge=1, le=10**6)] = 1
    what: Annotated[str, Field(min_length=1, max_length=60)] = "workers"
    wait_ms: Annotated[Number, Field(gt=0)] = 1.0
    published_rps: Annotated[Number, Field(gt=0)] = 1.0


class ContradictionTable(Table):
    """One `[[claims.contradictions]]`: `{about = "grpclib over threads", says = 0.3, a = 1571.05, b = 3746.87}`."""

    required = ("about", "says", "a", "b")

    about: Annotated[str, Field(min_length=1, max_length=200)] = ""
    says: Annotated[Number, Field(gt=0)] = 1.0
    a: Annotated[Number, Field(gt=0)] = 1.0
    b: Annotated[Number, Field(gt=0)] = 1.0


class ClaimTable(Table):
    """One `[[claims]]`."""

    required = ("name", "says")

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=20)] = ""
    says: Annotated[str, Field(min_length=1, max_length=400)] = ""
    remark: Annotated[str, Field(max_length=600)] = ""
    needs_cpus: Annotated[int, Field(ge=1, le=MOST_CPUS)] = 1
    checks: list[Any] = []
    arithmetic: Any = None
    contradictions: list[Any] = []


class PublishedRowTable(Table):
    """One of the rows of `[[tables]]`."""

    required = ("of", "published")

    of: Annotated[str, Field(min_length=1)] = ""
    published: Annotated[list[Annotated[float | str, PlainValidator(_published)]], Field(min_length=1)] = []
    loads: list[str] = []


class PublishedTableTable(Table):
    """One `[[tables]]`: figures as they were published."""

    required = ("title", "metrics", "rows")

    title: Annotated[str, Field(min_length=1, max_length=200)] = ""
    metrics: Annotated[list[str], Field(min_length=1)] = []
    loads: list[str] = []
    rows: Annotated[list[Any], Field(min_length=1)] = []


class QuickTable(Table):
    """`[quick]`: what `--quick` does with a study."""

    blocks: Annotated[int, Field(ge=1, le=1000)] = 1
    budget: Annotated[Seconds, Field(gt=0, le=30 * DAY)] | None = None
    scale: Annotated[Number, Field(gt=0, le=1)] = 0.25
    skip: list[str] = []


class StudyTable(Table):
    """The whole file."""

    required = ("contestants", "questions")

    name: Name | None = None
    title: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    sources: list[str] = []
    blocks: Annotated[int, Field(ge=1, le=1000)] = 3
    until_settled: bool = False
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 4711
    budget: Annotated[Seconds, Field(gt=0, le=30 * DAY)] | None = None
    limits: dict[str, Any] = {}
    contestants: Annotated[list[Any], Field(min_length=1)] = []
    questions: Annotated[list[Any], Field(min_length=1)] = []
    experiments: list[Any] = []
    claims: list[Any] = []
    tables: list[Any] = []
    quick: Any = {}


WANTED = {
    "a": ("a figure", "a number above 0"),
    "about": ("a description", 'a short text that completes «for an endpoint that …», such as "waits 50 ms"'),
    "arrivals": ("a kind of arrivals", '"constant" or "poisson"'),
    "arithmetic": ("a table of arithmetic", "such as {slots = 3, wait_ms = 200, published_rps = 37.86}"),
    "at_least": ("a bound", "a number"),
    "at_most": ("a bound", "a number"),
    "b": ("a figure", "a number above 0"),
    "blocks": ("a number of blocks", "a whole number from 1 to 1000"),
    "budget": ("a span of time", 'one such as "10min", at most 30 days'),
    "bound_ms": ("a number of milliseconds", "a number above 0"),
    "checks": ("a list of checks", "[[claims.checks]] with metric, of and a bound"),
    "claims": ("a list of claims", "[[claims]] with name, says and checks"),
    "contradictions": ("a list of contradictions", "[[claims.contradictions]] with about, says, a and b"),
    "claims.name": ("a name", 'one such as "G1": letters, digits, dots and hyphens, 20 at most'),
    "claims.over": ("a cell", 'a question/contestant, such as "third-party/gunicorn-sync"'),
    "chunk_bytes": ("a number of bytes", "a whole number from 1 to 1 000 000 000"),
    "chunks": ("a number of chunks", "a whole number from 1 to 1 000 000"),
    "connections": ("a number of connections", "a whole number from 1 to 60 000"),
    "contestants": (
        "a list of contestants",
        'at least one stack, such as ["uvicorn", {stack = "gunicorn-sync", workers = 2}]',
    ),
    "cpus": ("a number of CPUs", 'a whole number from 1, or "all"'),
    "database": ("a database", 'one such as "sqlite", "mariadb", "postgresql", "redis" or "mongodb"'),
    "every": ("a span of time", 'how long each step of the rate takes, such as "5s"'),
    "drain": ("a span of time", 'one such as "2s"; 0 cuts off what is in flight'),
    "driver": ("a driver", 'the name of one, such as "velodrome" of a load, "pymysql" of a query'),
    "cookie_bytes": ("a number of bytes", "a whole number from 0 to 60 000"),
    "deadline": ("a span of time", 'one above 0, such as "60s"'),
    "duration": ("a span of time", 'one above 0, such as "1.5s"'),
    "equals": ("a fact", "a text, or true or false"),
    "every_ms": ("a number of milliseconds", "a number from 0 to 600 000"),
    "experiment": ("an experiment", "the name of one of this study"),
    "experiments": ("a list of experiments", "[[experiments]] tables with a kind"),
    "idle": ("a number of idle connections", "a whole number from 0 to 60 000"),
    "keepalive": ("a switch", "true or false"),
    "kind": ("a kind of experiment", 'the name of one, such as "canary"'),
    "latency_ms": ("a number of milliseconds", "a number from 0 to 600 000"),
    "limits": ("a table of limits", 'such as {cpus = 1, memory = "512MB"}'),
    "link": ("a link", 'one such as {rtt = "160ms", rate = "100mbit", loss = "1%"}'),
    "links": ("a list of links", 'at least one, such as ["loopback", {rtt = "160ms"}]'),
    "load": ("a load", 'the label of one, such as "closed-40"'),
    "loads": ("a list of loads", 'at least one, such as {connections = 40, duration = "2s"}'),
    "memory": ("an amount of memory", 'such as "512MB" (kB, MB, GB), 16 MB at least'),
    "metrics": ("a list of metrics", 'such as ["throughput_rps", "p99_ms"]'),
    "method": ("a method of HTTP", 'one in capitals, such as "GET"'),
    "metric": ("a metric", 'the name of one, such as "throughput_rps"'),
    "ms": ("a number of milliseconds", "a number from 0 to 600 000"),
    "name": ("a name", "one of small letters, digits, dots and hyphens"),
    "needs_cpus": ("a number of CPUs", "a whole number from 1"),
    "of": ("a cell", 'a question/contestant, such as "third-party/gunicorn-gevent"'),
    "on_wire": ("a switch", "true or false"),
    "over": ("a protocol", '"http" or "grpc"'),
    "over_load": ("a load", 'the label of one, such as "closed-40"'),
    "packages": ("a table of versions", 'such as {tornado = "5.1.1"}'),
    "parallel": ("a switch", "true or false"),
    "place": ("a place to keep a marker in", 'one such as "thread-local" or "context-local"'),
    "profile": ("a load", 'a table such as {rate = 200, duration = "5s"}'),
    "published": ("a figure", "a number"),
    "tables.published": ("a list of figures", 'a number or a text for each metric, "" where none is given'),
    "tables.loads": ("a list of loads", 'labels such as ["closed-40"]'),
    "tables.rows": (
        "a list of rows",
        'tables such as {of = "hello/uvicorn", published = [1200, "about 3 ms"]}',
    ),
    "tables": ("a list of published tables", "[[tables]] with title, metrics and rows"),
    "published_rps": ("a rate", "requests per second above 0"),
    "python": ("an interpreter", 'a version such as "3.12", or a path'),
    "questions": ("a list of questions", "at least one [[questions]] with recipe and loads"),
    "quick": ("a table of the quick form", "such as {blocks = 1, scale = 0.25}"),
    "ramp": ("a span of time", 'how long the rate takes from one end to the other, such as "60s"'),
    "rate": ("a rate", 'requests per second above 0, or "100..500" with step or ramp'),
    "recipe": ("a recipe", 'the name of one, such as "hello", or a table with steps'),
    "remark": ("a remark", "a text of at most 600 characters"),
    "requests": ("a number of requests", "a whole number from 1"),
    "room": ("a switch", "true or false"),
    "rows": ("a number of rows", "a whole number from 1 to 4096"),
    "says": ("the text of a claim", "a conclusion as text or, of a contradiction, a number above 0"),
    "scale": ("a factor", "a number above 0, 1 at most"),
    "seed": ("a seed", "a whole number from 0"),
    "size": ("a number of bytes", "a whole number from 0 to 1 000 000 000"),
    "skip": ("a list to skip", 'questions, cells or experiments, such as ["upload", "hello/uvicorn"]'),
    "sources": ("a list of sources", "texts, such as addresses of web pages"),
    "slots": ("a number of slots", "a whole number from 1"),
    "stack": ("a stack", 'the name of one, such as "uvicorn"'),
    "step": ("a step of a rate", "requests per second above 0"),
    "steps": ("a list of steps", 'at least one, such as [{do = "sleep", ms = 50}, {do = "body", size = 84}]'),
    "streams": ("a number of streams", "a whole number from 1 to 10 000"),
    "than": ("a pair of cells", 'two question/contestant, such as ["hello/tornado", "hello/aiohttp"]'),
    "threads": ("a number of threads", "a whole number from 1 to 1000"),
    "timeout": ("a span of time", 'one above 0, such as "10s"'),
    "times": ("a number of calls", "a whole number from 1 to 1000"),
    "title": ("a title", "a text of 1 to 200 characters"),
    "upload_bytes": ("a number of bytes", "a whole number from 0 to 1 000 000 000"),
    "us": ("a number of microseconds", "a whole number from 0 to 600 000 000"),
    "wait_ms": ("a number of milliseconds", "a number above 0"),
    "what": ("what a slot is", 'a text such as "workers"'),
    "warmup": ("a span of time", 'one such as "0.3s"'),
}
"""What each key is and what to give; completes «… is not X; give Y». Some are another thing within claims."""


def describe_key(path: tuple[str | int, ...], key: str) -> tuple[str, str]:
    """Return what a key is and what to give, where it stands."""
    within = f"{path[0]}.{key}" if path else key
    return WANTED[within] if within in WANTED else WANTED[key]
