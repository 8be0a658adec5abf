"""From stored results to the verdict on a whole study; needs no machine, no run and no clock."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from velodrome.guest.catalog import serves
from velodrome.guest.stack import Stack
from velodrome.judge import settling
from velodrome.judge.answering import answer
from velodrome.judge.claims import Evidence, judge_claims, tabulate
from velodrome.judge.field import runners, throughput
from velodrome.judge.own_share import own_share
from velodrome.judge.statistics import host_levels
from velodrome.judge.words import blocks, list_names, sentence
from velodrome.model.claim import Finding
from velodrome.model.errors import DifferentMachinesError
from velodrome.model.errors.apps import status_in
from velodrome.model.load import Open
from velodrome.model.measurement import SHARED_NOTED, Failed, FailureKind, Measurement, RanOn, Severity
from velodrome.model.noise import Noise
from velodrome.model.profile import Profile
from velodrome.model.quantity import percent
from velodrome.model.results import COMPARABLE, Header, Machine, Result, Results
from velodrome.model.study import Study
from velodrome.model.verdict import Answer, ProfileView, Verdict


def profile_view(profile: Profile, study: Study | None = None) -> ProfileView:
    """Return what a profile tells, without the trial it was taken of; of a baseline it is that of its question."""
    trial, pace = profile.trial, profile.trial.load.pace
    of = (
        {question.name: question.baseline.of for question in study.questions if question.baseline}
        if study
        else {}
    )
    cpus = None
    if profile.server_cpu_s is not None and profile.load_s:
        cpus = profile.server_cpu_s / profile.load_s
    return ProfileView(
        question=of.get(trial.question, trial.question),
        contestant=trial.label,
        load=trial.load.label,
        rate=pace.rate if isinstance(pace, Open) else None,
        profiler=profile.profiler,
        samples=profile.samples,
        idle_share=profile.idle_share,
        opaque_share=profile.opaque_share,
        cpus=cpus,
        achieved_rps=profile.achieved_rps,
        depth_mean=profile.depth_mean,
        depth_max=profile.depth_max,
        by_part=profile.share_by_part,
        by_package=profile.share_by_package,
        collapsed=profile.collapsed,
        speedscope=profile.speedscope,
        notes=profile.notes,
        failed=profile.failed,
    )


# --- From stored results to the verdict on a whole study; needs no machine, no run and no clock.


def judge(runs: Sequence[Results], stacks: Mapping[str, Stack], finished: str = "") -> Verdict:
    """Return the verdict on one results file, or on several files of one study, whose blocks then add up.

    `finished` says how the race ended where that is known; else it follows from what is there. Files of machines that
    differ are judged as blocks of several hosts, each whole on one of them. Raises ValueError when there is no file.
    """
    if not runs:
        raise ValueError("a verdict needs at least one file of results")
    header = runs[0].header
    results, torn_blocks = untorn(_join(runs))
    study = header.study
    findings = _findings(runs)
    checks = [check for run in runs for check in run.checks]
    profiles, noise = _profiles(runs), header.noise
    found = [
        answer(
            question,
            results,
            stacks,
            noise,
            checks=checks,
            worker_counts=study.worker_counts,
            share=own_share(study, question, results, profiles, noise),
            confidence=settling.confidence(study),
        )
        for question in study.answered
    ]
    evidence = Evidence(study, results, stacks, findings, profiles, noise)
    return Verdict(
        study=study.name,
        title=study.title,
        seed=header.seed,
        answers=tuple(
            settling.with_stops(answered) if study.until_settled else answered
            for answered in found
            if answered
        ),
        set_aside=tuple(set_aside(_without_layers(study, results), stacks)),
        notes=(
            *_not_run(study, found),
            *_left_out(study, stacks),
            *_without_baselines(study, results),
            *_notes(results),
            *_cut_short(runs),
            *torn_blocks,
            *_hosts(study, results, stacks, noise),
            *_apart(results),
            *_theirs(results, stacks),
            *_unknown(study, results),
        ),
        environment=_environment(header, results),
        claims=judge_claims(evidence),
        tables=tuple(tabulate(table, evidence) for table in study.tables),
        findings=findings,
        profiles=tuple(profile_view(profile, study) for profile in evidence.profiles),
        form=study.form,
        finished=finished or _ending(study, results, stacks),
    )


def _cut_short(runs: Sequence[Results]) -> list[str]:
    """Say that a crash left half a line: the trial that it was of counts as not run."""
    if not any(run.torn for run in runs):
        return []
    return ["The last line of the results is not whole, as a crash leaves it: it is left out."]


def _findings(runs: Sequence[Results]) -> tuple[Finding, ...]:
    """Return what experiments came to; of an experiment that several files hold, the last."""
    found = {finding.experiment.name: finding for run in runs for finding in run.findings}
    return tuple(found.values())


def _profiles(runs: Sequence[Results]) -> tuple[Profile, ...]:
    return tuple(profile for run in runs for profile in run.profiles)


def _not_run(study: Study, found: Sequence[Answer | None]) -> list[str]:
    wanted = {question.name for question, _ in study.pairs()}
    why = {True: "nothing of it was run", False: f"the {study.form} form leaves it out"}
    pairs = zip(study.answered, found, strict=True)
    return [
        f"{question.name}: {why[question.name in wanted]}."
        for question, answered in pairs
        if answered is None
    ]


def _without_layers(study: Study, results: Sequence[Result]) -> list[Result]:
    """Return the results that answers rest on: a baseline is known by what it lacks alone."""
    baselines = {question.name for question in study.questions if question.baseline}
    return [result for result in results if result.trial.question not in baselines]


def _without_baselines(study: Study, results: Sequence[Result]) -> list[str]:
    """Return why it is unknown how much of a request is an app's own, where a baseline could not be measured."""
    found = {}
    for question in study.questions:
        if question.baseline is None:
            continue
        own = [result for result in results if result.trial.question == question.name]
        reasons = [result.reason for result in own if isinstance(result, Failed)]
        if own and len(reasons) == len(own):
            what = {"app": "the app", "server": "an empty handler"}.get(
                question.baseline.layer, f"an empty route of {question.baseline.framework}"
            )
            found[question.name] = sentence(
                f"What of a request to {question.baseline.of} is its own is not known as well: {what} could not be "
                f"measured in its place: {reasons[0]}"
            )
    return list(found.values())


def _unknown(study: Study, results: Sequence[Result]) -> list[str]:
    unknown = {result.trial.question for result in results} - {question.name for question in study.questions}
    return [f"Results of a question that the study does not have: {name}." for name in sorted(unknown)]


def same_machine(headers: Sequence[Header]) -> None:
    """Refuse runs of machines that differ. Raises DifferentMachinesError."""
    first = headers[0].machine
    differences = dict.fromkeys(
        f"{name} {first.get(name)} and {other.machine.get(name)}"
        for other in headers[1:]
        for name in COMPARABLE
        if other.machine.get(name) != first.get(name)
    )
    if differences:
        raise DifferentMachinesError(list(differences))


def same_hosts(run: Results) -> None:
    """Refuse a run of several hosts, where figures are compared that no block holds both of.

    Raises DifferentMachinesError.
    """
    names = sorted({trial.machine.name for trial in run.trials if trial.machine is not None})
    if len(names) > 1:
        raise DifferentMachinesError([f"blocks of {run.header.study.name} on {list_names(names)}"])


def untorn(results: Sequence[Result]) -> tuple[list[Result], list[str]]:
    """Return results whose blocks are each whole on one host, and a sentence for each that was not.

    A host that was lost in the middle of a block leaves a part of it, which another then ran anew: of a block the host
    of its last line counts.
    """
    last = {result.trial.block: result.machine.name if result.machine else "" for result in results}
    kept, left = [], dict[int, set[str]]()
    for result in results:
        name = result.machine.name if result.machine else ""
        if name == last[result.trial.block]:
            kept.append(result)
        else:
            left.setdefault(result.trial.block, set()).add(name)
    return kept, [
        f"Block {block + 1} was begun on {list_names(sorted(names))} and run anew on {last[block]}: of what was begun "
        "nothing counts."
        for block, names in sorted(left.items())
    ]


def _hosts(study: Study, results: Sequence[Result], stacks: Mapping[str, Stack], noise: Noise) -> list[str]:
    """Return on which hosts blocks ran, and which of them did more or less than another beyond chance."""
    blocks_of: dict[str, set[int]] = {}
    for result in results:
        blocks_of.setdefault(result.machine.name if result.machine else HERE, set()).add(result.trial.block)
    if len(blocks_of) < 2:
        return []
    counts = [f"{name} ({len(numbers)})" for name, numbers in sorted(blocks_of.items())]
    found = [
        f"Blocks ran on {len(blocks_of)} hosts: {list_names(counts)}. Contestants are compared within blocks, each of "
        "one host."
    ]
    for question in study.answered:
        load = question.ranking_load
        samples = [throughput(runner, question, load) for runner in runners(question, results, stacks, noise)]
        found += [
            f"In {question.name}, {host or HERE} did {ratio.mid:.2f} [{ratio.low:.2f}, {ratio.high:.2f}] times what "
            f"{other or HERE} did."
            for host, other, ratio in host_levels([sample for sample in samples if sample is not None])
        ]
    return found


def _apart(results: Sequence[Result]) -> list[str]:
    """Return who served, and from where its load came, where these were hosts of their own."""
    measured = [result for result in results if isinstance(result, Measurement) and result.load.loaders]
    if not measured:
        return []
    servers = sorted(
        {measurement.machine.name for measurement in measured if measurement.machine is not None}
    )
    loads = _away(
        (loader.name, loader.round_trip_ms) for measurement in measured for loader in measurement.load.loaders
    )
    thirds = _away(
        (measurement.upstream.agent, measurement.upstream.round_trip_ms)
        for measurement in measured
        if measurement.upstream is not None and measurement.upstream.agent
    )
    beside = f" Third parties ran on {thirds}." if thirds else ""
    return [
        f"The server ran on {list_names(servers)}; its load came from {loads}.{beside} The way between these hosts "
        "is in every latency."
    ]


def _away(found: Iterable[tuple[str, float | None]]) -> str:
    """Return agents in words, each with the least round trip to the server's host."""
    trips: dict[str, list[float]] = {}
    for name, trip_ms in found:
        trips.setdefault(name, []).extend([] if trip_ms is None else [trip_ms])
    return list_names(
        [f"{name} ({min(own):.2f} ms there and back)" if own else name for name, own in sorted(trips.items())]
    )


HERE = "the machine that the race began on"


def _join(runs: Sequence[Results]) -> list[Result]:
    """Return all results; the blocks of a later file count on from those of the file before it.

    Where the files are of machines that differ, what names no host of its own gets that of its machine.
    """
    kinds = list(dict.fromkeys(_kind(run.header.machine) for run in runs))
    of_name: dict[str, list[tuple[str, ...]]] = {}
    joined: list[Result] = []
    offset = 0
    for run in runs:
        own = None
        if len(kinds) > 1:
            number = kinds.index(_kind(run.header.machine)) + 1
            own = RanOn(f"machine {number}", run.header.machine)
        for result in run.trials:
            machine = _number_host(result.machine, of_name) if result.machine else own
            trial = replace(result.trial, block=result.trial.block + offset)
            joined.append(replace(result, trial=trial, machine=machine))
        offset = max((result.trial.block + 1 for result in joined), default=0)
    return joined


def _number_host(machine: RanOn, of_name: dict[str, list[tuple[str, ...]]]) -> RanOn:
    """Return a host with a number behind its name where another kind of machine calls itself the same."""
    kinds = of_name.setdefault(machine.name, [])
    if (kind := _kind(machine.facts)) not in kinds:
        kinds.append(kind)
    number = kinds.index(kind) + 1
    return machine if number == 1 else replace(machine, name=f"{machine.name} ({number})")


def _kind(machine: Machine) -> tuple[str, ...]:
    return tuple(str(machine.get(name)) for name in COMPARABLE)


OF_ITS_SERVER = (FailureKind.START, FailureKind.NEVER_ANSWERED, FailureKind.DIED)
"""Failures that the last lines of a server may explain."""
LINES_SHOWN = 3
LONGEST_LINE = 160


def set_aside(results: Iterable[Result], stacks: Mapping[str, Stack]) -> list[str]:
    """Return one sentence for each contestant, load and reason that kept measurements out.

    The last lines of a server that failed stand behind the first of its loads: it failed before any of them.
    """
    seen: dict[tuple[str, str, str, str], tuple[str, list[int]]] = {}
    said: dict[tuple[str, str, str], tuple[str, str]] = {}
    for result in results:
        stack = stacks.get(result.trial.contestant.stack)
        called = result.trial.contestant.called(stack)
        if isinstance(result, Failed):
            reasons = [(result.failure.value, f"failed: {result.reason}")]
            if _is_of_its_server(result) and (lines := _last_lines(result)):
                server = (result.trial.question, result.trial.label, result.failure.value)
                said.setdefault(server, (result.trial.load.label, lines))
        else:
            reasons = [
                (flag.kind.value, flag.sentence) for flag in result.flags if flag.severity is Severity.INVALID
            ]
        for kind, text in reasons:
            key = (result.trial.question, result.trial.label, result.trial.load.label, kind)
            reason = f"{called}, {result.trial.question}, {result.trial.load.label}: {text}"
            seen.setdefault(key, (reason, []))[1].append(result.trial.block)
    found = []
    for (question, label, load, kind), (text, where) in seen.items():
        of_load, lines = said.get((question, label, kind), ("", ""))
        found.append(f"{sentence(text)} ({blocks(where)}){lines if of_load == load else ''}")
    return found


def _is_of_its_server(failed: Failed) -> bool:
    """Whether what a server wrote may say why: also of an app that failed at its request (a status of 500 or more)."""
    raised = failed.failure is FailureKind.WRONG_ANSWER and status_in(failed.reason).startswith("5")
    return raised or failed.failure in OF_ITS_SERVER


def _last_lines(failed: Failed) -> str:
    """Return the end of what a server wrote, to stand behind a sentence; empty: it wrote nothing."""
    written = [line.strip() for line in failed.last_lines if line.strip()][-LINES_SHOWN:]
    shown = [line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…" for line in written]
    return f" Its last lines: {' '.join(f'«{line}»' for line in shown)}" if shown else ""


def _left_out(study: Study, stacks: Mapping[str, Stack]) -> list[str]:
    reasons: dict[tuple[str, str], list[str]] = {}
    for question, contestant in study.pairs():
        stack = stacks.get(contestant.stack)
        reason = serves(stack, question.recipe) if stack else None
        if stack and reason:
            reasons.setdefault((question.name, reason), []).append(contestant.called(stack))
    return [
        sentence(f"{list_names(who)} left out of {where}: {why}") for (where, why), who in reasons.items()
    ]


def _notes(results: Sequence[Result]) -> list[str]:
    measured = [result for result in results if isinstance(result, Measurement)]
    shares = [share for result in measured if (share := result.shared_share) >= SHARED_NOTED]
    found = []
    if shares:
        found.append(
            f"In {len(shares)} of {len(measured)} trials what measures the server used a tenth or more of a CPU of the "
            f"server's (up to {percent(max(shares))}): there CPU per request says more than requests per second."
        )
    if measured and len({result.trial.block for result in results}) == 1:
        found.append(
            "One block only: intervals rest on what two equal servers are known to differ by, not on repeats "
            "seen here."
        )
    return found


def _theirs(results: Sequence[Result], stacks: Mapping[str, Stack]) -> list[str]:
    """Return where another version of a package was raced than a stack pins, for the sake of an app's."""
    found: dict[tuple[str, str], list[str]] = {}
    for result in results:
        stack = stacks.get(result.trial.contestant.stack)
        if isinstance(result, Failed) or result.trial.app is None or stack is None:
            continue
        for line in stack.requires:
            name, _, pinned = line.partition("==")
            has = result.trial.app.packages.get(name.lower())
            ran = has or result.packages.get(name.lower(), pinned)
            if pinned and ran != pinned:
                why = "is installed beside the app" if has else "goes with what the app has"
                who = found.setdefault((f"{name} {ran}, which {why}", pinned), [])
                who += [] if stack.title in who else [stack.title]
    return [
        f"{list_names(who)} ran with {which}, not {pinned} as pinned here."
        for (which, pinned), who in found.items()
    ]


def _ending(study: Study, results: Sequence[Result], stacks: Mapping[str, Stack]) -> str:
    """Return how far the race came, by the trials that are there."""
    if study.until_settled and (cells := _blocks_of_cells(results)):
        fewest, most = min(cells.values()), max(cells.values())
        if fewest >= settling.LOOKS[0]:
            return (
                f"{fewest} to {most} blocks, where the answer was open" if most > fewest else f"{most} blocks"
            )
    blocks = max(
        [study.blocks, *(result.trial.block + 1 for result in results)]
    )  # a resume may have asked for more
    planned = {
        (question.name, contestant.label, load.label, block)
        for question, contestant in study.pairs()
        if not (contestant.stack in stacks and serves(stacks[contestant.stack], question.recipe))
        for load in study.loads(question, contestant)
        for block in range(blocks)
    }
    done = {
        (result.trial.question, result.trial.contestant.label, result.trial.load.label, result.trial.block)
        for result in results
    }
    missing = len(planned - done)
    if not missing:
        return f"all {blocks} blocks were run" if blocks > 1 else "its one block was run"
    return f"before its end: {len(planned) - missing} of {len(planned)} trials are there"


def _blocks_of_cells(results: Sequence[Result]) -> dict[str, int]:
    """Return how many blocks of each cell were begun."""
    found: dict[str, set[int]] = {}
    for result in results:
        found.setdefault(result.trial.cell, set()).add(result.trial.block)
    return {cell: len(numbers) for cell, numbers in found.items()}


def _machine(header: Header, results: Sequence[Result]) -> Machine:
    """Return the facts of the machine; of several hosts those that all share, and of each the others."""
    hosts = {
        result.machine.name if result.machine else HERE: result.machine.facts
        if result.machine
        else header.machine
        for result in results
    }
    if not hosts:
        return header.machine
    every = list(hosts.values())
    shared = {
        name: value for name, value in every[0].items() if all(entry.get(name) == value for entry in every)
    }
    differing = {
        f"{name} of {host}": value
        for host, own in sorted(hosts.items())
        for name, value in own.items()
        if name not in shared
    }
    return {**shared, **differing}


def _environment(header: Header, results: Sequence[Result]) -> dict[str, str]:
    pythons = sorted(
        {result.python for result in results if isinstance(result, Measurement) and result.python}
    )
    facts = {name: str(value) for name, value in _machine(header, results).items() if value is not None}
    if pythons:
        facts["python of the servers"] = ", ".join(pythons)
    facts["noise presumed"] = header.noise.sentence
    return {**facts, "velodrome": header.velodrome, "started": header.started_at}
