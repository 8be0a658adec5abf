from dataclasses import replace

from tests.report.made_up_tune import COMMAND, GRID, recommended

from velodrome.judge.tuning.racing import tune
from velodrome.model.tuning import (
    Ask,
    Goal,
    Growth,
    Told,
    TuneEnding,
    Wanted,
)
from velodrome.report import recommendation as tune_text


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
