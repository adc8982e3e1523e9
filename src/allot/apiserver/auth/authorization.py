"""Who may do what. Until there are roles, administrators may do everything and others next to nothing."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from allot.apiserver.api_errors import ApiError, Details
from allot.apiserver.auth.authentication import MASTERS, User


class Attributes(NamedTuple):
    """What a request does. Non-resource requests have only a path."""

    verb: str
    path: str
    group: str = ""
    resource: str = ""
    """With its subresource, such as `pods/status`; empty for paths."""
    namespace: str = ""
    name: str = ""


class Authorizer(Protocol):
    def allows(self, user: User, attributes: Attributes) -> bool: ...


PUBLIC_PATHS: Final = ("/healthz", "/livez", "/readyz", "/version")


class AdministratorsOnly:
    """The group system:masters may do everything; everybody may ask how the server is."""

    def allows(self, user: User, attributes: Attributes) -> bool:
        if MASTERS in user.groups:
            return True
        if attributes.resource or attributes.verb != "get":
            return False
        path = attributes.path.rstrip("/")
        return any(path == public or path.startswith(f"{public}/") for public in PUBLIC_PATHS)


def refusal(user: User, attributes: Attributes) -> ApiError:
    """403, in the words of Kubernetes."""
    if not attributes.resource:
        return ApiError(
            403,
            "Forbidden",
            f'forbidden: User "{user.name}" cannot {attributes.verb} path "{attributes.path}"',
            Details(),
        )
    plural = attributes.resource.partition("/")[0]
    qualified = f"{plural}.{attributes.group}" if attributes.group else plural
    named = f'{qualified} "{attributes.name}"' if attributes.name else qualified
    where = (
        f'in the namespace "{attributes.namespace}"'
        if attributes.namespace
        else "at the cluster scope"
    )
    message = (
        f'{named} is forbidden: User "{user.name}" cannot {attributes.verb} resource '
        f'"{attributes.resource}" in API group "{attributes.group}" {where}'
    )
    return ApiError(403, "Forbidden", message, Details(attributes.name, attributes.group, plural))
