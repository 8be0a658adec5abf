import pytest
from tests.judge.search.servers import ClosedLoop

from velodrome.judge.search.connections import ConnectionSearch, enough_connections
from velodrome.model.search import Ending, Sample


@pytest.mark.parametrize(
    ("capacity", "round_s"), [(1_000.0, 0.02), (200.0, 0.2), (5_000.0, 0.0), (20_000.0, 0.001)]
)
def test_enough_connections_lie_within_the_interval(capacity: float, round_s: float) -> None:
    inside, runs = 0, 40
    for seed in range(runs):
        loop = ClosedLoop(capacity, round_s, seed=seed)
        found = enough_connections(loop, ConnectionSearch())
        assert found.ending in {Ending.CONVERGED, Ending.SPENT}
        assert found.connections
        assert found.rps
        # Enough is where 95 % of the most is reached; numbers tried are up to a quarter apart.
        enough, bare = loop.enough(), loop.enough(0.93)
        inside += found.connections.low <= enough * 1.25 and found.connections.high >= bare / 1.25
        assert found.rps.mid == pytest.approx(loop.mean(round(found.connections.mid)), rel=0.05)
    assert inside >= 0.9 * runs, inside


def test_a_generator_at_its_limit_ends_the_search_with_what_was_reached() -> None:
    found = enough_connections(ClosedLoop(100_000, 0.001, ceiling=20_000), ConnectionSearch())
    assert found.ending is Ending.BEYOND
    assert found.because == "the generator's CPU was the limit"
    assert found.rps
    assert 10_000 < found.rps.low < 20_000


def test_a_throughput_that_still_rises_at_the_most_says_so() -> None:
    found = enough_connections(ClosedLoop(100_000, 0.1), ConnectionSearch(most=100))
    assert found.ending is Ending.BEYOND
    assert "still rises" in found.because
    assert found.connections
    assert found.connections.low == 100


def test_a_server_that_one_connection_saturates_needs_one() -> None:
    found = enough_connections(ClosedLoop(1_000, 0.0, noise=0.005), ConnectionSearch())
    assert found.ending is Ending.CONVERGED
    assert found.connections
    assert found.connections.mid == 1


def test_a_server_that_gives_nothing_cannot_be_told() -> None:
    found = enough_connections(lambda count: Sample(count, 0.0), ConnectionSearch())
    assert found.ending is Ending.CANNOT
    assert "nothing was answered right" in found.because


def test_numbers_are_compared_in_blocks() -> None:
    order: list[int] = []
    loop = ClosedLoop(1_000, 0.02)

    def tried(count: int) -> Sample:
        order.append(count)
        return loop(count)

    enough_connections(tried, ConnectionSearch(blocks=4))
    sizes = [size for size in range(2, 9) if order[-size:] == order[-2 * size : -size][::-1]]
    assert any(len(set(order[-size:])) == size for size in sizes), order
