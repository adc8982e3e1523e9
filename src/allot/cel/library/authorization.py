"""Questions to the authorizer: whether the user of a request, or a service account, may do something.

The functions are declared in every environment, the variables `authorizer` and `authorizer.requestResource` in those
of admission. The answers come from a function of the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from allot.cel import types
from allot.cel.declarations import function, overload
from allot.cel.errors import EvalError
from allot.cel.types import Type
from allot.cel.values import register_class


class AccessQuestion(NamedTuple):
    """What is asked. Paths have no group and resource."""

    verb: str
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""
    service_account: tuple[str, str] | None = None
    """Namespace and name of the service account to ask about, instead of the user of the request."""


class Decision(NamedTuple):
    """The answer."""

    allowed: bool
    reason: str = ""
    error: str = ""


Ask = Callable[[AccessQuestion], Decision]


class Authorizer(NamedTuple):
    """Answers questions about one user."""

    ask: Ask
    account: tuple[str, str] | None = None


class PathCheck(NamedTuple):
    """A path that may be asked about."""

    authorizer: Authorizer
    path: str


class GroupCheck(NamedTuple):
    """An API group, whose resources may be asked about."""

    authorizer: Authorizer
    group: str


class ResourceCheck(NamedTuple):
    """A resource that may be asked about."""

    authorizer: Authorizer
    question: AccessQuestion


_CLASSES: Final[tuple[tuple[type, Type], ...]] = (
    (Authorizer, types.AUTHORIZER),
    (PathCheck, types.PATH_CHECK),
    (GroupCheck, types.GROUP_CHECK),
    (ResourceCheck, types.RESOURCE_CHECK),
    (Decision, types.DECISION),
)
for _class, _type in _CLASSES:
    register_class(_class, _type, _type.name)


def _path(authorizer: Authorizer, path: str) -> PathCheck:
    if not path:
        raise EvalError("path must not be empty")
    return PathCheck(authorizer, path)


def _service_account(authorizer: Authorizer, namespace: str, name: str) -> Authorizer:
    return Authorizer(authorizer.ask, (namespace, name))


def _resource(check: GroupCheck, resource: str) -> ResourceCheck:
    return ResourceCheck(check.authorizer, AccessQuestion("", "", check.group, resource))


def _with(field: str) -> Callable[[ResourceCheck, str], ResourceCheck]:
    def changed(check: ResourceCheck, value: str) -> ResourceCheck:
        change: dict[str, Any] = {field: value}
        return ResourceCheck(check.authorizer, check.question._replace(**change))

    return changed


def _check_path(check: PathCheck, verb: str) -> Decision:
    authorizer = check.authorizer
    return authorizer.ask(AccessQuestion(verb, check.path, service_account=authorizer.account))


def _check_resource(check: ResourceCheck, verb: str) -> Decision:
    authorizer = check.authorizer
    return authorizer.ask(check.question._replace(verb=verb, service_account=authorizer.account))


FUNCTIONS: Final = (
    function("path", overload("authorizer_path", "authorizer.(string) -> pathCheck", _path)),
    function(
        "group", overload("authorizer_group", "authorizer.(string) -> groupCheck", GroupCheck)
    ),
    function(
        "serviceAccount",
        overload(
            "authorizer_serviceaccount",
            "authorizer.(string, string) -> authorizer",
            _service_account,
        ),
    ),
    function(
        "resource",
        overload("groupcheck_resource", "groupCheck.(string) -> resourceCheck", _resource),
    ),
    *(
        function(
            name,
            overload(
                f"resourcecheck_{name.lower()}",
                "resourceCheck.(string) -> resourceCheck",
                _with(field),
            ),
        )
        for name, field in (
            ("subresource", "subresource"),
            ("namespace", "namespace"),
            ("name", "name"),
            ("fieldSelector", "field_selector"),
            ("labelSelector", "label_selector"),
        )
    ),
    function(
        "check",
        overload("pathcheck_check", "pathCheck.(string) -> decision", _check_path),
        overload("resourcecheck_check", "resourceCheck.(string) -> decision", _check_resource),
    ),
    function(
        "errored",
        overload("decision_errored", "decision.() -> bool", lambda found: bool(found.error)),
    ),
    function(
        "error", overload("decision_error", "decision.() -> string", lambda found: found.error)
    ),
    function(
        "allowed", overload("decision_allowed", "decision.() -> bool", lambda found: found.allowed)
    ),
    function(
        "reason", overload("decision_reason", "decision.() -> string", lambda found: found.reason)
    ),
)
