"""What an access log is made of: its lines, when they were written, and what was asked in them."""
