"""Velodrome: Python network services race under controlled conditions."""
