"""Every error velodrome raises on purpose. A class composes its sentence from facts; callers pass facts only.

One file an idea; the rest of velodrome imports from here. `root` says what a command ends with.
"""

from velodrome.model.errors.beside import (
    CompanionFailedError,
    CompanionMissingError,
    ProgramError,
    UpstreamError,
)
from velodrome.model.errors.conditions import ConditionError, UnknownLoadMetricError
from velodrome.model.errors.drivers import (
    DriverError,
    DriverFailedError,
    DriverMissingError,
    DriverOutputError,
    DriverStoppedError,
    DriverTimedOutError,
    DriverTooOldError,
    MostlyFailedError,
    NothingAskedError,
    UnfitLoadError,
    UnknownDriverError,
)
from velodrome.model.errors.environments import (
    CalibrationError,
    EnvironmentFailedError,
    InterpreterNotFoundError,
    UvMissingError,
)
from velodrome.model.errors.links import LinkError, LinkRefusedError
from velodrome.model.errors.load import EngineError, IdleError, LoadRefusedError, NothingAnsweredError
from velodrome.model.errors.races import (
    BusyError,
    ClaimsFailedError,
    NothingMeasuredError,
    RaceInterruptedError,
)
from velodrome.model.errors.root import UsageError, VelodromeError
from velodrome.model.errors.servers import (
    LimitError,
    NoPortError,
    ProfilerError,
    ServerNotReadyError,
    StartRefusedError,
)
from velodrome.model.errors.storage import (
    DifferentMachinesError,
    OutputError,
    ResultsError,
    ResultsExistError,
    ResultsInUseError,
    StudyChangedError,
    UnreadableVerdictError,
)
from velodrome.model.errors.usage import (
    BadOptionError,
    BrokenPluginError,
    MisplacedOptionError,
    NothingSelectedError,
    RequestLineError,
    RequestsFileError,
    StudyFileError,
    UnknownKnobError,
    UnknownNameError,
)

__all__ = [
    "BadOptionError",
    "BrokenPluginError",
    "BusyError",
    "CalibrationError",
    "ClaimsFailedError",
    "CompanionFailedError",
    "CompanionMissingError",
    "ConditionError",
    "DifferentMachinesError",
    "DriverError",
    "DriverFailedError",
    "DriverMissingError",
    "DriverOutputError",
    "DriverStoppedError",
    "DriverTimedOutError",
    "DriverTooOldError",
    "EngineError",
    "EnvironmentFailedError",
    "IdleError",
    "InterpreterNotFoundError",
    "LimitError",
    "LinkError",
    "LinkRefusedError",
    "LoadRefusedError",
    "MisplacedOptionError",
    "MostlyFailedError",
    "NoPortError",
    "NothingAnsweredError",
    "NothingAskedError",
    "NothingMeasuredError",
    "NothingSelectedError",
    "OutputError",
    "ProfilerError",
    "ProgramError",
    "RaceInterruptedError",
    "RequestLineError",
    "RequestsFileError",
    "ResultsError",
    "ResultsExistError",
    "ResultsInUseError",
    "ServerNotReadyError",
    "StartRefusedError",
    "StudyChangedError",
    "StudyFileError",
    "UnfitLoadError",
    "UnknownDriverError",
    "UnknownKnobError",
    "UnknownLoadMetricError",
    "UnknownNameError",
    "UnreadableVerdictError",
    "UpstreamError",
    "UsageError",
    "UvMissingError",
    "VelodromeError",
]
