"""A comparison is a study of apps: a question each, and every stack that can serve it."""

from dataclasses import replace

import pytest

from velodrome.guest import catalog
from velodrome.model.app import App, Request
from velodrome.model.errors import NoStackFitsError, UnknownNameError
from velodrome.model.load import Closed, Limits, Open
from velodrome.model.results import Header, dump_header, parse
from velodrome.run.environments import guest_tree
from velodrome.run.lab import Lab
from velodrome.usecases.compare import Terms, laid_out

LAB = Lab(catalog.stacks(), guest_tree.SOURCE, cpus=(0, 1, 2, 3))
WSGI = App("shop:app", "wsgi", "/shop/.venv/bin/python", "/shop", (Request("cart", "/cart"),))
ASGI = replace(WSGI, path="mall:app", interface="asgi")
SITE = replace(
    WSGI, path="mall.settings", form="django", served={"wsgi": "mall.wsgi:application", "asgi": "x:app"}
)


def test_every_stack_of_its_interface_races_and_none_that_brings_its_own_app() -> None:
    comparison = laid_out([WSGI], Terms(), LAB)
    stacks = {one.stack for one in comparison.study.contestants}
    assert stacks == {one.name for one in LAB.stacks.values() if one.interface == "wsgi"}
    assert "gunicorn-gthread" in stacks
    assert "flask-gunicorn-sync" not in stacks
    assert all(heat.trials[0].app == WSGI for heat in comparison.matrix.heats)
    assert len(comparison.matrix.heats) == 3 * len(stacks)


def test_a_django_site_races_on_both_kinds() -> None:
    stacks = {one.stack for one in laid_out([SITE], Terms(), LAB).study.contestants}
    assert {"waitress", "uvicorn"} <= stacks


def test_there_is_a_worker_for_each_cpu_of_the_server_where_a_stack_has_workers() -> None:
    terms = Terms(limits=Limits(cpus=2), stacks=("gunicorn-sync", "waitress"))
    contestants = laid_out([WSGI], terms, LAB).study.contestants
    assert [(one.stack, dict(one.knobs)) for one in contestants] == [
        ("gunicorn-sync", {"workers": 2}),
        ("waitress", {}),
    ]


def test_a_rate_is_asked_beside_the_closed_loop() -> None:
    (question,) = laid_out([WSGI], Terms(connections=8, rate=300), LAB).study.questions
    assert [load.pace for load in question.loads] == [Closed(8), Open(300)]
    assert "GET /cart" in question.about


def test_several_apps_are_asked_each_of_its_own_stacks() -> None:
    comparison = laid_out([WSGI, ASGI], Terms(), LAB)
    first, second = comparison.study.questions
    assert not set(first.contestants) & set(second.contestants)
    assert {one.stack for one in comparison.contestants(ASGI)} >= {"uvicorn", "hypercorn"}


def test_a_stack_that_cannot_serve_it_is_refused_by_name() -> None:
    with pytest.raises(NoStackFitsError, match=r"shop:app .*wsgi, which uvicorn"):
        laid_out([WSGI], Terms(stacks=("uvicorn",)), LAB)
    with pytest.raises(UnknownNameError, match="no stack is called 'gunicor'"):
        laid_out([WSGI], Terms(stacks=("gunicor",)), LAB)
    with pytest.raises(NoStackFitsError, match="no stack serves an app through cgi"):
        laid_out([replace(WSGI, interface="cgi")], Terms(), LAB)


def test_it_is_stored_and_read_as_any_study() -> None:
    study = laid_out([SITE], Terms(rate=5), LAB).study
    header = Header(study, study.seed, {}, "0", "")
    assert parse(dump_header(header).encode() + b"\n").header.study == study
