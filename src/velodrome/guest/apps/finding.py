"""Finds what a user names: `shop:app`, `shop`, `shop:create_app`, `shop:create_app('test')`, `shop:site.app`."""

from __future__ import annotations

import ast
from importlib import import_module
from inspect import Parameter, signature
from typing import Any, Callable, Dict, List, Tuple

NAMES = (
    "application",
    "app",
    "asgi_app",
    "wsgi_app",
    "api",
    "create_app",
    "create_application",
    "make_app",
    "make_application",
    "get_app",
    "get_application",
    "build_app",
)
"""Looked for in this order where a module alone is named."""


class NotFoundError(Exception):
    """Raised when a module has nothing of that name: `known` are the names it has."""

    def __init__(self, module: str, name: str, known: List[str]) -> None:
        super().__init__(name)
        self.module, self.name, self.known = module, name, known


class UnreadableError(Exception):
    """Raised when what stands behind the colon is neither a name nor a call with plain values."""


def split(path: str) -> Tuple[str, str]:
    """Return module and attribute; the attribute is empty if none is named."""
    module, _, attribute = path.partition(":")
    return module, attribute


def found(path: str) -> Tuple[str, Any, bool]:
    """Return the whole path, what it names, and whether it was called to get it.

    Raises NotFoundError, UnreadableError, and whatever the module and a call raise.
    """
    module_name, attribute = split(path)
    module = import_module(module_name)
    if not attribute:
        attribute = next((name for name in NAMES if hasattr(module, name)), "")
        if not attribute:
            if is_settings(module):
                return path, module, False
            raise NotFoundError(module_name, "", _public(module))
        path = "%s:%s" % (module_name, attribute)
    name, given, named = read(attribute)
    thing: Any = module
    for part in name.split("."):
        if not hasattr(thing, part):
            raise NotFoundError(module_name, name, _public(thing))
        thing = getattr(thing, part)
    if not attribute.endswith(")"):
        return path, thing, False
    return path, thing(*given, **named), True


def read(attribute: str) -> Tuple[str, List[Any], Dict[str, Any]]:
    """Return the dotted name in `create_app('test', debug=False)`, and what it is called with.

    Raises UnreadableError.
    """
    try:
        node: Any = ast.parse(attribute, mode="eval").body
        call = node if isinstance(node, ast.Call) else None
        name = _dotted(call.func if call else node)
        given = [ast.literal_eval(one) for one in call.args] if call else []
        named = {str(one.arg): ast.literal_eval(one.value) for one in call.keywords} if call else {}
    except (SyntaxError, ValueError):
        raise UnreadableError(attribute) from None
    return name, given, named


def _dotted(node: Any) -> str:
    if isinstance(node, ast.Attribute):
        return "%s.%s" % (_dotted(node.value), node.attr)
    if isinstance(node, ast.Name):
        return node.id
    raise ValueError(node)


def is_settings(module: Any) -> bool:
    """Return whether a module holds the settings of a Django site."""
    return hasattr(module, "ROOT_URLCONF") or hasattr(module, "INSTALLED_APPS")


def _public(thing: Any) -> List[str]:
    return (
        sorted(name for name in vars(thing) if not name.startswith("_")) if hasattr(thing, "__dict__") else []
    )


def required(call: Callable[..., Any]) -> List[str]:
    """Return the parameters a call has to be given, in order; those that are given by name as `debug=`.

    Raises ValueError where it does not tell.
    """
    try:
        told = signature(call).parameters.values()
    except TypeError as error:
        raise ValueError(str(error)) from error
    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    needed = [one for one in told if one.kind in kinds and one.default is Parameter.empty]
    if not needed and any(one.kind is Parameter.VAR_POSITIONAL for one in told):
        raise ValueError("it takes whatever it is given")
    return [one.name + ("=" if one.kind is Parameter.KEYWORD_ONLY else "") for one in needed]
