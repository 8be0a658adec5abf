"""Memory that grows with every request and never stops growing."""

from velodrome.diagnoses.fault import Absent, Experiment, Fault, Screened, Suspect, Unknown, growing, growth
from velodrome.model.diagnosis import AS_IT_IS, Cure, Evidence, Treatment
from velodrome.model.quantity import significant
from velodrome.model.symptoms import Symptoms

LEAST_BYTES = 64
"""That a request leaves behind: less is how memory is handed out."""
GLANCED_BYTES = 512
"""The same in loads of other commands, which are shorter, and never repeated to fill what fills."""


def screen(seen: Symptoms) -> Screened:
    """Look whether memory grew in each of the last loads of the screens, which are alike."""
    grown = growth(seen.in_use.memory)
    if grown is None:
        return Unknown("its memory over the screens could not be seen")
    sentence = f"memory grew by {significant(grown.risen / 1e6)} MB over {grown.requests} requests"
    evidence = Evidence("counter", sentence, {"memory": [list(one) for one in seen.in_use.memory]})
    if not grown.always or grown.each < LEAST_BYTES:
        return Absent(sentence, (evidence,))
    if not seen.setting.plain:
        return Unknown(f"{sentence}: its requests cannot be sent by hand")
    cure = Cure(
        "bound what is kept from request to request: a cache with a largest size, a list that is emptied",
        "what outlives its request",
    )
    probe = growing("that leave more memory in use", least=LEAST_BYTES)
    objects = Treatment("live objects counted", {"live-blocks": True})
    dose = Experiment(AS_IT_IS, 0, cure, proof="dose", probe=probe, seen_by=objects, leaves_memory=True)
    return Suspect(0.7, f"{sentence}: {significant(grown.each)} bytes each", (dose,), (evidence,), loss=0.2)


def glance(seen: Symptoms) -> str:
    """Look for memory that rises in every half second of every load."""
    counted = seen.counted
    if counted is None or counted.left_bytes < GLANCED_BYTES:
        return ""
    return (
        f"each request leaves {significant(counted.left_bytes)} bytes in use, in every load from its beginning "
        "to its end"
    )


fault = Fault(
    "growth",
    "memory grows with requests until the process is killed: something outlives its request; bound it",
    ("field practice",),
    "Something of each request is kept for good, and not only until a cache is full.",
    "Of loads that are alike, and follow those that fill caches, each leaves more memory in use; without load none is.",
    screen,
    glance=glance,
)
