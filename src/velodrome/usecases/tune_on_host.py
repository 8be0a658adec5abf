"""What measures a tuning on an agent's host: load after load, as its command asks for them (`run/cluster/benching.py`).

`python -m velodrome.usecases.tune_on_host` is a process of the agent's. It looks at what it is to measure, and says
what it comes to, as the process that runs blocks does (`run/cluster/blocks.py`). The machine is held from the
preparation to the end of the process, as a tuning on one machine holds it.
"""

import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from typing import Any

from velodrome.judge.search.holding import Demands
from velodrome.model import results, secrets
from velodrome.model.condition import read
from velodrome.model.results import adapter
from velodrome.model.trial import Session
from velodrome.model.tuning import Ask, Candidate, Observation
from velodrome.run.cluster import blocks
from velodrome.run.cluster.apart import Channel
from velodrome.run.racing.opening import held, prepared, proven
from velodrome.run.racing.race import serving
from velodrome.usecases.recording import Record
from velodrome.usecases.tune import Benches, Progress


class _HostTuning(blocks.HostRace):
    """A tuning on this host."""

    def __init__(
        self, said: Mapping[str, Any], say: Callable[[dict[str, Any]], None], channel: Channel
    ) -> None:
        """Raises what is wrong with it here."""
        super().__init__(said, say, channel)
        self._held = ExitStack()
        self._record = Record(self._entry)
        self._benches: Benches | None = None

    def run(self, said: Mapping[str, Any]) -> None:
        """Do what is asked for, and say what it comes to."""
        if said["do"] == "prepare":
            self._prepare(said)
            return
        assert self._benches is not None, "the first thing that is asked for is to prepare"
        if said["do"] == "load":
            self._load(self._benches, said)
        elif said["do"] == "session":
            self._benches.stop()
            trials = [self._here(results.read_trial(one)) for one in said["trials"]]
            with closing(serving(self.lab)(Session(tuple(trials)))) as every:
                for result in every:
                    self._entry(result)
        else:
            self._benches.stop()

    def _prepare(self, said: Mapping[str, Any]) -> None:
        self._held.enter_context(held(self._plan, self, None))
        self.lab = prepared(self._plan, proven(self._plan, self.lab), self)
        demands = Demands(must=tuple(map(read, said["conditions"])))
        self._progress = Progress(demands)
        template = self._plan.sessions[0].trials[0]
        self._benches = self._held.enter_context(
            Benches(template, self.lab, self, self._record, self._progress, arrivals=said["arrivals"])
        )

    def _load(self, benches: Benches, said: Mapping[str, Any]) -> None:
        trial = results.read_trial(said["trial"])
        if said["alone_ms"]:
            benches.known_alone_ms[trial.contestant.stack] = said["alone_ms"]
        self._record.reserve(said["keys"])
        before = len(self._record.results)
        ask = adapter(Ask).validate_python(said["ask"])
        if error := benches.load(Candidate(trial.contestant, 1, None), ask):
            self._say({"event": "unserved", "text": secrets.mask(error.reason)})
        self._progress.take(self._record.results[before:])

    def observed(self, _candidate: Candidate, _observed: Observation) -> None:
        """Said where the loads are judged."""

    def close(self) -> None:
        """Stop the server, and let go of the machine."""
        self._held.close()


if __name__ == "__main__":
    status = blocks.main(_HostTuning)
    sys.stdout.flush()
    sys.exit(status)
