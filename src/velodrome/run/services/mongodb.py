"""MongoDB: always the user's own, because Debian ships none."""

from velodrome.run.services.database import Kind

service = Kind("mongodb", "MongoDB", "mongodb://host:27017/velodrome", None).service()
