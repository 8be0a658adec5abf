"""A site: two networks of our own, joined as given, and gone without a trace."""

import errno
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.run.link.possible import JOINED_BY, NEEDS_LINK
from tests.waiting import eventually

from velodrome.model.errors import LinkError, LinkRefusedError
from velodrome.model.load import Link
from velodrome.run import link as namespace
from velodrome.run import link as relay
from velodrome.run.link import DEVICE, OWN, SETTINGS, Site, enter, open_device, open_site, settings

FAST = Link(2.0)


def network() -> int:
    """Tell the network this thread is in."""
    return os.stat(OWN).st_ino


def devices() -> set[str]:
    with open("/proc/thread-self/net/dev") as file:
        return {line.split(":")[0].strip() for line in file if ":" in line}


def connect(site: Site) -> tuple[socket.socket, socket.socket]:
    with enter(site.server):
        listener = socket.create_server((site.host, 0))
    with listener, enter(site.client):
        client = socket.create_connection(listener.getsockname(), timeout=5)
        server, _ = listener.accept()
    return client, server


@pytest.fixture
def site() -> Iterator[Site]:
    with open_site(FAST, joined_by="relay") as made:
        yield made


@JOINED_BY
def test_both_ends_reach_each_other_and_nobody_else(joined_by: str) -> None:
    here = network()
    with open_site(FAST, joined_by=joined_by) as site:
        client, server = connect(site)
        with client, server:
            client.sendall(b"ping")
            assert server.recv(4) == b"ping"
            server.sendall(b"pong")
            assert client.recv(4) == b"pong"
        for end in (site.client, site.server):
            with enter(end):
                assert network() != here
                assert devices() >= {"lo", DEVICE}
                with socket.socket() as outward, pytest.raises(OSError, match="unreachable") as refused:
                    outward.connect(("192.0.2.1", 9))
                assert refused.value.errno == errno.ENETUNREACH
        assert network() == here
        assert DEVICE not in devices()


@JOINED_BY
def test_a_site_tells_what_went_over_it(joined_by: str) -> None:
    with open_site(FAST, joined_by=joined_by) as site:
        assert site.congestion == "cubic"
        assert site.rtt_ms >= 2.0
        (note,) = site.notes
        assert joined_by in note
        assert "with cubic at both ends" in note
        site.begin()
        client, server = connect(site)
        with client, server:
            client.sendall(bytes(100_000))
            left = 100_000
            while left:
                left -= len(server.recv(left))
        facts = site.end()
        assert facts.joined_by == joined_by
        assert 70 <= facts.there.packets < 150
        assert 100_000 <= facts.there.bytes < 120_000
        assert 2 <= facts.back.packets < 150
        assert (facts.there.dropped, facts.back.dropped, facts.overrun) == (0, 0, 0)
        if joined_by == "relay":
            assert facts.late_p99_ms is not None
            assert facts.cpu_s
            assert facts.hdr_late
        site.begin()
        assert site.end().there.packets < 10  # only what happened since then


@NEEDS_LINK
def test_the_congestion_control_is_the_one_asked_for() -> None:
    for name in ("reno", "cubic"):
        with open_site(Link(congestion=name), joined_by="relay") as site:
            client, server = connect(site)
            with client, server:
                for end in (client, server):
                    chosen = end.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
                    assert chosen.rstrip(b"\0").decode() == name


@NEEDS_LINK
def test_a_congestion_control_the_kernel_has_not_is_refused_with_the_cure() -> None:
    with (
        pytest.raises(
            LinkRefusedError, match=r"no congestion control called nonesuch.*modprobe tcp_nonesuch"
        ),
        open_site(Link(congestion="nonesuch"), joined_by="relay"),
    ):
        pass


@NEEDS_LINK
def test_settings_of_the_machine_hold_at_both_ends(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    before = settings()
    assert before["ipv4/tcp_rmem"]
    with enter(site.server):
        assert settings() == before
        assert (SETTINGS / "ipv4/tcp_no_metrics_save").read_text().strip() == "1"
    other = {"core/somaxconn": "77", "ipv4/no_such_setting": "1"}
    monkeypatch.setattr("velodrome.run.link.settings", lambda: other)
    with open_site(FAST, joined_by="relay") as other_site, enter(other_site.server):
        assert (SETTINGS / "core/somaxconn").read_text().strip() == "77"
    assert SETTINGS.joinpath("core/somaxconn").read_text().strip() == before["core/somaxconn"]


@NEEDS_LINK
def test_only_the_thread_that_enters_is_moved_and_what_it_starts_stays(site: Site) -> None:
    here, seen = network(), []
    with enter(site.server):
        there = network()
        inherits = threading.Thread(target=lambda: seen.append(network()))
        inherits.start()
        inherits.join()
        child = subprocess.run(
            [sys.executable, "-c", f"import os; print(os.stat('{namespace.OWN}').st_ino)"],
            capture_output=True,
            text=True,
            check=True,
        )
        with enter(site.client):
            assert network() not in {here, there}
        assert network() == there
    with pytest.raises(ZeroDivisionError), enter(site.server):
        _ = 1 / 0
    assert network() == here
    assert seen == [there]
    assert int(child.stdout) == there
    with enter(None):
        assert network() == here


@NEEDS_LINK
def test_a_relay_that_dies_is_reported_and_nothing_hangs(site: Site) -> None:
    site.begin()
    assert site.joint.pid
    os.kill(site.joint.pid, signal.SIGKILL)
    with pytest.raises(LinkError, match="rtt2ms failed: its relay has ended"):
        site.end()
    with pytest.raises(LinkError):
        site.begin()


@NEEDS_LINK
def test_nothing_is_left_of_a_site() -> None:
    with open_site(FAST, joined_by="relay") as site:
        pid = site.joint.pid
        descriptors = {site.client.descriptor, site.server.descriptor}
    assert not Path(f"/proc/{pid}").exists()
    assert {site.client.descriptor, site.server.descriptor} == {-1}
    for descriptor in descriptors:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)


KILLED = """
import os, sys, time
from velodrome.model.load import Link
from velodrome.run.link import OWN, enter, open_site
with open_site(Link(2.0), joined_by="relay") as site:
    networks = []
    for end in (site.client, site.server):
        with enter(end):
            networks.append(os.stat(OWN).st_ino)
    print(site.joint.pid, *networks, flush=True)
    time.sleep(60)
"""


def holders(networks: set[int]) -> list[str]:
    """Return whatever still holds one of these networks: threads in it, descriptors and mounts of it."""
    wanted = {f"net:[{number}]" for number in networks}
    found = []
    links = [*Path("/proc").glob("[0-9]*/task/*/ns/net"), *Path("/proc").glob("[0-9]*/fd/*")]
    for link in links:
        try:
            if os.readlink(link) in wanted:
                found.append(str(link))
        except OSError:
            continue  # it went while we looked
    mounts = Path("/proc/self/mountinfo").read_text()
    return found + [name for name in wanted if name in mounts]


@NEEDS_LINK
def test_a_killed_velodrome_leaves_no_process_no_network_and_no_device() -> None:
    with subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        relay, *networks = map(int, process.stdout.readline().split())
        assert len(holders(set(networks))) >= 2
        process.kill()
    assert eventually(lambda: not Path(f"/proc/{relay}").exists())
    # The devices were open in the relay alone: with it and the last holder of a network both are gone.
    assert eventually(lambda: not holders(set(networks))), holders(set(networks))


NOBODY = """
import os
from velodrome.run.link import refuse_impossible
os.setgroups([]); os.setgid(65534); os.setuid(65534)
refuse_impossible()
"""


@NEEDS_LINK
@pytest.mark.skipif(os.geteuid() != 0, reason="becomes nobody")
def test_without_rights_a_link_is_refused_with_the_reason_and_the_cure() -> None:
    tried = subprocess.run(
        [sys.executable, "-c", NOBODY],
        capture_output=True,
        text=True,
        check=False,
    )
    last = tried.stderr.strip().splitlines()[-1]
    assert (
        "a link cannot be created here: velodrome may not create network namespaces (Operation not permitted)"
        in last
    )
    assert "as root" in last
    assert "unshare -Urn" in last


def test_without_a_tun_device_a_link_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "TUN", "/dev/net/nonesuch")
    with pytest.raises(
        LinkRefusedError, match=r"cannot be used \(No such file or directory\)\. Load its module"
    ):
        open_device("velodrome0")


def test_other_systems_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(
        LinkRefusedError, match=r"only Linux has network namespaces\. Run this study on Linux"
    ):
        namespace.make()
