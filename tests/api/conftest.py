from collections.abc import Iterator

import pytest

from velodrome.run import third_party


@pytest.fixture(scope="session")
def five_ms() -> Iterator[str]:
    """A server that answers after 5 ms: the simulated third party."""
    with third_party.serve_here({"host": "127.0.0.1", "port": 0, "latency": "5ms"}) as running:
        yield f"http://127.0.0.1:{running.port}/"
