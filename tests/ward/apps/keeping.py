"""`growth`: something of every request is kept for good; and cured by a bound, which is reached soon."""

from collections import deque

from answering import answering

EACH = 2000


def keeping(kept):
    async def keep():
        kept.append(bytes(EACH))

    return keep


severe, cured = answering(keeping([])), answering(keeping(deque(maxlen=2000)))
