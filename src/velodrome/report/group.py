"""A group of studies: one table of all their claims, in the terminal and as Markdown."""

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.text import Text

from velodrome.model.verdict import Verdict
from velodrome.report import claims
from velodrome.report.json import save
from velodrome.report.markdown import claims_section, everything
from velodrome.report.typeset import markdown_escaped, visible


def inside(study: str) -> str:
    """Return the folder of a study within that of its group."""
    return study.rpartition("/")[2].removesuffix(".toml")


def lines(verdicts: Mapping[str, Verdict], trouble: Mapping[str, str], width: int) -> list[Text]:
    """Return all claims of all studies; `trouble` tells which study could not be run, and why."""
    every = [judged for verdict in verdicts.values() for judged in verdict.claims]
    found = [Text(), Text(f" All claims: {claims.summary(every) or 'none'}", style="bold")]
    for study, verdict in verdicts.items():
        if verdict.claims:
            found += [Text(), Text(visible(f" {study}: {verdict.title}"), style="bold")]
            found += claims.lines(verdict.claims, width)
    for study, reason in trouble.items():
        found += [Text(), Text(visible(f" {study} could not be run to its end: {reason}"))]
    return [*found, Text()]


def markdown(group: str, verdicts: Mapping[str, Verdict], trouble: Mapping[str, str]) -> str:
    """Return the page of a group: the claims of each study, with a link to its report."""
    every = [judged for verdict in verdicts.values() for judged in verdict.claims]
    parts = [f"# {markdown_escaped(group)}", "", f"{claims.summary(every) or 'No claims'}."]
    for study, verdict in verdicts.items():
        link = f"[Report]({inside(study)}/report.md), `{everything(verdict)}`"
        parts += ["", f"# {markdown_escaped(verdict.title)}", "", link]
        parts += claims_section(verdict)
    for study, reason in trouble.items():
        parts += [
            "",
            f"**{markdown_escaped(study)}** could not be run to its end: {markdown_escaped(reason)}",
        ]
    return "\n".join([*parts, ""])


def show(
    group: str, where: Path, verdicts: Mapping[str, Verdict], trouble: Mapping[str, str], out: Console
) -> None:
    """Write all claims to the terminal, and the page into `where`. Raises OutputError when that is impossible."""
    for line in lines(verdicts, trouble, out.width):
        out.print(line, soft_wrap=True)
    path = where / f"{inside(group)}.md"
    save(path, markdown(group, verdicts, trouble))
    out.print(Text(visible(f" report  {path}")), soft_wrap=True)
