"""Every error that velodrome raises on purpose. A class composes its sentence from facts; callers pass facts only.

Here: the roots, and the exit code of a command that ends with one. `usage`: options and files. `apps`: a user's own
app. `load`: load generators. `lab`: environments, servers, results, the system. `cluster`: agents on other machines.
The rest of velodrome imports from here. A file is imported when one of its names is first used, because
`velodrome load` has no time to import more than the roots.

Exit codes: 0 success, 1 a claim or threshold failed, 2 usage or configuration, 3 the measurement itself could not run,
4 insufficient data, 130 interrupted.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing's own, without typing
if TYPE_CHECKING:
    from collections.abc import Sequence

    from velodrome.model.errors.apps import (
        AppAnswersWrongError,
        AppEndsError,
        AppFolderError,
        AppHangsError,
        AppInProgramError,
        AppInterpreterError,
        AppInTestError,
        AppNameError,
        AppNotFoundError,
        AppNotServedError,
        AppPathError,
        AppRaisesError,
        AppUnfitError,
        AppVariableError,
        CommandFailedError,
        EnvFileError,
        GitError,
        HeaderError,
        HeaderFileError,
        NoStackFitsError,
        NotFromRevisionError,
        RevisionError,
        SameAppError,
        TeardownInterruptedError,
        TooSlowError,
        WithheldAnswerError,
        WithheldHeaderError,
        WithheldRequestError,
    )
    from velodrome.model.errors.cluster import (
        AgentEndedError,
        AgentLostError,
        AgentRefusedError,
        AgentsDifferError,
        AgentsGoneError,
        AgentsRefuseRaceError,
        AgentStartError,
        ClusterAddressError,
        ClusterKeysError,
        ClusterMissingError,
        CoordinatorError,
        ExaminationRefusedError,
        ExaminersGoneError,
        KeysThereError,
        LoadElsewhereError,
        NoAgentsError,
        PlacingError,
        PlainTcpError,
        SendingError,
        SshError,
        TooFewCpusError,
    )
    from velodrome.model.errors.lab import (
        AccountError,
        BrokenInstallationError,
        BusyError,
        CacheError,
        CalibrationError,
        ClaimsFailedError,
        CompanionFailedError,
        CompanionMissingError,
        DifferentMachinesError,
        EnvironmentFailedError,
        ExhaustedError,
        FullError,
        InterpreterNotFoundError,
        LimitError,
        LinkError,
        LinkRefusedError,
        LockError,
        NoHomeError,
        NoPortError,
        NoServerError,
        NothingMeasuredError,
        NotTwoSidesError,
        OtherArrivalsError,
        OtherClaimsError,
        OtherRequestsError,
        OtherStudyError,
        OutputError,
        OutputPathError,
        ProfilerError,
        ProgramError,
        RaceInterruptedError,
        ResultsError,
        ResultsExistError,
        ResultsInUseError,
        SameTrialsError,
        ScratchError,
        ServerNotReadyError,
        StartRefusedError,
        StudyChangedError,
        TerminalError,
        UnforeseenError,
        UnreadableVerdictError,
        UpstreamError,
        UvMissingError,
    )
    from velodrome.model.errors.load import (
        DriverError,
        DriverFailedError,
        DriverMissingError,
        DriverOutputError,
        DriverStoppedError,
        DriverTimedOutError,
        DriverTooOldError,
        EngineError,
        IdleError,
        LoadRefusedError,
        MostlyFailedError,
        NothingAnsweredError,
        NothingAskedError,
        UnfitLoadError,
        UnknownDriverError,
    )
    from velodrome.model.errors.usage import (
        AccessLogError,
        BadOptionError,
        BrokenPluginError,
        ConditionError,
        CredentialsInUrlError,
        InsufficientDataError,
        MisplacedOptionError,
        MissingLibraryError,
        NeedlessOptionError,
        NeverMeasuredError,
        NoSourceError,
        NoStudiesError,
        NothingSelectedError,
        OpenApiError,
        RequestLineError,
        RequestsFileError,
        SloError,
        StudyFileError,
        ThresholdError,
        TooLargeError,
        TwoSourcesError,
        UnknownKnobError,
        UnknownLoadMetricError,
        UnknownNameError,
        UntrustedError,
        WithoutAgentsError,
    )


class VelodromeError(Exception):
    """Root of all errors that a user can cause or cure; `exit_code` is what the command ends with.

    Its text contains no secrets, whatever a quoted server or program printed (`model/secrets.py`).
    """

    exit_code = 3
    last_lines: tuple[str, ...] = ()
    """The end of what a failed program printed, where that is known apart from the sentence."""

    @property
    def sentence(self) -> str:
        """The error on one line, for a cell of a table or a result; classes with `last_lines` leave those out."""
        return " ".join(str(self).split())

    def __init__(self, *facts: object) -> None:
        # If the module was never imported, there are no known secrets, and `velodrome load` has no time to import it.
        if (known := sys.modules.get("velodrome.model.secrets")) is not None:
            facts = tuple(known.mask(fact) if isinstance(fact, str) else fact for fact in facts)
        super().__init__(*facts)


class UsageError(VelodromeError):
    """Root of errors in the command, its options or its files (exit code 2)."""

    exit_code = 2


def quote_lines(lines: Sequence[str], indent: int = 2) -> str:
    """Return the last lines of a program as the end of a message, each on a line of its own; empty without any."""
    return "".join(["" if not lines else " Its last lines:", *(f"\n{' ' * indent}{line}" for line in lines)])


if not TYPE_CHECKING:
    _FILES = ("load", "usage", "apps", "lab", "cluster")

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
    "AccountError",
    "AgentEndedError",
    "AgentLostError",
    "AgentRefusedError",
    "AgentStartError",
    "AgentsDifferError",
    "AgentsGoneError",
    "AgentsRefuseRaceError",
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
    "BrokenInstallationError",
    "BrokenPluginError",
    "BusyError",
    "CacheError",
    "CalibrationError",
    "ClaimsFailedError",
    "ClusterAddressError",
    "ClusterKeysError",
    "ClusterMissingError",
    "CommandFailedError",
    "CompanionFailedError",
    "CompanionMissingError",
    "ConditionError",
    "CoordinatorError",
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
    "EnvFileError",
    "EnvironmentFailedError",
    "ExaminationRefusedError",
    "ExaminersGoneError",
    "ExhaustedError",
    "FullError",
    "GitError",
    "HeaderError",
    "HeaderFileError",
    "IdleError",
    "InsufficientDataError",
    "InterpreterNotFoundError",
    "KeysThereError",
    "LimitError",
    "LinkError",
    "LinkRefusedError",
    "LoadElsewhereError",
    "LoadRefusedError",
    "LockError",
    "MisplacedOptionError",
    "MissingLibraryError",
    "MostlyFailedError",
    "NeedlessOptionError",
    "NeverMeasuredError",
    "NoAgentsError",
    "NoHomeError",
    "NoPortError",
    "NoServerError",
    "NoSourceError",
    "NoStackFitsError",
    "NoStudiesError",
    "NotFromRevisionError",
    "NotTwoSidesError",
    "NothingAnsweredError",
    "NothingAskedError",
    "NothingMeasuredError",
    "NothingSelectedError",
    "OpenApiError",
    "OtherArrivalsError",
    "OtherClaimsError",
    "OtherRequestsError",
    "OtherStudyError",
    "OutputError",
    "OutputPathError",
    "PlacingError",
    "PlainTcpError",
    "ProfilerError",
    "ProgramError",
    "RaceInterruptedError",
    "RequestLineError",
    "RequestsFileError",
    "ResultsError",
    "ResultsExistError",
    "ResultsInUseError",
    "RevisionError",
    "SameAppError",
    "SameTrialsError",
    "ScratchError",
    "SendingError",
    "ServerNotReadyError",
    "SloError",
    "SshError",
    "StartRefusedError",
    "StudyChangedError",
    "StudyFileError",
    "TeardownInterruptedError",
    "TerminalError",
    "ThresholdError",
    "TooFewCpusError",
    "TooLargeError",
    "TooSlowError",
    "TwoSourcesError",
    "UnfitLoadError",
    "UnforeseenError",
    "UnknownDriverError",
    "UnknownKnobError",
    "UnknownLoadMetricError",
    "UnknownNameError",
    "UnreadableVerdictError",
    "UntrustedError",
    "UpstreamError",
    "UsageError",
    "UvMissingError",
    "VelodromeError",
    "WithheldAnswerError",
    "WithheldHeaderError",
    "WithheldRequestError",
    "WithoutAgentsError",
]
