"""How sure an interval is, here and everywhere, and how wide that makes it for normal noise."""

# Of scipy's special functions, because its statistics take a second to import.
from scipy import special

CONFIDENCE = 0.95


def student_t(freedom: float) -> float:
    """Return how many standard errors wide half an interval is: Student's t, two-sided."""
    return float(special.stdtrit(freedom, (1 + CONFIDENCE) / 2))
