"""Errors of a binding cycle, by what happens to the pod."""

from __future__ import annotations


class KeepsNominationError(Exception):
    """Binding failed for a reason other than the node: the pod stays nominated to it."""

    keeps_nomination = True


class BoundElsewhereError(Exception):
    """Another scheduler has bound the pod. The attempt is over."""

    def __init__(self, node_name: str) -> None:
        super().__init__(f"the pod is bound to node {node_name} already")


class UnknownBindingError(Exception):
    """The API server did not say whether the pod is bound, so no condition is written."""
