"""Who does which block next: hosts that are slow, that are lost and that come back."""

import random

from velodrome.run.cluster.handing import Handing


def blocks(count: int) -> Handing[int]:
    waiting = iter(range(count))
    return Handing(lambda: next(waiting, None))


def test_each_host_gets_a_block_when_it_is_free() -> None:
    handing = blocks(5)
    assert [handing.free("slow"), handing.free("fast")] == [0, 1]
    assert [handing.free("fast") for _ in range(3)] == [2, 3, 4]
    assert handing.free("fast") is None
    assert handing.running == ("slow",)
    assert not handing.done
    assert handing.free("slow") is None
    assert handing.done


def test_what_a_lost_host_had_goes_to_who_is_free_next_before_all_else() -> None:
    handing = blocks(4)
    assert [handing.free("a"), handing.free("b")] == [0, 1]
    assert handing.give_back("a") == {}
    assert not handing.done
    assert [handing.free("b") for _ in range(4)] == [0, 2, 3, None]
    assert handing.done


def test_who_waits_gets_what_a_lost_host_had_at_once() -> None:
    handing = blocks(1)
    assert [handing.free("a"), handing.free("b")] == [0, None]
    assert handing.give_back("a") == {"b": 0}
    assert handing.running == ("b",)


def test_a_host_that_comes_back_is_given_blocks_again() -> None:
    handing = blocks(2)
    assert handing.free("a") == 0
    assert handing.give_back("a") == {}
    assert handing.free("a") == 0
    assert [handing.free("a"), handing.free("a")] == [1, None]
    assert handing.done


def test_a_host_that_is_lost_while_it_waits_takes_nothing_with_it() -> None:
    handing = blocks(1)
    assert [handing.free("a"), handing.free("b")] == [0, None]
    assert handing.give_back("b") == {}
    assert handing.give_back("a") == {}
    assert handing.free("c") == 0


def test_whatever_happens_to_hosts_every_block_is_whole_once_in_the_end() -> None:
    for seed in range(200):
        draw = random.Random(seed)
        handing = blocks(12)
        has: dict[str, int] = {}
        whole: list[int] = []

        def offer(host: str, handing: Handing[int] = handing, has: dict[str, int] = has) -> None:
            if (work := handing.free(host)) is not None:
                has[host] = work

        there = ["a", "b", "c"]
        for host in there:
            offer(host)
        while not handing.done:
            host = draw.choice(there)
            if draw.random() < 0.3:
                has.pop(host, None)
                for other, work in handing.give_back(host).items():
                    has[other] = work
                there[there.index(host)] = f"{host}'"
                offer(f"{host}'")
            elif host in has:
                whole.append(has.pop(host))
                offer(host)
        assert sorted(whole) == list(range(12)), seed
