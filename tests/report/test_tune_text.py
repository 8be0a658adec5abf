from dataclasses import replace

from tests.judge import made

from velodrome.guest import catalog
from velodrome.judge.tuning.racing import tune
from velodrome.model.load import Limits
from velodrome.model.tuning import (
    Ask,
    Candidate,
    Goal,
    Growth,
    Reason,
    Recommendation,
    Told,
    TuneEnding,
    Wanted,
)
from velodrome.plan.matrix import candidate
from velodrome.report import recommendation as tune_text

STACKS = catalog.stacks()
GRID = [
    candidate(STACKS["gunicorn-gthread"], {"threads": threads, "workers": workers})
    for threads in (4, 16)
    for workers in (1, 2)
] + [candidate(STACKS["uvicorn"], {"workers": 2})]
COMMAND = "python -m gunicorn --bind=127.0.0.1:8000 --workers=2 --threads=16 shop.wsgi:application"


def measure(one: Candidate, ask: Ask) -> Told:
    """20 ms of waiting, 1 ms of CPU: 16 × 2 slots are enough for two CPUs."""
    most = min((one.slots or 10_000) / 0.021, one.processes / 0.001) * (0.95 if one.slots else 0.7)
    rate = ask.rate or ask.connections / 0.021
    got = min(rate, most)
    held = ask.rate < most if ask.rate else None
    why = "" if held is not False else "p99 was 1 210 ms, and the limit is 200 ms"
    return Told(ask, got, held, why, held is False, 21.0, 1_000, 40_000_000 * one.processes)


def recommended(goal: Goal = Goal.CAPACITY) -> Recommendation:
    rate = 0.0 if goal is Goal.CAPACITY else 300.0
    return Recommendation(
        of="shop.wsgi:application: answers GET /cart",
        conditions=("p99 < 200ms",),
        rate=rate,
        limits=Limits(2, 10**9),
        tuned=tune(measure, GRID, Wanted(goal, 2, rate)),
        title="gunicorn · gthread ×2, 16 threads",
        runner_up="uvicorn · uvloop ×2",
        proof=made.measured(made.trial("one"), 300.0, mean_ms=21.0),
        growth=None,
        mind=(Reason("rate", 1_500, "", "above 1 500/s none of these carries it"),),
        before="python -m pip install gunicorn==27.0.1",
        command=COMMAND,
        python="",
        cwd="",
        grid_trials=75,
        seconds=130.0,
    )


def test_the_answer_comes_first_and_what_to_paste_last() -> None:
    told = "\n".join(tune_text.lines(recommended()))
    order = [
        "→ gunicorn · gthread ×2, 16 threads: ",
        "with p99 < 200ms, the most answers a second of what was tried",
        "Runner-up: uvicorn · uvloop ×2",
        "At 300/s for",
        f"deploy:  {COMMAND}",
        "What would change this:",
        "above 1 500/s none of these carries it.",
        "of 5 candidates in 2 min; the whole grid takes about 75 loads",
        "python -m pip install gunicorn==27.0.1",
        "gunicorn.conf.py",
        "workers = 2",
        "app.service",
        "MemoryMax=1000000000",
        "Dockerfile",
        "CMD [",
    ]
    places = [told.find(text) for text in order]
    assert -1 not in places, [text for text, at in zip(order, places, strict=True) if at < 0]
    assert places == sorted(places)


def test_the_least_cpu_is_told_at_its_rate() -> None:
    said = tune_text.sentence(recommended(Goal.CPU))
    assert "µs a request" in said
    assert "at 300/s with p99 < 200ms, the least CPU of what was tried." in said


def test_growing_memory_is_told_with_what_to_do() -> None:
    leaks = replace(recommended(), growth=Growth(4_100.0, 300.0, 740.0, 20_000, 210_000_000))
    told = "\n".join(tune_text.lines(leaks))
    assert "Memory rose by 4.1 kB with every request: at 300/s the limit is reached after 12 min" in told
    assert "replace a worker after 20 000 requests (with 210 MB)." in told
    assert "--max-requests=20000 --max-requests-jitter=2000 shop.wsgi:application" in told


def test_a_server_that_cannot_replace_a_worker_is_told_to_be_so() -> None:
    command = "python -m waitress --port=8000 --threads=4 shop.wsgi:application"
    growth = Growth(4_100.0, 300.0, 740.0, 20_000, 210_000_000)
    told = "\n".join(tune_text.lines(replace(recommended(), growth=growth, command=command)))
    assert (
        "waitress has no option to replace a worker: until then restart it before one has served 20 000"
        in told
    )
    assert f"deploy:  {command}\n" in told


def test_where_nothing_holds_the_reason_is_told_and_nothing_to_paste() -> None:
    slow = tune(
        lambda _, ask: Told(ask, 10.0, False if ask.rate else None, "p99 was 900 ms", False, 300.0, 1_000),
        GRID,
        Wanted(Goal.CAPACITY, 2),
    )
    assert slow.ending is TuneEnding.NEVER
    nobody = replace(recommended(), tuned=slow, title="", runner_up="", proof=None, command="", before="")
    assert "No setting has a rate with p99 < 200ms:" in tune_text.sentence(nobody)
    told = "\n".join(tune_text.lines(nobody))
    assert "p99 was 900 ms" in told
    assert "Dockerfile" not in told


def test_a_load_is_a_line_without_control_codes() -> None:
    line = tune_text.load_line(GRID[0], Told(Ask(1.0, rate=120.0), failed="\x1b[31m"))
    assert "\x1b" not in line
    assert "failed" in line
