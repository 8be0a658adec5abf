"""A WebSocket, or over gRPC a call with a stream in each direction, that sends each message back.

Right: each message comes back as it was sent, text as text, bytes as bytes.
"""

from velodrome.guest.recipe import Chat, Recipe

recipe = Recipe("chat-echo", "holds a conversation and sends each message back", (Chat(),))
