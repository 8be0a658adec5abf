"""The machine under the race: its facts, who gets which CPU, how limits are held, what sockets its kernel sees.

It is also locked here: two races at once would measure each other.
"""
