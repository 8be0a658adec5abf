"""Calls in the source of an app, rewritten: made in a thread, made to take longer, or left out, known by their place.

    change = Wrapped(Place(12, 12, 8, 20), "name")     # `f(a, b=c)` becomes `name(f, a, b=c)`
    giving.finder.rewrite("/srv/shop/cart.py", change.visit, {"name": wrapper})

Without columns (before Python 3.11) the only outermost call that begins on the line is meant.
"""

from __future__ import annotations

import ast
import io
import os
from typing import Any, List

from velodrome.guest.injected.giving import Giving, Treatments, sleep
from velodrome.guest.injected.places import Place

THREADS = 64
"""Of the pool that calls are moved to."""
# In a class, a name that begins with two underscores and does not end so is that of another one.
IN_THREAD, LONGER = "__velodrome_in_thread__", "__velodrome_longer_%d__"
IN_GREEN_THREAD, UNLESS_FLUSH = "__velodrome_in_green_thread__", "__velodrome_unless_flush__"


class Wrapped(ast.NodeTransformer):
    """Turns the call `f(a, b=c)` into `name(f, a, b=c)`; `changed` says how often, which is right only once."""

    def __init__(self, place: Place, name: str) -> None:
        self.place, self.name = place, name
        self.changed = 0
        self._inside: List[ast.AST] = []

    def visit(self, node: ast.AST) -> Any:
        """Visit a node, knowing what it is inside of."""
        if isinstance(
            node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.GeneratorExp, ast.ClassDef)
        ):
            self._inside.append(node)
            try:
                return super().visit(node)
            finally:
                self._inside.pop()
        return super().visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Change the call that is meant."""
        if not self.place.is_at(node) or not self._can(node):
            return self.generic_visit(node)
        self.changed += 1
        func, args, keywords = node.func, node.args, node.keywords
        wrapper = ast.copy_location(ast.Name(self.name, ast.Load()), node)
        call = ast.Call(wrapper, [func, *args], keywords)
        return ast.copy_location(self._around(ast.copy_location(call, node)), node)

    def _can(self, node: ast.Call) -> bool:
        # `super()` finds out by its name in the source what it is called in.
        return not (isinstance(node.func, ast.Name) and node.func.id == "super")

    def _around(self, call: ast.Call) -> ast.expr:
        return call


class Awaited(Wrapped):
    """Turns it into `await name(f, a, b=c)`, where an `async def` is what it stands in."""

    def _can(self, node: ast.Call) -> bool:
        return (
            super()._can(node) and bool(self._inside) and isinstance(self._inside[-1], ast.AsyncFunctionDef)
        )

    def _around(self, call: ast.Call) -> ast.expr:
        return ast.Await(call)


def _in_thread(giving: Giving, sites: Any) -> None:
    """Move calls that stand in an `async def` to a thread, and await them there."""
    pools: List[Any] = []

    async def in_thread(func: Any, *args: Any, **named: Any) -> Any:
        import asyncio
        import contextvars
        from concurrent.futures import ThreadPoolExecutor
        from functools import partial

        if not pools:
            pools.append(ThreadPoolExecutor(THREADS, thread_name_prefix="velodrome"))
        giving.took("in-thread")
        context = contextvars.copy_context()
        call = partial(context.run, func, *args, **named)
        return await asyncio.get_event_loop().run_in_executor(pools[0], call)

    for site in sites:
        change = Awaited(Place.of(site), IN_THREAD)
        giving.finder.rewrite(site["file"], change.visit, {IN_THREAD: in_thread})


def _longer(giving: Giving, sites: Any) -> None:
    """Make calls take longer, by `more_s` seconds in which nothing computes."""
    for number, site in enumerate(sites):

        def longer(func: Any, *args: Any, _more_s: float = site["more_s"], **named: Any) -> Any:
            sleep(_more_s)
            giving.took("longer")
            return func(*args, **named)

        name = LONGER % number
        change = Wrapped(Place.of(site), name)
        giving.finder.rewrite(site["file"], change.visit, {name: longer})


def _in_green_thread(giving: Giving, sites: Any) -> None:
    """Move calls to threads of gevent's pool, so that other greenlets run until they return."""

    def in_green_thread(func: Any, *args: Any, **named: Any) -> Any:
        import contextvars

        import gevent  # type: ignore[import-not-found,import-untyped,unused-ignore]

        pool = gevent.get_hub().threadpool
        pool.maxsize = max(pool.maxsize, THREADS)
        giving.took("in-green-thread")
        return pool.apply(contextvars.copy_context().run, (func, *args), named)

    for site in sites:
        change = Wrapped(Place.of(site), IN_GREEN_THREAD)
        giving.finder.rewrite(site["file"], change.visit, {IN_GREEN_THREAD: in_green_thread})


def _unflushed(giving: Giving, sites: Any) -> None:
    """Leave calls out that write what a file has in its buffer, or print; whatever else is called there is called."""

    def unless_flush(func: Any, *args: Any, **named: Any) -> Any:
        if func not in (print, os.fsync) and not isinstance(getattr(func, "__self__", None), io.IOBase):
            return func(*args, **named)
        giving.took("unflushed")
        return None

    for site in sites:
        change = Wrapped(Place.of(site), UNLESS_FLUSH)
        giving.finder.rewrite(site["file"], change.visit, {UNLESS_FLUSH: unless_flush})


TREATMENTS: Treatments = {
    "in-thread": _in_thread,
    "longer": _longer,
    "in-green-thread": _in_green_thread,
    "unflushed": _unflushed,
}
