import pytest

from velodrome.guest import catalog
from velodrome.plan.matrix import candidate, grid, neighbours

STACKS = catalog.stacks()


def labels(*names: str, cpus: int = 2) -> list[str]:
    return [candidate.label for candidate in grid([STACKS[name] for name in names], cpus)]


def test_workers_that_serve_one_at_a_time_go_up_to_many() -> None:
    assert labels("gunicorn-sync") == [
        "gunicorn-sync",
        *(f"gunicorn-sync[workers={count}]" for count in (2, 5, 8, 16, 32)),
    ]


def test_workers_that_serve_many_are_about_as_many_as_cpus() -> None:
    assert labels("gunicorn-gevent", cpus=4) == [
        "gunicorn-gevent",
        "gunicorn-gevent[workers=4]",
        "gunicorn-gevent[workers=8]",
    ]


def test_threads_and_workers_are_combined_and_slots_are_their_product() -> None:
    found = grid([STACKS["gunicorn-gthread"]], 2)
    assert len(found) == 12
    assert {(candidate.processes, candidate.slots) for candidate in found} >= {(1, 4), (2, 32), (4, 1024)}


def test_loops_are_tried() -> None:
    assert "uvicorn[loop=asyncio,workers=2]" in labels("uvicorn")


def test_a_candidate_has_only_the_knobs_that_differ_from_the_defaults() -> None:
    found = candidate(STACKS["gunicorn-gthread"], {"workers": 1, "threads": 16})
    assert dict(found.contestant.knobs) == {"threads": 16}
    with pytest.raises(KeyError):
        candidate(STACKS["uvicorn"], {"threads": 4})


def test_a_backlog_is_tried_around_the_best_alone() -> None:
    best = candidate(STACKS["gunicorn-gthread"], {"workers": 2})
    assert "gunicorn-gthread[backlog=128,workers=2]" in [
        neighbour.label for neighbour in neighbours(best, STACKS["gunicorn-gthread"])
    ]
    assert not any("backlog" in label for label in labels("gunicorn-gthread"))
