"""The load generators a trial may be driven by: one file each."""
