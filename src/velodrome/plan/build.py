"""From the tables of a study file to a Study; what a table cannot know by itself is checked here."""

from collections.abc import Mapping
from typing import Any

from velodrome.guest.catalog import serves
from velodrome.guest.recipe import Recipe
from velodrome.guest.stack import KnobValue, Stack
from velodrome.model.limits import Limits
from velodrome.model.load import Closed, Load, Open
from velodrome.model.study import Question, Study
from velodrome.model.trial import Contestant
from velodrome.plan.findings import Findings, nearest, shown
from velodrome.plan.schema import (
    ContestantTable,
    LimitsTable,
    LoadTable,
    QuestionTable,
    RecipeTable,
    StudyTable,
)
from velodrome.plan.steps import read_step, told
from velodrome.plan.toml_map import Path

_HIGHEST_KNOB = 100_000


def build(
    tables: object, name: str, stacks: Mapping[str, Stack], recipes: Mapping[str, Recipe], findings: Findings
) -> Study:
    """Return the study a file tells. It is whole only if `findings` holds no problem afterwards."""
    table = findings.check_in_part(StudyTable, tables, ()) or StudyTable()
    limits = findings.check(LimitsTable, table.limits, ("limits",)) or LimitsTable()
    contestants = [
        _contestant(entry, ("contestants", index), stacks, findings)
        for index, entry in enumerate(table.contestants)
    ]
    questions = [
        _question(entry, ("questions", index), recipes, findings)
        for index, entry in enumerate(table.questions)
    ]
    _once(
        ("contestants",), [contestant.label if contestant else None for contestant in contestants], findings
    )
    _once(("questions",), [question.name if question else None for question in questions], findings)
    _servable(contestants, questions, stacks, findings)
    return Study(
        name=table.name or name,
        title=table.title or table.name or name,
        questions=tuple(question for question in questions if question),
        contestants=tuple(contestant for contestant in contestants if contestant),
        blocks=table.blocks,
        seed=table.seed,
        budget_s=table.budget,
        limits=Limits(limits.cpus, limits.memory),
        sources=tuple(table.sources),
    )


def _contestant(
    entry: object, at: Path, stacks: Mapping[str, Stack], findings: Findings
) -> Contestant | None:
    before = len(findings.problems)
    table = findings.check(ContestantTable, {"stack": entry} if isinstance(entry, str) else entry, at)
    if table is None:
        return None
    stack = stacks.get(table.stack)
    if stack is None:
        findings.add(
            at, f"no stack is called '{table.stack}'; {nearest(table.stack, stacks)}. All: velodrome stacks"
        )
        return None
    knobs: dict[str, KnobValue] = {}
    for knob, value in (table.model_extra or {}).items():
        wrong = _wrong_knob(stack, knob, value)
        if wrong:
            findings.add((*at, knob), wrong)
        elif value != stack.knobs[knob]:
            # `workers = 1` where 1 is the default is the same contestant, and gets the same label.
            knobs[knob] = value
    return Contestant(stack.name, knobs) if len(findings.problems) == before else None


def _wrong_knob(stack: Stack, knob: str, value: object) -> str:
    if knob not in stack.knobs:
        return f"{stack.name} has no such knob; {nearest(knob, stack.knobs)}"
    if isinstance(stack.knobs[knob], int):
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _HIGHEST_KNOB:
            return f"{shown(value)} is not a count; give a whole number from 1 to 100 000"
        return ""
    choices = stack.choices.get(knob, ())
    if not isinstance(value, str) or (choices and value not in choices):
        return f"{shown(value)} is not a choice of {stack.name}; give one of: {', '.join(choices) or 'texts'}"
    return ""


def _question(entry: object, at: Path, recipes: Mapping[str, Recipe], findings: Findings) -> Question | None:
    before = len(findings.problems)
    table = findings.check_in_part(QuestionTable, entry, at)
    if table is None:
        return None
    recipe = (
        _recipe(table.recipe, table.name, (*at, "recipe"), recipes, findings)
        if "recipe" in table.model_fields_set
        else None
    )
    loads = [_load(load, (*at, "loads", index), findings) for index, load in enumerate(table.loads)]
    _once((*at, "loads"), [load.label if load else None for load in loads], findings)
    if len(findings.problems) > before or recipe is None:
        return None
    return Question(table.name or recipe.name, recipe, tuple(load for load in loads if load))


def _recipe(
    entry: object,
    question: str | None,
    at: Path,
    recipes: Mapping[str, Recipe],
    findings: Findings,
) -> Recipe | None:
    table = findings.check(RecipeTable, {"name": entry} if isinstance(entry, str) else entry, at)
    if table is None:
        return None
    if table.steps is not None:
        return _own_recipe(table, table.steps, question, at, findings)
    if table.name is None:
        findings.add(at, 'has neither name nor steps; give "hello", or {steps = [{do = "body", size = 84}]}')
        return None
    for key in sorted(table.model_fields_set - {"name"}):
        findings.add(
            (*at, key), f"a recipe that ships is taken as it is; leave {key} out, or write steps of your own"
        )
    if table.name not in recipes:
        near = nearest(table.name, recipes)
        findings.add(at, f"no recipe is called '{table.name}'; {near}. All: velodrome recipes")
    return recipes.get(table.name)


def _own_recipe(
    table: RecipeTable, entries: list[Any], question: str | None, at: Path, findings: Findings
) -> Recipe | None:
    name = table.name or question
    if name is None:
        findings.add(
            (*at[:-1], "name"), "is missing; a question whose recipe is written in the file needs a name"
        )
    read = [read_step(entry, (*at, "steps", index), findings) for index, entry in enumerate(entries)]
    steps = tuple(step for step in read if step)
    if len(steps) < len(entries) or name is None:
        return None
    recipe = Recipe(name, table.about or told(steps), steps, table.method, table.upload_bytes)
    for problem in recipe.problems():
        findings.add((*at, "steps"), problem)
    return recipe


def _load(entry: object, at: Path, findings: Findings) -> Load | None:
    table = findings.check(LoadTable, entry, at)
    if table is None:
        return None
    pace: Closed | Open
    if table.rate is not None:
        pace = Open(table.rate, table.arrivals or "constant", table.connections or 1000)
    elif table.arrivals is not None:
        findings.add((*at, "arrivals"), "belongs to an open loop; add rate, or leave arrivals out")
        return None
    elif table.connections is None:
        findings.add(
            at, "has neither connections nor rate; give connections (closed loop) or rate (open loop)"
        )
        return None
    else:
        pace = Closed(table.connections)
    return Load(pace, table.duration, table.warmup, table.timeout, table.drain, table.keepalive)


def _once(at: Path, labels: list[str | None], findings: Findings) -> None:
    for index, label in enumerate(labels):
        if label is not None and (first := labels.index(label)) < index:
            findings.add(
                (*at, index), f"'{label}' is already {at[-1]}[{first}]; leave one out, or let them differ"
            )


def _servable(
    contestants: list[Contestant | None],
    questions: list[Question | None],
    stacks: Mapping[str, Stack],
    findings: Findings,
) -> None:
    """A pair that cannot be served is left out of a race; a whole row or column of such is a mistake."""
    if None in contestants or None in questions:
        return
    refused = [
        [serves(stacks[contestant.stack], question.recipe) for question in questions if question]
        for contestant in contestants
        if contestant
    ]
    for index, reasons in enumerate(refused):
        if reasons and all(reasons):
            findings.add(
                ("contestants", index), f"it can serve no question of this study: {reasons[0]}; leave it out"
            )
    for index, column in enumerate(zip(*refused, strict=True)):
        if all(column):
            findings.add(
                ("questions", index, "recipe"), f"no contestant can serve it: {column[0]}; add one that can"
            )
