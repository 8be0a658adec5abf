"""Say one message to a server that holds WebSockets, by the engine, and tell what came back."""

from velodrome.run.asking.answer import Words, Wrong
from velodrome.run.asking.once import once
from velodrome.run.calls.chat_call import ChatCall
from velodrome.run.drivers.driver import Target

WORDS = Words(
    foreign="what it answers is no WebSocket: ",
    silent="opening handshake",
    broken="the WebSocket breaks off",
)


def ask(target: Target, chat: ChatCall, timeout_s: float) -> str | Wrong | None:
    """Connect and say one message: None where it comes back, a wrong answer, or why there is none.

    Alone in a room, whoever speaks hears himself: a room is asked as an echo is.
    """
    asked = {
        "websocket": {"mode": "echo", "message_bytes": chat.message_bytes},
        "headers": [list(header) for header in target.headers],
    }
    return once(target, asked, WORDS, timeout_s)
