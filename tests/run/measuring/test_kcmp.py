"""Whether processes share an open file: a descriptor and its copies are one, and so they are behind a fork."""

import os
import select
import signal

import pytest

from velodrome.run.measuring import kernel

pytestmark = pytest.mark.skipif(not kernel.tells_open_files(), reason="this kernel does not tell (kcmp)")


def test_copies_of_a_descriptor_are_one_file_and_two_epolls_are_two() -> None:
    epoll, other = select.epoll(), select.epoll()
    copy = os.dup(epoll.fileno())
    try:
        own = os.getpid()
        assert kernel.same_open_file(own, epoll.fileno(), own, copy) is True
        assert kernel.same_open_file(own, epoll.fileno(), own, other.fileno()) is False
        assert kernel.same_open_file(own, epoll.fileno(), own, 1_000_000) is None
    finally:
        os.close(copy)
        epoll.close()
        other.close()


@pytest.mark.integration
def test_an_epoll_that_was_made_before_a_fork_is_one_in_both_processes() -> None:
    shared = select.epoll()
    child = os.fork()
    if not child:
        signal.pause()
    try:
        assert kernel.same_open_file(os.getpid(), shared.fileno(), child, shared.fileno()) is True
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        shared.close()
