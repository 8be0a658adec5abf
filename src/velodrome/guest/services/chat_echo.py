"""A WebSocket that sends each message back.

Right: each message comes back as it was sent, text as text, bytes as bytes.
"""

from velodrome.guest.recipe import Chat, Recipe

recipe = Recipe("chat-echo", "holds a WebSocket and sends each message back", (Chat(),))
