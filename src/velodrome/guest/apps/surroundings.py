"""What an interpreter has: where its packages lie and which versions they are.

python -m velodrome.guest.apps.surroundings        # one line of JSON
"""

from __future__ import annotations

import json
import os
import re
import site
import sys
import sysconfig
from typing import Any, Dict, List


def normal(name: str) -> str:
    """Return the name of a package as installers compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def packages() -> Dict[str, str]:
    """Return the version of every installed package, by its normalized name; of two, that which is imported."""
    from importlib.metadata import distributions  # Python 3.7 has none, and nobody asks it

    found: Dict[str, str] = {}
    for distribution in distributions():
        # A folder that an interrupted installation left behind has neither.
        name: Any = distribution.metadata["Name"]
        if name and distribution.version:
            found.setdefault(normal(name), distribution.version)
    return dict(sorted(found.items()))


def folders() -> List[str]:
    """Return the folders packages lie in, in the order they are looked at, without those that are not there."""
    if hasattr(site, "getsitepackages"):
        found = site.getsitepackages()
    else:  # environments of an old virtualenv
        found = [sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"]]
    if site.ENABLE_USER_SITE:
        found = [site.getusersitepackages(), *found]
    real = dict.fromkeys(os.path.realpath(path) for path in found)
    return [path for path in real if os.path.isdir(path)]


def main() -> None:
    """Run the program."""
    facts = {"packages": packages(), "folders": folders(), "prefix": sys.prefix}
    sys.stdout.write(json.dumps(facts) + "\n")


if __name__ == "__main__":
    main()
