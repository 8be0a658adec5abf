"""How a server's processes are given what `guest/injected/` brings: a folder on their import path, and a variable.

    serving = into(serving, Injected(folder, {"anyio-tokens": 400}))

The folder is the caller's to make, and to remove when it has read what the processes wrote.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from velodrome.guest.injected.treating import VARIABLE
from velodrome.run.environments.guest_tree import PACKAGE
from velodrome.run.servers import Serving

SITE = PACKAGE / "injected" / "site"
"""Where Python finds `sitecustomize`, below the guest tree."""


@dataclass(frozen=True)
class Injected:
    """What the processes of a server are given."""

    folder: Path
    """Where they write what they see."""
    give: Mapping[str, Any] = field(default_factory=dict)
    """By the names of `guest/injected/treating.py`."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that are otherwise than the app and the stack have them."""


def into(serving: Serving, injected: Injected) -> Serving:
    """Return how a server is started with this in its processes, before anything of its app is imported."""
    given = json.dumps({"folder": str(injected.folder), "give": dict(injected.give)})
    theirs = serving.variables.get("PYTHONPATH", "")
    path = os.pathsep.join(filter(None, (str(serving.guest_tree / SITE), theirs)))
    mine = {**injected.environment, VARIABLE: given, "PYTHONPATH": path}
    return replace(serving, variables={**serving.variables, **mine})
