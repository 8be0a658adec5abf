"""The network between generator and server cannot be made, or does not do what it was asked for."""

import os
from collections.abc import Sequence

from velodrome.model.errors.root import VelodromeError


class LinkRefusedError(VelodromeError):
    """Raised when this machine does not allow a link: `stage` says at which step, `errno` what the kernel said."""

    def __init__(self, stage: str, errno: int, what: str = "") -> None:
        self.stage, self.errno = stage, errno
        said = os.strerror(errno) if errno else ""
        reason, cure = {
            "system": ("only Linux has network namespaces", "Run this study on Linux"),
            "namespace": (
                f"velodrome may not make network namespaces ({said})",
                "Run it as root; or, where users may have namespaces and all environments are made, by "
                "`unshare -Urn velodrome …`; a container needs --cap-add NET_ADMIN --cap-add SYS_ADMIN "
                "--device /dev/net/tun",
            ),
            "device": (
                f"/dev/net/tun cannot be used ({said})",
                "Load its module (modprobe tun); a container needs --cap-add NET_ADMIN --device /dev/net/tun",
            ),
            "congestion": (
                f"this kernel has no congestion control called {what} ({said})",
                f"Load its module (modprobe tcp_{what}), or ask for another with congestion=",
            ),
        }.get(stage, (f"{what or stage} is refused ({said})", "See that velodrome has CAP_NET_ADMIN"))
        super().__init__(f"a link is impossible here: {reason}. {cure}, or leave the link out")


class LinkError(VelodromeError):
    """Raised when a link that was made does not do what it was asked for, or its relay has died."""

    def __init__(self, link: str, reason: str, last_lines: Sequence[str] = ()) -> None:
        tail = "".join(f"\n  {line}" for line in last_lines)
        tail = f" Its last lines:{tail}" if tail else ""
        super().__init__(f"the link {link} failed: {reason}.{tail}")
