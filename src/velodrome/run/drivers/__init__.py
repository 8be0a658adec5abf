"""The load generators a trial may be driven by: one file each, all alike (`driver.py`)."""
