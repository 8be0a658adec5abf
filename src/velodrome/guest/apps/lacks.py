"""What an app lacked when it raised: a module, a variable of its environment, something that should have answered."""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, Optional

from velodrome.guest.apps import asked_for

UNANSWERED = re.compile(
    r"refused|cannot connect|can't connect|could not connect|failed to connect|unreachable", re.I
)
"""What clients of databases say, each in an error of its own."""
VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*\b")
"""What a name of a variable looks like in a sentence: «Set the DATABASE_URL environment variable»."""
MOST = 50


def told(error: BaseException) -> Dict[str, Any]:
    """Return what is lacking, each empty where it is something else.

    What may be variables: `named`, of which the error speaks; `fields` of settings without a value; `asked_for` in
    vain, whatever the error is.
    """
    chain = [*_chain(error)]
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    variable = next((name for name in map(_variable, chain) if name), None)
    unanswered = any(isinstance(one, ConnectionError) or UNANSWERED.search(str(one)) for one in chain)
    named = [name for one in chain for name in VARIABLE.findall(str(one))]
    return {
        "missing": missing,
        "variable": variable,
        "unanswered": unanswered,
        "named": list(dict.fromkeys(named))[:MOST],
        "fields": list(dict.fromkeys(name for one in chain for name in _fields(one)))[:MOST],
        "asked_for": list(asked_for.missing)[:MOST],
    }


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those it came of."""
    seen = set()
    found: Optional[BaseException] = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = found.__cause__ or found.__context__


def _variable(error: BaseException) -> Optional[str]:
    """Return the name of the variable that `os.environ` was asked for."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    # Its code may be frozen, which has no file.
    inside = trace is not None and trace.tb_frame.f_globals.get("__name__") == "os"
    if isinstance(error, KeyError) and error.args and inside:
        return str(error.args[0])
    return None


def _fields(error: BaseException) -> List[str]:
    """Return the fields of settings that have no value, as pydantic tells them: variables, however they are written."""
    errors = getattr(error, "errors", None)
    if type(error).__name__ != "ValidationError" or not callable(errors):
        return []
    try:
        told = errors()
        return [str(one["loc"][0]) for one in told if "missing" in str(one["type"]) and one["loc"]]
    except Exception:  # of another library's class, which is called the same
        return []
