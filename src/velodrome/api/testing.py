"""What the fixture `velodrome` of pytest is."""

from typing import Any

from velodrome.api.loading import Loaded, load


class Velodrome:
    """Loads servers and apps for a test."""

    def load(self, target: object, **how: Any) -> Loaded:
        """Load a URL, or an app that is served for it; `how` is what `velodrome.load` takes."""
        return load(target, **how)
