"""A request builds what could be built once: a template, a model, a client, a schema, settings."""

from dataclasses import dataclass

from velodrome.diagnoses.fault import Doing, Experiment, Fault, Screened, Unknown, doing
from velodrome.guest.injected.building import KINDS, MARK
from velodrome.model.diagnosis import Cure, Treatment
from velodrome.model.symptoms import Symptoms


@dataclass(frozen=True)
class Built:
    """A kind of what is built."""

    doing: str
    """What is done, as it follows «are in»."""
    once: str
    after: str


FILE = "file"
BUILT = {
    "template": Built(
        "templates that are compiled",
        "make one environment when the app starts: it keeps what it compiled",
        "templates = jinja2.Environment(loader=…)  # once; templates.get_template(name) in the handler",
    ),
    "model": Built(
        "models and type adapters of pydantic that are made",
        "make the class, or the TypeAdapter, when the module is imported",
        "adapter = TypeAdapter(…)  # once; adapter.validate_python(…) in the handler",
    ),
    "pattern": Built(
        "patterns that re compiles",
        "compile patterns when the module is imported; re itself keeps no more than 512",
        "pattern = re.compile(…)  # once; pattern.match(…) in the handler",
    ),
    "client": Built(
        "clients of AWS that are made",
        "make one session and one client when the app starts",
        "client = boto3.client(…)  # once",
    ),
    "schema": Built(
        "JSON schemas that are checked themselves",
        "make a validator when the module is imported: jsonschema.validate() checks the schema each time",
        "validator = Draft202012Validator(schema)  # once; validator.validate(…) in the handler",
    ),
    "class": Built(
        "data classes that are made",
        "make the class when the module is imported, or once for each set of fields",
        "@dataclass at the top of the module, or a function with functools.cache that makes it",
    ),
    "settings": Built(
        "settings that are read",
        "read settings once, when the app starts",
        "@functools.cache  # on the function that returns them",
    ),
    FILE: Built(
        "files that are parsed",
        "parse the file when the app starts, and again when it has changed",
        "@functools.cache  # on the function that reads it",
    ),
}


def screen(seen: Symptoms) -> Screened:
    """Look for what is built, in the stacks of threads that are not idle and by its CPU time: what takes most of it."""
    watched = seen.watched
    if watched is None or not watched.seconds:
        return Unknown("no heartbeat came out of its processes")
    # A file that is parsed may be the request's own.
    kinds = [kind for kind in KINDS if kind != FILE or not seen.setting.has_body]
    kind = max(
        kinds,
        key=lambda kind: max(each.get(MARK % kind, 0.0) for each in (watched.shares, watched.computing)),
    )
    built = BUILT[kind]
    found = doing(seen, MARK % kind, built.doing, computes=True)
    if not isinstance(found, Doing):
        return found
    text = found.called.text if found.called else "built in the handler"
    cure = Cure(built.once, found.where("where it is built"), text, built.after)
    longer = Treatment("building it takes twice as long", {"building-longer": kind})
    metrics = ("rps", "cpu_us")
    return found.suspect(Experiment(longer, found.connections, cure, metrics, proof="dose"))


fault = Fault(
    "built-per-request",
    "each request compiles a template, makes a model, a client, a class, or reads settings: do it once",
    ("pyjinhx#799", "prefect#15047", "python-sdk#3133"),
    "Requests wait while something is built that is the same each time.",
    "With building it twice as long, throughput or CPU time per request is worse: what it takes is what building it "
    "once would save.",
    screen,
)
