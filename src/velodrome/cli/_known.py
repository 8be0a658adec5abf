"""What a study may name on this installation."""

from velodrome.track.known import known

__all__ = ["known"]
