"""The error by which a model is refused."""


class UnsupportedModelError(ValueError):
    """The model cannot be sampled exactly as written; the message says what to change."""
