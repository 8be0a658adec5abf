"""From a verdict to what people and machines read: one format a file."""
