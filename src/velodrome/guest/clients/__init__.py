"""Clients of databases: one file, one library in one way of waiting."""
