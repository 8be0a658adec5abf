"""From a trial to a measurement: the only verb that touches the machine."""
