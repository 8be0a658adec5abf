"""The engine, called in this process: plain data in, a `velodrome/load/1` document out.

Next to nothing is imported: the first request of `velodrome load` waits for it.
"""

from __future__ import annotations

from velodrome import _native
from velodrome.model.errors import EngineError, LoadRefusedError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

VERSION = _native.VERSION


def load(
    spec: Mapping[str, Any],
    body: bytes = b"",
    expected: bytes | None = None,
    on_event: Callable[[Mapping[str, Any]], bool] | None = None,
) -> dict[str, Any]:
    """Run a whole load and return what happened (docs/results.md describes both documents).

    `on_event` gets each event of the engine; when it returns False the load ends early and what was measured
    until then is returned. No text in the document has a secret in it. Raises LoadRefusedError for a target that is not
    this machine, UsageError for a load that makes no sense, EngineError when this machine cannot carry it,
    KeyboardInterrupt when it ended before there was anything to measure.
    """

    def deliver(line: str) -> bool:
        return on_event is None or on_event(_native.from_json(line))

    try:
        found = _native.load(_native.to_json(dict(spec)), body, expected, deliver)
    except ValueError as error:
        raise UsageError(str(error)) from error
    except PermissionError as error:
        raise LoadRefusedError(str(error)) from error
    except InterruptedError:
        raise KeyboardInterrupt from None
    except OSError as error:
        raise EngineError(str(error)) from error
    # Not before: the first request would wait for it.
    from velodrome.model import secrets  # noqa: PLC0415

    document: dict[str, Any] = _native.from_json(found)
    return secrets.masked(document)
