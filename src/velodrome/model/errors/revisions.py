"""Two revisions of an app cannot be put beside each other."""

from velodrome.model.errors.root import UsageError


class GitError(UsageError):
    """Raised when git fails, or is not there."""

    def __init__(self, command: str, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"git {command}: {reason}. Two revisions are compared where the app is in a git repository"
        )


class RevisionError(UsageError):
    """Raised when what was named is no revision, or not one of this app."""

    CURE = "Name a commit, branch or tag: velodrome diff HEAD~1 HEAD --app …"

    def __init__(self, revision: str, reason: str, cure: str = CURE) -> None:
        super().__init__(f"{revision}: {reason}. {cure}")


class NotFromRevisionError(UsageError):
    """Raised when an app of a revision is imported from somewhere else: both sides would be the same."""

    def __init__(self, app: str, revision: str, where: str) -> None:
        super().__init__(
            f"{app} at {revision}: {where} is imported, which is not from the revision, so both sides would run it. "
            "Perhaps it is installed from there with pip install -e. Put the folder of the source first, such as "
            "--env PYTHONPATH=src"
        )
