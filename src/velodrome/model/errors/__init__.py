"""Every error velodrome raises on purpose. A class composes its sentence from facts; callers pass facts only.

One file an idea; the rest of velodrome imports from here. `root` says what a command ends with. A file is imported when
something of it is asked for: a load waits for none but the roots.
"""

TYPE_CHECKING = False  # typing's own, without typing
if TYPE_CHECKING:
    from velodrome.model.errors.apps import (
        AppAnswersWrongError,
        AppEndsError,
        AppFolderError,
        AppHangsError,
        AppInterpreterError,
        AppNameError,
        AppNotServedError,
        AppPathError,
        AppRaisesError,
        AppUnfitError,
        AppVariableError,
        CommandFailedError,
        HeaderError,
        NoStackFitsError,
        WithheldHeaderError,
    )
    from velodrome.model.errors.beside import (
        CompanionFailedError,
        CompanionMissingError,
        ProgramError,
        UpstreamError,
    )
    from velodrome.model.errors.conditions import (
        ConditionError,
        InsufficientDataError,
        ThresholdError,
        UnknownLoadMetricError,
    )
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
    from velodrome.model.errors.revisions import GitError, NotFromRevisionError, RevisionError
    from velodrome.model.errors.root import UsageError, VelodromeError
    from velodrome.model.errors.servers import (
        LimitError,
        NoPortError,
        NoServerError,
        ProfilerError,
        ServerNotReadyError,
        StartRefusedError,
    )
    from velodrome.model.errors.storage import (
        DifferentMachinesError,
        NotTwoSidesError,
        OutputError,
        OutputPathError,
        ResultsError,
        ResultsExistError,
        ResultsInUseError,
        StudyChangedError,
        UnreadableVerdictError,
    )
    from velodrome.model.errors.usage import (
        AccessLogError,
        AppInProgramError,
        AppInTestError,
        AppNotFoundError,
        BadOptionError,
        BrokenPluginError,
        CredentialsInUrlError,
        MisplacedOptionError,
        MissingLibraryError,
        NeedlessOptionError,
        NoSourceError,
        NothingSelectedError,
        OpenApiError,
        RequestLineError,
        RequestsFileError,
        StudyFileError,
        TwoSourcesError,
        UnknownKnobError,
        UnknownNameError,
    )
else:
    _FILES = (
        "root",
        "load",
        "usage",
        "apps",
        "beside",
        "conditions",
        "drivers",
        "environments",
        "links",
        "races",
        "revisions",
        "servers",
        "storage",
    )

    def __getattr__(name):
        if name in __all__:
            for file in _FILES:
                # Not by importlib, which imports more than it is.
                found = getattr(__import__(f"{__name__}.{file}", fromlist=[name]), name, None)
                if found is not None:
                    return found
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


__all__ = [
    "AccessLogError",
    "AppAnswersWrongError",
    "AppEndsError",
    "AppFolderError",
    "AppHangsError",
    "AppInProgramError",
    "AppInTestError",
    "AppInterpreterError",
    "AppNameError",
    "AppNotFoundError",
    "AppNotServedError",
    "AppPathError",
    "AppRaisesError",
    "AppUnfitError",
    "AppVariableError",
    "BadOptionError",
    "BrokenPluginError",
    "BusyError",
    "CalibrationError",
    "ClaimsFailedError",
    "CommandFailedError",
    "CompanionFailedError",
    "CompanionMissingError",
    "ConditionError",
    "CredentialsInUrlError",
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
    "GitError",
    "HeaderError",
    "IdleError",
    "InsufficientDataError",
    "InterpreterNotFoundError",
    "LimitError",
    "LinkError",
    "LinkRefusedError",
    "LoadRefusedError",
    "MisplacedOptionError",
    "MissingLibraryError",
    "MostlyFailedError",
    "NeedlessOptionError",
    "NoPortError",
    "NoServerError",
    "NoSourceError",
    "NoStackFitsError",
    "NotFromRevisionError",
    "NotTwoSidesError",
    "NothingAnsweredError",
    "NothingAskedError",
    "NothingMeasuredError",
    "NothingSelectedError",
    "OpenApiError",
    "OutputError",
    "OutputPathError",
    "ProfilerError",
    "ProgramError",
    "RaceInterruptedError",
    "RequestLineError",
    "RequestsFileError",
    "ResultsError",
    "ResultsExistError",
    "ResultsInUseError",
    "RevisionError",
    "ServerNotReadyError",
    "StartRefusedError",
    "StudyChangedError",
    "StudyFileError",
    "ThresholdError",
    "TwoSourcesError",
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
    "WithheldHeaderError",
]
