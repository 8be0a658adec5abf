"""The end of a race in a terminal: the table, then answer, why, what was set aside, how to repeat.

The answer stands last because the end of the output is what a reader sees first.
"""

import errno
import os
import shlex
from collections.abc import Mapping
from typing import TextIO

from rich.console import Console
from rich.text import Text

from velodrome.model.verdict import Answer, Standing, Verdict
from velodrome.report import board, by_driver, claims, findings, names, profiles, published
from velodrome.report.folding import paragraph
from velodrome.report.typeset import plural, visible

SET_ASIDE_SHOWN = 6
ARROW = "→"


class _Console(Console):
    """Of rich, which ends the program with 1 when its reader goes away: here that code says something else."""

    def on_broken_pipe(self) -> None:
        """Let whoever ends the program hear of it. Raises BrokenPipeError."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def console(stream: TextIO) -> Console:
    """Return a console that writes control codes only where somebody looks: not in a pipe, nor under CI."""
    live = stream.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("CI")
    return _Console(
        file=stream,
        force_terminal=live,
        highlight=False,
        markup=False,
        emoji=False,
        width=None if live else 120,
    )


def race_table(verdict: Verdict, width: int) -> list[Text]:
    """Return the table of all questions with their final intervals."""
    title, far = names.far_percentile(verdict)
    heads = [head if head != "p99 ms" else f"{title} ms" for head in board.HEADS]
    sections = [(board.answer_heading(answer), board.answer_lines(answer, far)) for answer in verdict.answers]
    return board.table(sections, width, heads)


def verdict_lines(verdict: Verdict, paths: Mapping[str, str], width: int) -> list[Text]:
    """Return the verdict: one paragraph a question, what was set aside, where the report is.

    `paths` maps what was written (`report`, `results`, …) to where.
    """
    found: list[Text] = []
    for answer in verdict.answers:
        found += [*answer_lines(answer, width), Text()]
    for name, told in findings.rows(verdict.findings):
        found += paragraph(f"Experiment {name}: {told}", width, 1)
    for told in profiles.sentences(verdict):
        found += paragraph(told, width, 1)
    found += [Text()] if verdict.findings or verdict.profiles else []
    for note in verdict.notes:
        found += paragraph(note, width, 1, "dim")
    if verdict.finished:
        found += paragraph(f"The race ended: {verdict.finished}.", width, 1, "dim")
    if verdict.set_aside:
        found += [Text(), *_set_aside(verdict, width)]
    judged = [*claims.lines(verdict.claims, width), *published.lines(verdict.tables, width)]
    found += [*([Text()] if judged else []), *judged, Text(), *_paths(verdict, paths)]
    return found


def answer_lines(answer: Answer, width: int) -> list[Text]:
    """Return question, answer, why and the command line of one question."""
    best, beside = names.headline(answer)
    about = names.sentence_case(visible(answer.about))
    first = Text(f" {about}  {ARROW}  ") + Text(best, style="bold green")
    found = []
    if beside and len(first) + len(beside) + 4 <= width:
        found.append(first + Text(f"  ({beside})"))
    elif len(first) <= width:
        found += [first, *(paragraph(f"({beside})", width) if beside else ())]
    else:
        found += [Text(f" {about}"), Text(f" {ARROW}  ") + Text(best, style="bold green")]
        found += paragraph(f"({beside})", width) if beside else ()
    for sentence in (names.told(answer), *answer.why, answer.to_settle):
        if sentence:
            found += paragraph(visible(sentence), width)
    for line in by_driver.lines(answer, width - 3):
        found.append(Text(f"   {line}", style="dim" if line.endswith(":") else ""))
    for sentence in by_driver.reach(answer):
        found += paragraph(sentence, width, style="dim")
    if answer.deploy:
        # Never broken: it is there to be copied.
        lines = [Text(visible(line)) for line in answer.deploy.split("\n")]
        found.append(Text("   deploy:  ", style="dim") + (lines[0] if len(lines) == 1 else Text()))
        found += lines if len(lines) > 1 else []
    return found


def show(verdict: Verdict, paths: Mapping[str, str], out: Console) -> None:
    """Write table and verdict."""
    for line in (*race_table(verdict, out.width), Text(), *verdict_lines(verdict, paths, out.width)):
        out.print(line, soft_wrap=True)


def _set_aside(verdict: Verdict, width: int) -> list[Text]:
    count = len(verdict.set_aside)
    if count == 1:
        return paragraph(f"⚑ 1 result set aside: {visible(verdict.set_aside[0])}", width, 1)
    found = [Text(f" ⚑ {plural(count, 'result')} set aside")]
    for sentence in verdict.set_aside[:SET_ASIDE_SHOWN]:
        found += paragraph(visible(sentence), width)
    if count > SET_ASIDE_SHOWN:
        found.append(Text(f"   … and {count - SET_ASIDE_SHOWN} more, all in the report"))
    return found


def _paths(verdict: Verdict, paths: Mapping[str, str]) -> list[Text]:
    size = max([len("repeat one cell"), *map(len, paths)])
    found = [
        Text(f" {name:<{size}}  ", style="dim") + Text(visible(str(path))) for name, path in paths.items()
    ]
    command = next((again(verdict, answer) for answer in verdict.answers if answer.best), "")
    if command:
        found.append(Text(f" {'repeat one cell':<{size}}  ", style="dim") + Text(command))
    return found


def again(verdict: Verdict, answer: Answer) -> str:
    """Return the command that measures the best contestant of a question again, or nothing."""
    best = answer.best[0] if answer.best else ""
    return next((repeat(verdict, answer, one) for one in answer.standings if one.contestant == best), "")


def repeat(verdict: Verdict, answer: Answer, standing: Standing) -> str:
    """Return the command that measures one cell again, or nothing; quoted where a shell would read the brackets."""
    if standing.again is None:
        return ""
    if standing.again:
        return visible(standing.again)
    python = standing.python
    label = standing.contestant.removesuffix(f"@{python}") if python else standing.contestant
    words = ["velodrome", "run", verdict.study, "--only", f"{answer.question}/{label}"]
    words += ["--python", python] if python else []
    words += ["--quick"] if verdict.form == "quick" else []
    return shlex.join(words)
