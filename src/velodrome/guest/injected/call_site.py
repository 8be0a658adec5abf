"""One call in a source file, found by where it stands, and what can be done to it: moved to a thread, or made longer.

    site = CallSite("/srv/shop/pricing.py", 88, 88, 11, 42)
    tree = Off(site, "__in_thread").visit(ast.parse(source))

The place is that of the instruction that was running (`code.co_positions`, Python 3.11 and newer): lines from 1,
columns in bytes from 0. Without columns the only outermost call that begins on the line is meant.
"""

from __future__ import annotations

import ast
from typing import Any, List, Mapping, NamedTuple, Optional


class CallSite(NamedTuple):
    """Where a call stands."""

    file: str
    line: int
    end_line: int
    column: Optional[int] = None
    end_column: Optional[int] = None

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> CallSite:
        """Return the call site that a document describes."""
        return cls(**{name: data[name] for name in cls._fields if name in data})

    def is_at(self, node: ast.Call) -> bool:
        """Whether a call is the call meant. Needs Python 3.8, which knows where a node ends."""
        if self.column is None:
            return node.lineno == self.line
        place = (node.lineno, getattr(node, "end_lineno", None))
        columns = (node.col_offset, getattr(node, "end_col_offset", None))
        return place == (self.line, self.end_line) and columns == (self.column, self.end_column)


class Wrapped(ast.NodeTransformer):
    """Turns the call `f(a, b=c)` into `name(f, a, b=c)`; `changed` says how often, which is right only once."""

    def __init__(self, site: CallSite, name: str) -> None:
        self.site, self.name = site, name
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
        if not self.site.is_at(node) or not self._can(node):
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
