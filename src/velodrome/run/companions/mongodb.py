"""MongoDB: always the user's own, because Debian ships none."""

from velodrome.run.companions.database import Kind

companion = Kind("mongodb", "MongoDB", "mongodb://host:27017/velodrome", None).companion()
