"""What a request wants to do, as authorizers see it.

For what is served that follows from its target. Other paths are read in the same way, so that users who may not see
something do not learn whether it exists.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote

from allot.apiserver.auth.authorization import Action, Attributes
from allot.apiserver.http.requests import ApiRequest
from allot.apiserver.http.routes import Target
from allot.apiserver.selectors import SelectorError, parse_field_selector

MAX_AUTHORIZED_SELECTOR: Final = 1_000
"""A longer selector names no single object, and grants nothing."""
_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch"}
_NAMESPACE_PARTS: Final = ("status", "finalize")


def target_attributes(request: ApiRequest, target: Target, verb: str | None) -> Attributes:
    """Of a request for something that is served; without a verb, if it is one that nothing has."""
    return attributes_of(request, target, action_of(target, verb or _verb(request, target.name)))


def attributes_of(request: ApiRequest, target: Target, action: Action) -> Attributes:
    """Of a request whose action is known."""
    verb, group, resource = action
    namespace, name = target.namespace, target.name
    if not group and target.resource.plural == "namespaces":
        namespace = name
    if "fieldSelector" in request.query and not name:
        return _with_fields(request, verb, group, resource, namespace)
    return Attributes(verb, request.path, group, resource, namespace, name)


def action_of(target: Target, verb: str) -> Action:
    """The part of the attributes that is the same for all targets of one kind."""
    resource, part = target.resource, target.subresource
    plural = resource.plural if part is None else f"{resource.plural}/{part.name}"
    return verb, resource.group, plural


def path_attributes(request: ApiRequest) -> Attributes:
    """Of a request for a path where no resource is served."""
    parts = [unquote(part) for part in request.path.split("/") if part]
    match parts:
        case ["api", _, first, *rest]:
            group = ""
        case ["apis", group, _, first, *rest]:
            pass
        case _:
            return Attributes(request.method.lower(), request.path)
    is_watch = first == "watch"
    place = rest if is_watch else [first, *rest]
    namespace = ""
    if place[:1] == ["namespaces"] and len(place) > 1:
        namespace = place[1]
        if len(place) > 2 and place[2] not in _NAMESPACE_PARTS:
            place = place[2:]
    resource = place[0] if place else ""
    name = place[1] if len(place) > 1 else ""
    if len(place) > 2:
        resource = f"{resource}/{place[2]}"
    verb = "watch" if is_watch else _verb(request, name)
    if "fieldSelector" in request.query and not name:
        return _with_fields(request, verb, group, resource, namespace)
    return Attributes(verb, request.path, group, resource, namespace, name)


def version_in(path: str) -> str:
    """The API version that a path names."""
    match path.split("/", 4):
        case ["", "api", version, *_] | ["", "apis", _, version, *_]:
            return version
    return ""


def _verb(request: ApiRequest, name: str) -> str:
    match request.method:
        case "GET" | "HEAD":
            if name:
                return "get"
            return "watch" if request.flag("watch") else "list"
        case "DELETE":
            return "delete" if name else "deletecollection"
    return _VERBS.get(request.method, "")


def _with_fields(
    request: ApiRequest, verb: str, group: str, resource: str, namespace: str
) -> Attributes:
    """A selector that names one object is a request for that object."""
    name = ""
    values: tuple[tuple[str, str], ...] = ()
    text = request.query["fieldSelector"]
    if verb in ("list", "watch", "deletecollection") and len(text) <= MAX_AUTHORIZED_SELECTOR:
        try:
            selector = parse_field_selector(text)
        except SelectorError:
            pass  # refused as a bad request, if the user may ask at all
        else:
            name = selector.exact("metadata.name") or ""
            values = selector.values
    return Attributes(verb, request.path, group, resource, namespace, name, values)
