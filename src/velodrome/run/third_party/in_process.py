"""The simulated third party in this process: for the command `upstream`, and to see that one can be had."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from velodrome import _native
from velodrome.model.errors import EngineError, UsageError


@contextmanager
def upstream(spec: Mapping[str, Any]) -> Iterator[_native.Upstream]:
    """Serve as the simulated third party while the context lasts.

    Raises UsageError for a specification that makes no sense, EngineError when the port cannot be had.
    """
    try:
        running = _native.Upstream(json.dumps(dict(spec)))
    except ValueError as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        raise EngineError(str(error)) from error
    try:
        yield running
    finally:
        running.stop()
