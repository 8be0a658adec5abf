"""Connections or files that are opened for a request and never closed."""

from velodrome.diagnoses.fault import Absent, Experiment, Fault, Screened, Suspect, Unknown, growing, growth
from velodrome.model.diagnosis import AS_IT_IS, Cure, Evidence
from velodrome.model.quantity import significant
from velodrome.model.symptoms import Symptoms

LEAST_EACH = 0.01
"""Descriptors that a request leaves open, from which on it is looked into."""


def screen(seen: Symptoms) -> Screened:
    """Look whether open descriptors rose with each of the last loads of the screens."""
    grown = growth(seen.descriptors)
    if grown is None:
        return Unknown("its open descriptors over the screens could not be seen")
    sentence = f"{grown.risen:.0f} more descriptors open after {grown.requests} requests"
    evidence = Evidence(
        "counter", sentence, {"descriptors": [list(descriptor) for descriptor in seen.descriptors]}
    )
    if not grown.always or grown.each < LEAST_EACH:
        return Absent(sentence, (evidence,))
    if not seen.setting.plain:
        return Unknown(f"{sentence}: its requests cannot be sent by hand")
    cure = Cure(
        "close what a request opens when it ends (a `with` block, or a client or pool that all requests share); under "
        "ASGI a Django database connection that is kept (CONN_MAX_AGE) is one for each request",
        "where the connection or file is opened",
    )
    probe = growing("that leave more descriptors open", descriptors=1, least=LEAST_EACH)
    dose = Experiment(AS_IT_IS, 0, cure, proof="dose", probe=probe)
    return Suspect(0.9, sentence, (dose,), (evidence,), loss=0.5)


def glance(seen: Symptoms) -> str:
    """Look for descriptors that rise in every half second of every closed loop, whose connections stay the same."""
    counted = seen.counted
    if counted is None or counted.left_open < LEAST_EACH:
        return ""
    return (
        f"each request leaves {significant(counted.left_open, 2)} descriptors open while the connections stay "
        "the same"
    )


fault = Fault(
    "connections-leak",
    "each request leaves a connection or file open, until there are no descriptors left: close it, or share it",
    ("gyrinx#2083",),
    "What a request opens is never closed.",
    "Of loads that are alike each leaves more descriptors open; without load none is opened.",
    screen,
    glance=glance,
)
