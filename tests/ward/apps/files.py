"""`nofile`: a limit of 256 open files, as somebody set it; cured without."""

import resource

from sound import waiting

hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
severe = waiting
