from dataclasses import replace

from tests.judge.tuning.servers import tune
from tests.report.made_up_tune import COMMAND, GRID, recommended

from velodrome.model.tuning import (
    Ask,
    Goal,
    Growth,
    Observation,
    TuneEnding,
    Wanted,
)
from velodrome.report import recommendation as tune_text

GROWTH = Growth(4_100.0, 300.0, 740.0, 20_000, 210_000_000, seen_s=30.0, goes_on=True)


def test_the_answer_comes_first_and_what_to_paste_last() -> None:
    page = "\n".join(tune_text.lines(recommended()))
    order = [
        "→ gunicorn · gthread ×2, 16 threads: ",
        "with p99 < 200ms (Poisson arrivals), the highest throughput of what was tried",
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
    places = [page.find(text) for text in order]
    assert -1 not in places, [text for text, at in zip(order, places, strict=True) if at < 0]
    assert places == sorted(places)


def test_the_least_cpu_is_reported_at_its_rate() -> None:
    sentence = tune_text.sentence(recommended(Goal.CPU))
    assert "µs a request" in sentence
    assert "at 300/s with p99 < 200ms (Poisson arrivals), the least CPU of what was tried." in sentence


def test_growing_memory_is_reported_with_what_to_do() -> None:
    leaks = replace(recommended(), growth=GROWTH)
    text = "\n".join(tune_text.lines(leaks))
    assert "Memory rose by 4.1 kB with every request: at 300/s the limit is reached after 12 min" in text
    assert "replace a worker after 20 000 requests (with 210 MB)." in text
    assert "--max-requests=20000 --max-requests-jitter=2000 shop.wsgi:application" in text


def test_a_cache_that_may_only_fill_replaces_no_worker() -> None:
    text = "\n".join(
        tune_text.lines(replace(recommended(), growth=replace(GROWTH, seen_s=4.0, goes_on=False)))
    )
    assert "Memory rose by 4.1 kB with every request" in text
    assert "seen for 4 s. A cache that fills looks the same" in text
    assert "--max-requests" not in text
    assert "replace a worker after" not in text


def test_what_is_not_settled_is_not_pasted_and_reported_so() -> None:
    nothing = replace(recommended(), before="", command="", withheld=True)
    text = "\n".join(tune_text.lines(nothing))
    assert "Nothing to paste, as nothing is settled; --paste gives it all the same." in text
    assert "Dockerfile" not in text
    assert tune_text.document(nothing)["command"] == ""


def test_a_server_that_cannot_replace_a_worker_is_reported_so() -> None:
    command = "python -m cheroot --port=8000 --threads=4 shop.wsgi:application"
    text = "\n".join(tune_text.lines(replace(recommended(), growth=GROWTH, command=command)))
    assert (
        "cheroot has no option to replace a worker: until then restart it before one has served 20 000"
        in text
    )
    assert f"deploy:  {command}\n" in text


def test_where_nothing_holds_the_reason_is_reported_and_nothing_to_paste() -> None:
    slow = tune(
        lambda _, load: Observation(
            load, 10.0, False if load.rate else None, "p99 was 900 ms", False, 300.0, 1_000
        ),
        GRID,
        Wanted(Goal.CAPACITY, 2),
    )
    assert slow.ending is TuneEnding.NEVER
    nobody = replace(recommended(), tuned=slow, title="", runner_up="", proof=None, command="", before="")
    assert "No setting has a rate with p99 < 200ms (Poisson arrivals):" in tune_text.sentence(nobody)
    text = "\n".join(tune_text.lines(nobody))
    assert "p99 was 900 ms" in text
    assert "Dockerfile" not in text


def test_a_load_is_a_line_without_control_codes() -> None:
    line = tune_text.load_line(GRID[0], Observation(Ask(1.0, rate=120.0), failed="\x1b[31m"))
    assert "\x1b" not in line
    assert "failed" in line
