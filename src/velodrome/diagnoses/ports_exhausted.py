"""A connection for each call: each keeps a local port for a minute, and there are some 28 000 for one address."""

import math

from velodrome.diagnoses.fault import Absent, Experiment, Fault, Screened, Suspect, Unknown, filling
from velodrome.model.diagnosis import Cure, Evidence, Probe, Treatment
from velodrome.model.quantity import significant
from velodrome.model.symptoms import Symptoms

TIME_WAIT_S = 60.0
"""For which Linux keeps a port after its connection was ended from this side."""
SPARE, FEWEST, SHARE = 4, 64, 0.25
"""Ports in the dose for each connection that a request opens, over requests in flight: whoever keeps connections never
needs as many, and who does not is answered for a moment yet. Of all ports no more than that share."""
SECONDS = 2.0


def screen(seen: Symptoms) -> Screened:
    """Look whether connections to one address are opened faster than ports come back."""
    watched = seen.watched
    opened = watched.most_opened if watched is not None else None
    if watched is None or opened is None:
        return Unknown("how many connections it opens could not be seen")
    if not watched.ports:
        return Unknown("this system does not say how many local ports there are")
    if not opened.count:
        return Absent("it opens no connection while requests are served")
    each = opened.each
    most = seen.slope.plateau.rps if seen.slope else watched.rps
    opens, back = each * most, watched.ports / TIME_WAIT_S
    sentence = (
        f"{significant(each, 2)} connections to {opened.peer} are opened for each request, {significant(opens)}/s at "
        "most throughput, and "
        f"{watched.ports} ports come back at {significant(back)}/s"
    )
    evidence = Evidence(
        "counter", sentence, {"opened": opened.count, "each": each, "per_s": opens, "ports": watched.ports}
    )
    if opens < back:
        return Absent(sentence, (evidence,))
    connections = filling(seen)
    ports = max(SPARE * connections * math.ceil(each), FEWEST)
    ports = min(ports, int(SHARE * watched.ports))
    probe = Probe(
        "crowd",
        f"a closed loop of {connections} connections, with {ports} local ports in place of {watched.ports}",
        "failed",
        {"connections": connections, "seconds": SECONDS},
        seconds=SECONDS + 0.5,
        worth=0.05,
    )
    cure = Cure(
        "keep connections, in a pool or a client that all requests share: without, one address can be called for "
        f"{significant(back / each)} requests a second at most",
        "where the connection is opened",
        "a new connection for each call",
        "one client for all requests, with keep-alive",
    )
    few = Treatment(f"{ports} local ports", {"few-ports": ports})
    return Suspect(
        0.7,
        sentence,
        (Experiment(few, 0, cure, proof="dose", probe=probe),),
        (evidence,),
        loss=max(1 - back / opens, 0.1),
    )


fault = Fault(
    "ports-exhausted",
    "«Cannot assign requested address» near 500 new connections a second: ports in TIME_WAIT; keep connections",
    ("k6#826",),
    "Each call takes a local port, and they are taken faster than they come back.",
    f"With {SPARE} local ports for each connection of the requests in flight they fail at once, and do not where "
    "connections are kept (Linux 6.3 and newer; connections that Python code opens).",
    screen,
    follows=True,
)
