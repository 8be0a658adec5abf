"""The engine, called in this process: plain data in, a `velodrome/load/1` document out."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from velodrome import _native
from velodrome.model.errors import EngineError, LoadRefusedError, UsageError

Event = Mapping[str, Any]


def load(
    spec: Mapping[str, Any],
    body: bytes = b"",
    expected: bytes | None = None,
    on_event: Callable[[Event], bool] | None = None,
) -> dict[str, Any]:
    """Run a whole load and return what happened (docs/results.md describes both documents).

    `on_event` gets each event of the engine; when it returns False the load ends early and what was measured
    until then is returned. Raises LoadRefusedError for a target that is not this machine, UsageError for a
    load that makes no sense, EngineError when this machine cannot carry it.
    """

    def deliver(line: str) -> bool:
        return on_event is None or on_event(json.loads(line))

    try:
        document: dict[str, Any] = json.loads(_native.load(json.dumps(dict(spec)), body, expected, deliver))
    except ValueError as error:
        raise UsageError(str(error)) from error
    except PermissionError as error:
        raise LoadRefusedError(str(error)) from error
    except OSError as error:
        raise EngineError(str(error)) from error
    return document


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
