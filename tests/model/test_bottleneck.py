"""The one rule for «was it the generator?», by facts alone."""

import pytest

from velodrome.model.bottleneck import GeneratorFault, generator_fault


@pytest.mark.parametrize(
    ("cpu", "queued", "lagged", "debug", "fault"),
    [
        (0.2, 0.0, False, False, None),
        (0.9, 0.0, False, False, None),
        (0.91, 0.0, False, False, GeneratorFault.SATURATED),
        (0.91, 0.3, True, True, GeneratorFault.DEBUG),
        (0.5, 0.15, False, False, None),
        (0.5, 0.15, True, False, GeneratorFault.QUEUED),
        (0.8, 0.15, False, False, GeneratorFault.QUEUED),
        (0.1, 0.2, False, False, GeneratorFault.QUEUED),
        (0.1, 0.0, True, False, GeneratorFault.LAGGED),
    ],
)
def test_the_gravest_reason_counts(
    cpu: float, queued: float, lagged: bool, debug: bool, fault: GeneratorFault | None
) -> None:
    assert generator_fault(cpu, queued_share=queued, lagged=lagged, debug=debug) is fault
