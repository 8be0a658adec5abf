"""Say one message to a server that holds WebSockets, by the engine, and tell what came back."""

from velodrome.model.errors import EngineError
from velodrome.run import engine
from velodrome.run.asking.answer import Words, Wrong, of_document
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
    spec = {
        "url": target.url,
        "websocket": {"mode": "echo", "message_bytes": chat.message_bytes},
        "headers": [list(header) for header in target.headers],
        "connections": 1,
        "requests": 1,
        "timeout_s": timeout_s,
        "drain_s": 0.0,
        "transport": "epoll",
        "allow_target": list(target.allow),
    }
    try:
        return of_document(engine.load(spec), WORDS)
    except EngineError as error:  # a machine without a free descriptor has one later
        return str(error)
