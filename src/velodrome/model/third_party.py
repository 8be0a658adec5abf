"""A simulated third party that stands in for one an app calls."""

from dataclasses import dataclass

from velodrome.model.request import Content

SHOWN = 200
"""Characters of a body that are shown in one line with the rest."""


@dataclass(frozen=True)
class Stall:
    """A third party that answers nothing for a while, again and again."""

    for_s: float
    every_s: float


@dataclass(frozen=True)
class ThirdParty:
    """How it answers, and where the app finds it: plain data."""

    variable: str
    """Environment variable in which the app finds its base URL: `PAYMENTS_URL`."""
    latency: str
    """As `velodrome upstream --latency` takes it: `50ms`, `lognormal(50ms,0.4)`."""
    errors: float = 0.0
    """Share of requests that it answers with status 500."""
    stall: Stall | None = None
    body: Content | None = None
    """Of a right answer; None: `size` bytes of a text that says nothing."""
    size: int = 64
    content_type: str = "text/plain"

    def text(self, file: str) -> str:
        """Return it as it is typed behind `--upstream`; a body that does not go on a line is in `file`."""
        parts = [f"latency:{self.latency}"]
        if self.errors:
            parts.append(f"errors:{self.errors * 100:g}%")
        if self.stall is not None:
            parts.append(f"stall:{self.stall.for_s:g}s/{self.stall.every_s:g}s")
        if self.body is not None or self.content_type != ThirdParty.content_type:
            parts.append(f"type:{self.content_type}")
        if self.body is not None:
            short = not self.body.base64 and len(self.body.text) <= SHOWN
            parts.append(f"body:{self.body.text}" if short else f"body:@{file}")
        elif self.size != ThirdParty.size:
            parts.append(f"body:{self.size}")
        return f"{self.variable}={','.join(parts)}"
