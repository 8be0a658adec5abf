"""What an experiment came to on this machine, for tests to look at."""

from velodrome.model.claim import Experiment, Finding, Setting
from velodrome.run.experiments.running import run_experiment
from velodrome.run.lab import Lab


def found(lab: Lab, kind: str, **settings: Setting) -> Finding:
    finding = run_experiment(Experiment("one", kind, settings), lab)
    assert finding.failed == "", (finding.failed, finding.last_lines)
    assert finding.sentence
    return finding


def number(finding: Finding, fact: str) -> float:
    value = finding.facts[fact]
    assert isinstance(value, (int, float)), (fact, finding.facts)
    return value
