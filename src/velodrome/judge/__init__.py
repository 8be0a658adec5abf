"""From measurements to a verdict: pure functions on numbers."""
