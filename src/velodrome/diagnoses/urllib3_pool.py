"""requests and urllib3 keep 10 connections to a host: what more threads open is thrown away after each call."""

from velodrome.diagnoses.fault import Doing, Experiment, Fault, Screened, doing
from velodrome.model.diagnosis import Cure, Treatment
from velodrome.model.symptoms import Symptoms

SIZE = 200
DEFAULT = 10


def screen(seen: Symptoms) -> Screened:
    """Look for connections that urllib3 opens while requests are served."""
    found = doing(seen, "dialling", "the opening of connections by urllib3")
    if not isinstance(found, Doing):
        return found
    cure = Cure(
        "keep as many connections as threads call at once",
        "where the session is made",
        f"requests.Session(): {DEFAULT} connections to a host are kept",
        f"session.mount('https://', HTTPAdapter(pool_maxsize={5 * DEFAULT}))",
    )
    larger = Treatment(f"urllib3 keeps {SIZE} connections", {"urllib3-connections": SIZE})
    # No more than fill it: where calls follow each other without a pause, no connection lies idle to be thrown away.
    metrics = ("rps", "p50_ms", "cpu_us")
    return found.suspect(
        Experiment(larger, found.connections, cure, metrics, takes="urllib3-connections", needless=True)
    )


fault = Fault(
    "urllib3-pool",
    "«Connection pool is full»: more than 10 threads call one host, and each call opens a connection; keep more",
    ("nominal-client#716",),
    "Calls wait for handshakes of connections that were thrown away.",
    "With more connections kept, throughput, the median or CPU time per request is better. Sessions that live for one "
    "call gain nothing.",
    screen,
)
