"""A comparison is a study of apps: a question each, and every stack that can serve it."""

from dataclasses import replace

import pytest

from velodrome.guest import catalog
from velodrome.model.app import App, Request
from velodrome.model.errors import NoStackFitsError, SameAppError, UnknownNameError, UsageError
from velodrome.model.load import Closed, Limits, Open
from velodrome.model.results import Header, dump_header, parse
from velodrome.model.study import Baseline, Look, Question
from velodrome.run.environments import guest_tree
from velodrome.run.lab import Lab
from velodrome.run.racing import plan
from velodrome.run.racing.race import session_runner
from velodrome.usecases import workers
from velodrome.usecases.apps import AppSpec
from velodrome.usecases.compare import lay_out, names_of, refuse_twice
from velodrome.usecases.terms import Terms

LAB = Lab(catalog.stacks(), guest_tree.SOURCE, cpus=(0, 1, 2, 3))
WSGI = App("shop:app", "wsgi", "/shop/.venv/bin/python", "/shop", (Request("cart", "/cart"),))
ASGI = replace(WSGI, path="mall:app", interface="asgi")
SITE = replace(
    WSGI, path="mall.settings", form="django", served={"wsgi": "mall.wsgi:application", "asgi": "x:app"}
)


def test_every_stack_of_its_interface_races_and_none_that_brings_its_own_app() -> None:
    comparison = lay_out([WSGI], Terms(), LAB)
    stacks = {contestant.stack for contestant in comparison.study.contestants}
    assert stacks == {stack.name for stack in LAB.stacks.values() if stack.interface == "wsgi"}
    assert "gunicorn-gthread" in stacks
    assert "flask-gunicorn-sync" not in stacks
    assert all(session.trials[0].app == WSGI for session in comparison.matrix.sessions)
    assert len(comparison.matrix.sessions) == 3 * len(stacks)


def test_a_django_site_races_on_both_kinds() -> None:
    stacks = {contestant.stack for contestant in lay_out([SITE], Terms(), LAB).study.contestants}
    assert {"waitress", "uvicorn"} <= stacks


def test_there_is_a_worker_for_each_cpu_of_the_server_where_a_stack_has_workers() -> None:
    terms = Terms(limits=Limits(cpus=2), stacks=("gunicorn-sync", "waitress"))
    contestants = lay_out([WSGI], terms, LAB).study.contestants
    assert [(contestant.stack, dict(contestant.knobs)) for contestant in contestants] == [
        ("gunicorn-sync", {"workers": 2}),
        ("waitress", {}),
    ]


def test_an_answer_for_more_cpus_than_there_are_races_as_many_workers_and_checks_them() -> None:
    study = lay_out([WSGI], Terms(limits=Limits(cpus=8), stacks=("gunicorn-sync",)), LAB).study
    assert dict(study.contestants[0].knobs) == {"workers": 8}
    assert study.worker_counts == (1, 2, 8)
    alone = lay_out([WSGI], Terms(limits=Limits(cpus=1), stacks=("gunicorn-sync",)), LAB).study
    assert alone.worker_counts == (1, 2)


def test_a_rate_is_loaded_beside_the_closed_loop() -> None:
    (question,) = lay_out([WSGI], Terms(connections=8, rate=300), LAB).study.questions
    assert [load.pace for load in question.loads] == [Closed(8), Open(300, "poisson")]
    assert "GET /cart" in question.about


def test_without_a_rate_the_open_loop_has_that_of_the_look() -> None:
    look = Look(1.5, {"waitress": 300.0}, 210.0, "waitress")
    (question,) = lay_out([WSGI], Terms(connections=8), LAB, {"shop:app": look}).study.answered
    assert question.look == look
    closed, shown = (load.pace for load in question.loads)
    assert closed == Closed(8)
    assert isinstance(shown, Open)
    assert shown.rate == 210.0


def test_a_rate_that_is_given_decides_and_the_look_says_none() -> None:
    look = Look(1.5, {"waitress": 300.0}, 210.0, "waitress")
    (question,) = lay_out([WSGI], Terms(rate=5), LAB, {"shop:app": look}).study.answered
    shown = question.loads[1].pace
    assert isinstance(shown, Open)
    assert shown.rate == 5
    assert question.look == replace(look, rate=None, slowest="")


LOOKED = {"shop:app": Look(1.5, {"waitress": 300.0, "cheroot": 200.0}, 140.0, "cheroot")}


def baselines(app: App) -> dict[str, Question]:
    study = lay_out([app], Terms(), LAB, LOOKED).study
    return {question.baseline.layer: question for question in study.questions if question.baseline}


def test_the_app_and_nothing_in_its_place_are_measured_on_who_led_in_the_look_in_every_block() -> None:
    laid = lay_out([WSGI], Terms(), LAB, LOOKED)
    sessions = [
        session.trials for session in laid.matrix.sessions if session.trials[0].question != "shop:app"
    ]
    assert {session[0].contestant.label for session in sessions} == {"waitress"}
    assert sorted((session[0].block, session[0].question) for session in sessions) == [
        (block, f"shop:app~{layer}") for block in range(3) for layer in ("app", "server")
    ]
    assert all([type(trial.load.pace) for trial in session] == [Closed, Open] for session in sessions)
    assert [trial.cell for trial in laid.matrix.profiles] == ["shop:app~app/waitress"]


def test_nothing_runs_in_the_apps_own_environment_and_is_loaded_without_its_requests() -> None:
    served = baselines(WSGI)["server"].app
    assert served is not None
    assert (served.python, served.cwd) == (WSGI.python, WSGI.cwd)
    assert served.target("wsgi") == "velodrome.guest.apps.empty:wsgi"
    assert [request.path for request in served.requests] == ["/"]
    assert baselines(WSGI)["app"].app == WSGI


def test_of_a_framework_that_is_known_an_empty_route_is_served_too() -> None:
    flask = baselines(replace(WSGI, framework="flask"))["framework"]
    assert flask.app is not None
    assert flask.app.target("wsgi") == "velodrome.guest.apps.empty:flask"
    assert flask.name == "shop:app~flask"
    assert "framework" not in baselines(replace(WSGI, framework="quart"))


def test_the_low_rate_is_a_tenth_of_what_the_leader_answered_and_one_that_would_take_too_long_is_left_out() -> (
    None
):
    low = baselines(WSGI)["server"].loads[1].pace
    assert isinstance(low, Open)
    assert (low.rate, low.arrivals) == (30.0, "constant")
    slow = {"shop:app": Look(1.5, {"waitress": 2.0}, 1.4, "waitress")}
    loads = [
        question.loads
        for question in lay_out([WSGI], Terms(), LAB, slow).study.questions
        if question.baseline
    ]
    assert [len(load) for load in loads] == [1, 1]


def test_nothing_stands_in_for_an_app_before_its_look() -> None:
    assert lay_out([WSGI], Terms(), LAB).study.answered == lay_out([WSGI], Terms(), LAB).study.questions


def test_several_apps_are_raced_each_on_its_own_stacks() -> None:
    comparison = lay_out([WSGI, ASGI], Terms(), LAB)
    first, second = comparison.study.questions
    assert not set(first.contestants) & set(second.contestants)
    assert {contestant.stack for contestant in comparison.contestants(ASGI)} >= {"uvicorn", "hypercorn"}


def test_a_stack_that_cannot_serve_it_is_refused_by_name() -> None:
    with pytest.raises(NoStackFitsError, match=r"shop:app .*wsgi, which uvicorn"):
        lay_out([WSGI], Terms(stacks=("uvicorn",)), LAB)
    with pytest.raises(UnknownNameError, match="no stack is called 'gunicor'"):
        lay_out([WSGI], Terms(stacks=("gunicor",)), LAB)
    with pytest.raises(NoStackFitsError, match="no stack serves an app through cgi"):
        lay_out([replace(WSGI, interface="cgi")], Terms(), LAB)


def test_it_is_stored_and_read_as_any_study() -> None:
    look = Look(1.5, {"waitress": 300.0}, 210.0, "waitress")
    study = lay_out([SITE], Terms(), LAB, {"mall.settings": look}).study
    header = Header(study, study.seed, {}, "0", "")
    assert parse(dump_header(header).encode() + b"\n").header.study == study


def test_latency_is_judged_with_the_arrivals_of_independent_users_unless_they_are_named() -> None:
    def pace(terms: Terms) -> Open:
        found = terms.loads[1].pace
        assert isinstance(found, Open)
        return found

    assert pace(Terms(rate=300)).arrivals == "poisson"
    assert pace(Terms(rate=300, arrivals="constant")).arrivals == "constant"
    with pytest.raises(UsageError, match="there are constant and poisson"):
        Terms(rate=300, arrivals="uniform")  # type: ignore[arg-type]


def test_all_contestants_of_a_block_meet_the_same_arrivals_and_other_blocks_meet_others() -> None:
    found = lay_out([WSGI], Terms(rate=300, blocks=2), LAB)
    seeds = [
        {
            plan.seed_of(trial)
            for session in found.matrix.sessions
            for trial in session.trials
            if trial.block == block and isinstance(trial.load.pace, Open)
        }
        for block in (0, 1)
    ]
    assert [len(seed) for seed in seeds] == [1, 1]
    assert seeds[0] != seeds[1]


def test_only_questions_of_their_own_have_leaders_to_check() -> None:
    """A baseline of an app has no answer, so nobody is recommended by it."""
    study = lay_out([WSGI], Terms(stacks=("gunicorn-sync",)), LAB).study
    baseline = replace(study.questions[0], name="shop:app~app", baseline=Baseline("shop:app", "app"))
    both = replace(study, questions=(baseline, *study.questions))
    assert len(both.answered) == 1
    assert workers.seconds(both, LAB.stacks) == workers.seconds(study, LAB.stacks) > 5
    messages: list[str] = []
    results = parse(dump_header(Header(both, 1, {}, "0", "")).encode() + b"\n")
    workers.check_leaders(both, (), results, LAB.stacks, tell=messages.append, serve=session_runner(LAB))
    assert not messages


def at(*sources: str) -> tuple[str, ...]:
    return names_of([replace(WSGI, source=source) for source in sources])


def test_apps_of_one_name_are_told_apart_by_the_nearest_folder_that_differs() -> None:
    assert at("d1", "d2") == ("d1-shop:app", "d2-shop:app")
    assert at("v1/src", "v2/src") == ("v1-shop:app", "v2-shop:app")
    assert at("a/v1/src", "a/v2/src", "b/v1/src") == ("a-v1-shop:app", "v2-shop:app", "b-v1-shop:app")
    assert at("", "src") == ("shop-shop:app", "src-shop:app")
    assert at("/", "/srv") == ("shop:app", "srv-shop:app")
    assert names_of([WSGI, replace(WSGI, cwd="/mall")]) == ("shop-shop:app", "mall-shop:app")


def test_the_name_of_an_app_is_as_ever_where_no_other_has_it() -> None:
    assert names_of([WSGI, ASGI]) == ("shop:app", "mall:app")
    assert names_of([WSGI, replace(WSGI, revision="HEAD")]) == ("shop:app", "shop:app@HEAD")
    assert names_of([replace(WSGI, source="src"), ASGI]) == ("shop:app", "mall:app")


def test_no_two_questions_have_one_name_whatever_apps_differ_in() -> None:
    apps = [
        replace(WSGI, path="shop:make('a/b')"),
        replace(WSGI, path="shop:make('a-b')"),
        replace(WSGI, source="d-1/e"),
        replace(WSGI, source="d/1-e"),
        replace(WSGI, requests=(Request("/"),)),
    ]
    questions = [question.name for question in lay_out(apps, Terms(), LAB).study.questions]
    assert len(set(questions)) == len(apps)
    assert all("/" not in name for name in questions)


def test_each_of_two_apps_of_one_name_has_its_own_look_and_its_own_trials() -> None:
    apps = [replace(WSGI, source="d1"), replace(WSGI, source="d2")]
    looks = {"d1-shop:app": Look(1, {"waitress": 100.0}, 70), "d2-shop:app": Look(1, {"waitress": 10.0}, 7)}
    comparison = lay_out(apps, Terms(stacks=("waitress",)), LAB, looks)
    assert comparison.study.name == "compare-d1-shop-d2-shop"
    assert [question.look for question in comparison.study.answered] == list(looks.values())
    served = {session.trials[0].question: session.trials[0].app for session in comparison.matrix.sessions}
    assert [served[name] for name in looks] == apps


def test_an_app_that_is_given_twice_is_refused_however_it_is_named() -> None:
    for again, app in (("shop:app", WSGI), ("../shop/shop.py:app", replace(WSGI, source="../shop"))):
        with pytest.raises(SameAppError) as refused:
            refuse_twice([AppSpec("shop:app"), AppSpec(again)], [WSGI, app])
        assert refused.value.exit_code == 2
    differing = [WSGI, ASGI, replace(WSGI, source="src"), replace(WSGI, requests=(Request("/"),))]
    refuse_twice([AppSpec(app.path) for app in differing], differing)
