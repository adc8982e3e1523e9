"""The labels of a request in metrics."""

from __future__ import annotations

from functools import cache

from allot.apiserver.http.metrics import Labels
from allot.apiserver.http.routes import Target


def labels_of(target: Target, verb: str) -> Labels:
    resource, part = target.resource, target.subresource
    scope = "resource" if target.name else "namespace" if target.namespace else "cluster"
    group, plural = resource.group, resource.plural
    return _known_labels(verb, group, target.version, plural, part and part.name, scope)


@cache
def _known_labels(
    verb: str, group: str, version: str, plural: str, part: str | None, scope: str
) -> Labels:
    """There are as many as kinds and verbs are served."""
    return Labels(verb, group, version, plural, part or "", scope)
