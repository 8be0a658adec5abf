"""A recipe that ends in a chat as a conversation over WebSockets: what is said, and what is measured of it.

chat = of_recipe(recipe)
chat.mode(load)          "echo", "broadcast" where it goes to a room, "connect" where connections are not kept
"""

from dataclasses import dataclass
from typing import Any, Literal

from velodrome.guest.recipe import Recipe
from velodrome.model.load import Load

Mode = Literal["echo", "broadcast", "connect"]

MESSAGE_BYTES = 84
"""Of each message, as in the answer of `hello`."""


@dataclass(frozen=True)
class ChatCall:
    """What is said to a server that holds WebSockets."""

    room: bool = False
    """Whether a message goes to all who are connected."""
    message_bytes: int = MESSAGE_BYTES

    def mode(self, load: Load) -> Mode:
        """Return what a request of a load is: a connection where none is kept, else a message and all it goes to."""
        if not load.keepalive:
            return "connect"
        return "broadcast" if self.room else "echo"

    def spec(self, load: Load) -> dict[str, Any]:
        """Return the `websocket` field of what the engine takes."""
        mode = self.mode(load)
        return {"mode": mode, "message_bytes": None if mode == "connect" else self.message_bytes}


def of_recipe(recipe: Recipe) -> ChatCall:
    """Return what is said to a server of `recipe`, which ends in a chat."""
    return ChatCall(room=recipe.to_room)
