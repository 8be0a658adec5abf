"""Awaits that follow each other and do not need each other, found in source, and made to run at once.

    run = find(runs(ast.parse(source)), Place(12, 12, 12, 31))
    run.after                                        -> "price, stock = await asyncio.gather(…)"
    Gathered([(run.line, run.end_line)], "__gather").visit(tree)

Two forms are known. Statements one after the other, each of which binds the result of an await: an awaited call that
reads what an earlier call has bound ends the run. And a loop, or a comprehension, whose turns each await once: a call
that reads what the loop's body binds or works on needs the turn before it. An await whose result nobody takes
(`await lock.acquire()`) is there for its order, and is left alone.
"""

from __future__ import annotations

import ast
from typing import Any, List, NamedTuple, Optional, Sequence, Set, Tuple, Union, cast

from velodrome.guest.injected.giving import Giving, Treatments
from velodrome.guest.injected.places import Place

Block = List[ast.stmt]
FOUND, ITEMS = "__velodrome_found_%d_%d", "__velodrome_items_%d"
"""Names in changed source, by the line of what they are for."""
OTHER_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LEAVING = (ast.Break, ast.Continue, ast.Return, ast.Yield, ast.YieldFrom, ast.Raise)
WAITING = (ast.AsyncWith, ast.AsyncFor)


class Run(NamedTuple):
    """Awaits that can run at once."""

    line: int
    end_line: int
    awaits: Tuple[ast.Await, ...]
    loops: bool
    """Whether it is one await in a loop."""
    before: str
    after: str


def find(every: Sequence[Run], place: Place) -> Optional[Run]:
    """Return the run that an await is part of; None: it needs what comes before it, or nothing is beside it."""
    return next((run for run in every if any(place.is_at(awaited) for awaited in run.awaits)), None)


def runs(tree: ast.AST) -> List[Run]:
    """Return every run of a module."""
    found = []
    for function in ast.walk(tree):
        if not isinstance(function, ast.AsyncFunctionDef):
            continue
        for block in _blocks(function):
            found += [_run_of(part) for part in _independent(block)]
            for statement in block:
                turn = _of_loop(statement) if isinstance(statement, ast.For) else None
                if turn is not None:
                    found.append(_run_of_loop(cast(ast.For, statement), turn))
                found += [_run_of_comprehension(two, await_) for two, await_ in _comprehensions(statement)]
    return found


class Gathered(ast.NodeTransformer):
    """Changes runs, each given by its first and last line, to await all of theirs at once by a function `name`."""

    def __init__(self, lines: List[Tuple[int, int]], name: str) -> None:
        self._lines, self._name = set(lines), name
        self.changed = 0

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        """Change what is in it."""
        for block in _blocks(node):
            for part in _independent(block):
                if (part[0].lineno, _end(part[-1])) in self._lines:
                    self._changed(block, part, self._together(part))
            for statement in list(block):
                for two, _ in _comprehensions(statement):
                    if (two.lineno, _end(two)) in self._lines:
                        self.changed += 1
                        Replaced(two, self._at_once(two, [self._started(two)])).visit(statement)
                await_ = _of_loop(statement) if isinstance(statement, ast.For) else None
                if await_ is not None and (statement.lineno, _end(statement)) in self._lines:
                    self._changed(block, [statement], self._all_turns(cast(ast.For, statement), await_))
        return self.generic_visit(node)

    def _changed(self, block: Block, before: Block, after: Block) -> None:
        at = block.index(before[0])
        block[at : at + len(before)] = after
        self.changed += 1

    def _together(self, part: Block) -> Block:
        """Return `a, b = await gather(f(), g())` and the statements, with a and b for what they await."""
        awaits = [_only_await(statement) for statement in part]
        line = part[0].lineno
        names = [FOUND % (line, number) for number in range(len(part))]
        stored = ast.Tuple([ast.Name(name, ast.Store()) for name in names], ast.Store())
        gathered = ast.Assign([stored], self._at_once(part[0], [awaited.value for awaited in awaits]))
        for statement, await_, name in zip(part, awaits, names):
            Replaced(await_, ast.Name(name, ast.Load())).visit(statement)
        return [_copy_place(gathered, part[0]), *part]

    def _all_turns(self, loop: ast.For, await_: ast.Await) -> Block:
        """Return the loop over items and what each of them awaited, which began at once."""
        items, found = ITEMS % loop.lineno, FOUND % (loop.lineno, 0)
        listed = ast.Call(ast.Name("list", ast.Load()), [loop.iter], [])
        every = ast.ListComp(
            await_.value, [ast.comprehension(loop.target, ast.Name(items, ast.Load()), [], 0)]
        )
        begun = self._at_once(loop, [ast.Starred(every, ast.Load())])
        pairs = ast.Call(ast.Name("zip", ast.Load()), [ast.Name(items, ast.Load()), begun], [])
        Replaced(await_, ast.Name(found, ast.Load())).visit(loop)
        target = ast.Tuple([loop.target, ast.Name(found, ast.Store())], ast.Store())
        again = ast.For(target, pairs, loop.body, loop.orelse)
        kept = ast.Assign([ast.Name(items, ast.Store())], listed)
        return [_copy_place(kept, loop), _copy_place(again, loop)]

    def _started(self, two: ast.ListComp) -> ast.expr:
        return ast.Starred(ast.ListComp(cast(ast.Await, two.elt).value, two.generators), ast.Load())

    def _at_once(self, where: ast.AST, started: List[Any]) -> ast.expr:
        call = ast.Call(ast.Name(self._name, ast.Load()), started, [])
        return cast(ast.expr, _copy_place(ast.Await(call), where))


class Replaced(ast.NodeTransformer):
    """Puts one node in the place of another."""

    def __init__(self, before: ast.AST, after: ast.AST) -> None:
        self._before, self._after = before, after

    def visit(self, node: ast.AST) -> Any:
        """Return the other node where this is it."""
        return self._after if node is self._before else super().generic_visit(node)


def _copy_place(node: Any, where: ast.AST) -> Any:
    return ast.fix_missing_locations(ast.copy_location(node, where))


def _blocks(function: ast.AsyncFunctionDef) -> List[Block]:
    """Return the lists of statements in a function, but of functions in it."""
    found: List[Block] = []
    nodes: List[ast.AST] = [function]
    while nodes:
        node = nodes.pop()
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                found.append(block)
                nodes += [statement for statement in block if not isinstance(statement, OTHER_SCOPES)]
        nodes += getattr(node, "handlers", [])
    return found


def _independent(block: Block) -> List[Block]:
    """Return the runs of statements, of two or more, in which none awaits what needs an earlier statement."""
    found: List[Block] = []
    part: Block = []
    touched: Set[str] = set()
    for statement in block:
        await_ = _await_taken(statement)
        if await_ is None or not _names(await_.value).isdisjoint(touched):
            part, touched = [], set()
        if await_ is None:
            continue
        part.append(statement)
        # Also what is only read beside the await: it may be a list to which something is added.
        touched |= _beside(statement, await_)
        touched |= _names(statement, ast.Store)
        if len(part) == 2:
            found.append(part)
    return found


def _await_taken(statement: ast.stmt) -> Optional[ast.Await]:
    """Return the only await of a statement that takes its result."""
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return None
    return _only_await_of(statement)


def _only_await(statement: ast.stmt) -> ast.Await:
    found = _only_await_of(statement)
    assert found is not None
    return found


def _only_await_of(root: ast.AST) -> Optional[ast.Await]:
    """Return the await of a node that has a single await; None: it has none or several, or it does not always run."""
    found: List[ast.Await] = []
    nodes: List[ast.AST] = [root]
    while nodes:
        node = nodes.pop()
        if isinstance(node, (*OTHER_SCOPES, *COMPREHENSIONS, ast.IfExp, ast.BoolOp)):
            if any(isinstance(two, ast.Await) for two in ast.walk(node)):
                return None
            continue
        if isinstance(node, ast.Await):
            found.append(node)
        nodes += ast.iter_child_nodes(node)
    return found[0] if len(found) == 1 and isinstance(found[0].value, ast.Call) else None


def _of_loop(loop: ast.For) -> Optional[ast.Await]:
    """Return the await of a loop whose turns do not need each other."""
    inside = [node for statement in loop.body for node in ast.walk(statement)]
    if loop.orelse or any(isinstance(node, LEAVING + WAITING) for node in inside):
        return None
    if len([node for node in inside if isinstance(node, ast.Await)]) != 1:
        return None
    simple = [
        statement
        for statement in loop.body
        if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Expr, ast.AugAssign))
    ]
    for assign in simple:
        await_ = _only_await_of(assign)
        if await_ is None or (isinstance(assign, ast.Expr) and assign.value is await_):
            continue
        target = _names(loop.target)
        touched = {name for two in loop.body for name in _names(two, ast.Store)}
        touched |= _beside(assign, await_) - target
        if _names(await_.value).isdisjoint(touched):
            return await_
    return None


def _comprehensions(statement: ast.stmt) -> List[Tuple[ast.ListComp, ast.Await]]:
    """Return the lists made of an await each, in a statement that is none of blocks."""
    if hasattr(statement, "body") or isinstance(statement, OTHER_SCOPES):
        return []
    return [
        (node, node.elt)
        for node in ast.walk(statement)
        if isinstance(node, ast.ListComp)
        and isinstance(node.elt, ast.Await)
        and isinstance(node.elt.value, ast.Call)
        and len(node.generators) == 1
        and not node.generators[0].is_async
        and not any(isinstance(two, ast.Await) for two in ast.walk(node.generators[0]))
        and sum(isinstance(two, ast.Await) for two in ast.walk(node.elt)) == 1
    ]


def _names(node: ast.AST, context: Any = (ast.Load, ast.Store, ast.Del)) -> Set[str]:
    return {
        name.id for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, context)
    }


def _beside(statement: ast.stmt, await_: ast.Await) -> Set[str]:
    """Return the names in a statement that stand outside of its await."""
    inside = {id(node) for node in ast.walk(await_)}
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and id(node) not in inside}


def _end(node: Union[ast.stmt, ast.expr]) -> int:
    return int(getattr(node, "end_lineno", None) or node.lineno)


def _run_of(part: Block) -> Run:
    awaits = tuple(_only_await(statement) for statement in part)
    targets = [
        _source(statement.targets[0] if isinstance(statement, ast.Assign) else cast(Any, statement).target)
        for statement in part
    ]
    calls = [_source(awaited.value) for awaited in awaits]
    after = "%s = await asyncio.gather(%s)" % (", ".join(targets), ", ".join(calls))
    whole = all(cast(Any, statement).value is await_ for statement, await_ in zip(part, awaits))
    before = "; ".join(_source(statement) for statement in part)
    return Run(part[0].lineno, _end(part[-1]), awaits, False, before, after if whole else _gather(calls))


def _run_of_loop(loop: ast.For, await_: ast.Await) -> Run:
    calls = "*[%s for %s in %s]" % (_source(await_.value), _source(loop.target), _source(loop.iter))
    before = "for %s in %s: … %s" % (_source(loop.target), _source(loop.iter), _source(await_))
    return Run(loop.lineno, _end(loop), (await_,), True, before, _gather([calls]))


def _run_of_comprehension(two: ast.ListComp, await_: ast.Await) -> Run:
    started = ast.ListComp(await_.value, two.generators)
    return Run(two.lineno, _end(two), (await_,), True, _source(two), _gather(["*" + _source(started)]))


def _gather(calls: List[str]) -> str:
    return "await asyncio.gather(%s)" % ", ".join(calls)


def _source(node: ast.AST) -> str:
    unparse = getattr(ast, "unparse", None)  # Python 3.9
    return str(unparse(node)) if unparse else ""


GATHERED = "__velodrome_gathered__"


def _gather_awaits(giving: Giving, runs: Any) -> None:
    """Have awaits that follow each other, and do not need each other, run at once."""

    async def gathered(*started: Any) -> Any:
        import asyncio

        giving.took("gathered")
        return await asyncio.gather(*started)

    for run in runs:
        change = Gathered([(run["line"], run["end_line"])], GATHERED)
        giving.finder.rewrite(run["file"], change.visit, {GATHERED: gathered})


TREATMENTS: Treatments = {"gathered": _gather_awaits}
