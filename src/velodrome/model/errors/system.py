"""The system refuses what the lab itself needs, velodrome is not whole, or it failed in a way nobody foresaw."""

from velodrome.model.errors.root import VelodromeError


class ScratchError(VelodromeError):
    """Raised when there is no folder for temporary files, or it cannot be written."""

    def __init__(self, folder: str, reason: str) -> None:
        self.folder, self.reason = folder, reason
        super().__init__(
            f"temporary files cannot be written into {folder}: {reason}. Free some space there, or set TMPDIR to a "
            "folder you may write to"
        )
