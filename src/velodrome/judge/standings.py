"""The rows of one question: every contestant with its rank, figures, flags and failures."""

from collections.abc import Mapping, Sequence

from velodrome.judge import again, deploying_app
from velodrome.judge.comparing import Comparison, Sample
from velodrome.judge.deploying import deploy
from velodrome.judge.field import Runner, cpu_cost, ranking_load, throughput
from velodrome.judge.latencies import latency_view
from velodrome.judge.ranking import Ranking
from velodrome.judge.words import blocks, capital, sentence
from velodrome.model.flag import FlagKind, Severity
from velodrome.model.interval import Interval
from velodrome.model.study import Question
from velodrome.model.verdict import Standing


def standings(
    question: Question, runners: Sequence[Runner], ranking: Ranking | None, best_first: Sequence[str]
) -> tuple[Standing, ...]:
    """Return all rows: the ranked ones by rank, then those set aside, then those that failed."""
    load = ranking_load(question)
    rates = rates_of(question, runners)
    costs = alone([cpu_cost(runner, load) for runner in runners])
    rows = [_row(question, runner, ranking, rates, costs) for runner in runners]
    order = [*best_first, *(label for label in (ranking.order if ranking else ()) if label not in best_first)]

    def place(row: Standing) -> tuple[int, float]:
        if row.rank is not None:
            return 0, order.index(row.contestant)
        return (2, 0.0) if row.failed else (1, -row.throughput_rps.mid if row.throughput_rps else 0.0)

    return tuple(sorted(rows, key=place))


def rates_of(question: Question, runners: Sequence[Runner]) -> dict[str, Interval]:
    """Return right answers a second of each contestant by itself, under the load that ranks."""
    load = ranking_load(question)
    found = alone([throughput(runner, question, load) for runner in runners])
    for runner in runners:
        shown = runner.shown_under(load)
        if shown and not any(one.load.answers for one in shown):
            # No ratio exists to nothing: at most, it gave less than one answer in all that time.
            found[runner.label] = Interval(0.0, 0.0, 1 / max(sum(one.load.duration_s for one in shown), 1e-9))
    return found


def alone(samples: Sequence[Sample | None]) -> dict[str, Interval]:
    """Return the value of each contestant by itself, with its interval."""
    found = [sample for sample in samples if sample is not None]
    if not found:
        return {}
    comparison = Comparison(found)
    return {sample.label: comparison.alone(sample.label) for sample in found}


def _row(
    question: Question,
    runner: Runner,
    ranking: Ranking | None,
    rates: Mapping[str, Interval],
    costs: Mapping[str, Interval],
) -> Standing:
    load = ranking_load(question)
    limit = runner.ceiling(question, load)
    if limit and limit.bound not in ("slots", "cpu"):
        limit = None  # that of the load is the same for all: the answer tells it once
    pair = ranking.to_best.get(runner.label) if ranking else None
    views = [latency_view(runner, one) for one in question.loads]
    return Standing(
        contestant=runner.label,
        stack=runner.contestant.stack,
        title=runner.stack.title if runner.stack else runner.contestant.stack,
        rank=ranking.ranks.get(runner.label) if ranking else None,
        throughput_rps=rates.get(runner.label),
        cpu_us_per_request=costs.get(runner.label),
        memory_bytes=runner.memory_bytes,
        latency=tuple(view for view in views if view is not None),
        blocks_done=len({one.trial.block for one in runner.under(load)}),
        blocks_valid=len({one.trial.block for one in runner.valid_under(load)}),
        ratio_to_best=pair.ratio if pair else None,
        ceiling_rps=limit.rps if limit else None,
        ceiling=limit.arithmetic if limit else "",
        notes=tuple(_notes(runner)),
        failed=capital(sentence(runner.failed[0].reason)) if runner.failed and not runner.measured else "",
        deploy=_deploy(question, runner),
        again=_again(question, runner),
        called=runner.called,
        python=runner.python,
    )


def _deploy(question: Question, runner: Runner) -> str:
    measured = next((one for one in runner.measured if one.command), None)
    if question.app is not None and runner.stack is not None and measured is not None:
        return deploying_app.deploy(question.app, runner.contestant, runner.stack, measured.packages)
    return deploy(measured.command if measured else (), runner.contestant.stack)


def _again(question: Question, runner: Runner) -> str | None:
    if question.app is None or not runner.measured:
        return ""
    return again.compare(question.app, runner.contestant, question, runner.measured[0].trial.limits)


def _notes(runner: Runner) -> list[str]:
    """Return flags and failures as sentences: each kind once under each load, with its blocks.

    Not that one block alone was too short for a percentile: the blocks are merged, and one for which they
    still are too few is shown as missing.
    """
    seen: dict[tuple[str, str], tuple[str, list[int]]] = {}
    for one in sorted(runner.measured, key=lambda one: one.trial.block):
        for flag in one.flags:
            if flag.kind is FlagKind.TOO_SHORT and flag.severity is Severity.NOTE:
                continue
            aside = "set aside: " if flag.severity is Severity.INVALID else ""
            told = f"{one.trial.load.label}, {aside}{flag.sentence}"
            _, where = seen.setdefault((flag.kind, one.trial.load.label), (told, []))
            where.append(one.trial.block)
    if runner.measured:
        for failure in runner.failed:
            told = f"{failure.trial.load.label}, failed: {failure.reason}"
            _, where = seen.setdefault((failure.failure, failure.trial.load.label), (told, []))
            where.append(failure.trial.block)
    return [f"{sentence(told)} ({blocks(where)})" for told, where in seen.values()]
