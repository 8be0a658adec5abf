"""All channels to one address share a TCP connection, on which a server allows some 100 calls at once."""

from velodrome.diagnoses.fault import (
    Absent,
    Experiment,
    Fault,
    Screened,
    Suspect,
    Unknown,
    is_about,
    no_plateau,
    plateau,
    stops_at,
)
from velodrome.model.diagnosis import Cure, Treatment
from velodrome.model.quantity import significant
from velodrome.model.symptoms import Symptoms

STREAMS = 100
"""That many servers and proxies allow on a connection."""
CHANNELS = 8
MOST_CONNECTIONS = 512


def screen(seen: Symptoms) -> Screened:
    """Look for a plateau while nothing computes, in an app with a client of gRPC."""
    if seen.watched is None:
        return no_plateau(seen) or Unknown("what it imports could not be seen")
    if "grpc" not in seen.watched.libraries:
        return Absent("gRPC is not imported")
    if (bound := no_plateau(seen)) is not None:
        return bound
    assert seen.slope is not None
    k = seen.slope.in_work
    usual = is_about(k, STREAMS)
    cure = Cure(
        "several channels, each with connections of its own, used in turn; or more streams on a connection, where the "
        "server is yours",
        "where the channel is made",
        f"grpc.aio.insecure_channel(address): all of them share one connection, and {significant(k.mid)} calls "
        "are in work",
        'grpc.aio.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)]), several times',
    )
    several = Treatment(f"{CHANNELS} connections for each channel", {"grpc-channels": CHANNELS})
    connections = min(max(2 * seen.slope.plateau.connections, round(2 * k.mid)), MOST_CONNECTIONS)
    return Suspect(
        0.8 if usual else 0.4,
        f"{significant(k.mid)} requests in work, and a client of gRPC",
        (Experiment(several, connections, cure, needless=True),),
        plateau(seen),
        loss=0.4,
    )


def glance(seen: Symptoms) -> str:
    """Look for as many requests in work as servers of gRPC admit on a connection, where its client is installed."""
    if seen.counted is None or "grpcio" not in seen.counted.packages:
        return ""
    sentence = stops_at(seen, STREAMS)
    return sentence and f"{sentence}: a server of gRPC usually admits {STREAMS} calls on a connection"


fault = Fault(
    "one-grpc-connection",
    "throughput stops near 100 calls in flight: all channels share one connection; local subchannel pools",
    ("grpc#20985",),
    "Calls wait for one of the streams that the other side allows on a connection.",
    "With several connections for each channel throughput rises on.",
    screen,
    glance=glance,
)
