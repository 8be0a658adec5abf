"""requests and urllib3 keep 10 connections to a host: what more threads open is thrown away after each call.

And they keep 10 pools, one for each host, scheme and certificate: a further one throws another away.
"""

from dataclasses import replace

from velodrome.diagnoses.fault import Doing, Experiment, Fault, Screened, doing
from velodrome.model.diagnosis import Cure, Treatment
from velodrome.model.symptoms import Symptoms

SIZE = 200
DEFAULT = 10
SECONDS = 2.0


def screen(seen: Symptoms) -> Screened:
    """Look for connections that urllib3 opens while requests are served."""
    words = "the opening of connections by urllib3"
    loaded = doing(seen, "dialling", words)
    alone = doing(
        replace(seen, watched=seen.watched_alone), "dialling", f"{words}, with one request at a time"
    )
    # Where calls follow each other without a pause no connection lies idle to be thrown away, and the fewer requests
    # there are, the more of their calls begin together.
    found, connections = loaded, 0
    if isinstance(alone, Doing) and not (isinstance(loaded, Doing) and loaded.share > alone.share):
        found, connections = alone, 1
    if not isinstance(found, Doing):
        return found
    cure = Cure(
        "keep as many connections as threads call at once, and as many pools as there are hosts (and certificates)",
        "where the session is made",
        f"requests.Session(): {DEFAULT} connections to a host are kept, of {DEFAULT} hosts; urllib3.PoolManager(): 1",
        f"session.mount('https://', HTTPAdapter(pool_maxsize={5 * DEFAULT}, pool_connections={5 * DEFAULT})), or "
        f"urllib3.PoolManager({5 * DEFAULT}, maxsize={5 * DEFAULT})",
    )
    larger = Treatment(f"urllib3 keeps {SIZE} connections, and pools", {"urllib3-connections": SIZE})
    experiment = Experiment(
        larger,
        connections or found.connections,
        cure,
        ("rps", "p50_ms", "cpu_us"),
        needless=True,
        seconds=SECONDS,
    )
    return found.suspect(experiment)


fault = Fault(
    "urllib3-pool",
    "«Connection pool is full»: more than 10 threads call one host, or there are more than 10 hosts, and each call "
    "opens a connection; keep more",
    ("nominal-client#716",),
    "Calls wait for handshakes of connections that were thrown away.",
    "With more connections kept, throughput, the median or CPU time per request is better. Sessions that live for one "
    "call gain nothing.",
    screen,
)
