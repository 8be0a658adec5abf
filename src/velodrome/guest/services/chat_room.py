"""A chat room over WebSockets.

Right: each message comes as it was sent to everyone who is connected, its sender too.
"""

from velodrome.guest.recipe import Chat, Recipe

recipe = Recipe(
    "chat-room", "holds WebSockets and sends each message to all who are connected", (Chat(room=True),)
)
