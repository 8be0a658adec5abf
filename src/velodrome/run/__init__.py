"""From a trial to a measurement: the only verb that touches the machine.

`racing/` leads: it uses `environments/`, `servers` with `answer_check` and `calls`, `drivers/` with other `clients/`,
`link`, `services/` and the `third_party`, `measuring/`, `validity/`, and `experiments/`; all of these stand on
`machine/` and `supervision/`. `profiling` comes after a race. What all share is here: `lab`, `engine`, `cache`.
"""
