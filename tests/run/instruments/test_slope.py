"""A slope is climbed until it is flat; a server that dies on the way leaves what was measured before."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from tests.run.made import measurement, trial

from velodrome.model.errors import NoServerError
from velodrome.model.measurement import Measurement
from velodrome.model.symptoms import Point
from velodrome.run.instruments import screens

pytestmark = pytest.mark.unit


class Server:
    """Answers at `rps` for each connection up to `k`, and dies of more than it bears."""

    def __init__(self, k: int, bears: int = 10_000, rps: float = 20.0) -> None:
        self.k, self.bears, self.rps = k, bears, rps
        self.loads: list[int] = []

    def point(self, connections: int) -> Point:
        self.loads.append(connections)
        if connections > self.bears:
            raise NoServerError("shop", "died under load")
        return Point(connections, self.rps * min(connections, self.k), 0.1, 4)


@pytest.fixture(autouse=True)
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screens, "point", lambda server, connections, _seconds: server.point(connections))


def climb(server: Server, most: int = screens.MOST) -> tuple[list[int], str]:
    climbed = screens.climb(server, most)  # type: ignore[arg-type]
    return [point.connections for point in climbed.points], climbed.died


@pytest.mark.parametrize(
    ("k", "counts"),
    [
        (1, [1, 2, 4]),
        (2, [1, 2, 4, 8]),
        (6, [1, 2, 4, 8, 16, 32]),
        (8, [1, 2, 8, 16, 32]),
        (40, [1, 2, 8, 32, 64, 128, 256]),
        (1000, [1, 2, 8, 32, 128, 512]),
    ],
)
def test_it_ends_when_twice_more_connections_add_nothing_and_leaves_out_some_while_they_add_all_they_can(
    k: int, counts: list[int]
) -> None:
    assert climb(Server(k)) == (counts, "")


@pytest.mark.parametrize("also", [0, 4, 16, 64, 128])
def test_a_number_of_connections_that_is_named_is_not_left_out(also: int) -> None:
    points = screens.climb(Server(1000), also=also).points  # type: ignore[arg-type]
    counts = [point.connections for point in points]
    assert not also or also in counts
    assert counts == sorted(set(counts))


def test_it_ends_at_the_most_connections() -> None:
    assert climb(Server(1000), most=32) == ([1, 2, 8, 32], "")


def test_where_it_is_flat_no_connections_are_added_that_would_wait_until_they_time_out() -> None:
    slow = Server(1, rps=1 / 3)
    assert climb(slow) == ([1, 2], "")
    assert climb(Server(40, rps=1 / 1.5)) == ([1, 2, 8, 32, 64, 128], "")
    assert climb(Server(1000, rps=0.5)) == ([1, 2, 8, 32, 128, 512], "")


def test_a_server_that_dies_leaves_what_was_measured_before() -> None:
    counts, died = climb(Server(1000, bears=20))
    assert counts == [1, 2, 8]
    assert "32" in died


def test_one_that_bears_nothing_is_an_error() -> None:
    with pytest.raises(NoServerError):
        climb(Server(1, bears=0))


def test_the_ends_are_measured_in_turns() -> None:
    server = Server(40)
    climbed = screens.climb(server)  # type: ignore[arg-type]
    server.loads.clear()
    assert len(screens.ends(server, climbed)) == screens.PAIRS  # type: ignore[arg-type]
    assert server.loads == [1, 64] * screens.PAIRS


@pytest.mark.parametrize(("rps", "pairs"), [(4.0, screens.SLOW_PAIRS), (0.3, 1)])
def test_the_slower_an_app_the_fewer_pairs_are_measured(rps: float, pairs: int) -> None:
    climbed = screens.Climbed((Point(1, rps, 0.1, 4), Point(8, 8 * rps, 0.1, 4)), "")
    assert len(screens.ends(Server(8), climbed)) == pairs  # type: ignore[arg-type]


def test_a_slope_that_there_is_no_time_for_is_cut_and_measured_no_further(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server, now = Server(1000), iter([0.0, 9.0, 18.0, 27.0])
    monkeypatch.setattr(screens, "time", SimpleNamespace(monotonic=lambda: next(now)))
    climbed = screens.climb(server, first=Point(1, 0.3, 0.1, 4), until=25.0)  # type: ignore[arg-type]
    assert (climbed.cut, server.loads) == (True, [2, 8])
    assert len(screens.ends(server, climbed)) == 1  # type: ignore[arg-type]
    assert server.loads == [2, 8]


class Slow:
    """Answers one request after the other, each in `each_s`; what is not answered within a load is drained."""

    def __init__(self, each_s: float) -> None:
        self.each_s = each_s
        self.lengths: list[float] = []

    def run_closed_loop(self, _connections: int, seconds: float) -> Measurement:
        self.lengths.append(seconds)
        found = measurement(trial())
        answers = int(seconds / self.each_s)
        each_ms = 1000 * self.each_s
        facts = replace(
            found.load,
            ok=answers,
            duration_s=seconds,
            throughput_rps=answers / seconds,
            sent=replace(found.load.sent, mean=each_ms if answers else None),
            fastest_ms=each_ms,
        )
        return replace(found, load=facts)


def test_of_an_app_that_takes_longer_than_a_load_the_load_is_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        screens,
        "point",
        lambda server, count, seconds: screens._of(count, server.run_closed_loop(count, seconds)),
    )
    quick, slow = Slow(0.01), Slow(2.0)
    screens.alone(quick)  # type: ignore[arg-type]
    assert quick.lengths == [screens.SHORT_S]
    found = screens.alone(slow)  # type: ignore[arg-type]
    assert slow.lengths == [screens.SHORT_S, pytest.approx(6.0)]
    assert found.rps == pytest.approx(0.5)


class Away(Slow):
    """Answers quickly, but in the first load nobody is there who would."""

    def run_closed_loop(self, connections: int, seconds: float) -> Measurement:
        found = super().run_closed_loop(connections, seconds)
        return (
            found if len(self.lengths) > 1 else replace(found, load=replace(found.load, throughput_rps=1.0))
        )


def test_of_a_quick_app_whose_workers_were_just_starting_the_load_is_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        screens,
        "point",
        lambda server, count, seconds: screens._of(count, server.run_closed_loop(count, seconds)),
    )
    away = Away(0.0001)
    screens.alone(away)  # type: ignore[arg-type]
    assert away.lengths == [screens.SHORT_S, screens.LONG_S]


def test_one_connection_that_is_known_is_not_measured_again() -> None:
    server = Server(40)
    points = screens.climb(server, first=Point(1, 20.0, 0.1, 4)).points  # type: ignore[arg-type]
    assert server.loads[0] == 2
    assert points[0].connections == 1
