"""Errors of selectors."""


class SelectorError(ValueError):
    """The selector cannot be read, or asks for what does not exist. The message is what clients see (400)."""
