"""The form of a study file, as pydantic models, and what each of its keys wants, in words.

Each table is a model of its own and holds the tables inside it as they were read: `build.py` checks them
one by one, so that a mistake in one hides none in another.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator

from velodrome.model.duration import seconds

DAY = 86_400.0
MEMORY_UNITS = {"kB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000}
MOST_CPUS = 4096
MOST_CONNECTIONS = 60_000  # more do not fit between two addresses: a port has 16 bits


def _seconds(value: object) -> object:
    return seconds(value) if isinstance(value, str) else value


def _bytes(value: object) -> object:
    if not isinstance(value, str):
        return value
    for unit, size in MEMORY_UNITS.items():
        if value.endswith(unit):
            return round(float(value.removesuffix(unit)) * size)
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
    rate: Annotated[Number, Field(gt=0, le=1e7)] | None = None
    arrivals: Literal["constant", "poisson"] | None = None
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
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 4711
    budget: Annotated[Seconds, Field(gt=0, le=30 * DAY)] | None = None
    limits: dict[str, Any] = {}
    contestants: Annotated[list[Any], Field(min_length=1)] = []
    questions: Annotated[list[Any], Field(min_length=1)] = []
    experiments: list[Any] = []
    quick: Any = {}


WANTED = {
    "about": ("a description", 'a short text that completes «for an endpoint that …», such as "waits 50 ms"'),
    "arrivals": ("a kind of arrivals", '"constant" or "poisson"'),
    "blocks": ("a number of blocks", "a whole number from 1 to 1000"),
    "budget": ("a span of time", 'one such as "10min", at most 30 days'),
    "chunk_bytes": ("a number of bytes", "a whole number from 1 to 1 000 000 000"),
    "chunks": ("a number of chunks", "a whole number from 1 to 1 000 000"),
    "connections": ("a number of connections", "a whole number from 1 to 60 000"),
    "contestants": (
        "a list of contestants",
        'at least one stack, such as ["uvicorn", {stack = "gunicorn-sync", workers = 2}]',
    ),
    "cpus": ("a number of CPUs", 'a whole number from 1, or "all"'),
    "database": ("a database", 'one such as "sqlite", "mariadb", "postgresql", "redis" or "mongodb"'),
    "drain": ("a span of time", 'one such as "2s"; 0 cuts off what is in flight'),
    "driver": ("a driver", 'the name of one, such as "velodrome" of a load, "pymysql" of a query'),
    "deadline": ("a span of time", 'one above 0, such as "60s"'),
    "duration": ("a span of time", 'one above 0, such as "1.5s"'),
    "every_ms": ("a number of milliseconds", "a number from 0 to 600 000"),
    "experiments": ("a list of experiments", "[[experiments]] tables with a kind"),
    "idle": ("a number of idle connections", "a whole number from 0 to 60 000"),
    "keepalive": ("a switch", "true or false"),
    "kind": ("a kind of experiment", 'the name of one, such as "canary"'),
    "latency_ms": ("a number of milliseconds", "a number from 0 to 600 000"),
    "limits": ("a table of limits", 'such as {cpus = 1, memory = "512MB"}'),
    "link": ("a link", 'one such as {rtt = "160ms", rate = "100mbit", loss = "1%"}'),
    "links": ("a list of links", 'at least one, such as ["loopback", {rtt = "160ms"}]'),
    "loads": ("a list of loads", 'at least one, such as {connections = 40, duration = "2s"}'),
    "memory": ("an amount of memory", 'such as "512MB" (kB, MB, GB), 16 MB at least'),
    "method": ("a method of HTTP", 'one in capitals, such as "GET"'),
    "ms": ("a number of milliseconds", "a number from 0 to 600 000"),
    "name": ("a name", "one of small letters, digits, dots and hyphens"),
    "on_wire": ("a switch", "true or false"),
    "over": ("a protocol", '"http" or "grpc"'),
    "packages": ("a table of versions", 'such as {tornado = "5.1.1"}'),
    "parallel": ("a switch", "true or false"),
    "profile": ("a load", 'a table such as {rate = 200, duration = "5s"}'),
    "python": ("an interpreter", 'a version such as "3.12", or a path'),
    "questions": ("a list of questions", "at least one [[questions]] with recipe and loads"),
    "quick": ("a table of the quick form", "such as {blocks = 1, scale = 0.25}"),
    "rate": ("a rate", "requests per second above 0"),
    "recipe": ("a recipe", 'the name of one, such as "hello", or a table with steps'),
    "requests": ("a number of requests", "a whole number from 1"),
    "room": ("a switch", "true or false"),
    "rows": ("a number of rows", "a whole number from 1 to 4096"),
    "scale": ("a factor", "a number above 0, 1 at most"),
    "seed": ("a seed", "a whole number from 0"),
    "size": ("a number of bytes", "a whole number from 0 to 1 000 000 000"),
    "skip": ("a list to skip", 'questions, cells or experiments, such as ["upload", "hello/uvicorn"]'),
    "sources": ("a list of sources", "texts, such as addresses of web pages"),
    "stack": ("a stack", 'the name of one, such as "uvicorn"'),
    "steps": ("a list of steps", 'at least one, such as [{do = "sleep", ms = 50}, {do = "body", size = 84}]'),
    "streams": ("a number of streams", "a whole number from 1 to 10 000"),
    "threads": ("a number of threads", "a whole number from 1 to 1000"),
    "timeout": ("a span of time", 'one above 0, such as "10s"'),
    "times": ("a number of calls", "a whole number from 1 to 1000"),
    "title": ("a title", "a text of 1 to 200 characters"),
    "upload_bytes": ("a number of bytes", "a whole number from 0 to 1 000 000 000"),
    "us": ("a number of microseconds", "a whole number from 0 to 600 000 000"),
    "warmup": ("a span of time", 'one such as "0.3s"'),
}
"""What each key is and what to give; completes «… is not X; give Y»."""
