"""Finds and reads studies: a name or a TOML file in, a Study out, or all problems of the file at once.

A study has two forms: the full form, and a quick form that asks the same in less time (`[quick]`). A group is a folder
of studies: `articles` holds `articles/asyncio-http` and others.
"""

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path

from velodrome.guest.catalog import serves
from velodrome.guest.stack import KnobValue, Stack
from velodrome.model.claim import Claim, Experiment, Figure, PublishedTable, Setting
from velodrome.model.errors import NoStudiesError, StudyFileError, UnknownNameError
from velodrome.model.files import Problem
from velodrome.model.load import Load, Schedule
from velodrome.model.study import Question, Study, matches
from velodrome.model.trial import Contestant
from velodrome.plan.claims import read_claims, read_tables
from velodrome.plan.findings import Findings, Known, Place, TomlMap, nearest, show_value
from velodrome.plan.questions import read_limits, read_questions
from velodrome.plan.schema import ContestantTable, ExperimentTable, QuickTable, StudyTable
from velodrome.plan.untrusted import contents, see_written

Labels = Mapping[tuple[str, str], str]
"""Question and label of a load in the full form, to its label in the quick form."""

LEAST_S = 0.5
"""No span is made shorter than this, or than WAVES times the recipe's own wait: it would catch nothing."""
WAVES = 5
LEAST_WARMUP_S = 0.1
LEAST_REQUESTS = 500


@dataclass(frozen=True)
class Quick:
    """How the quick form differs from the full form."""

    blocks: int = 1
    budget_s: float | None = None
    scale: float = 0.25
    """Factor on spans and counts of requests."""
    skip: tuple[str, ...] = ()


def read_quick(entry: object, at: Place, study: Study, findings: Findings) -> Quick:
    """Return the quick form that a table tells of a study; what is wrong is in `findings`."""
    table = findings.check_in_part(QuickTable, entry, at) or QuickTable()
    cells = [f"{question.name}/{contestant.label}" for question, contestant in study.pairs()]
    loads = [
        f"{question.name}/{contestant.label}/{load.label}"
        for question, contestant in study.pairs()
        for load in question.loads
    ]
    names = [*cells, *(experiment.name for experiment in study.experiments), *loads]
    questions = [question.name for question in study.questions]
    for index, pattern in enumerate(table.skip):
        if not any(matches(name, pattern) for name in names if pattern.count("/") in (0, name.count("/"))):
            near = nearest(pattern, {*names, *questions})
            findings.add(
                (*at, "skip", index),
                f"'{pattern}' is no question, question/contestant, load of one, or experiment; {near}",
            )
    return Quick(table.blocks, table.budget, table.scale, tuple(table.skip))


def in_quick_form(study: Study, form: Quick) -> Study:
    """Return the quick form of a study."""
    questions = [
        replace(
            question,
            loads=tuple(scale_load(load, form.scale, question) for load in question.loads),
            profile=scale_load(question.profile, form.scale, question) if question.profile else None,
        )
        for question in study.questions
    ]
    now = {
        (full.name, load.label): less.label
        for full, scaled_down in zip(study.questions, questions, strict=True)
        for load, less in zip(full.loads, scaled_down.loads, strict=True)
    }
    return replace(
        study,
        form="quick",
        blocks=form.blocks,
        budget_s=form.budget_s if form.budget_s is not None else study.budget_s,
        skipped=form.skip,
        questions=tuple(questions),
        claims=tuple(_of_form(claim, now) for claim in study.claims),
        tables=tuple(_rows_of_form(table, now) for table in study.tables),
    )


def _of_form(claim: Claim, now: Labels) -> Claim:
    """Return a claim whose figures name the loads as they are called in this form: a count is in a label."""
    return replace(
        claim,
        checks=tuple(
            replace(
                check,
                figure=_under(check.figure, now),
                over=_under(check.over, now) if check.over else None,
                than=(_under(check.than[0], now), _under(check.than[1], now)) if check.than else None,
            )
            for check in claim.checks
        ),
    )


def _rows_of_form(table: PublishedTable, now: Labels) -> PublishedTable:
    """Return a published table whose rows name the loads as they are called in this form."""
    rows = []
    for row in table.rows:
        question = row.of.partition("/")[0]
        loads = tuple(now.get((question, load), load) for load in row.loads or table.loads)
        rows.append(replace(row, loads=loads))
    return replace(table, rows=tuple(rows))


def _under(figure: Figure, now: Labels) -> Figure:
    question = figure.cell.partition("/")[0]
    return replace(figure, load=now.get((question, figure.load), figure.load))


def scale_load(load: Load, scale: float, question: Question) -> Load:
    """Return a load in little: never longer than it was, never too short to mean anything."""
    least_s = min(load.duration_s, max(LEAST_S, WAVES * question.recipe.wait_ms / 1000))
    requests = load.requests
    if isinstance(load.pace, Schedule) and requests is None:
        return _shorten(load, load.pace, scale, least_s)
    if requests is not None:
        requests = max(min(requests, LEAST_REQUESTS), round(requests * scale))
    return replace(
        load,
        duration_s=load.duration_s if requests is not None else max(least_s, load.duration_s * scale),
        warmup_s=max(min(load.warmup_s, LEAST_WARMUP_S), load.warmup_s * scale),
        requests=requests,
    )


def _shorten(load: Load, pace: Schedule, scale: float, least_s: float) -> Load:
    """Return a schedule whose steps are as many and as high, and each so much shorter."""
    factor = max(least_s / load.duration_s, scale)
    steps = tuple(replace(step, duration_s=step.duration_s * factor) for step in pace.steps)
    return replace(
        load,
        pace=replace(pace, steps=steps),
        duration_s=load.duration_s * factor,
        warmup_s=max(min(load.warmup_s, LEAST_WARMUP_S), load.warmup_s * scale),
    )


Placed = Sequence[tuple[Question, Place]]
MOST_SESSIONS = 100_000
"""Of a study: at a second each they would take more than a day."""


def build(tables: object, name: str, known: Known, findings: Findings) -> tuple[Study, Quick]:
    """Return the study a file tells, and its quick form. They are whole only if `findings` holds no problem."""
    table = findings.check_in_part(StudyTable, tables, ()) or StudyTable()
    limits = read_limits(table.limits, ("limits",), findings)
    before = findings.count
    read = [
        read_contestant(entry, ("contestants", index), known, findings)
        for index, entry in enumerate(table.contestants)
    ]
    contestants = [contestant for contestant in read if contestant]
    findings.once(
        ("contestants",),
        [(contestant.label, ("contestants", index)) for index, contestant in enumerate(read) if contestant],
    )
    questions = read_questions(table.questions, ("questions",), known, findings)
    findings.once(("questions",), [(question.name, place) for question, place in questions])
    tried = [
        read_experiment(entry, ("experiments", index), known, findings)
        for index, entry in enumerate(table.experiments)
    ]
    findings.once(
        ("experiments",),
        [(experiment.name, ("experiments", index)) for index, experiment in enumerate(tried) if experiment],
    )
    _countable(len(contestants), questions, table.blocks, findings)
    if findings.count == before:
        _check_names(contestants, questions, findings)
    if findings.count == before:
        _servable(contestants, questions, known, findings)
    study = Study(
        name=table.name or name,
        title=table.title or table.name or name,
        questions=tuple(question for question, _ in questions),
        contestants=tuple(contestants),
        blocks=table.blocks,
        until_settled=table.until_settled,
        seed=table.seed,
        budget_s=table.budget,
        limits=limits,
        sources=tuple(table.sources),
        experiments=tuple(experiment for experiment in tried if experiment),
    )
    study = replace(
        study,
        claims=read_claims(table.claims, ("claims",), study, findings),
        tables=read_tables(table.tables, ("tables",), study, findings),
    )
    return study, read_quick(table.quick, ("quick",), study, findings)


def _countable(contestants: int, questions: Placed, blocks: int, findings: Findings) -> None:
    """Tell what would take days, before it is laid out in memory."""
    sessions = contestants * len(questions) * blocks
    if sessions > MOST_SESSIONS:
        findings.add(
            ("questions",),
            f"{contestants} contestants, {len(questions)} questions and {blocks} blocks come to {sessions} server "
            f"sessions; give at most {MOST_SESSIONS}",
        )


def _check_names(contestants: Sequence[Contestant], questions: Placed, findings: Findings) -> None:
    """A question may name only contestants of the study."""
    labels = [contestant.label for contestant in contestants]
    for question, at in questions:
        for index, label in enumerate(question.contestants):
            if label not in labels:
                findings.add(
                    (*at, "contestants", index), f"'{label}' is no contestant; {nearest(label, labels)}"
                )


def _servable(contestants: Sequence[Contestant], questions: Placed, known: Known, findings: Findings) -> None:
    """A pair that cannot be served is left out of a race; a whole row or column of such is a mistake."""
    refused = {
        (contestant.label, question.name): serves(known.stacks[contestant.stack], question.recipe)
        for question, _ in questions
        for contestant in contestants
        if not question.contestants or contestant.label in question.contestants
    }
    for index, contestant in enumerate(contestants):
        row = [reason for (label, _), reason in refused.items() if label == contestant.label]
        if not row and questions:
            findings.add(("contestants", index), "no question has it; leave it out, or name it in a question")
        elif row and all(row):
            findings.add(
                ("contestants", index), f"it can serve no question of this study: {row[0]}; leave it out"
            )
    reported = set()
    for question, at in questions:
        column = [reason for (_, name), reason in refused.items() if name == question.name]
        if column and all(column) and at not in reported:  # the questions of several links stand at one place
            reported.add(at)
            findings.add((*at, "recipe"), f"no contestant can serve it: {column[0]}; add one that can")


_PLACE = re.compile(r"(.*?)\s*\(at (?:line (\d+), column (\d+)|end of document)\)", re.DOTALL)
_LARGEST = 256_000
"""Bytes of a study; the largest that ships has 12 kB."""


def read(path: Path, known: Known, *, quick: bool = False) -> Study:
    """Read a study from a file, in its quick form if `quick`.

    Raises StudyFileError with all its problems, also when it cannot be read, and TooLargeError.
    """
    try:
        text = contents(path, _LARGEST).decode("utf-8-sig")
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}; give a TOML file, or the name of a study"
        raise StudyFileError(str(path), [Problem(1, 1, reason)]) from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise StudyFileError(str(path), [Problem(line, 1, "is not UTF-8 text; save it as UTF-8")]) from error
    return parse(text, str(path), known, quick=quick)


def parse(text: str, path: str, known: Known, *, quick: bool = False) -> Study:
    """Read a study from text; `path` names it in errors, and by its stem where the text has no `name`.

    Raises StudyFileError, TooLargeError.
    """
    see_written(path, text)
    places = TomlMap.of(text)
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError alone: a number of thousands of digits
        raise StudyFileError(path, _unreadable(error, places, text)) from error
    findings = Findings(places)
    study, form = build(tables, Path(path).stem, known, findings)
    if findings.problems:
        raise StudyFileError(path, findings.problems)
    return in_quick_form(study, form) if quick else study


def _unreadable(error: Exception, places: TomlMap, text: str) -> list[Problem]:
    """Return tomllib's message of the first fault, and the further faults that the other parser found."""
    if isinstance(error, RecursionError):
        return [Problem(1, 1, "tables or lists are nested too deeply; a study needs four levels")]
    match = _PLACE.fullmatch(str(error))
    lines = text.rstrip().split("\n")
    message = match[1] if match else str(error)
    at_the_end = len(lines), len(lines[-1]) + 1
    place = (int(match[2]), int(match[3])) if match and match[2] else at_the_end
    first = Problem(*place, f"not TOML: {message[:1].lower()}{message[1:]}")
    further = [
        Problem(*place, f"not TOML: cannot read '{' '.join(broken.split())[:40]}'")
        for place, broken in places.broken
        if place[0] > first.line and broken.strip()
    ]
    return [first, *further]


def studies_folder() -> Path:
    """Return the folder of the studies that ship; in a clone, `studies/` points to it."""
    return Path(str(files("velodrome") / "studies"))


def shipped_studies() -> dict[str, Path]:
    """Return the studies that ship, name to file, sorted: `first-lap`, `articles/asyncio-http`."""
    found = {
        path.relative_to(studies_folder()).with_suffix("").as_posix(): path
        for path in studies_folder().rglob("*.toml")
    }
    return dict(sorted(found.items(), key=lambda pair: ("/" in pair[0], pair[0])))


def groups() -> dict[str, tuple[str, ...]]:
    """Return the groups that ship, each with the names of its studies."""
    found: dict[str, tuple[str, ...]] = {}
    for name in shipped_studies():
        group = name.rpartition("/")[0]
        if group:
            found[group] = (*found.get(group, ()), name)
    return found


def is_group(wanted: str) -> bool:
    """Return whether a name is that of a group, or a path that of a folder of studies."""
    return wanted in groups() or (
        _is_path(wanted) and wanted not in shipped_studies() and os.path.isdir(wanted)
    )


def members(wanted: str) -> dict[str, Path]:
    """Return the studies of a group, name (or path) to file. Raises NoStudiesError for a folder without any, and
    UnknownNameError."""
    found = {name: shipped_studies()[name] for name in groups().get(wanted, ())}
    if not found:
        found = {str(path): path for path in sorted(Path(wanted).glob("*.toml"))}
    if not found and os.path.isdir(wanted):
        raise NoStudiesError(wanted)
    if not found:
        raise UnknownNameError("study", wanted, [*shipped_studies(), *groups()])
    return found


def find_study(wanted: str) -> Path:
    """Return the file of a study, found by name or path. Raises UnknownNameError when there is none.

    What has a slash or ends in `.toml`, and is not the name of a study that ships, is a path and may not exist:
    reading it then says so.
    """
    every = shipped_studies()
    if wanted in every:
        return every[wanted]
    if _is_path(wanted) and wanted.partition("/")[0] not in groups():
        return Path(wanted)
    raise UnknownNameError("study", wanted, [*every, *groups()])


def load_study(wanted: str, known: Known, *, quick: bool = False) -> Study:
    """Find and read a study, in its quick form if `quick`. Raises UnknownNameError or StudyFileError."""
    study = read(find_study(wanted), known, quick=quick)
    # A study of a group is known by its whole name, which its file does not hold.
    return replace(study, name=wanted) if wanted in shipped_studies() else study


def _is_path(wanted: str) -> bool:
    return "/" in wanted or wanted.endswith(".toml")


OTHER_KEYS = ("name", "packages", "python")
"""Of the table, beside knobs."""
_HIGHEST_KNOB = 100_000
PACKAGE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
VERSION = re.compile(r"[0-9][A-Za-z0-9._!+-]*")


# --- Contestants and experiments.


def read_contestant(entry: object, at: Place, known: Known, findings: Findings) -> Contestant | None:
    """Return the contestant that a name or a table tells, or None after recording all that is wrong with it."""
    before = findings.count
    table = findings.check(ContestantTable, {"stack": entry} if isinstance(entry, str) else entry, at)
    if table is None:
        return None
    stack = known.stacks.get(table.stack)
    if stack is None:
        near = nearest(table.stack, known.stacks)
        findings.add(at, f"no stack is called '{table.stack}'; {near}. All: velodrome stacks")
        return None
    knobs = _knobs(stack, table.model_extra or {}, at, findings)
    for package, version in table.packages.items():
        _check_package(package, version, (*at, "packages", package), findings)
    if findings.count > before:
        return None
    return Contestant(stack.name, knobs, dict(table.packages), table.python, table.name or "")


def _knobs(stack: Stack, given: Mapping[str, object], at: Place, findings: Findings) -> dict[str, KnobValue]:
    knobs: dict[str, KnobValue] = {}
    for knob, value in given.items():
        wrong = _wrong_knob(stack, knob, value)
        if wrong:
            findings.add((*at, knob), wrong)
        elif value != stack.knobs[knob] and isinstance(value, int | str):
            # `workers = 1` where 1 is the default is the same contestant, and gets the same label.
            knobs[knob] = value
    return knobs


def _wrong_knob(stack: Stack, knob: str, value: object) -> str:
    if knob not in stack.knobs:
        known = [*stack.knobs, *get_close_matches(knob, OTHER_KEYS)]
        return f"{stack.name} has no such knob; {nearest(knob, known)}"
    if isinstance(stack.knobs[knob], int):
        least = stack.least(knob)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _HIGHEST_KNOB:
            return f"{show_value(value)} is not a count; give a whole number from {least} to 100 000"
        return ""
    choices = stack.choices.get(knob, ())
    if not isinstance(value, str) or (choices and value not in choices):
        return f"{show_value(value)} is not a choice of {stack.name}; give one of: {', '.join(choices) or 'texts'}"
    return ""


def _check_package(package: str, version: object, at: Place, findings: Findings) -> None:
    """A name and an exact version, nothing that an installer would read as an option or an address."""
    if not PACKAGE.fullmatch(package):
        findings.add(at, f"'{package}' is not the name of a package; give one such as tornado")
    if not isinstance(version, str) or not VERSION.fullmatch(version):
        findings.add(
            at, f'{show_value(version)} is not a version; give an exact one as text, such as "5.1.1"'
        )


STACK_SETTINGS = ("stack", "stacks")
"""Settings of these names hold names of stacks, whatever the kind."""


def read_experiment(entry: object, at: Place, known: Known, findings: Findings) -> Experiment | None:
    """Return the experiment that a table tells, or None after recording all that is wrong with it."""
    before = findings.count
    table = findings.check(ExperimentTable, entry, at)
    if table is None:
        return None
    defaults = known.experiments.get(table.kind)
    if defaults is None:
        near = nearest(table.kind, known.experiments)
        findings.add((*at, "kind"), f"no kind of experiment is called '{table.kind}'; {near}")
        return None
    settings = {
        key: _setting(key, value, defaults, (*at, key), findings)
        for key, value in (table.model_extra or {}).items()
    }
    for index, line in enumerate(_texts(settings.get("packages"))):
        _check_version(line, (*at, "packages", index), findings)
    for key in STACK_SETTINGS:
        _check_stacks(settings.get(key), (*at, key), known, findings)
    if findings.count > before:
        return None
    chosen = {key: value for key, value in settings.items() if value is not None and value != defaults[key]}
    return Experiment(table.name or table.kind, table.kind, chosen, table.deadline)


def _setting(
    key: str, value: object, defaults: Mapping[str, Setting], at: Place, findings: Findings
) -> Setting | None:
    """Return a setting as the kind wants it: of the type that its default has."""
    if key not in defaults:
        findings.add(at, f"this kind has no such setting; {nearest(key, defaults)}")
        return None
    default = defaults[key]
    if isinstance(default, tuple):
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
    elif isinstance(value, bool) == isinstance(default, bool):
        if isinstance(default, float) and isinstance(value, int | float):
            return float(value)
        if isinstance(value, bool | int | str) and isinstance(value, type(default)):
            return value
    findings.add(at, f"{show_value(value)} is not {_wanted(default)}")
    return None


def _wanted(default: Setting) -> str:
    match default:
        case bool():
            return "a switch; give true or false"
        case float():
            return f"a number; give one such as {default:g}"
        case int():
            return f"a whole number; give one such as {default}"
        case str():
            return f"a text; give one such as '{default}'"
    return f"a list of texts; give one such as {list(default)}"


def _texts(value: Setting | None) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()


def _check_version(line: str, at: Place, findings: Findings) -> None:
    """A name and an exact version, as of contestants: an installer reads further lines and options too."""
    name, equals, version = line.partition("=")
    if not (equals and PACKAGE.fullmatch(name) and VERSION.fullmatch(version)):
        findings.add(
            at, f'{show_value(line)} is not a version of a package; give one such as "tornado=5.1.1"'
        )


def _check_stacks(value: Setting | None, at: Place, known: Known, findings: Findings) -> None:
    for index, name in enumerate((value,) if isinstance(value, str) else _texts(value)):
        if name and name not in known.stacks:
            place = at if isinstance(value, str) else (*at, index)
            near = nearest(name, known.stacks)
            findings.add(place, f"no stack is called '{name}'; {near}. All: velodrome stacks")
