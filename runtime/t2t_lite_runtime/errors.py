"""The error that a user's mistake raises."""


class UserError(ValueError):
    """A user's mistake: the message says what was expected, what came and what to do."""
