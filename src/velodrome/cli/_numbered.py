"""Lines on standard error that tell what a search tries, numbered."""

import sys

from velodrome.report.typeset import visible


class Numbered:
    """Tells one try after the other."""

    def __init__(self) -> None:
        self._number = 0

    def preparing(self, text: str) -> None:
        """Tell what is done before the first."""
        for line in text.splitlines():
            print(f"      {visible(line)}", file=sys.stderr, flush=True)

    def tell(self, line: str) -> None:
        """Tell a try."""
        self._number += 1
        print(f" {self._number:>3}  {line}", file=sys.stderr, flush=True)
