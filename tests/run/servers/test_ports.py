"""A port is fresh when nobody listens on it and the kernel gives it to nobody."""

import socket
from pathlib import Path

import pytest

from velodrome.model.errors import NoPortError
from velodrome.run import servers


def test_a_fresh_port_can_be_bound_and_is_outside_the_ephemeral_range() -> None:
    found = {servers.fresh_port() for _ in range(20)}
    assert len(found) > 10
    for port in found:
        assert port not in servers.ephemeral()
        with socket.create_server(("127.0.0.1", port)):
            pass


def test_a_port_somebody_shares_by_reuseport_is_not_fresh() -> None:
    with socket.socket() as sharing:
        sharing.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sharing.bind(("127.0.0.1", 0))
        sharing.listen()
        port = sharing.getsockname()[1]
        everything_else = [number for number in range(servers.FIRST, servers.LAST + 1) if number != port]
        assert port in range(servers.FIRST, servers.LAST + 1)
        with pytest.raises(NoPortError, match=r"no free port on 127\.0\.0\.1"):
            servers.fresh_port(avoid=frozenset(everything_else))


def test_the_ephemeral_range_is_read_from_the_kernel(tmp_path: Path) -> None:
    (tmp_path / "range").write_text("20000\t30000\n")
    assert servers.ephemeral(tmp_path / "range") == range(20000, 30001)
    assert servers.ephemeral(tmp_path / "missing") == range(49152, 65536)
