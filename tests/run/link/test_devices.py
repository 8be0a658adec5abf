"""Only TUN devices are taken over: any other number may be somebody else's, and is left as it is."""

import json
import os
import sys

import pytest

from velodrome import _native
from velodrome.model.load import Link
from velodrome.run import link

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="links are Linux only")
SPEC = json.dumps(link.spec(Link(2.0), seed=1))


def test_a_descriptor_that_is_no_tun_device_is_refused_and_left_open() -> None:
    reading, writing = os.pipe()
    try:
        with pytest.raises(OSError, match=f"descriptor {reading} is no TUN device"):
            _native.Link(SPEC, reading, writing)
        os.write(writing, b"x")
        assert os.read(reading, 1) == b"x"
    finally:
        os.close(reading)
        os.close(writing)


@pytest.mark.parametrize("number", [-1, 1 << 20])
def test_a_number_that_is_no_descriptor_is_refused(number: int) -> None:
    with pytest.raises(OSError, match=f"descriptor {number} is no TUN device"):
        _native.Link(SPEC, number, number + 1)


def test_both_devices_cannot_be_the_same() -> None:
    with pytest.raises(OSError, match="descriptor 0 was given for both"):
        _native.Link(SPEC, 0, 0)
