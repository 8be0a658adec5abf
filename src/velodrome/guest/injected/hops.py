"""Functions of the app's own that AnyIO calls in threads: what is no `async def` in FastAPI and Starlette.

    follow(giving.finder, hear)     # hear(function, seconds, cpu_s) of each call, by the thread that made it
    {"thread-hops": [{"file": "/srv/shop/users.py", "line": 12}]}   # these are called on the loop at once

A function is known by the line of its `def`. Of a class that is called it is the line of the class; of a dependency
with `yield`, and of a generator that a response is made of, that of the generator.
"""

from __future__ import annotations

import linecache
import sys
import time
from contextlib import _GeneratorContextManager, suppress
from contextvars import Context, copy_context
from functools import partial, wraps
from inspect import CO_GENERATOR
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from velodrome.guest.injected.giving import Giving, Treatments
from velodrome.guest.injected.importing import Finder

TOOK = "thread-hops"
MODULE = "anyio.to_thread"
FRAMEWORKS = ("fastapi", "starlette")
DEPTH = 8
"""Of what is around a function, at most: partials, decorators."""
DECORATED = 50
"""Lines of decorators above a `def`, at most."""


class Function(NamedTuple):
    """A function, or class, of the app's own."""

    file: str
    line: int
    """Of its `def`, below its decorators."""
    name: str
    text: str
    yields: bool = False
    """Whether it is a generator, such as a dependency that gives back behind its `yield` what it took."""


class Ran(NamedTuple):
    """Calls of one function in threads."""

    seconds: float
    cpu_s: float
    times: int

    def plus(self, other: Ran) -> Ran:
        """Return these and others."""
        return Ran(self.seconds + other.seconds, self.cpu_s + other.cpu_s, self.times + other.times)


Hear = Callable[[Function, float, float], None]
RunSync = Callable[..., Any]
_known: Dict[Tuple[str, Any], Optional[Function]] = {}


def called(func: Any, args: Tuple[Any, ...]) -> Optional[Function]:
    """Return the function of the app's own that is called by `func(*args)`; None: it is none of the app's."""
    for _ in range(DEPTH):
        found = _own(func)
        if found is not None:
            return found
        func, args = _within(func, args)
        if func is None:
            break
    return None


def _within(func: Any, args: Tuple[Any, ...]) -> Tuple[Any, Tuple[Any, ...]]:
    """Return what a function calls that is only around it, and with what; None: it is around nothing that is known."""
    if isinstance(func, partial):
        plain = func.func
        # Later versions of FastAPI than 0.121 have a function of their own around each endpoint.
        if "function" in func.keywords and _is_of_a_framework(plain):
            return func.keywords["function"], ()
        return plain, (*func.args, *args)
    if args and getattr(func, "__name__", "") == "run" and isinstance(getattr(func, "__self__", 0), Context):
        return args[0], args[1:]
    if args and getattr(func, "__name__", "") == "_next" and _is_of_a_framework(func):
        return args[0], ()  # the generator whose next part is sent
    return getattr(func, "__wrapped__", None), args


def _is_of_a_framework(func: Any) -> bool:
    return str(getattr(func, "__module__", "")).partition(".")[0] in FRAMEWORKS


def _own(func: Any) -> Optional[Function]:
    """Return what is called, if it is the app's own."""
    from velodrome.guest.injected.heartbeat import is_own

    if isinstance(func, type):
        return _of_class(func)
    for code in _codes(func):
        if is_own(code.co_filename):
            key = (code.co_filename, (code.co_firstlineno, code.co_name))
            if key not in _known:
                found = _at(code.co_filename, code.co_firstlineno, code.co_name)
                _known[key] = found._replace(yields=bool(code.co_flags & CO_GENERATOR))
            return _known[key]
    return None


def _codes(func: Any) -> Iterator[Any]:
    """Yield the code of a function, a method, an object with `__call__`, or a generator (in a context manager)."""
    owner = getattr(func, "__self__", None)
    generator = owner.gen if isinstance(owner, _GeneratorContextManager) else func
    for holder, name in (
        (getattr(func, "__func__", func), "__code__"),
        (generator, "gi_code"),
        (_method(func, "__call__"), "__code__"),
    ):
        code = getattr(holder, name, None)
        if hasattr(code, "co_firstlineno"):
            yield code


def _method(thing: Any, name: str) -> Any:
    """Return a method of an object's class; None: that has none."""
    return getattr(type(thing), name, None)


def _of_class(cls: Any) -> Optional[Function]:
    """Return a class of the app's own; what makes it (`__init__`) may be nobody's file, as that of a data class."""
    from velodrome.guest.injected.heartbeat import is_own

    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    if not isinstance(file, str) or not is_own(file):
        return None
    key = (file, cls.__qualname__)
    if key not in _known:
        import inspect

        _known[key] = None
        with suppress(OSError, TypeError, SyntaxError):  # its source cannot be found
            _known[key] = _at(file, inspect.getsourcelines(cls)[1], cls.__name__)
    return _known[key]


def _at(file: str, first: int, name: str) -> Function:
    """Return what begins at a line, with decorators or without; a lambda has no `def`."""
    from velodrome.guest.injected.heartbeat import text_of

    line = first
    if not name.startswith("<"):
        with suppress(Exception):  # whatever the loader of a module raises
            line = next(
                (
                    number
                    for number in range(first, first + DECORATED)
                    if linecache.getline(file, number).lstrip().startswith(("def ", "class "))
                ),
                first,
            )
    return Function(file, line, name, text_of(file, line).strip())


def _replaced(finder: Finder, how: Callable[[RunSync], RunSync]) -> None:
    # Starlette and FastAPI look it up in its module for each call.
    finder.after(MODULE, lambda module: setattr(module, "run_sync", how(module.run_sync)))


def follow(finder: Finder, hear: Hear) -> None:
    """Have each call of the app's own functions in a thread timed there."""

    def how(before: RunSync) -> RunSync:
        @wraps(before)
        async def run_sync(func: Any, *args: Any, **named: Any) -> Any:
            function = called(func, args)
            if function is None:
                return await before(func, *args, **named)

            def timed(*given: Any) -> Any:
                began, used = time.monotonic(), time.thread_time()
                try:
                    return func(*given)
                finally:
                    used = time.thread_time() - used
                    hear(function, time.monotonic() - began, used)

            return await before(timed, *args, **named)

        return run_sync

    _replaced(finder, how)


def _on_the_loop(giving: Giving, functions: List[Mapping[str, Any]]) -> None:
    """Have some functions called on the loop at once, as if each were an `async def`."""
    places = {(function["file"], function["line"]) for function in functions}

    def how(before: RunSync) -> RunSync:
        @wraps(before)
        async def run_sync(func: Any, *args: Any, **named: Any) -> Any:
            function = called(func, args)
            if function is None or (function.file, function.line) not in places:
                return await before(func, *args, **named)
            giving.took(TOOK)
            # What it sets in its context was seen by nobody else, as in a thread.
            return copy_context().run(func, *args)

        return run_sync

    _replaced(giving.finder, how)


TREATMENTS: Treatments = {TOOK: _on_the_loop}
