"""What is usually built once, when an app starts, and serves all requests: where packages build it, by kind.

    follow(finder, "template", around)      # `around(function, args, named)` is called in the place of each outermost

Templates that are compiled, models of pydantic, patterns of `re`, clients of AWS, JSON schemas that are checked, data
classes, settings that are read, files that are parsed.
"""

from __future__ import annotations

import threading
import time
from functools import wraps
from types import ModuleType
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

from velodrome.guest.injected.giving import Giving, Treatments
from velodrome.guest.injected.importing import Finder

Around = Callable[[Callable[..., Any], Tuple[Any, ...], Dict[str, Any]], Any]


class Builder(NamedTuple):
    """A function that builds something."""

    kind: str
    module: str
    function: str
    cls: str = ""
    """Empty: it is a function of the module."""
    is_package: bool = False
    """Whether the module has a folder of its own."""

    @property
    def file(self) -> str:
        """Part of the path of its source, with slashes."""
        return "/%s%s.py" % (self.module.replace(".", "/"), "/__init__" if self.is_package else "")

    def wrap(self, module: ModuleType, around: Around) -> None:
        """Have it called by `around`; a version of the package that has it elsewhere is left alone."""
        owner: Any = getattr(module, self.cls, None) if self.cls else module
        before: Optional[Any] = vars(owner).get(self.function) if owner is not None else None
        if before is None:
            return
        # A property that keeps what it computed has its function as `func`.
        plain = getattr(before, "func", getattr(before, "__func__", before))

        @wraps(plain)
        def built(*args: Any, **named: Any) -> Any:
            return around(plain, args, named)

        if hasattr(before, "func"):
            before.func = built
        else:
            setattr(owner, self.function, type(before)(built) if plain is not before else built)


BUILDERS = (
    Builder("template", "jinja2.environment", "compile", "Environment"),
    Builder("template", "mako.template", "_compile_text"),
    Builder("template", "django.template.base", "compile_nodelist", "Template"),
    Builder("template", "bottle", "co", "SimpleTemplate"),
    Builder("template", "tornado.template", "__init__", "Template"),
    # Below what looks at the frames of its callers for names.
    Builder("model", "pydantic._internal._model_construction", "complete_model_class"),
    Builder("model", "pydantic.type_adapter", "_init_core_attrs", "TypeAdapter"),
    Builder("pattern", "re._compiler", "compile"),
    Builder("pattern", "sre_compile", "compile"),
    Builder("client", "botocore.session", "create_client", "Session"),
    Builder("client", "boto3.session", "__init__", "Session"),
    *(
        Builder("schema", "jsonschema.validators", "check_schema", "Draft%sValidator" % draft)
        for draft in ("4", "6", "7", "201909", "202012")
    ),
    Builder("class", "dataclasses", "_process_class"),
    Builder("settings", "pydantic_settings.main", "__init__", "BaseSettings"),
    Builder("settings", "dotenv.main", "load_dotenv"),
    Builder("settings", "configparser", "read", "RawConfigParser"),
    # What parses text is not among these: a request may bring that.
    Builder("file", "json", "load", is_package=True),
    Builder("file", "yaml", "load", is_package=True),
    Builder("file", "yaml", "load_all", is_package=True),
    Builder("file", "tomllib._parser", "load"),
    Builder("file", "xml.etree.ElementTree", "parse"),
)
KINDS = tuple(dict.fromkeys(builder.kind for builder in BUILDERS))
MARK = "building-%s"
"""What `marks.py` calls it that a thread builds something of a kind."""


def follow(finder: Finder, kind: str, around: Around) -> None:
    """Have `around` call what builds something of a kind; what that builds within is part of it, and called plainly."""
    inside = threading.local()

    def outermost(function: Callable[..., Any], args: Tuple[Any, ...], named: Dict[str, Any]) -> Any:
        if getattr(inside, "builds", False):
            return function(*args, **named)
        inside.builds = True
        try:
            return around(function, args, named)
        finally:
            inside.builds = False

    def patch_of(builder: Builder) -> Callable[[ModuleType], None]:
        return lambda module: builder.wrap(module, outermost)

    for builder in BUILDERS:
        if builder.kind == kind:
            finder.after(builder.module, patch_of(builder))


def _building_longer(giving: Giving, kind: str) -> None:
    """Have what builds something of a kind compute for twice as long, once the app is warm."""
    warm = giving.warmth()

    def around(function: Callable[..., Any], args: Any, named: Any) -> Any:
        if not warm:
            return function(*args, **named)
        began = time.thread_time()
        try:
            return function(*args, **named)
        finally:
            until = 2 * time.thread_time() - began
            while time.thread_time() < until:
                pass
            giving.took("building-longer")

    follow(giving.finder, kind, around)


TREATMENTS: Treatments = {"building-longer": _building_longer}
