"""What happened in a trial: facts only. Units are in the names; what could not be told is None.

One file for each who tells; the rest of velodrome imports from here.
"""

from velodrome.model.measurement.beside import CompanionFacts, IdleFacts, UpstreamFacts
from velodrome.model.measurement.failure import Failed, FailureKind
from velodrome.model.measurement.link import LinkFacts, WayFacts
from velodrome.model.measurement.load import (
    OUTCOMES,
    UNTOLD,
    Latency,
    LoadFacts,
    LoadSecond,
    LoadStep,
    ended_rps,
)
from velodrome.model.measurement.machine import HostFacts, Placement, QueueFacts
from velodrome.model.measurement.server import AnswerForm, ServerFacts, ServerSample, WorkerUse
from velodrome.model.measurement.whole import Measurement

__all__ = [
    "OUTCOMES",
    "UNTOLD",
    "AnswerForm",
    "CompanionFacts",
    "Failed",
    "FailureKind",
    "HostFacts",
    "IdleFacts",
    "Latency",
    "LinkFacts",
    "LoadFacts",
    "LoadSecond",
    "LoadStep",
    "Measurement",
    "Placement",
    "QueueFacts",
    "ServerFacts",
    "ServerSample",
    "UpstreamFacts",
    "WayFacts",
    "WorkerUse",
    "ended_rps",
]
