"""What the screens of the doctor saw of an app, in sentences for people and as data for the document.

for evidence in screen_evidence(seen): print(evidence.said)
"""

from collections.abc import Iterator

from velodrome.diagnoses.fault import plateau, third_party_evidence
from velodrome.judge.diagnosis import WRONG
from velodrome.model.diagnosis import Evidence
from velodrome.model.quantity import significant
from velodrome.model.symptoms import Symptoms, Waits, Watched

LINE_SHARE = 0.1
"""Of the time of busy threads, from which on a line of the app is shown."""
ALONE_WAITS = 0.3
"""Of the time of a request that is alone, from which on its waits are shown of an app that otherwise computes."""
WAITS = 2
"""Of the awaits in which tasks spend most time, so many are shown."""


def screen_evidence(seen: Symptoms) -> Iterator[Evidence]:
    """Yield what the screens saw, for people and for the document."""
    yield from plateau(seen)
    if seen.slope is not None and (worst := max(point.errors for point in seen.slope.points)) > WRONG:
        yield Evidence(
            "errors",
            f"up to {worst:.0%} of the requests are not answered right, and what these take is not judged: mend that "
            "first, or declare what is right (--request 'GET /path -> 503', or a file of requests with --requests)",
            {"share": worst, "points": [[point.connections, point.errors] for point in seen.slope.points]},
        )
    if (watched := seen.watched) is not None:
        late, blocked = (one / watched.seconds for one in (watched.late_s, watched.blocked_s))
        loop = f"event loop late for {late:.1%} of the time, blocked for {blocked:.1%}"
        sentence = loop if watched.loop else "no asyncio event loop"
        yield Evidence(
            "counter", sentence, {"late_share": late, "blocked_share": blocked, "loop": watched.loop}
        )
        if lines := [line for line in watched.lines if line.share >= LINE_SHARE]:
            each = (f"{line.share:.0%} at {line.place}: {line.text}".removesuffix(": ") for line in lines)
            yield Evidence(
                "lines", f"busy threads are {'; '.join(each)}", {"lines": [vars(line) for line in lines]}
            )
        # What computes is not waited for; but a request that is alone may wait all the same.
        waiting = seen.watched_alone if seen.computes else watched
        if waiting is not None and (waits := _longest_waits(waiting, ALONE_WAITS if seen.computes else 0.0)):
            who = "a request that is alone waits" if seen.computes else "tasks wait"
            each = (f"{share:.0%} at {wait.place}: {wait.text} (up to {wait.most})" for share, wait in waits)
            data = {
                "waits": [{"place": wait.place, "share": share, "most": wait.most} for share, wait in waits]
            }
            yield Evidence("waits", f"{who} {'; '.join(each)}", data)
    yield from third_party_evidence(seen)
    if (reused := seen.reused) is not None:
        sentence = (
            f"p50 {significant(reused.first_ms)} ms on fresh connections, {significant(reused.later_ms)} ms on "
            "a reused one"
        )
        yield Evidence("latency", sentence, {"first_ms": reused.first_ms, "later_ms": reused.later_ms})
    for why in seen.failed:
        yield Evidence("failed", why)


def _longest_waits(watched: Watched, least: float) -> list[tuple[float, Waits]]:
    """Return where tasks wait most, each with its share of all waits in the app's own code.

    Empty: together they wait for a smaller part of the time than `least`, on average.
    """
    inner = [wait for wait in watched.waits if wait.inner]
    every = sum(wait.seconds for wait in inner)
    if every < least * watched.looked_s:
        return []
    return [(wait.seconds / every, wait) for wait in inner[:WAITS] if wait.seconds >= LINE_SHARE * every]
