"""Errors of the public API. Each names the file or the object, and what to do."""

from __future__ import annotations


class AllotError(Exception):
    """Base class of the errors of the public API."""


class ManifestError(AllotError, ValueError):
    """A manifest that cannot be read: which file, which line, and why."""

    def __init__(self, source: str, problem: str, line: int = 0) -> None:
        place = f"{source}:{line}" if line else source
        super().__init__(f"{place}: {problem}")
        self.source = source
        self.line = line
        """Counted from 1; 0 if the problem is the file itself."""
        self.problem = problem


class NotFoundError(AllotError, LookupError):
    """The snapshot has no object of this name."""


class ClusterError(AllotError):
    """The cluster cannot be read: unreachable, unauthorized, or no usable kubeconfig."""


class TargetError(ValueError):
    """What is to be explained is neither a pod nor a claim."""

    def __init__(self, text: str) -> None:
        super().__init__(f"{text!r}: expected pod/NAME or claim/NAME, such as pod/default/train")
