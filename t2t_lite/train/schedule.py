"""The learning rate (Section 5.3), in plain Python."""


def learning_rate(step: int, *, d_model: int, warmup_steps: int, scale: float = 1.0) -> float:
    """Return scale * d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5).

    Args:
      step: the number of the update, from 1.

    >>> round(learning_rate(4000, d_model=512, warmup_steps=4000), 6)
    0.000699
    """
    return scale * d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)
