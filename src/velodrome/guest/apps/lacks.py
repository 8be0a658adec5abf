"""What an app lacked when it raised: a module, a variable of its environment, something that should have answered."""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, Optional

UNANSWERED = re.compile(
    r"refused|cannot connect|can't connect|could not connect|failed to connect|unreachable", re.I
)
"""What clients of databases say, each in an error of its own."""


def told(error: BaseException) -> Dict[str, Any]:
    """Return what is lacking, each None or False where it is something else."""
    chain = [*_chain(error)]
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    variable = next((name for name in map(_variable, chain) if name), None)
    unanswered = any(isinstance(one, ConnectionError) or UNANSWERED.search(str(one)) for one in chain)
    return {"missing": missing, "variable": variable, "unanswered": unanswered}


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
