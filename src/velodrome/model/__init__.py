"""The host's nouns: one frozen dataclass a file, no I/O."""
