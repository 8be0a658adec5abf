"""What the raw servers share: those whose handlers are given a bare connection."""
