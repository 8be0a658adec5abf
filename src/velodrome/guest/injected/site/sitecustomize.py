"""Python imports this at its start where this folder is on the import path: the process gets what it is to be given.

Then it makes room for the `sitecustomize` that would have been imported in its place.
"""

import os
import sys
from importlib import machinery, util


def make_room() -> None:
    """Import the `sitecustomize` that this one hides, if there is one."""
    here = os.path.dirname(os.path.abspath(__file__))
    others = [place for place in sys.path if os.path.abspath(place or os.curdir) != here]
    spec = machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    module = util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if __name__ == "sitecustomize":  # as `site` imports it, and nobody else
    try:
        from velodrome.guest.injected import treating

        treating.apply(os.environ)
    finally:
        make_room()
