"""Where published figures contradict arithmetic or each other; computed, never typed."""

from velodrome.model.claim import Arithmetic, Claim, Contradiction
from velodrome.model.quantity import exact, number, short

TOLERANCE = 0.05
"""Rounding, and what the ends of a span catch, explain this much."""


def contradictions(claim: Claim) -> tuple[str, ...]:
    """Return a sentence for each contradiction in what was published; none where the figures agree."""
    found = [beyond_littles_law(one) for one in claim.arithmetic]
    found += [beside_its_table(one) for one in claim.contradictions]
    return tuple(filter(None, found))


def beyond_littles_law(told: Arithmetic) -> str:
    """Return why a published rate is impossible for what it is said to have run on, or nothing.

    What holds a slot for W seconds and has n of them cannot do more than n ÷ W (Little 1961, docs/method.md).
    """
    wait_s = told.wait_ms / 1000
    most = told.slots / wait_s
    if told.published_rps <= most * (1 + TOLERANCE):
        return ""
    needed = told.published_rps * wait_s
    return (
        f"{told.slots} {told.what} that each wait {short(told.wait_ms)} ms cannot exceed "
        f"{told.slots} ÷ {short(wait_s)} s = {exact(most)}; the published {short(told.published_rps)}/s takes "
        f"{number(needed, 2)} of them, so it cannot have had {told.slots} {told.what} in all, or they did not "
        f"wait {short(told.wait_ms)} ms"
    )


def beside_its_table(told: Contradiction) -> str:
    """Return how what a text says differs from what its own table gives, or nothing."""
    table = told.a / told.b
    if abs(table / told.says - 1) <= TOLERANCE:
        return ""
    return (
        f"the publication says {short(told.says)} for {told.about}; its own table gives "
        f"{short(told.a)} ÷ {short(told.b)} = {number(table, 3)}"
    )
