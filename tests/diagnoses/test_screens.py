"""What the screens of the catalogue make of symptoms: suspects with an experiment, and what rules a fault out."""

import inspect
import re
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from tests.ward.made import (
    AWAITS,
    CART,
    COMPUTING,
    FETCH,
    HANDLER,
    IN_THREADS,
    LOOP,
    QUIET,
    SEEN,
    SETTING,
    WAITING,
    failing,
    held,
    meeting,
    rising,
    slower,
    with_threads,
)

import velodrome.diagnoses
from velodrome.diagnoses.blocking_call import in_a_thread
from velodrome.diagnoses.built_per_request import BUILT
from velodrome.diagnoses.connector_limit import CLIENTS
from velodrome.diagnoses.fault import Absent, Experiment, Suspect, Unknown, catalogue, filling, no_plateau
from velodrome.diagnoses.pool_exhausted import POOLS
from velodrome.guest.injected.building import KINDS, MARK
from velodrome.guest.injected.heartbeat import LIBRARIES, NATIVE
from velodrome.guest.injected.marks import BACKGROUND, MARKS, WAITS
from velodrome.guest.injected.statements import OPENING
from velodrome.guest.injected.treating import TREATMENTS
from velodrome.model.diagnosis import AS_IT_IS, Cure, Met, Probe
from velodrome.model.quantity import Interval
from velodrome.model.symptoms import (
    Called,
    Collected,
    Frame,
    HeldUp,
    Hop,
    InUse,
    Point,
    Reused,
    Slope,
    Statement,
    Stepped,
    Symptoms,
    Waits,
    Worn,
)
from velodrome.run.instruments.situations import SITUATIONS

HASHING = replace(
    COMPUTING,
    stack=(
        replace(FETCH, text="    return hashlib.pbkdf2_hmac('sha256', word, salt, 600_000)"),
        HANDLER,
        LOOP,
    ),
)
EMIT = Frame("/usr/lib/python3.12/logging/__init__.py", 1110, "emit")
LOGGING = replace(WAITING, stack=(EMIT, *WAITING.stack))
EACH_ROW = Statement("SELECT a FROM t WHERE id = ?", "/srv/shop/cart.py:7", "cart", "read(item)", 20.0, 1.5)
PAUSED = Statement("PAUSE", "/srv/shop/locks.py:12", "take", "with redis.lock(name):", 0.3, 9.0)


def sending(*statements: Statement) -> Symptoms:
    """Return what is seen of an app that sends these statements while one request is in flight, for 3 seconds."""
    watched = replace(QUIET, statements=statements, followed_s=3.0, shares={"database": 0.1})
    return replace(SEEN, watched_alone=watched)


TENANT = Hop("/srv/shop/users.py:12", "tenant", "def tenant(request):", 2.0, 0.02, 0.015)


def hopping(*hops: Hop, cpus: float = 0.9) -> Symptoms:
    """Return what is seen of an app of which a request that is alone has these functions called in threads."""
    return replace(SEEN, slope=rising(40, cpus=cpus), watched_alone=replace(QUIET, hops=hops))


SUSPICIOUS = {
    "blocking-call": held(WAITING),
    "thread-tokens": with_threads("AnyIO worker thread", 40, "anyio"),
    "default-executor": with_threads("asyncio_", 6, k=6),
    "nodelay": replace(SEEN, reused=Reused(0.6, 43.0)),
    "gil-convoy": replace(SEEN, watched=replace(QUIET, held_up=(WAITING,), late_s=0.6, others_s=0.55)),
    "thread-hops": hopping(TENANT),
    "gc-pause": replace(SEEN, watched=replace(QUIET, collections_s=0.3, longest_collection_s=0.12)),
    "log-cost": replace(SEEN, watched=replace(QUIET, shares={"logging": 0.5})),
    "n-plus-one": sending(EACH_ROW),
    "httpx-kept": replace(SEEN, watched=replace(QUIET, shares={"httpcore-search": 0.5})),
    "built-per-request": replace(
        SEEN,
        watched=replace(QUIET, shares={MARK % kind: 0.5 / number for number, kind in enumerate(KINDS, 1)}),
    ),
    "failing-import": replace(SEEN, watched=replace(QUIET, shares={"importing": 0.5})),
    "pool-exhausted": with_threads("-", 0, "sqlalchemy", k=15),
    "connector-limit": with_threads("-", 0, "aiohttp", k=100),
    "keepalive-race": replace(SEEN, setting=replace(SETTING, keeps_idle_s=5.0)),
    "limit-concurrency": meeting("limit-concurrency", 16),
    "slow-client": meeting("slow-client", 12),
    "sync-keepalive": meeting("sync-keepalive", 16),
    "hot-workers": replace(meeting("hot-workers", 48, 48), server_cpus=2),
    "backlog-overflow": meeting("backlog-overflow", 60, 256),
    "context-bleed": meeting("context-bleed", 3, 200),
    "background-holds": meeting("background-holds", 16),
    "unread-body": meeting("unread-body", 16),
    "no-cancel": meeting("no-cancel", 12),
    "cold-worker": meeting("cold-worker", 2, 2),
    "lost-at-stop": meeting("lost-at-stop", 16),
    "lost-at-reload": meeting("lost-at-reload", 12, 80),
    "lost-at-replacement": meeting("lost-at-replacement", 12, 80),
    "recycle-together": meeting("recycle-together", 8, 8),
    "reconnect-storm": meeting(
        "reconnect-storm", 180, 256, setting=replace(SETTING, keeps_idle_s=2.0), overflows=192
    ),
    "nofile": meeting("nofile", 64, 64, limit=256),
    "throttled": replace(meeting("throttled", 9, 10, cpus=1.02), server_cpus=2),
    "pauses": replace(
        SEEN,
        watched=replace(QUIET, pauses=(PAUSED,), followed_s=3.0, rps=100.0),
        watched_alone=replace(QUIET, followed_s=1.0, rps=30.0),
    ),
    "slows-with-age": replace(SEEN, slope=replace(rising(8), lasts=0.5)),
    "background-work": replace(
        meeting("background-work", 33, 100),
        watched=replace(
            QUIET,
            at_once={BACKGROUND: 0.3},
            callers={BACKGROUND: (Called("/srv/shop/rates.py:40", "refresh", "rank(rows)", 0.9),)},
        ),
    ),
    "own-ends": replace(
        SEEN,
        watched=replace(
            QUIET,
            ends=1,
            ended=(Called("/srv/shop/guard.py:9", "check", "os.kill(os.getpid(), signal.SIGTERM)", 1.0),),
        ),
    ),
    "arenas": meeting("arenas", 60, 120, bytes=6e7, arenas=8),
    "shared-epoll": meeting("shared-epoll", 2, 3),
    "fork-after-init": replace(SEEN, watched=replace(QUIET, left_behind=frozenset({"sender"}))),
    "stampede": meeting("stampede", 45, 45),
    "locked-database": failing(0.4),
    "pool-raises": failing(0.4),
    "connections-leak": replace(
        SEEN, in_use=InUse(descriptors=tuple((1000 * n, 30 + 100.0 * n) for n in range(8)))
    ),
    "growth": replace(SEEN, in_use=InUse(memory=tuple((1000 * n, 5e7 + 1e6 * n) for n in range(8)))),
    "hash-on-loop": held(HASHING),
    "log-blocks": held(LOGGING),
    "driver-not-green": replace(
        SEEN, watched=replace(QUIET, loop="gevent.hub", held_up=(WAITING,), late_s=0.6)
    ),
    "sync-under-asgi": replace(
        SEEN,
        slope=rising(1),
        watched=replace(QUIET, libraries=frozenset({"asgiref"}), shares={"sync-to-async": 0.9}),
    ),
    "native-threads": replace(
        SEEN,
        slope=rising(1, cpus=1.0),
        watched=replace(QUIET, libraries=frozenset({"numpy"}), threads={NATIVE: 15}),
    ),
    "dependency-deadlock": meeting("dependency-deadlock", 118, 128),
    "session-held": replace(with_threads("-", 0, "sqlalchemy", k=15), stepped=slower(110.0, 50.0)),
    "serial-awaits": replace(SEEN, watched_alone=replace(QUIET, waits=AWAITS)),
    "serial-gather": replace(SEEN, watched_alone=replace(QUIET, waiting={"async-session": 4})),
    "one-grpc-connection": with_threads("-", 0, "grpc", k=100),
    "ports-exhausted": replace(
        SEEN,
        slope=replace(rising(40), points=tuple(replace(point, rps=1000.0) for point in rising(40).points)),
        watched=replace(QUIET, rps=900.0, connects={"10.0.0.7:443": 2650, "10.0.0.8:5432": 20}),
    ),
    **{
        name: replace(SEEN, watched=replace(QUIET, shares={mark: 0.3}))
        for name, mark in {
            "gzip-on-loop": "compression",
            "client-per-request": "tls-context",
            "validation-cost": "validation",
            "middleware-cost": "base-middleware",
            "telemetry-cost": "telemetry",
            "connection-per-query": "connecting",
            "dns-per-call": "resolving",
            "urllib3-pool": "dialling",
        }.items()
    },
}
COUNTED = sorted(name for name, fault in catalogue().items() if fault.look is not None)
BLIND = replace(
    SEEN,
    slope=None,
    watched=None,
    watched_alone=None,
    stepped=None,
    reused=None,
    server_cpus=2,
    met={},
    setting=replace(SETTING, keeps_idle_s=None),
    in_use=InUse(),
)


def _settings(probe: Probe) -> set[str]:
    return set(inspect.signature(SITUATIONS[probe.name]).parameters)


def test_every_fault_of_the_folder_is_found_by_the_name_of_its_file() -> None:
    folder = Path(velodrome.diagnoses.__path__[0])
    files = {path.stem.replace("_", "-") for path in folder.glob("*.py")} - {"--init--", "fault"}
    assert set(catalogue()) == files == set(SUSPICIOUS)


@pytest.mark.parametrize("name", sorted(SUSPICIOUS))
def test_a_fault_is_suspected_by_its_own_symptoms(name: str) -> None:
    found = catalogue()[name].screen(SUSPICIOUS[name])
    assert isinstance(found, Suspect)
    assert found.experiments
    assert 0 < found.likelihood <= 1
    for experiment in found.experiments:
        assert set(experiment.treatment.give) <= set(TREATMENTS)
        assert experiment.takes in TREATMENTS or not experiment.treatment.give
        assert experiment.treatment or experiment.proof == "dose"
        assert experiment.probe is None or (
            experiment.probe.name in SITUATIONS
            and experiment.probe.unprovoked.keys() <= _settings(experiment.probe)
        )


@pytest.mark.parametrize("name", sorted(SUSPICIOUS))
def test_nothing_is_suspected_where_nothing_shows(name: str) -> None:
    assert isinstance(catalogue()[name].screen(SEEN), Absent)


@pytest.mark.parametrize("name", sorted(SUSPICIOUS))
def test_nothing_is_ruled_out_where_nothing_could_be_seen(name: str) -> None:
    assert isinstance(catalogue()[name].screen(BLIND), Unknown)


@pytest.mark.parametrize("name", sorted(SUSPICIOUS))
def test_every_fault_says_where_it_was_met_and_what_proves_it(name: str) -> None:
    fault = catalogue()[name]
    assert fault.sources
    assert all(re.search(r"#\d+$|^field practice$|^measured here$", source) for source in fault.sources)
    assert fault.hypothesis
    assert fault.proof


def test_an_app_that_computes_on_the_loop_does_not_block_it() -> None:
    assert isinstance(catalogue()["blocking-call"].screen(held(COMPUTING)), Absent)


def test_where_the_system_does_not_say_what_a_thread_did_nothing_is_ruled_out() -> None:
    unknown = replace(COMPUTING, ran_s=0.0, blocked_s=0.0)
    assert isinstance(catalogue()["blocking-call"].screen(held(unknown)), Unknown)


def test_whether_other_threads_compute_decides_which_of_two_is_likelier() -> None:
    idle, busy = held(WAITING), SUSPICIOUS["gil-convoy"]
    assert isinstance(catalogue()["gil-convoy"].screen(idle), Absent)
    calls = [catalogue()["blocking-call"].screen(symptoms) for symptoms in (idle, busy)]
    convoy = catalogue()["gil-convoy"].screen(busy)
    assert isinstance(convoy, Suspect)
    first, second = (call.likelihood for call in calls if isinstance(call, Suspect))
    assert first > convoy.likelihood - 0.2 > second


def test_cpu_time_that_no_request_needs_makes_a_convoy_likely() -> None:
    """One request in flight: the CPU is as busy as under full load."""
    points = tuple(replace(point, cpus=1.0) for point in rising(40).points)
    busy = replace(SEEN, slope=replace(rising(40), points=points))
    assert isinstance(catalogue()["gil-convoy"].screen(busy), Suspect)
    assert isinstance(catalogue()["gil-convoy"].screen(replace(SEEN, slope=rising(1, cpus=1.0))), Absent)


def test_a_blocking_call_is_named_by_the_apps_own_innermost_line() -> None:
    library = Frame("/srv/venv/lib/python3.12/site-packages/requests/api.py", 60, "get")
    found = catalogue()["blocking-call"].screen(held(replace(WAITING, stack=(library, FETCH, HANDLER, LOOP))))
    assert isinstance(found, Suspect)
    assert FETCH.place in found.why


def test_what_can_be_awaited_is_moved_to_a_thread_before_anything_is_made_longer() -> None:
    found = catalogue()["blocking-call"].screen(held(WAITING))
    assert isinstance(found, Suspect)
    moved, longer = found.experiments
    assert moved.proof == "cure"
    assert moved.treatment.give["in-thread"] == [HANDLER.site()]
    assert longer.proof == "dose"
    assert longer.treatment.give["longer"][0]["more_s"] == pytest.approx(0.6 / 30)


def test_the_dose_is_as_long_as_a_call_that_is_alone() -> None:
    """Under load several follow each other before the loop gives a sign of life again."""
    alone = replace(QUIET, held_up=(replace(WAITING, seconds=0.1, times=10),))
    found = catalogue()["blocking-call"].screen(replace(held(WAITING), watched_alone=alone))
    assert isinstance(found, Suspect)
    assert found.experiments[1].treatment.give["longer"][0]["more_s"] == pytest.approx(0.01)


def test_without_columns_the_call_can_only_be_made_longer() -> None:
    old = replace(HANDLER, column=None, end_column=None)
    found = catalogue()["blocking-call"].screen(held(replace(WAITING, stack=(FETCH, old, LOOP))))
    assert isinstance(found, Suspect)
    assert [experiment.proof for experiment in found.experiments] == ["dose"]


def test_code_that_is_not_the_apps_is_not_accused() -> None:
    alien = HeldUp((LOOP,), 0.6, 0.01, 0.58, 30)
    assert isinstance(catalogue()["blocking-call"].screen(held(alien)), Unknown)


@pytest.mark.parametrize("name", ["thread-tokens", "default-executor", "pool-exhausted", "connector-limit"])
@pytest.mark.parametrize("slope", [rising(40, cpus=1.0), rising(600, most=512)], ids=["CPU-bound", "rising"])
def test_no_bound_is_suspected_where_the_cpu_is_used_up_or_throughput_rises(name: str, slope: object) -> None:
    seen: Symptoms = replace(SUSPICIOUS[name], slope=slope)  # type: ignore[arg-type]
    assert isinstance(catalogue()[name].screen(seen), Absent)


@pytest.mark.parametrize(
    ("text", "call", "cured"),
    [
        (
            "    value = fetch(order, 2)",
            "fetch(order, 2)",
            "value = await asyncio.to_thread(fetch, order, 2)",
        ),
        (
            "    return get(url, timeout=3).json()",
            "get(url, timeout=3)",
            "return (await asyncio.to_thread(get, url, timeout=3)).json()",
        ),
        ("    x = fetch(", "fetch(", ""),
        ("    x = 1 + 1", "1 + 1", ""),
    ],
)
def test_the_cured_line_awaits_the_call_in_a_thread(text: str, call: str, cured: str) -> None:
    begin = text.index(call)
    frame = Frame("views.py", 3, "view", True, True, 3, begin, begin + len(call), text)
    assert in_a_thread(frame) == cured


@pytest.mark.parametrize("name", COUNTED)
def test_what_is_tried_on_the_server_of_the_screens_is_a_situation_that_there_is(name: str) -> None:
    look = catalogue()[name].look
    probe = look(SUSPICIOUS[name].setting) if look else None
    assert probe is not None
    assert set(probe.settings) <= _settings(probe)


@pytest.mark.parametrize("name", COUNTED)
def test_what_cannot_be_sent_by_hand_cannot_be_known(name: str) -> None:
    symptoms = SUSPICIOUS[name]
    seen = replace(symptoms, setting=replace(symptoms.setting, plain=False), met={})
    assert isinstance(catalogue()[name].screen(seen), Unknown)


@pytest.mark.parametrize(
    "name", ["limit-concurrency", "sync-keepalive", "background-holds", "reconnect-storm"]
)
def test_a_server_that_keeps_no_connection_has_no_fault_of_idle_ones(name: str) -> None:
    ends = replace(SUSPICIOUS[name], setting=replace(SETTING, keeps_alive=False))
    assert isinstance(catalogue()[name].screen(ends), Absent)


def test_connections_that_are_kept_longer_than_by_any_proxy_are_no_race() -> None:
    race = catalogue()["keepalive-race"]
    assert isinstance(race.screen(SEEN), Absent)
    short = race.screen(SUSPICIOUS["keepalive-race"])
    assert isinstance(short, Suspect)
    (cured,) = short.experiments
    assert (cured.proof, cured.treatment.knobs) == ("cure", {"keepalive": 75})
    unset = replace(SETTING, keeps_idle_s=5.0, knobs={})
    fixed = race.screen(replace(SEEN, setting=unset))
    assert isinstance(fixed, Suspect)
    assert [experiment.proof for experiment in fixed.experiments] == ["dose"]


def test_a_sync_worker_is_cured_by_threads_of_the_same_server() -> None:
    sync = replace(SETTING, stack="gunicorn-sync", workers=1, keeps_alive=False)
    found = catalogue()["slow-client"].screen(meeting("slow-client", 16, setting=sync))
    assert isinstance(found, Suspect)
    assert [(experiment.proof, experiment.treatment.stack) for experiment in found.experiments] == [
        ("cure", "gunicorn-gthread"),
        ("dose", ""),
    ]


def test_answers_that_hold_nothing_of_their_requests_tell_nothing_of_a_bleed() -> None:
    silent = replace(SEEN, met={**SEEN.met, "context-bleed": Met(0, 0)})
    assert isinstance(catalogue()["context-bleed"].screen(silent), Unknown)


def test_one_worker_is_never_hot_nor_are_several_on_one_cpu() -> None:
    assert isinstance(catalogue()["hot-workers"].screen(meeting("hot-workers", 48, 48)), Absent)
    alone = meeting("hot-workers", 48, 48, setting=replace(SETTING, workers=1))
    assert isinstance(catalogue()["hot-workers"].screen(alone), Absent)


def test_collections_that_only_a_heartbeat_makes_are_no_pauses_of_the_app() -> None:
    seen = SUSPICIOUS["gc-pause"]
    fault = catalogue()["gc-pause"]
    assert fault.collects is not None
    assert seen.watched is not None
    assert fault.collects(cast(Collected, seen.watched.collected))
    assert isinstance(fault.screen(replace(seen, collected=Collected(3.0, 0.06, 0.02))), Absent)
    assert isinstance(fault.screen(replace(seen, collected=Collected(3.0, 0.3, 0.1))), Suspect)


def test_an_app_that_collects_by_hand_is_told_at_which_line() -> None:
    seen = SUSPICIOUS["gc-pause"]
    by_hand = Called("/srv/shop/housekeeping.py:18", "tidy", "gc.collect()", 0.8)
    assert seen.watched is not None
    for lines, where in (((by_hand,), by_hand.place), ((replace(by_hand, text="parse(row)"),), "")):
        found = catalogue()["gc-pause"].screen(replace(seen, watched=replace(seen.watched, lines=lines)))
        assert isinstance(found, Suspect)
        (experiment,) = found.experiments
        assert (experiment.cure.where == by_hand.place) is bool(where)


def test_a_long_collection_that_one_request_in_a_thousand_meets_is_of_no_p99() -> None:
    screen = catalogue()["gc-pause"].screen
    assert isinstance(screen(replace(SEEN, collected=Collected(100.0, 0.1, 0.1))), Absent)


def test_every_kind_of_what_is_built_has_a_cure() -> None:
    assert BUILT.keys() == {*KINDS}


def test_a_file_that_may_be_the_requests_own_is_no_fault() -> None:
    watched = replace(QUIET, shares={MARK % "file": 0.5})
    seen = replace(SEEN, watched=watched, setting=replace(SETTING, has_body=False))
    screen = catalogue()["built-per-request"].screen
    assert isinstance(screen(seen), Suspect)
    assert isinstance(screen(replace(seen, setting=replace(SETTING, has_body=True))), Absent)


def test_what_is_built_among_threads_that_wait_for_their_turn_is_seen_by_its_cpu_time() -> None:
    watched = replace(
        QUIET, shares={MARK % "model": 0.04, MARK % "file": 0.05}, computing={MARK % "model": 0.5}
    )
    found = catalogue()["built-per-request"].screen(replace(SEEN, watched=watched))
    assert isinstance(found, Suspect)
    assert found.experiments[0].treatment is not None
    assert found.experiments[0].treatment.give == {"building-longer": "model"}


def test_memory_that_comes_and_goes_does_not_grow() -> None:
    ups_and_downs = tuple((1000 * n, 5e7 + 1e6 * (n % 3)) for n in range(8))
    assert isinstance(catalogue()["growth"].screen(replace(SEEN, in_use=InUse(ups_and_downs))), Absent)
    little = tuple((1000 * n, 5e7 + 1e3 * n) for n in range(8))
    assert isinstance(catalogue()["growth"].screen(replace(SEEN, in_use=InUse(little))), Absent)


def test_requests_that_are_over_before_a_signal_meets_them_are_not_lost() -> None:
    short = replace(SEEN, met={**SEEN.met, "lost-at-stop": Met(0, 0)})
    assert isinstance(catalogue()["lost-at-stop"].screen(short), Absent)


def test_an_app_that_is_never_sent_a_body_leaves_none_unread() -> None:
    bare = meeting("unread-body", 16, setting=replace(SETTING, has_body=False))
    assert isinstance(catalogue()["unread-body"].screen(bare), Absent)


def test_requests_that_fail_only_when_many_are_sent_at_once_are_looked_into() -> None:
    """The slope ends with eight in flight, where throughput rises no more; a pool of twelve raises later."""
    seen = failing(0.0)
    assert isinstance(catalogue()["pool-raises"].screen(seen), Absent)
    at_once = Met(0, 128, {"ok": 60, "bad_status": 68})
    found = catalogue()["pool-raises"].screen(replace(seen, met={"dependency-deadlock": at_once}))
    assert isinstance(found, Suspect)
    assert found.experiments[0].probe is not None
    assert found.experiments[0].probe.settings["connections"] == 128
    crowded = Met(300, 400, {"ok": 100, "bad_status": 300}, {"connections": 64.0})
    in_threads = catalogue()["pool-raises"].screen(replace(seen, crowded=crowded))
    assert isinstance(in_threads, Suspect)
    assert in_threads.experiments[0].probe is not None
    assert in_threads.experiments[0].probe.settings["connections"] == 64
    hung = Met(40, 128, {"ok": 60, "bad_status": 28})
    other = catalogue()["pool-raises"].screen(replace(seen, met={"dependency-deadlock": hung}))
    assert isinstance(other, Absent)


@pytest.mark.parametrize("name", ["locked-database", "pool-raises"])
def test_requests_that_fail_alone_do_not_fail_because_of_others(name: str) -> None:
    assert isinstance(catalogue()[name].screen(failing(0.4, alone=0.4)), Absent)


@pytest.mark.parametrize(
    ("text", "share", "suspected"),
    [
        ("self.out.flush()", 0.6, True),
        ("os.fsync(out.fileno())", 0.6, True),
        ("print(line, flush=True)", 0.6, True),
        ("self.out.flush()", 0.02, False),
        ("self.out.write(line)", 0.6, False),
        ("blueprint(order)", 0.6, False),
    ],
)
def test_a_line_that_has_a_file_written_is_left_out_in_the_treated_arm(
    text: str, share: float, suspected: bool
) -> None:
    line = Called("/srv/shop/audit.py:29", "export", text, share)
    found = catalogue()["log-cost"].screen(replace(SEEN, watched=replace(QUIET, lines=(line,))))
    assert isinstance(found, Suspect) == suspected
    if isinstance(found, Suspect):
        (experiment,) = found.experiments
        assert experiment.treatment.give == {
            "unflushed": [{"file": "/srv/shop/audit.py", "line": 29, "end_line": 29}]
        }
        assert experiment.cure.where == line.place


def test_a_process_that_ends_before_anything_was_seen_of_it_is_no_reason_to_know_nothing() -> None:
    seen = SUSPICIOUS["own-ends"]
    assert seen.watched is not None
    found = catalogue()["own-ends"].screen(replace(seen, watched=replace(seen.watched, seconds=0.0)))
    assert isinstance(found, Suspect)
    assert found.experiments[0].cure.where == "/srv/shop/guard.py:9"


def test_a_screen_looks_for_marks_that_the_heartbeat_sets() -> None:
    watched = [watch for seen in SUSPICIOUS.values() for watch in (seen.watched, seen.watched_alone) if watch]
    seen = {mark for watch in watched for mark in watch.shares}
    assert seen == {mark.name for mark in MARKS}


def test_a_screen_asks_for_packages_that_the_heartbeat_reports() -> None:
    assert {*POOLS, *(client.package for client in CLIENTS)} <= {*LIBRARIES}


def test_a_screen_looks_for_waits_that_the_heartbeat_knows() -> None:
    suspicious = [symptoms.watched_alone for symptoms in SUSPICIOUS.values() if symptoms.watched_alone]
    assert {name for watched in suspicious for name in watched.waiting} <= {wait.name for wait in WAITS}
    queued = with_threads("-", 0, "aiohttp", k=60)
    assert queued.watched is not None
    found = [
        catalogue()["connector-limit"].screen(
            replace(queued, watched=replace(queued.watched, waiting=waiting))
        )
        for waiting in ({}, {next(wait.name for wait in WAITS if "aiohttp" in wait.file): 64})
    ]
    first, second = (suspect.likelihood for suspect in found if isinstance(suspect, Suspect))
    assert second > first


@pytest.mark.parametrize(
    ("libraries", "waiting", "cure"),
    [
        ({"aiohttp"}, {}, "TCPConnector"),
        ({"httpx"}, {}, "httpx.Limits"),
        ({"aiohttp", "httpx"}, {"httpcore-pool": 9}, "httpx.Limits"),
        ({"aiohttp", "httpx"}, {"connector": 9}, "TCPConnector"),
        ({"tornado.simple_httpclient"}, {}, "AsyncHTTPClient.configure"),
    ],
)
def test_the_client_is_named_that_tasks_wait_for_or_that_is_there(
    libraries: set[str], waiting: dict[str, int], cure: str
) -> None:
    watched = replace(QUIET, libraries=frozenset(libraries), waiting=waiting)
    found = catalogue()["connector-limit"].screen(replace(SEEN, slope=rising(100), watched=watched))
    assert isinstance(found, Suspect)
    assert cure in found.experiments[0].cure.after


@pytest.mark.parametrize(
    "stepped",
    [slower(60.0, 100.0), slower(110.0, 98.0), slower(110.0, 90.0), slower(110.0, 50.0, cpus=0.95)],
    ids=["calls nobody", "throughput stays", "hardly follows", "computes"],
)
def test_no_session_is_held_where_throughput_does_not_follow_third_parties(stepped: Stepped) -> None:
    seen = replace(SUSPICIOUS["session-held"], stepped=stepped)
    assert isinstance(catalogue()["session-held"].screen(seen), Absent)


def test_calls_that_nothing_but_the_load_bounds_hold_no_session() -> None:
    """Of 5 connections each is in a call: throughput follows, as 5 requests can be in flight."""
    seen = replace(SUSPICIOUS["session-held"], stepped=slower(110.0, 50.0, connections=5))
    assert isinstance(catalogue()["session-held"].screen(seen), Absent)


@pytest.mark.parametrize(
    ("k", "libraries", "cure"),
    [
        (15, ("sqlalchemy", "asyncpg"), "pool_size=30"),
        (10, ("sqlalchemy", "asyncpg"), "pool_size=20"),  # whose driver it is
        (10, ("asyncpg",), "create_pool(…, max_size=20)"),
        (4, ("psycopg_pool",), "ConnectionPool(…, max_size=8)"),
        (25, ("aiomysql",), "maxsize=50"),
        (10, ("redis",), "BlockingConnectionPool(…, max_connections=50)"),
    ],
)
def test_the_pool_is_named_that_has_so_many_connections_or_is_there(
    k: int, libraries: tuple[str, ...], cure: str
) -> None:
    seen = with_threads("-", 0, *libraries, k=k)
    found = catalogue()["pool-exhausted"].screen(seen)
    assert isinstance(found, Suspect)
    assert cure in found.experiments[0].cure.after
    if "redis" in libraries:  # whose connections no request keeps
        return
    assert isinstance(catalogue()["session-held"].screen(replace(seen, stepped=slower(110.0, 50.0))), Suspect)


def test_the_call_before_which_a_session_is_to_end_is_what_a_request_that_is_alone_waits_for() -> None:
    pool = Waits("/srv/shop/db.py:46", "get", "await self.session.get(Policy, number)", 9.0, 7)
    call = Waits("/srv/shop/bureau.py:29", "score", "async with self._http.get(url):", 2.0, 4)
    seen = SUSPICIOUS["session-held"]
    assert seen.watched is not None
    seen = replace(
        seen,
        watched=replace(seen.watched, waits=(pool, call)),
        watched_alone=replace(QUIET, waits=(call, pool)),
    )
    found = catalogue()["session-held"].screen(seen)
    assert isinstance(found, Suspect)
    assert call.place in found.experiments[0].cure.where


def test_connections_of_the_apps_own_pool_that_are_held_across_a_call_are_suspected_by_the_line() -> None:
    queue = Waits("/srv/shop/lots.py:48", "connection", "db = await self.free.get()", 9.0, 26)
    call = Waits(
        "/srv/shop/lots.py:52",
        "price",
        "await partner.get(url)",
        2.0,
        4,
        holds="db (aiosqlite.core.Connection)",
    )
    seen = replace(SUSPICIOUS["session-held"], watched=replace(QUIET, waits=(queue, call)))
    found = catalogue()["session-held"].screen(seen)
    assert isinstance(found, Suspect)
    (dose,) = found.experiments
    assert (dose.proof, dose.treatment.third_parties) == ("dose", 2.0)
    assert call.place in dose.cure.where
    assert seen.stepped is not None
    real = replace(seen, stepped=replace(seen.stepped, by_clients=True))
    found = catalogue()["session-held"].screen(real)
    assert isinstance(found, Suspect)
    treatment = found.experiments[0].treatment
    assert treatment.give == {"calls-longer": seen.stepped.before.waited_ms / 1000}
    assert treatment.third_parties == 1.0
    everybody = replace(seen, watched=replace(QUIET, waits=(replace(queue, holds=call.holds), call)))
    assert isinstance(catalogue()["session-held"].screen(everybody), Unknown), "it is not what they wait for"


def test_a_pool_of_the_apps_own_is_neither_accused_nor_cleared() -> None:
    turn = Waits("/srv/shop/lots.py:48", "connection", "db = await self.free.get()", 9.0, 26)
    ahead = Waits("/srv/shop/lots.py:52", "price", "await partner.get(url)", 2.0, 4)
    none = replace(SUSPICIOUS["session-held"], watched=replace(QUIET, waits=(turn, ahead)))
    found = catalogue()["session-held"].screen(none)
    assert isinstance(found, Unknown)
    assert turn.place in found.why, "something of the app's own bounds it, at which tasks wait"
    assert ahead.place in found.why, "whom they wait for"
    threads = replace(none, setting=IN_THREADS)
    assert isinstance(catalogue()["session-held"].screen(threads), Absent)
    many = replace(threads, setting=replace(IN_THREADS, slots=64))
    assert isinstance(catalogue()["session-held"].screen(many), Unknown), "such as a locked row"
    few = replace(threads, setting=replace(IN_THREADS, slots=5))
    assert isinstance(catalogue()["session-held"].screen(few), Absent), "its own threads are the bound"


BEGINS = Statement(
    "BEGIN IMMEDIATE", "/srv/shop/store.py:24", "begin", 'execute("BEGIN IMMEDIATE")', 1.0, 0.003
)


@pytest.mark.parametrize(
    ("at_once", "alone_s", "waits"),
    [(2.4, 0.003, True), (0.3, 0.003, False), (2.4, 1.5, False)],
    ids=["waits for others", "few are at it", "takes as long alone"],
)
def test_a_statement_that_waits_for_others_is_held_longer_where_throughput_follows_third_parties(
    at_once: float, alone_s: float, waits: bool
) -> None:
    watched = replace(QUIET, rps=50.0, followed_s=2.0, statements=(replace(BEGINS, seconds=2 * at_once),))
    alone = replace(QUIET, rps=50.0, followed_s=2.0, statements=(replace(BEGINS, seconds=alone_s),))
    seen = replace(SUSPICIOUS["session-held"], watched=watched, watched_alone=alone)
    found = catalogue()["session-held"].screen(seen)
    assert isinstance(found, Suspect) is waits
    if isinstance(found, Suspect):
        (experiment,) = found.experiments
        assert experiment.proof == "dose"
        assert experiment.treatment.give["statements-longer"][BEGINS.normalized] > 0
        assert experiment.cure.where == BEGINS.place
        assert experiment.most_rps is not None
        threads = replace(seen, setting=replace(IN_THREADS, slots=64))
        bound = catalogue()["session-held"].screen(threads)
        assert isinstance(bound, Suspect)
        assert seen.slope is not None
        most = bound.experiments[0].most_rps
        assert most is not None
        assert most.mid == min(experiment.most_rps.mid, 64 * seen.slope.alone.rps)


@pytest.mark.parametrize(
    ("rps", "errors", "connections"),
    [((100, 190, 185, 180), 0.0, 8), ((100, 190, 170, 120), 0.0, 32), ((100, 190, 170, 120), 0.3, 8)],
    ids=["it stays", "it falls", "requests fail"],
)
def test_where_throughput_falls_arms_have_as_many_connections_as_it_takes(
    rps: tuple[float, ...], errors: float, connections: int
) -> None:
    at = (1, 4, 16, 32)
    points = tuple(
        replace(rising(4).points[0], connections=n, rps=r, errors=errors * (n > 4))
        for n, r in zip(at, rps, strict=True)
    )
    slope = replace(rising(4), points=points, knee=4, rises=False)
    seen = replace(SEEN, slope=slope, watched=replace(QUIET, shares={"resolving": 0.5}))
    found = catalogue()["dns-per-call"].screen(seen)
    assert isinstance(found, Suspect)
    assert found.experiments[0].connections == connections


def test_a_resolver_that_tasks_wait_for_is_treated_where_connections_are_opened_again_and_again() -> None:
    watched = replace(QUIET, rps=100.0, connects={"10.0.0.7:80": 290}, waiting={"resolver": 20})
    found = catalogue()["dns-per-call"].screen(replace(SEEN, watched=watched))
    assert isinstance(found, Suspect)
    assert found.experiments[0].takes == "resolved"
    for other in (replace(watched, waiting={"resolver": 1}), replace(watched, connects={"10.0.0.7:80": 20})):
        assert isinstance(catalogue()["dns-per-call"].screen(replace(SEEN, watched=other)), Absent)


def test_a_session_that_is_held_is_likelier_than_a_pool_that_is_small() -> None:
    seen = SUSPICIOUS["session-held"]
    held_, small = (catalogue()[name].screen(seen) for name in ("session-held", "pool-exhausted"))
    assert isinstance(held_, Suspect)
    assert isinstance(small, Suspect)
    assert held_.likelihood * held_.loss > small.likelihood * small.loss


def test_awaits_in_turn_are_awaited_at_once_in_the_treated_arm() -> None:
    found = catalogue()["serial-awaits"].screen(SUSPICIOUS["serial-awaits"])
    assert isinstance(found, Suspect)
    (experiment,) = found.experiments
    assert experiment.treatment.give["gathered"] == [CART.document()]
    assert experiment.cure.after == CART.after


def test_one_await_of_two_that_takes_all_the_time_is_not_worth_a_gather() -> None:
    slow, quick = replace(AWAITS[0], seconds=2.8), replace(AWAITS[1], seconds=0.02)
    seen = replace(SEEN, watched_alone=replace(QUIET, waits=(slow, quick)))
    assert isinstance(catalogue()["serial-awaits"].screen(seen), Absent)
    loop = replace(slow, run=replace(CART, loops=True, awaits=1))
    looping = replace(SEEN, watched_alone=replace(QUIET, waits=(loop,)))
    assert isinstance(catalogue()["serial-awaits"].screen(looping), Suspect)


def test_short_awaits_in_turn_are_worth_a_gather_by_all_of_them_but_the_longest() -> None:
    looked_s = QUIET.looked_s
    spent = [
        replace(AWAITS[0], seconds=share * looked_s, place=f"/srv/{share}") for share in (0.17, 0.08, 0.22)
    ]
    assert isinstance(
        catalogue()["serial-awaits"].screen(replace(SEEN, watched_alone=replace(QUIET, waits=tuple(spent)))),
        Suspect,
    )


def test_calls_in_turn_that_may_need_each_other_cannot_be_known() -> None:
    seen = replace(SEEN, stepped=slower(210.0, 50.0))
    assert isinstance(catalogue()["serial-awaits"].screen(seen), Unknown)


def test_ports_that_come_back_as_fast_as_they_are_taken_are_not_exhausted() -> None:
    seen = SUSPICIOUS["ports-exhausted"]
    assert seen.watched is not None
    few = replace(seen, watched=replace(seen.watched, connects={"10.0.0.7:443": 900}))
    assert isinstance(catalogue()["ports-exhausted"].screen(few), Absent)
    unknown = replace(seen, watched=replace(seen.watched, ports=0))
    assert isinstance(catalogue()["ports-exhausted"].screen(unknown), Unknown)


def test_clients_that_open_a_connection_for_each_request_are_to_share_them() -> None:
    watched = replace(QUIET, rps=100.0, connects={"10.0.0.7:80": 290}, libraries=frozenset({"requests"}))
    found = catalogue()["client-per-request"].screen(replace(SEEN, watched=watched))
    assert isinstance(found, Suspect)
    (experiment,) = found.experiments
    assert "requests.Session()" in experiment.cure.after
    assert experiment.needless, "where no client is made alike once more nothing is shared"
    for other in (
        replace(watched, connects={"10.0.0.7:80": 100}),
        replace(watched, libraries=frozenset({"grpc"})),
        replace(watched, connected_s=0.0),
    ):
        assert isinstance(catalogue()["client-per-request"].screen(replace(SEEN, watched=other)), Absent)


def test_of_ports_the_dose_is_more_than_connections_that_are_kept_ever_need() -> None:
    found = catalogue()["ports-exhausted"].screen(SUSPICIOUS["ports-exhausted"])
    assert isinstance(found, Suspect)
    (experiment,) = found.experiments
    assert experiment.proof == "dose"
    assert experiment.probe is not None
    assert experiment.treatment.give["few-ports"] >= 2 * experiment.probe.settings["connections"]


def test_what_computes_in_python_on_the_loop_hashes_no_password() -> None:
    assert isinstance(catalogue()["hash-on-loop"].screen(held(COMPUTING)), Absent)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (FETCH.file, "        if bcrypt.checkpw(word, row.hash):"),
        (FETCH.file, "    key = hashlib.scrypt("),
        (FETCH.file, "    return pwd_context.verify(word, row.hash)"),
        ("/srv/venv/lib/python3.12/site-packages/werkzeug/security.py", "    return hmac.compare_digest("),
        ("/srv/venv/lib/python3.12/site-packages/passlib/utils/handlers.py", "    x = y"),
    ],
)
def test_hashes_are_known_by_the_line_or_the_package(file: str, text: str) -> None:
    held_up = replace(COMPUTING, stack=(replace(FETCH, file=file, text=text), HANDLER, LOOP))
    assert isinstance(catalogue()["hash-on-loop"].screen(held(held_up)), Suspect)


def test_a_hash_that_waits_on_the_loop_is_not_computed_there() -> None:
    waits = replace(HASHING, ran_s=0.01, blocked_s=0.58)
    assert isinstance(catalogue()["hash-on-loop"].screen(held(waits)), Absent)


def test_the_time_is_counted_for_which_the_loop_is_late_at_once_where_every_request_hashes() -> None:
    for hashes, late in ((2, False), (20, True)):
        alone = replace(QUIET, rps=10.0, seconds=2.0, held_up=(replace(HASHING, times=hashes),))
        found = catalogue()["hash-on-loop"].screen(replace(held(HASHING), watched_alone=alone))
        assert isinstance(found, Suspect)
        *cured, dose = found.experiments
        assert dose.proof == "dose"
        assert [experiment.proof for experiment in cured] == ["cure"] * (1 if late else 2)
        assert [experiment.probe is not None for experiment in cured] == ([True] if late else [False, True])
        assert cured[-1].seen_by, "both arms have a heartbeat then"


@pytest.mark.parametrize(("loop", "proofs"), [("uvloop", ["cure", "dose"]), ("trio._core._run", ["dose"])])
def test_only_asyncios_loops_can_have_a_call_in_a_thread(loop: str, proofs: list[str]) -> None:
    seen = held(WAITING)
    assert seen.watched is not None
    found = catalogue()["blocking-call"].screen(replace(seen, watched=replace(seen.watched, loop=loop)))
    assert isinstance(found, Suspect)
    assert [experiment.proof for experiment in found.experiments] == proofs


def test_of_coroutines_and_greenlets_only_the_one_that_serves_is_accused() -> None:
    greenlets, coroutines = SUSPICIOUS["driver-not-green"], SUSPICIOUS["blocking-call"]
    assert isinstance(catalogue()["blocking-call"].screen(greenlets), Absent)
    assert isinstance(catalogue()["driver-not-green"].screen(coroutines), Absent)


def test_work_for_clients_that_left_is_no_fault_where_no_handler_can_learn_of_it() -> None:
    fault, seen = catalogue()["no-cancel"], SUSPICIOUS["no-cancel"]
    assert isinstance(fault.screen(seen), Suspect)
    assert isinstance(fault.screen(replace(seen, setting=IN_THREADS)), Absent)
    assert fault.look is not None
    assert fault.look(IN_THREADS) is None
    assert fault.look(SETTING) is not None


def test_workers_that_live_longer_than_the_load_are_not_ruled_out_where_their_life_is_known() -> None:
    fault, knobs = catalogue()["recycle-together"], {**SETTING.knobs, "max_requests": 100_000}
    unseen = meeting("recycle-together", 0, 0, setting=replace(SETTING, workers=4))
    assert isinstance(fault.screen(unseen), Absent)
    known = replace(unseen.setting, knobs=knobs)
    assert isinstance(fault.screen(replace(unseen, setting=known)), Unknown)
    assert fault.look is not None
    probe, usual = fault.look(known), fault.look(unseen.setting)
    assert probe is not None
    assert usual is not None
    assert probe.settings["longest_s"] > usual.settings["longest_s"] == 0


def test_a_slow_app_gets_fewer_bursts_that_show_what_stays_in_arenas() -> None:
    def swell(rps: float, slots: int | None = None) -> Probe:
        slope = rising(40)
        points = tuple(replace(point, rps=rps) for point in slope.points)
        seen = replace(
            SUSPICIOUS["arenas"], slope=replace(slope, points=points), setting=replace(SETTING, slots=slots)
        )
        found = catalogue()["arenas"].screen(seen)
        assert isinstance(found, Suspect)
        probe = found.experiments[0].probe
        assert probe is not None
        return probe

    fast, slow, threads = swell(2000.0), swell(10.0), swell(10.0, slots=24)
    assert (fast.settings["bursts"], slow.settings["bursts"]) == (8, 3)
    assert slow.seconds > 3 * 6.4 > threads.seconds
    assert threads.settings["connections"] == 24


def test_native_threads_that_do_not_compute_take_no_cpu_from_each_other() -> None:
    seen = replace(SUSPICIOUS["native-threads"], slope=rising(1, cpus=0.1))
    assert isinstance(catalogue()["native-threads"].screen(seen), Absent)


@pytest.mark.parametrize(
    ("threads", "cpus", "crowded"), [(0, 1, False), (1, 1, True), (1, 2, False), (2, 2, True)]
)
def test_native_threads_and_the_one_that_calls_them_are_too_many_beyond_the_cpus(
    threads: int, cpus: int, crowded: bool
) -> None:
    seen = SUSPICIOUS["native-threads"]
    assert seen.watched is not None
    watched = replace(seen.watched, threads={NATIVE: threads})
    full = replace(seen, watched=watched, server_cpus=cpus, workers=1, slope=rising(1, cpus=float(cpus)))
    assert isinstance(catalogue()["native-threads"].screen(full), Suspect) is crowded


@pytest.mark.parametrize(("limited", "cpus"), [(False, 1), (True, 1), (False, 2)])
def test_what_one_cpu_hides_of_native_threads_is_no_acquittal_unless_they_are_limited(
    limited: bool, cpus: int
) -> None:
    alone = SUSPICIOUS["native-threads"]
    assert alone.watched is not None
    watched = replace(alone.watched, threads={}, limited=limited)
    seen = replace(alone, watched=watched, server_cpus=cpus, slope=rising(1, cpus=float(cpus)))
    hidden = cpus == 1 and not limited
    assert isinstance(catalogue()["native-threads"].screen(seen), Unknown if hidden else Absent)


def test_one_thread_for_blas_is_also_in_the_environment_that_the_app_starts_in() -> None:
    found = catalogue()["native-threads"].screen(SUSPICIOUS["native-threads"])
    assert isinstance(found, Suspect)
    assert found.experiments[0].treatment.environment["OMP_NUM_THREADS"] == "1"


def test_a_loop_that_is_blocked_in_logging_is_no_blocking_call_of_the_apps() -> None:
    assert isinstance(catalogue()["blocking-call"].screen(held(LOGGING)), Absent)
    found = catalogue()["blocking-call"].screen(held(LOGGING, WAITING))
    assert isinstance(found, Suspect)
    assert isinstance(catalogue()["log-blocks"].screen(held(WAITING)), Absent)


def test_connections_that_are_opened_again_are_tried_under_the_load_that_opens_more() -> None:
    pool = catalogue()["urllib3-pool"]
    few, many = (replace(QUIET, shares={"dialling": share}) for share in (0.14, 0.5))
    for loaded, alone, one_at_a_time in ((few, many, True), (many, few, False), (QUIET, many, True)):
        found = pool.screen(replace(SEEN, watched=loaded, watched_alone=alone))
        assert isinstance(found, Suspect)
        assert (found.experiments[0].connections == 1) == one_at_a_time
    assert isinstance(pool.screen(replace(SEEN, watched=QUIET, watched_alone=QUIET)), Absent)


def test_records_that_wait_are_not_what_records_cost() -> None:
    cost = catalogue()["log-cost"]
    for stack, found in ((LOGGING, Absent), (replace(COMPUTING, stack=LOGGING.stack), Suspect)):
        seen = held(stack)
        assert seen.watched is not None
        watched = replace(seen.watched, shares={"logging": 0.9})
        assert isinstance(cost.screen(replace(seen, watched=watched)), found)


def test_a_statement_for_each_row_is_suspected_by_how_often_and_for_how_long() -> None:
    screen = catalogue()["n-plus-one"].screen
    found = screen(sending(replace(EACH_ROW, each=1.0, seconds=2.0), EACH_ROW))
    assert isinstance(found, Suspect)
    assert found.loss == pytest.approx(0.5)
    (dose,) = found.experiments
    assert (dose.proof, dose.connections, dose.cure.where) == ("dose", 1, EACH_ROW.place)
    # 20 requests a second, of which a half is in 20 statements each.
    assert dose.treatment.give == {"statements-longer": {EACH_ROW.normalized: pytest.approx(0.5 / 20 / 20)}}
    assert dose.seen_by.give == {"statements-longer": {EACH_ROW.normalized: 0.0}}, (
        "following them costs in both arms"
    )
    around = Called(EACH_ROW.place, "cart", "read(item)", 0.8)
    elsewhere = replace(around, place="/srv/shop/cart.py:90")
    behind = (replace(elsewhere, share=0.5), replace(around, share=0.4))
    for callers, share in (((around,), 0.4), (behind, 0.2), ((elsewhere,), 0.1)):
        quick = sending(replace(EACH_ROW, seconds=0.3)).watched_alone
        assert quick is not None
        seen = replace(quick, shares={"database": 0.5}, callers={"database": callers})
        found = screen(replace(SEEN, watched_alone=seen))
        assert isinstance(found, Suspect) == (share > 0.15)
        assert not isinstance(found, Suspect) or found.loss == pytest.approx(share)
    for innocent in (replace(EACH_ROW, each=3.0), replace(EACH_ROW, seconds=0.1)):
        assert isinstance(screen(sending(innocent)), Absent)
    assert isinstance(screen(sending()), Absent)
    assert isinstance(screen(replace(SEEN, watched_alone=None)), Unknown)


def test_statements_that_take_little_each_are_suspected_together() -> None:
    screen = catalogue()["n-plus-one"].screen
    small = replace(EACH_ROW, seconds=0.3)
    other = replace(small, normalized="SELECT count(*) FROM t WHERE id = ?")
    assert isinstance(screen(sending(small)), Absent)
    found = screen(sending(small, other))
    assert isinstance(found, Suspect)
    assert found.loss == pytest.approx(0.2)
    more_s = pytest.approx(0.1 / 20 / 20)
    assert found.experiments[0].treatment.give == {
        "statements-longer": {small.normalized: more_s, other.normalized: more_s}
    }


def test_a_long_list_of_columns_is_left_out_of_the_sentence() -> None:
    columns = ", ".join(f'"shop_item"."column_{number}"' for number in range(9))
    found = catalogue()["n-plus-one"].screen(
        sending(replace(EACH_ROW, normalized=f"SELECT {columns} FROM items WHERE id = ?"))
    )
    assert isinstance(found, Suspect)
    assert "SELECT … FROM items WHERE id = ?" in found.why


@pytest.mark.parametrize("verb", ["SELECT", "INSERT", "GET"])
def test_the_cure_of_a_statement_for_each_row_is_of_its_kind(verb: str) -> None:
    found = catalogue()["n-plus-one"].screen(sending(replace(EACH_ROW, normalized=f"{verb} x")))
    assert isinstance(found, Suspect)
    after = {"SELECT": "prefetch_related", "INSERT": "executemany", "GET": "pipeline"}
    assert after[verb] in found.experiments[0].cure.after


@pytest.mark.parametrize(("share", "named"), [(0.9, True), (0.2, False)])
def test_the_place_that_calls_most_of_it_is_where_the_cure_goes(share: float, named: bool) -> None:
    called = Called("/srv/shop/cart.py:7", "cart", "import quicker.json", share)
    watched = replace(QUIET, shares={"importing": 0.5}, callers={"importing": (called,)})
    found = catalogue()["failing-import"].screen(replace(SEEN, watched=watched))
    assert isinstance(found, Suspect)
    cure = found.experiments[0].cure
    assert (called.place in found.why, cure.where == called.place, "quicker.json" in cure.after) == (
        named,
    ) * 3


def test_what_computes_is_suspected_by_its_time_however_many_threads_wait_beside_it() -> None:
    def among(at_once: float, mark: str, name: str) -> object:
        crowded = replace(QUIET, shares={mark: at_once / 40}, at_once={mark: at_once})
        return catalogue()[name].screen(replace(SEEN, watched=crowded))

    costly = among(0.4, "logging", "log-cost")
    assert isinstance(costly, Suspect)
    assert costly.likelihood == pytest.approx(0.8), "by its time, not by its share of the threads"
    assert isinstance(among(0.1, "logging", "log-cost"), Absent)
    assert isinstance(among(0.4, "resolving", "dns-per-call"), Absent), (
        "a thread that waits holds up no other"
    )


def test_connections_that_a_server_keeps_for_a_while_are_no_leak_of_requests() -> None:
    leak = catalogue()["connections-leak"]

    def left(requests: int, connections: int, kept: float = 1.0) -> object:
        every = [(requests * n, float(connections * n)) for n in range(9)]
        open_ones = [(count, kept * opened) for count, opened in every]
        return leak.screen(
            replace(SEEN, in_use=InUse(descriptors=tuple(open_ones), connections=tuple(every)))
        )

    assert isinstance(left(1000, 128), Absent)
    assert isinstance(left(1000, 128, kept=0.5), Suspect), "some may be what requests leave"
    # One request on each connection: either may be what leaves it.
    assert isinstance(left(128, 128), Suspect)


def test_what_grows_until_the_process_is_replaced_grows() -> None:
    leak = catalogue()["connections-leak"]
    lives = (40, 10, 130, 10, 230, 10, 330, 10, 45)  # of every second load; it ended after the fourth
    found = leak.screen(
        replace(
            SEEN, in_use=InUse(descriptors=tuple((1000 * n, float(count)) for n, count in enumerate(lives)))
        )
    )
    assert isinstance(found, Suspect)
    short = (40, 10, 330, 10, 45, 10, 340, 10, 41)
    found = leak.screen(
        replace(
            SEEN, in_use=InUse(descriptors=tuple((1000 * n, float(count)) for n, count in enumerate(short)))
        )
    )
    assert isinstance(found, Unknown)


def test_handlers_that_wait_in_threads_are_log_blocks_and_those_that_compute_are_log_cost() -> None:
    blocks, cost = (catalogue()[name] for name in ("log-blocks", "log-cost"))
    threads = replace(QUIET, loop="", shares={"logging": 0.9})
    for cpus, waits in ((0.1, True), (1.0, False)):
        seen = replace(SEEN, slope=rising(4, cpus=cpus), watched=threads)
        assert isinstance(blocks.screen(seen), Suspect) == waits
        assert isinstance(cost.screen(seen), Suspect) != waits
    unknown = replace(SEEN, slope=None, watched=threads)
    assert isinstance(blocks.screen(unknown), Absent)


def test_a_replaced_worker_is_proven_by_max_requests_before_it_is_by_a_signal() -> None:
    found = catalogue()["lost-at-replacement"].screen(SUSPICIOUS["lost-at-replacement"])
    assert isinstance(found, Suspect)
    recycled, signalled = found.experiments
    assert recycled.treatment.give["max-requests"] > 0
    assert recycled.probe is not None
    assert recycled.probe.settings == recycled.probe.calm.settings, "both arms meet the same load"
    assert not signalled.treatment
    alone = replace(SETTING, workers=1, replaces=False)
    assert isinstance(
        catalogue()["lost-at-replacement"].screen(meeting("lost-at-replacement", 12, 80, setting=alone)),
        Absent,
    )


def test_a_server_that_does_not_reload_loses_nothing_by_it() -> None:
    ends = replace(SETTING, reloads=False)
    assert isinstance(
        catalogue()["lost-at-reload"].screen(meeting("lost-at-reload", 12, 80, setting=ends)), Absent
    )


@pytest.mark.parametrize(
    ("paid", "cpus", "known"), [(1.0, 2, True), (2.05, 4, True), (0.5, 2, False), (2.0, 2, False)]
)
def test_a_quota_is_cured_by_as_many_whole_cpus_as_it_pays_for(paid: float, cpus: int, known: bool) -> None:
    seen = replace(meeting("throttled", 9, 10, cpus=paid), server_cpus=cpus)
    found = catalogue()["throttled"].screen(seen)
    assert isinstance(found, Suspect if known else Unknown)
    if isinstance(found, Suspect):
        assert found.experiments[0].treatment.give == {"cpus": int(paid)}


def test_a_quota_is_tried_with_the_fewest_connections_that_spend_it() -> None:
    slope = rising(8, cpus=1.0)  # one eighth of a CPU for each connection
    seen = replace(meeting("throttled", 9, 10, cpus=0.8, paid=1.0), server_cpus=2, slope=slope)
    found = catalogue()["throttled"].screen(seen)
    assert isinstance(found, Suspect), "what the groups show counts, not what was used"
    assert found.experiments[0].connections == 8
    busy = replace(slope, points=tuple(replace(point, cpus=1.0) for point in slope.points))
    found = catalogue()["throttled"].screen(replace(seen, slope=busy))
    assert isinstance(found, Suspect)
    assert found.experiments[0].connections == 2, "with one no second CPU is used"


def test_a_quota_that_is_hardly_ever_spent_and_none_at_all_throttle_nobody() -> None:
    throttled = catalogue()["throttled"]
    assert isinstance(throttled.screen(meeting("throttled", 1, 20)), Absent)
    assert isinstance(throttled.screen(meeting("throttled", 0, 0)), Absent)


def test_arenas_that_hold_little_are_no_cause_and_a_quarter_of_what_they_hold_is_the_bound() -> None:
    arenas = catalogue()["arenas"]
    assert isinstance(arenas.screen(meeting("arenas", 8, 20, bytes=8e6)), Absent)
    found = arenas.screen(SUSPICIOUS["arenas"])
    assert isinstance(found, Suspect)
    (experiment,) = found.experiments
    assert experiment.treatment.environment == {"MALLOC_ARENA_MAX": "1"}
    assert experiment.probe is not None
    assert experiment.probe.settings["least"] == 1.5e7


def test_clients_that_are_late_without_an_overflow_have_a_slow_server() -> None:
    slow = replace(SUSPICIOUS["reconnect-storm"])
    met = {**slow.met, "reconnect-storm": Met(200, 256, figures={"overflows": 0.0})}
    assert isinstance(catalogue()["reconnect-storm"].screen(replace(slow, met=met)), Absent)


def test_where_nothing_is_kept_by_the_query_there_is_no_telling_of_a_stampede() -> None:
    assert isinstance(catalogue()["stampede"].screen(meeting("stampede", 0, 0)), Unknown)


def test_threads_of_before_the_fork_are_likelier_where_requests_fail() -> None:
    seen = SUSPICIOUS["fork-after-init"]
    found = catalogue()["fork-after-init"].screen(seen)
    failing_too = catalogue()["fork-after-init"].screen(replace(seen, slope=failing(0.4).slope))
    assert isinstance(found, Suspect)
    assert isinstance(failing_too, Suspect)
    assert found.likelihood < failing_too.likelihood
    assert "sender" in found.why


@pytest.mark.parametrize(
    ("most", "alone_ms", "named"),
    [(4, 310.0, True), (4, 110.0, False), (1, 310.0, False)],
)
def test_where_tasks_of_one_request_wait_for_each_other_at_a_lock_of_the_app_the_place_is_named(
    most: int, alone_ms: float, named: bool
) -> None:
    lock = Waits("/srv/shop/prices.py:34", "call", "async with self._turn:", 3.0, most)
    seen = replace(SEEN, watched_alone=replace(QUIET, waits=(lock,)), stepped=slower(alone_ms, 50.0))
    found = catalogue()["serial-gather"].screen(seen)
    assert isinstance(found, Unknown if named else Absent)
    assert (lock.place in found.why) is named


@pytest.mark.parametrize(
    ("most", "locked_s", "looked_s", "suspected"),
    [(4, 2.9, 5.0, True), (4, 0.1, 5.0, False), (1, 2.9, 5.0, False), (4, 2.9, 50.0, False)],
)
def test_tasks_of_one_request_that_follow_each_other_through_a_lock_are_suspected(
    most: int, locked_s: float, looked_s: float, suspected: bool
) -> None:
    call = Waits("/srv/shop/prices.py:40", "call", "async with self._http.get(url):", 4.0, 4)
    lock = Waits("/srv/shop/prices.py:34", "fetch", "async with self._turn:", 3.0, most, locked_s=locked_s)
    seen = replace(SEEN, watched_alone=replace(QUIET, rps=20.0, looked_s=looked_s, waits=(call, lock)))
    found = catalogue()["serial-gather"].screen(seen)
    assert isinstance(found, Suspect if suspected else Absent)
    if isinstance(found, Suspect):
        (dose,) = found.experiments
        held, behind = (one.give["locks-longer"] for one in (dose.treatment, dose.seen_by))
        # Five tasks of each of 100 requests: they wait for 0, 1, 2, 3 and 4 times as long as one has the lock.
        assert held == {**behind, "held": True}
        assert not behind["held"]
        assert (held["file"], held["function"]) == ("/srv/shop/prices.py", "fetch")
        assert held["seconds"] == pytest.approx(locked_s / 100 / 10)


@pytest.mark.parametrize("name", ["lost-at-stop", "lost-at-reload", "lost-at-replacement"])
@pytest.mark.parametrize(
    ("figures", "fact"), [({"fails_anyway": 9.0, "of": 16.0}, "9 of 16"), ({"outlasts_s": 3.4}, "3.4 s")]
)
def test_of_requests_that_fail_together_or_outlast_what_servers_get_to_end_it_cannot_be_told_if_they_are_lost(
    name: str, figures: dict[str, float], fact: str
) -> None:
    found = catalogue()[name].screen(
        replace(SEEN, met={name: Met(0, 0, figures=figures)}, setting=SUSPICIOUS[name].setting)
    )
    assert isinstance(found, Unknown)
    assert fact in found.why


def test_a_pool_that_is_used_up_is_suspected_by_what_waits_while_nothing_is_in_work() -> None:
    leak = catalogue()["connections-leak"]
    met = Met(8, 8, {"timeout": 8}, {"usual_ms": 40.0})
    queue = replace(AWAITS[0], most=14)
    found = leak.screen(replace(SEEN, worn=Worn(800, met), watched=replace(QUIET, waits=(queue,))))
    assert isinstance(found, Suspect)
    (dose,) = found.experiments
    assert (dose.proof, dose.probe is not None) == ("dose", True)
    assert dose.probe is not None
    assert dose.probe.settings == {"requests": 1000, "connections": 4}
    assert dose.probe.calm.settings["requests"] == 0
    assert dose.cure.where == queue.place, "where most tasks wait"
    assert isinstance(leak.screen(replace(SEEN, worn=Worn(800, replace(met, hits=4)))), Absent)
    (dose,) = cast(
        "Suspect", leak.screen(replace(SEEN, slope=None, watched=None, worn=Worn(40, met)))
    ).experiments
    assert dose.probe is not None
    assert dose.probe.settings == {"requests": 50, "connections": 0}, "one after the other"


@pytest.mark.parametrize(
    ("cpus", "computes"),
    [
        (
            (0.1, 0.2, 0.4, 0.8, 1.0, 1.0),
            True,
        ),  # whenever more are in flight than on the plateau, CPUs are used up
        ((0.1, 0.2, 0.4, 0.8, 0.8, 0.8), False),
        (
            (0.1, 0.2, 0.4, 0.8, 0.8, 1.0),
            False,
        ),  # some waited while there was CPU left: something else bounds it
        ((0.1, 0.2, 0.5, 1.0, 1.0, 1.0), True),
    ],
)
def test_cpus_that_are_used_up_as_soon_as_requests_wait_are_what_bounds_an_app(
    cpus: tuple[float, ...], computes: bool
) -> None:
    rps = (30, 60, 120, 240, 150, 110)
    points = tuple(Point(2**n, float(rps[n]), cpus[n], 4) for n in range(6))
    slope = Slope(points, Interval(7.6, 8.0, 8.4), 8, rises=False)
    assert replace(SEEN, slope=slope).computes is computes


@pytest.mark.parametrize(
    ("alone_s", "most", "seconds"),
    [(0.05, 40, 1.0), (0.5, 40, 2.4), (2.0, 1000, 6.0), (2.0, 40, 6.0), (3.0, 1000, 9.0)],
    ids=["quick", "of two waves", "alone as many", "no longer than 6 s", "slower than that"],
)
def test_a_load_of_an_arm_lasts_three_times_what_a_request_takes_in_it(
    alone_s: float, most: int, seconds: float
) -> None:
    points = (Point(1, 1 / alone_s, 0.1, 4), Point(most, most / alone_s, 0.1, 4))
    seen = replace(SEEN, slope=Slope(points, Interval(most, most, most), most, rises=False))
    found = Experiment(AS_IT_IS, 64, Cure("", "", "", "")).load_s(seen)
    assert found == pytest.approx(seconds)


@pytest.mark.parametrize(("cut", "ruling"), [(False, Absent), (True, Unknown)])
def test_throughput_that_rises_rules_out_bounds_unless_there_was_no_time_for_more_connections(
    cut: bool, ruling: type
) -> None:
    points = tuple(Point(4**n, 0.3 * 4**n, 0.1, 4) for n in range(4))
    slope = Slope(points, Interval(63.0, 64.0, 65.0), 64, rises=True, cut=cut)
    assert isinstance(no_plateau(replace(SEEN, slope=slope)), ruling)


@pytest.mark.parametrize(
    ("rps", "cpus", "computes"),
    [(50.0, 0.7, False), (50.0, 0.95, True), (95.0, 0.7, True)],
    ids=["waits for calls", "the CPU is used up", "does not follow"],
)
def test_where_few_can_call_third_parties_at_once_the_cpu_that_is_nearly_used_up_is_no_bound(
    rps: float, cpus: float, computes: bool
) -> None:
    seen = replace(SEEN, slope=rising(6, cpus=0.87), stepped=slower(110.0, rps, connections=32, cpus=cpus))
    assert seen.computes is computes


@pytest.mark.parametrize(
    ("library", "interface", "after"),
    [
        ("django.db", "asgi", "'pool': True"),
        ("django.db", "wsgi", "CONN_MAX_AGE: None"),
        ("sqlalchemy", "asgi", "create_engine"),
        ("", "asgi", "a connection for each thread"),
    ],
)
def test_how_connections_are_kept_is_shown_for_what_the_app_imports(
    library: str, interface: str, after: str
) -> None:
    watched = replace(QUIET, shares={"connecting": 0.5}, libraries=frozenset({library} - {""}))
    setting = SETTING if interface == "asgi" else IN_THREADS
    found = catalogue()["connection-per-query"].screen(replace(SEEN, watched=watched, setting=setting))
    assert isinstance(found, Suspect)
    assert after in found.experiments[0].cure.after


@pytest.mark.parametrize("compressed", [False, True])
def test_compression_by_the_app_s_own_code_is_named_by_its_line_and_treated_where_it_is_called(
    compressed: bool,
) -> None:
    called = Called("/srv/shop/cart.py:7", "cart", "gzip.compress(body)", 0.9)
    watched = replace(QUIET, shares={"compression": 0.5}, callers={"compression": (called,)})
    found = catalogue()["gzip-on-loop"].screen(replace(SEEN, watched=watched, compressed=compressed))
    assert isinstance(found, Suspect)
    (experiment,) = found.experiments
    assert (experiment.cure.where == called.place) is compressed
    assert (experiment.treatment.give["compression"] == "stored") is compressed


@pytest.mark.parametrize(("each", "suspected"), [(0.02, False), (1.0, True), (9.0, True)])
def test_connections_that_a_request_opens_are_suspected_by_their_line_and_are_no_statements(
    each: float, suspected: bool
) -> None:
    opened = Statement(OPENING, "/srv/shop/cart.py:9", "connect", "db = sqlite3.connect(PATH)", each, 0.001)
    seen = replace(SEEN, watched_alone=replace(QUIET, statements=(opened,), followed_s=1.0))
    found = catalogue()["connection-per-query"].screen(seen)
    assert isinstance(found, Suspect) is suspected
    if isinstance(found, Suspect):
        assert found.experiments[0].cure.where == opened.place
        assert opened.text in found.why
    assert isinstance(catalogue()["n-plus-one"].screen(seen), Absent)


@pytest.mark.parametrize("name", ["serial-awaits", "serial-gather"])
def test_nothing_is_awaited_in_turn_where_no_event_loop_runs(name: str) -> None:
    screen = catalogue()[name].screen
    assert isinstance(screen(replace(SEEN, watched=replace(QUIET, loop=""), watched_alone=None)), Absent)
    assert isinstance(screen(replace(SEEN, watched_alone=None)), Unknown)
    assert isinstance(screen(replace(SEEN, watched=None, watched_alone=None)), Unknown)


def test_where_no_connection_could_be_kept_idle_none_is_why_requests_are_late() -> None:
    screen = catalogue()["limit-concurrency"].screen
    assert isinstance(screen(meeting("limit-concurrency", 16, kept=63.0)), Suspect)
    assert isinstance(screen(meeting("limit-concurrency", 16, kept=1.0)), Absent)


def test_pauses_that_a_request_also_makes_alone_are_no_wait_for_others() -> None:
    seen, screen = SUSPICIOUS["pauses"], catalogue()["pauses"].screen
    assert seen.watched is not None
    assert seen.watched_alone is not None
    suspect = screen(seen)
    assert isinstance(suspect, Suspect)
    assert [experiment.treatment.give["pauses-shorter"]["times"] for experiment in suspect.experiments] == [
        0.1,
        2.0,
    ]
    alone = replace(seen.watched_alone, pauses=(replace(PAUSED, seconds=0.9),))
    assert isinstance(screen(replace(seen, watched_alone=alone)), Absent)
    short = replace(seen.watched, pauses=(replace(PAUSED, seconds=0.3),))
    assert isinstance(screen(replace(seen, watched=short)), Absent)
    assert isinstance(screen(replace(seen, watched_alone=None)), Unknown)


def test_pauses_of_few_requests_are_suspected_where_others_wait_for_what_these_keep() -> None:
    screen = catalogue()["pauses"].screen
    retried = replace(PAUSED, each=0.05, seconds=6.0)
    queue = Waits("/srv/shop/rates.py:49", "rate", "async with self._slots:", 9.0, 24)
    watched = replace(QUIET, pauses=(retried,), waits=(queue,), followed_s=3.0, rps=100.0)
    alone = replace(QUIET, pauses=(replace(retried, seconds=0.6),), followed_s=1.0, rps=30.0)
    seen = replace(SEEN, watched=watched, watched_alone=alone)
    assert isinstance(screen(seen), Suspect)
    assert isinstance(screen(replace(seen, watched=replace(watched, waits=()))), Absent)
    of_each = replace(watched, pauses=(replace(retried, each=1.0),))
    assert isinstance(screen(replace(seen, watched=of_each)), Absent), "what each request does anyway"


def test_throughput_that_lasts_or_was_measured_once_is_no_fault_of_age() -> None:
    screen = catalogue()["slows-with-age"].screen
    assert isinstance(screen(replace(SEEN, slope=replace(rising(8), lasts=0.9))), Absent)
    assert isinstance(screen(replace(SEEN, slope=replace(rising(8), lasts=None))), Unknown)
    assert isinstance(screen(replace(SEEN, slope=None)), Unknown)


def test_no_more_connections_fill_a_server_than_it_answers() -> None:
    assert filling(SEEN) >= 8
    assert SEEN.slope is not None
    assert filling(replace(SEEN, slope=replace(SEEN.slope, bears=2))) == 2


@pytest.mark.parametrize(
    ("hops", "cpus", "suspected"),
    [
        ((TENANT,), 0.9, True),
        ((replace(TENANT, mean_ms=5.0),), 0.9, False),
        ((replace(TENANT, mean_ms=0.7, cpu_ms=0.6),), 0.9, False),
        ((replace(TENANT, each=0.3),), 0.9, False),
        ((replace(TENANT, yields=True),), 0.9, False),
        ((replace(TENANT, each=0.8), replace(TENANT, place="/srv/shop/users.py:20", each=0.8)), 0.9, True),
        ((TENANT,), 0.2, False),
    ],
    ids=[
        "computes shortly",
        "waits",
        "computes for long",
        "rarely called",
        "gives back",
        "several",
        "the CPU is idle",
    ],
)
def test_only_what_computes_shortly_and_often_is_called_in_threads_for_nothing(
    hops: tuple[Hop, ...], cpus: float, suspected: bool
) -> None:
    found = catalogue()["thread-hops"].screen(hopping(*hops, cpus=cpus))
    assert isinstance(found, Suspect if suspected else Absent)


def test_what_waits_in_a_thread_stays_there_and_what_does_not_is_called_on_the_loop() -> None:
    waits = Hop("/srv/shop/users.py:30", "load", "def load(user):", 1.0, 8.0, 0.2)
    made = Hop("/srv/shop/pages.py:4", "Page", "class Page:", 2.0, 0.01, 0.01)
    found = catalogue()["thread-hops"].screen(hopping(waits, TENANT, made))
    assert isinstance(found, Suspect)
    (experiment,) = found.experiments
    assert experiment.treatment.give == {
        "thread-hops": [{"file": "/srv/shop/users.py", "line": 12}, {"file": "/srv/shop/pages.py", "line": 4}]
    }
    assert TENANT.place in found.why
    assert (experiment.cure.before, experiment.cure.after) == (TENANT.text, "async def tenant(request):")
    of_class = catalogue()["thread-hops"].screen(hopping(made))
    assert isinstance(of_class, Suspect)
    assert "return Page(" in of_class.experiments[0].cure.after


def test_what_asks_a_database_that_happens_to_be_quick_stays_in_its_thread() -> None:
    seen = hopping(TENANT)
    assert seen.watched_alone is not None
    asks = Statement("SELECT ?", "/srv/shop/users.py:14", "tenant", "db.execute(…)", 1.0, 0.01)
    asking = replace(seen, watched_alone=replace(seen.watched_alone, statements=(asks,)))
    assert isinstance(catalogue()["thread-hops"].screen(asking), Absent)
    other = replace(asks, place="/srv/shop/rows.py:14")
    asking = replace(seen, watched_alone=replace(seen.watched_alone, statements=(other,)))
    assert isinstance(catalogue()["thread-hops"].screen(asking), Suspect)
