"""The time that a tuning may take: so much for looks, so much for the race, and the rest for its proof."""

import time
from dataclasses import dataclass

RESERVED_S, RESERVED = 20.0, 1 / 3
"""Of the budget, for the first proof: so long, and no more than this part."""
LOOKS = 0.5
"""Of the time that is left then, what looks at stacks may take: what was only looked at is no answer."""


@dataclass(frozen=True)
class Budget:
    """The time to measure in, of which a part is kept for the proof."""

    began: float
    """On the clock of `time.monotonic`."""
    seconds: float

    @property
    def racing_s(self) -> float:
        """What the race may take."""
        return self.seconds - min(RESERVED_S, RESERVED * self.seconds)

    def allows(self, seconds: float) -> bool:
        """Return whether the race may do something that takes so long."""
        return self._spent_s + seconds < self.racing_s

    def allows_look(self, seconds: float) -> bool:
        """Return whether one more stack may be looked at, which takes so long."""
        return self._spent_s + seconds < LOOKS * self.racing_s

    def allows_proof(self, seconds: float) -> bool:
        """Return whether there is time left for a proof that takes so long."""
        return self._spent_s + seconds < self.seconds

    @property
    def _spent_s(self) -> float:
        return time.monotonic() - self.began
