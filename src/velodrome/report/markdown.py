"""report.md: the verdict for a pull request: answer first, table, what was set aside, how to repeat.

A group of studies has a page with the claims of all of them and links to their reports.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.text import Text

from velodrome.model import quantity
from velodrome.model.study import inside_group
from velodrome.model.verdict import Answer, Standing, Verdict
from velodrome.report import claims, diagnoses, names, profiles, verdict_tables
from velodrome.report.formats import Format
from velodrome.report.json import save
from velodrome.report.terminal import again
from velodrome.report.typeset import estimate, markdown_escaped, visible
from velodrome.report.typeset import markdown_escaped as escaped

HEAD = (
    "| | stack | requests/s | p50 ms | {far} ms | CPU µs/request | memory MB | blocks | remarks |",
    "|--:|:--|--:|--:|--:|--:|--:|--:|:--|",
)
CLAIM_HEAD = ("| claim | published | here | judgement | why |", "|:--|--:|--:|:--|:--|")


def text(verdict: Verdict) -> str:
    """Return the whole report."""
    parts = [f"# {escaped(verdict.title or verdict.study)}", ""]
    parts += [_summary(answer) for answer in verdict.answers]
    parts += claims_section(verdict)
    parts += published_section(verdict)
    for answer in verdict.answers:
        parts += _question(verdict, answer)
    if verdict.findings:
        findings = [
            f"- **{escaped(name)}**: {escaped(text)}" for name, text in claims.finding_rows(verdict.findings)
        ]
        parts += ["", "## Experiments", "", *findings]
    parts += _profiles(verdict)
    if verdict.suspects:
        parts += ["", "## Suspects", ""]
        for suspected, also in diagnoses.group_suspects(verdict.suspects):
            parts += [
                f"{escaped(diagnoses.sentence(suspected, also))} {diagnoses.PROVES}",
                "",
                _code(visible(suspected.prove)),
                "",
            ]
    if verdict.set_aside:
        parts += ["", "## Set aside", "", *(f"- ⚑ {escaped(sentence)}" for sentence in verdict.set_aside)]
    facts = [*verdict.notes, *([f"The race ended: {verdict.finished}."] if verdict.finished else [])]
    facts += [f"{name}: {value}" for name, value in verdict.environment.items()]
    facts.append(f"seed: {verdict.seed}")
    parts += ["", "## Where and how", "", *(f"- {escaped(fact)}" for fact in facts)]
    parts += ["", "Repeat everything:", "", _code(everything(verdict)), ""]
    return "\n".join(parts)


def everything(verdict: Verdict) -> str:
    """Return the command that runs the whole study again, in its form."""
    return f"velodrome run {verdict.study}{' --quick' if verdict.form == 'quick' else ''}"


def _profiles(verdict: Verdict) -> list[str]:
    """Return a table for each question that was profiled."""
    found: list[str] = []
    for section in profiles.sections(verdict, {}):
        found += ["", f"## Profile: {escaped(section.about)}", "", f"Under {escaped(section.load)}.", ""]
        found += [f"| {' | '.join(profiles.HEADS)} |", f"|:--|{'--:|' * (len(profiles.HEADS) - 1)}"]
        found += [f"| {' | '.join(map(escaped, row))} |" for row in section.rows]
        found += ["", *(f"- {escaped(line)}" for line in (*section.failed, *section.notes))]
    return found


def write(path: Path, verdict: Verdict) -> None:
    """Write report.md. Raises OutputError when it cannot be written."""
    save(path, text(verdict))


def claims_section(verdict: Verdict) -> list[str]:
    """Return the published conclusions as lines of Markdown: published, here, judgement, reason."""
    if not verdict.claims:
        return []
    parts = ["", "## Claims", "", f"{claims.summary(verdict.claims)}.", "", CLAIM_HEAD[0], CLAIM_HEAD[1]]
    for claim in map(claims.show_claim, verdict.claims):
        reasons = [claim.reason, *claim.remarks] if claim.reason else [*claim.remarks]
        why = " ".join(escaped(reason) for reason in reasons)
        parts.append(
            f"| **{escaped(claim.name)}** {escaped(claim.says)} | | | **{claim.judgement.value}** | {why} |"
        )
        parts += [
            f"| {escaped(row.about)} | {escaped(row.published)} | {escaped(row.here)} | {row.judgement.value} "
            f"| {escaped(row.reason)} |"
            for row in claim.rows
        ]
    return parts


def published_section(verdict: Verdict) -> list[str]:
    """Return the published tables as lines of Markdown, each figure beside what was measured here."""
    parts = []
    for published_table in map(claims.published_table, verdict.tables):
        parts += ["", f"### As published: {escaped(published_table.title)}", ""]
        parts += [
            f"| {' | '.join(map(escaped, published_table.heads))} |",
            f"|:--|:--|{'--:|' * (len(published_table.heads) - 2)}",
        ]
        parts += [f"| {' | '.join(map(escaped, row))} |" for row in published_table.rows]
        parts += (
            ["", *(f"- {escaped(note)}" for note in published_table.notes)] if published_table.notes else []
        )
    return parts


def _summary(answer: Answer) -> str:
    best, beside = names.headline(answer)
    tail = f" ({escaped(beside)})" if beside else ""
    return f"- **{escaped(names.sentence_case(answer.about))}** → **{escaped(best)}**{tail}"


def _question(verdict: Verdict, answer: Answer) -> list[str]:
    parts = ["", f"## {escaped(names.sentence_case(answer.about))}", ""]
    limit = f"Limited by: {answer.limit}." if answer.limit else ""
    sentences = (names.short_sentence(answer), limit, *answer.why, answer.to_settle)
    parts += [f"{escaped(sentence)}  " for sentence in sentences if sentence]
    if answer.deploy:
        parts += ["", "Deploy:", "", _code(answer.deploy)]
    far, field = names.far_percentile(verdict)
    parts += ["", _loads(answer), "", HEAD[0].format(far=far), HEAD[1]]
    parts += [_row(standing, field) for standing in answer.standings]
    parts += _beside(answer)
    parts += _steps(answer)
    if command := again(verdict, answer):
        parts += ["", "Repeat one cell:", "", _code(command)]
    return parts


def _loads(answer: Answer) -> str:
    views = [view for standing in answer.standings for view in standing.latency]
    shown = names.latency_view(views)
    closed = next((view.load for view in views if names.is_closed(view.load)), "")
    if shown is None:
        return f"Requests/s in {names.load_label(closed)}." if closed else "Nothing was measured."
    ranking = names.load_label(closed or shown.load)
    basis = names.basis(shown)
    start = "from when requests were due" if basis == names.FROM_DUE else escaped(basis)
    return f"Requests/s in {ranking}; latency, {start}, in {names.load_label(shown.load)}."


def _beside(answer: Answer) -> list[str]:
    """Return what each driver says of the same load, where there are several or another than our own."""
    parts = []
    for table in verdict_tables.driver_tables(answer):
        parts += ["", f"{escaped(names.sentence_case(table.load))}, by each driver:", ""]
        parts += [f"| {' | '.join(verdict_tables.DRIVER_HEADS)} |", "|:--|:--|--:|--:|--:|--:|--:|:--|"]
        parts += [f"| {' | '.join(map(escaped, row.texts))} |" for row in table.rows]
    sentences = verdict_tables.reach(answer)
    return [*parts, "", *(f"- {escaped(sentence)}" for sentence in sentences)] if sentences else parts


def _steps(answer: Answer) -> list[str]:
    """Return a table for each load whose rate changes."""
    parts = []
    for table in verdict_tables.step_tables(answer):
        parts += ["", f"{escaped(names.sentence_case(table.load))}, step by step, latency from when due:", ""]
        parts += [f"| {' | '.join(verdict_tables.STEP_HEADS)} |", f"|:--|:--|{'--:|' * 5}:--|"]
        parts += [f"| {' | '.join(map(escaped, row))} |" for row in table.rows]
    return parts


def _row(standing: Standing, far: str) -> str:
    view = names.latency_view(standing.latency)
    cpu = standing.cpu_us_per_request
    cells = (
        standing.place or "⚑",
        escaped(names.of_standing(standing)),
        names.throughput(standing),
        names.milliseconds(view, "p50_ms"),
        names.milliseconds(view, far),
        estimate(cpu) if cpu else quantity.MISSING,
        quantity.megabytes(standing.memory_bytes),
        f"{standing.blocks_valid}/{standing.blocks_done}",
        escaped(names.remark(standing)),
    )
    return f"| {' | '.join(cells)} |"


def _code(command: str) -> str:
    """Return a command as a block that can be copied; its fence is longer than any in it."""
    shown = "\n".join(map(visible, command.split("\n")))
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}sh\n{shown}\n{fence}"


def group_lines(verdicts: Mapping[str, Verdict], trouble: Mapping[str, str], width: int) -> list[Text]:
    """Return all claims of all studies; `trouble` says which study could not be run, and why."""
    every = [judged for verdict in verdicts.values() for judged in verdict.claims]
    found = [Text(), Text(f" All claims: {claims.summary(every) or 'none'}", style="bold")]
    for study, verdict in verdicts.items():
        if verdict.claims:
            found += [Text(), Text(visible(f" {study}: {verdict.title}"), style="bold")]
            found += claims.lines(verdict.claims, width)
    for study, reason in trouble.items():
        found += [Text(), Text(visible(f" {study} could not be run to its end: {reason}"))]
    return [*found, Text()]


def group_text(group: str, verdicts: Mapping[str, Verdict], trouble: Mapping[str, str]) -> str:
    """Return the page of a group: the claims of each study, with a link to its report."""
    every = [judged for verdict in verdicts.values() for judged in verdict.claims]
    parts = [f"# {markdown_escaped(group)}", "", f"{claims.summary(every) or 'No claims'}."]
    for study, verdict in verdicts.items():
        link = f"[Report]({inside_group(study)}/report.md), `{everything(verdict)}`"
        parts += ["", f"# {markdown_escaped(verdict.title)}", "", link]
        parts += claims_section(verdict)
    for study, reason in trouble.items():
        parts += [
            "",
            f"**{markdown_escaped(study)}** could not be run to its end: {markdown_escaped(reason)}",
        ]
    return "\n".join([*parts, ""])


def show_group(
    group: str, where: Path, verdicts: Mapping[str, Verdict], trouble: Mapping[str, str], out: Console
) -> None:
    """Write all claims to the terminal, and the page into `where`. Raises OutputError when that is impossible."""
    for line in group_lines(verdicts, trouble, out.width):
        out.print(line, soft_wrap=True)
    path = where / f"{inside_group(group)}.md"
    save(path, group_text(group, verdicts, trouble))
    out.print(Text(visible(f" report  {path}")), soft_wrap=True)


report = Format("markdown", "report.md", lambda path, run: write(path, run.verdict))
