"""`velodrome.diagnose`: what is wrong with an app on a server, proven by experiments."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from velodrome.api import tables
from velodrome.api.apps import Asks, app_spec, budget_of, conditions_of, limits_of, link_of, mix_of
from velodrome.api.arguments import checked
from velodrome.guest.stack import KnobValue
from velodrome.model.diagnosis import Diagnosis, Examination
from velodrome.report import diagnoses
from velodrome.run.faults import refusals
from velodrome.usecases import diagnose as doctor
from velodrome.usecases.apps import ServedSpec
from velodrome.usecases.diagnose import BUDGET_S, DoctorSpec
from velodrome.usecases.events import Events
from velodrome.usecases.terms import Knobs


@dataclass(frozen=True)
class Examined(tables.Tabled):
    """What is wrong with an app on a stack, and what is not."""

    examination: Examination

    @property
    def healthy(self) -> bool:
        """Whether no fault of the catalogue was proven to be a cause."""
        return self.examination.healthy

    @property
    def causes(self) -> tuple[Diagnosis, ...]:
        """The faults that were proven, the costliest first."""
        return self.examination.causes

    @property
    def text(self) -> str:
        """The whole examination, for people."""
        return "\n".join(diagnoses.lines(self.examination))

    def rows(self) -> list[tables.Row]:
        """Return one row for each diagnosis."""
        return [
            {
                "id": diagnosis.id,
                "verdict": str(diagnosis.ruling),
                "gain": diagnosis.gain,
                "reason": diagnosis.reason,
            }
            for diagnosis in self.examination.diagnoses
        ]

    def document(self) -> dict[str, Any]:
        """Return it as plain values, as `velodrome doctor --json` prints it."""
        return self.examination.document()

    def __repr__(self) -> str:
        return f"<{self.examination.title}: {self._sentence}>"

    @property
    def _sentence(self) -> str:
        return ", ".join(diagnosis.id for diagnosis in self.causes) or "no cause was proven"

    def _repr_html_(self) -> str:
        return tables.table(self.examination.title, *tables.columns(self.rows()), [self._sentence])


@refusals()
@checked(app_spec)
def diagnose(
    app: object,
    *,
    stack: str = "",
    knobs: Mapping[str, KnobValue] | None = None,
    requests: Asks = ("GET /",),
    cpus: int | None = None,
    memory: str = "",
    link: str = "",
    slo: str | Sequence[str] = (),
    budget: float | str = BUDGET_S,
    only: Sequence[str] = (),
    skip: Sequence[str] = (),
    wait: bool = False,
    agents: str | int | None = None,
    keys: str | Path | None = None,
    send: bool = False,
    **of_app: Any,
) -> Examined:
    """Prove by experiments what is wrong with an app on a stack: `assert velodrome.diagnose(app).healthy`.

    `app` is an import path or the object itself; without `stack` a common one serves it. Whether `slo` holds, and up to
    which rate, is searched as the app is and with the causes cured. No experiment begins that would end after `budget`
    (seconds, or `"5m"`); `only` and `skip` name faults of the catalogue (`velodrome doctor --list`). With `agents`, an
    agent of a coordinator (`"tls://host:8786"`, with its `keys`), or of so many that are started on this machine,
    examines the app that is on its host, or with `send` the folder that is here. `of_app` is what `app_spec` takes.

    Raises what is wrong with the app, UnknownNameError, UnknownKnobError, NoServerError, BusyError, and with agents
    what `diagnose_on_hosts.diagnose_there` does.
    """
    spec = DoctorSpec(
        ServedSpec(app_spec(app, mix_of(requests), **of_app)),
        stack,
        Knobs(named=knobs or {}),
        limits_of(cpus, memory),
        link_of(link),
        budget_of(budget),
        tuple(only),
        tuple(skip),
        wait,
        conditions_of(slo),
        agents="" if agents is None else str(agents),
        keys=None if keys is None else Path(keys),
        send=send,
    )
    return Examined(doctor.diagnose(spec, Events()))
