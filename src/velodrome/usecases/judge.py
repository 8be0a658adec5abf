"""The verdict on stored results, without running anything."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from velodrome.guest.stack import Stack
from velodrome.judge.answering import with_paste
from velodrome.judge.verdict import judge as judging
from velodrome.model import results
from velodrome.model.diagnosis import Suspected
from velodrome.model.errors import BadOptionError, OtherClaimsError, OtherStudyError, SameTrialsError
from velodrome.model.measurement import Measurement
from velodrome.model.results import Results
from velodrome.model.study import Study, inside_group
from velodrome.model.verdict import Verdict
from velodrome.run.racing import store
from velodrome.usecases.studies import load_study
from velodrome.usecases.suspects import machine_cpus, suspects


@dataclass(frozen=True)
class Judged:
    """What runs of one study say."""

    verdict: Verdict
    runs: tuple[Results, ...]
    folders: tuple[Path, ...]
    """Where each of them is; reports belong into the first."""


def judge(
    runs: Sequence[Path],
    stacks: Mapping[str, Stack],
    finished: str = "",
    now: Study | None = None,
    *,
    paste: bool = False,
) -> Judged:
    """Judge runs of one study together: each a folder or its results.jsonl.

    The claims and published tables of `now` are judged instead of those that were known when it was run; `finished`
    says how the race ended; `paste` gives what to paste although nothing is settled. Raises ResultsError, for runs of
    several studies OtherStudyError, for one that is given twice SameTrialsError, for claims of another study
    OtherClaimsError.
    """
    found = [store.read(path) for path in runs]
    _refuse_apart(runs, found)
    if now is not None:
        _refuse_claims(now, runs[0], found[0].header.study)
        study = replace(found[0].header.study, claims=now.claims, tables=now.tables)
        found[0] = replace(found[0], header=replace(found[0].header, study=study))
    folders = tuple(path if path.is_dir() else path.parent for path in runs)
    verdict = replace(judging(found, stacks, finished), suspects=_suspects(found, stacks))
    return Judged(with_paste(verdict) if paste else verdict, tuple(found), folders)


def _refuse_apart(paths: Sequence[Path], found: Sequence[Results]) -> None:
    """Refuse runs that do not add up. Raises OtherStudyError, SameTrialsError."""
    study = found[0].header.study.name
    holder: dict[str, Path] = {}
    for path, run in zip(paths, found, strict=True):
        if run.header.study.name != study:
            raise OtherStudyError(str(paths[0]), study, str(path), run.header.study.name)
        # Of two runs that measure the same, some figure differs; what failed may have failed alike at the same second.
        own = {str((path / store.NAME if path.is_dir() else path).resolve())}
        own |= {
            results.dump(result)
            for result in (*run.trials, *run.checks)
            if isinstance(result, Measurement) and len(paths) > 1
        }
        if common := own & holder.keys():
            raise SameTrialsError(str(holder[common.pop()]), str(path))
        holder |= dict.fromkeys(own, path)


def _refuse_claims(now: Study, path: Path, run: Study) -> None:
    """Refuse claims of another study; its file may have another name now. Raises OtherClaimsError."""
    asked = {question.name: question.recipe for question in now.questions}
    contestants = {contestant.label for contestant in now.contestants}
    whole = all(asked.get(question.name) == question.recipe for question in run.questions)
    if run.name != now.name and not (whole and {one.label for one in run.contestants} <= contestants):
        raise OtherClaimsError(now.name, str(path), run.name)


def _suspects(runs: Sequence[Results], stacks: Mapping[str, Stack]) -> tuple[Suspected, ...]:
    """Return what the figures make likely; a baseline is no app of the user's."""
    baselines = {
        question.name for question in runs[0].header.study.questions if question.baseline is not None
    }
    every = [
        result
        for run in runs
        for result in (*run.trials, *run.checks)
        if result.trial.question not in baselines
    ]
    return suspects(every, stacks, machine_cpus(runs[0].header))


def search(run: Path) -> Results | None:
    """Return what a search has stored; None: these are results of a race. Raises ResultsError."""
    return store.read(run) if store.read_header(run).sought is not None else None


def study_of_run(name: str, run: Path) -> Study:
    """Return the study of a run as its file has it now, in the form it was run in. Raises ResultsError."""
    return load_study(name, quick=store.read(run).header.study.form == "quick")


def members(claims: str, folders: Sequence[Path]) -> dict[Path, str]:
    """Return for each folder of a group's run the study of the group `claims` that it is a run of.

    Raises BadOptionError.
    """
    from velodrome.plan import study_file  # noqa: PLC0415 - see load_study

    if not study_file.is_group(claims):
        raise BadOptionError(
            "--claims", claims, "this is a run of a group: name a group, or judge one study of it"
        )
    by_folder = {inside_group(member): member for member in study_file.members(claims)}
    for folder in folders:
        if folder.name not in by_folder:
            raise BadOptionError(
                "--claims",
                claims,
                f"{folder} is a run of none of its studies: {', '.join(by_folder.values())}",
            )
    return {folder: by_folder[folder.name] for folder in folders}
