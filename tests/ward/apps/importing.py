"""`failing-import`: a module that is not installed is tried in each request; and cured."""

from answering import answering


def _module():
    try:
        import quick_module_that_is_not_there  # noqa: PLC0415
    except ImportError:
        return None
    return quick_module_that_is_not_there


async def tries_forty_times():
    for _ in range(40):
        _module()


async def tries_twice():
    for _ in range(2):
        _module()


async def tries_never():
    return None


severe, mild, cured = answering(tries_forty_times), answering(tries_twice), answering(tries_never)
