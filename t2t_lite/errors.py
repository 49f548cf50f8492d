"""The one error type that a command answers with a single line."""


class UserError(ValueError):
    """A user's mistake: the message says what was expected, what came and what to do."""
