"""From a trial to a measurement: the only verb that touches the machine.

`racing/` leads: it uses `environments/`, `servers` with `asking/` and `calls/`, `drivers/` with other `clients/`,
`link`, `companions/` and the `third_party`, `measuring/`, `validity`, and `experiments/`; all of these stand on
`machine/` and `supervision/`. `profiling/` comes after a race. What all share is here: `lab`, `engine`, `cache`.
"""
