"""Questions of a study, as its file tells them; each of several links makes a question of its own."""

from dataclasses import replace
from typing import Any

from velodrome.guest.recipe import Recipe
from velodrome.model.load import Limits, Link
from velodrome.model.study import Question
from velodrome.plan import link_text
from velodrome.plan.findings import Findings, nearest, shown
from velodrome.plan.known import Known
from velodrome.plan.loads import read_load, read_loads
from velodrome.plan.schema import LimitsTable, QuestionTable, RecipeTable
from velodrome.plan.steps import read_step, told
from velodrome.plan.toml_map import Path

LOOPBACK = "loopback"
"""Stands in a list of links for none."""


def read_questions(
    entries: list[Any], at: Path, known: Known, findings: Findings
) -> list[tuple[Question, Path]]:
    """Return the questions that a list of tables tells, each with its place; what is wrong is in `findings`."""
    found = []
    for index, entry in enumerate(entries):
        here = (*at, index)
        question = _question(entry, here, known, findings)
        if question is not None:
            found += [(one, here) for one in question]
    return found


def read_limits(entry: object, at: Path, findings: Findings) -> Limits:
    """Return the limits a table tells; those that are wrong are left out and told."""
    table = findings.check(LimitsTable, entry, at) or LimitsTable()
    return Limits(table.cpus, table.memory)


def _question(entry: object, at: Path, known: Known, findings: Findings) -> list[Question] | None:
    before = findings.count
    table = findings.check_in_part(QuestionTable, entry, at)
    if table is None:
        return None
    recipe = (
        _recipe(table.recipe, table.name, (*at, "recipe"), known, findings)
        if "recipe" in table.model_fields_set
        else None
    )
    loads = read_loads(table.loads, (*at, "loads"), known, findings)
    findings.once((*at, "loads"), [(load.label, place) for load, place in loads])
    limits = read_limits(table.limits, (*at, "limits"), findings) if table.limits is not None else None
    links = _links(table, at, findings)
    profile = (
        read_load(table.profile, (*at, "profile"), known, findings) if table.profile is not None else None
    )
    if findings.count > before or recipe is None:
        return None
    question = Question(
        table.name or recipe.name,
        recipe,
        tuple(load for load, _ in loads),
        limits=limits,
        contestants=tuple(table.contestants),
        profile=profile,
    )
    return [over(question, link) for link in links]


def over(question: Question, link: Link | None) -> Question:
    """Return a question asked over a link, called after both."""
    return replace(question, name=f"{question.name}-{link.label}", link=link) if link else question


def _links(table: QuestionTable, at: Path, findings: Findings) -> list[Link | None]:
    if table.link is not None and table.links is not None:
        findings.add((*at, "links"), "stands beside link; give one of the two")
    if table.links is not None:
        return [_link(one, (*at, "links", index), findings) for index, one in enumerate(table.links)]
    return [_link(table.link, (*at, "link"), findings)] if table.link is not None else [None]


def _link(entry: object, at: Path, findings: Findings) -> Link | None:
    if entry == LOOPBACK:
        return None
    try:
        if isinstance(entry, str):
            return link_text.read(entry)
        if isinstance(entry, dict):
            return link_text.of(entry)
        findings.add(at, f'{shown(entry)} is not a link; give one such as {{rtt = "160ms"}}, or "loopback"')
    except ValueError as error:
        findings.add(at, str(error))
    return None


def _recipe(entry: object, question: str | None, at: Path, known: Known, findings: Findings) -> Recipe | None:
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
    if table.name not in known.recipes:
        near = nearest(table.name, known.recipes)
        findings.add(at, f"no recipe is called '{table.name}'; {near}. All: velodrome recipes")
    return known.recipes.get(table.name)


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
    recipe = Recipe(
        name, table.about or told(steps), steps, table.method, table.upload_bytes, table.cookie_bytes
    )
    for problem in recipe.problems():
        findings.add((*at, "steps"), problem)
    return recipe
