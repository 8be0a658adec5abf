"""Writes docs/articles.md, and its summary in the README, from stored runs, of the group or of single studies:
python tools/articles_page.py runs/<date>-articles [runs/<date>-grpc-concurrency …]

docs/articles/ keeps of each study the verdict without its rankings and curves, and the versions that served. A study
that the runs lack keeps what an earlier run left there; without an argument all do.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from velodrome.model.claim import Judgement
from velodrome.model.measurement import Measurement
from velodrome.model.quantity import MISSING
from velodrome.model.verdict import Verdict
from velodrome.report import claims, json
from velodrome.report.markdown import claims_section, everything, published_section
from velodrome.report.typeset import markdown_escaped
from velodrome.run.racing.store import read as read_results

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- judged again: written by tools/articles_page.py -->", "<!-- end of judged again -->"
DOCS = Path(__file__).parents[1] / "docs"
PACKAGES = "packages of the servers"
FACTS = ("started", "cpu", "cpus", "memory_bytes", "kernel", "system", "virtualisation", "velodrome")
OPENING = """\
# Reproducing published benchmarks

Written by `tools/articles_page.py` from stored runs. *Published* is the published figure, *here* the measured one with
its 95 % interval; [how a claim is judged](method.md#claims).
"""


def keep(run: Path, folder: Path) -> None:
    """Store what the page needs of each study of a run. Raises ResultsError or UnreadableVerdictError."""
    folder.mkdir(parents=True, exist_ok=True)
    found = sorted([*run.glob("verdict.json"), *run.glob("*/verdict.json")])
    if not found:
        sys.exit(f"{run} holds no verdict; give the folder of a run: runs/<date>-articles")
    for path in found:
        verdict = json.read(path)
        measured = [trial for trial in read_results(path.parent).trials if isinstance(trial, Measurement)]
        environment = {**verdict.environment, PACKAGES: _packages(measured)}
        name = verdict.study.rpartition("/")[2]
        json.write(folder / f"{name}.json", replace(verdict, answers=(), environment=environment))


def _packages(measured: Sequence[Measurement]) -> str:
    """Return every package that served, with all its versions."""
    versions: dict[str, set[str]] = {}
    for measurement in measured:
        for name, version in measurement.packages.items():
            versions.setdefault(name, set()).add(version)
    return ", ".join(f"{name} {' and '.join(sorted(found))}" for name, found in sorted(versions.items()))


def stored(folder: Path) -> dict[str, Verdict]:
    """Return the verdicts that are kept, by the name of their study."""
    return {path.stem: json.read(path) for path in sorted(folder.glob("*.json"))}


def page(verdicts: Mapping[str, Verdict]) -> str:
    """Return the page: what became of the claims, where and how, then study by study, claim by claim."""
    every = [claim for verdict in verdicts.values() for claim in verdict.claims]
    parts = [
        OPENING,
        f"In all: {claims.summary(every)}.",
        "",
        "| study | claims | command |",
        "|:--|:--|:--|",
    ]
    for name, verdict in verdicts.items():
        link = f"[{markdown_escaped(verdict.title)}](#{name})"
        parts.append(f"| {link} | {claims.summary(verdict.claims)} | `{everything(verdict)}` |")
    for name, verdict in verdicts.items():
        parts += [
            "",
            f'<a id="{name}"></a>',
            "",
            f"## {markdown_escaped(verdict.title)}",
            "",
            *_facts(verdict),
        ]
        # The section's own heading would be a second one.
        parts += [line for line in claims_section(verdict)[2:] if line != "## Claims"]
        parts += published_section(verdict)
        parts += [
            f"- **{markdown_escaped(name)}**: {markdown_escaped(text)}"
            for name, text in claims.finding_rows(verdict.findings)
        ]
    return "\n".join([*parts, ""])


def summary(verdicts: Mapping[str, Verdict]) -> str:
    """Return the README's part: of each study which claims hold, which do not, which are undecided."""
    parts = [
        f"| published comparison | {' | '.join(kind.value for kind in Judgement)} |",
        "|:--|:--|:--|:--|",
    ]
    for verdict in verdicts.values():
        named = [
            ", ".join(judged.claim.name for judged in verdict.claims if judged.judgement is kind) or MISSING
            for kind in Judgement
        ]
        parts.append(f"| {' | '.join(map(markdown_escaped, (verdict.title, *named)))} |")
    return "\n".join(parts)


def put_into_readme(text: str) -> None:
    """Replace what stands between the marks."""
    before, begin, rest = README.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        sys.exit(f"README.md has lost its marks: {BEGIN} … {END}")
    README.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


def _facts(verdict: Verdict) -> list[str]:
    """Return when, where and with which versions, on a few lines."""
    there = verdict.environment
    where = ", ".join(f"{name} {there[name]}" for name in FACTS if there.get(name))
    pythons = there.get("python of the servers", "")
    lines = [
        f"`{everything(verdict)}`, seed {verdict.seed}, {markdown_escaped(verdict.finished)}.",
        markdown_escaped(f"{where}."),
    ]
    lines += [markdown_escaped(f"Python {pythons}; {there[PACKAGES]}.")] if there.get(PACKAGES) else []
    return [part for line in lines for part in (line, "")]


def main() -> None:
    """Keep the verdicts of the runs that are named, and write the page."""
    folder = DOCS / "articles"
    for run in sys.argv[1:]:
        keep(Path(run), folder)
    verdicts = stored(folder)
    if not verdicts:
        sys.exit("nothing is kept in docs/articles yet; name a run: runs/<date>-articles")
    (DOCS / "articles.md").write_text(page(verdicts), encoding="utf-8")
    put_into_readme(summary(verdicts))


if __name__ == "__main__":
    main()
