"""What a method does at a place: found once for all targets of a kind, as most requests are about few kinds."""

from __future__ import annotations

from typing import Final, NamedTuple

from allot.apiserver.auth.authorization import Action
from allot.apiserver.http.flow_control import MUTATING, READ_ONLY
from allot.apiserver.http.metrics import Labels
from allot.apiserver.http.rendering import Renderer
from allot.apiserver.http.request_attributes import action_of
from allot.apiserver.http.routes import Target, verb_of
from allot.apiserver.kinds.definition import FINALIZE, LOG
from allot.apiserver.kinds.deprecations import deprecation_warning
from allot.apiserver.kinds.resources import Resource, per_resource
from allot.apiserver.watch_cache.codecs import codec_for

_READING: Final = frozenset(("get", "list", "watch"))


class Operation(NamedTuple):
    """What all requests have in common that do the same with targets of one kind."""

    verb: str
    action: Action
    """What authorizers are asked about, beside place and name."""
    form: str
    """How it is answered: by its verb; `part` of a kind of its own, `finalize`, and `unstored` kinds otherwise."""
    is_long_running: bool
    """Whether it is a watch or a log."""
    labels: Labels
    """In metrics."""
    kind: str
    """For flow control: `READ_ONLY` or `MUTATING`."""
    warning: str
    """About the version; empty if it is not deprecated."""
    renderer: Renderer
    """Of objects that are answered as they are, in JSON."""


_Place = tuple[str, bool, str, str | None, bool, bool]


def operation_of(method: str, target: Target, *, watch: bool) -> Operation | None:
    """What the request does; None if the method is not allowed."""
    part = target.subresource
    place = (
        method,
        watch,
        target.version,
        part and part.name,
        not target.name,
        not target.namespace,
    )
    known = _operations(target.resource)
    try:
        return known[place]
    except KeyError:
        pass
    verb = verb_of(method, target, watch=watch)
    if verb is None:  # not kept: there are as many methods as clients make up
        return None
    known[place] = found = _operation(target, verb)
    return found


@per_resource
def _operations(_resource: Resource) -> dict[_Place, Operation]:
    return {}


def _operation(target: Target, verb: str) -> Operation:
    return Operation(
        verb,
        action_of(target, verb),
        _form(target, verb),
        verb == "watch" or target.subresource is LOG,
        labels_of(target, verb),
        READ_ONLY if verb in _READING else MUTATING,
        version_warning(target),
        Renderer(codec_for(target.resource), target.version),
    )


def _form(target: Target, verb: str) -> str:
    part = target.subresource
    if part is not None and part.kind is not None:
        return "part"
    if part is not None and part.name == FINALIZE.name:
        return "finalize"
    return verb if target.resource.is_stored else "unstored"


def labels_of(target: Target, verb: str) -> Labels:
    """The labels of a request in metrics."""
    resource, part = target.resource, target.subresource
    scope = "resource" if target.name else "namespace" if target.namespace else "cluster"
    plural, subresource = resource.plural, "" if part is None else part.name
    return Labels(verb, resource.group, target.version, plural, subresource, scope)


def version_warning(target: Target) -> str:
    """The warning about the version that a request uses; empty if it is not deprecated."""
    resource = target.resource
    if resource.custom is not None:
        return resource.custom.deprecation
    return deprecation_warning(resource.gvk(target.version))
