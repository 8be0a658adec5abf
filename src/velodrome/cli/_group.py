"""Runs all studies of a group, one after the other, and ends with one table of all their claims."""

import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from rich.text import Text

from velodrome.cli._racing import Options, allowed, folder, race_study
from velodrome.guest import catalog
from velodrome.model.errors import (
    BadOptionError,
    RaceInterruptedError,
    StudyFileError,
    TooLargeError,
    VelodromeError,
)
from velodrome.model.secrets import mask
from velodrome.model.verdict import Verdict
from velodrome.plan import finding
from velodrome.report import json, terminal
from velodrome.report import markdown as report
from velodrome.report.typeset import LINES, visible
from velodrome.run.faults import told
from velodrome.run.racing import store


def race_group(name: str, out: Path | None, options: Options) -> list[Verdict]:
    """Race the studies of a group into `out`/<study>/; return their verdicts.

    A study that cannot be run is told and the others go on; an interruption ends the group. Raises UntrustedError
    before the first where one names what the user does not allow, and the error of the last study that could not be
    run, after all.
    """
    if options.only:
        raise BadOptionError("--only", options.only[0], f"it is for one study; run one of: {_listed(name)}")
    form = "-quick" if options.quick else ""
    where = folder(f"{name}{form}", out, options.resume, f"*/{store.NAME}")
    members = finding.members(name)
    stacks = catalog.stacks(options.extra)
    for study in members:
        # Before the first, which may take hours; what else is wrong is told in its turn.
        with suppress(StudyFileError, TooLargeError):
            allowed(study, stacks, options)
    screen = terminal.console(sys.stdout)
    trouble: dict[str, VelodromeError] = {}
    verdicts: dict[str, Verdict] = {}
    for number, (study, _) in enumerate(members.items(), 1):
        screen.print(Text(f"{study} ({number} of {len(members)})", style="bold"))
        inside = where / report.inside_group(study)
        again = options.resume and (inside / store.NAME).exists()
        try:
            verdicts[study] = race_study(study, inside, replace(options, resume=again))
        except RaceInterruptedError:
            raise
        except Exception as error:  # also what nobody foresaw: the other studies are no worse for it
            trouble[study] = told(error)
            screen.print(Text(f"velodrome: {visible(mask(str(trouble[study])), LINES)}"), soft_wrap=True)
            if (inside / "verdict.json").exists():
                verdicts[study] = json.read(inside / "verdict.json")
    reasons = {study: str(error).splitlines()[0] for study, error in trouble.items()}
    report.show_group(name, where, verdicts, reasons, screen)
    if trouble:
        raise list(trouble.values())[-1]
    return list(verdicts.values())


def _listed(name: str) -> str:
    return ", ".join(finding.members(name))
