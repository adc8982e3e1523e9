"""Impersonation: request headers that name another user, for users with the verb `impersonate`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple
from urllib.parse import unquote

from allot.apiserver.api_errors import bad_request
from allot.apiserver.auth.authentication import (
    ANONYMOUS,
    AUTHENTICATED,
    SERVICE_ACCOUNT_PREFIX,
    UNAUTHENTICATED,
    User,
    service_account_groups,
)
from allot.apiserver.auth.authorization import Attributes, Authorizer, require

IMPERSONATE: Final = "impersonate-"
AUTHENTICATION: Final = "authentication.k8s.io"


class Impersonation(NamedTuple):
    """The user to impersonate, and the rights that this requires."""

    user: User
    asked: tuple[Attributes, ...]


def impersonation(headers: Iterable[tuple[str, str]], path: str) -> Impersonation | None:
    """The user in the Impersonate-* headers, whose names are in lower case; 400 if they are invalid."""
    name, uid, groups = "", "", []
    extra: dict[str, tuple[str, ...]] = {}
    for header, value in headers:
        if not header.startswith(IMPERSONATE):
            continue
        match header.removeprefix(IMPERSONATE):
            case "user":
                name = value
            case "group":
                groups.append(value)
            case "uid":
                uid = value
            case rest if rest.startswith("extra-"):
                key = unquote(rest.removeprefix("extra-")).lower()
                extra[key] = (*extra.get(key, ()), value)
    if not name:
        if uid or groups or extra:
            asked = _as_go_shows(uid, groups, extra)
            raise bad_request(f"requested {asked} without impersonating a user name")
        return None
    user = User(name, uid, _all_groups(name, groups), extra)
    return Impersonation(user, tuple(_asked(user, groups, path)))


def impersonated(
    caller: User, headers: Iterable[tuple[str, str]], path: str, authorizer: Authorizer
) -> User | None:
    """The impersonated user; None without such headers, 403 if the caller may not impersonate them."""
    found = impersonation(headers, path)
    if found is None:
        return None
    for attributes in found.asked:
        require(authorizer, caller, attributes)
    return found.user


def _asked(user: User, groups: Iterable[str], path: str) -> Iterable[Attributes]:
    verb = "impersonate"
    account = _service_account(user.name)
    if account is not None:
        yield Attributes(verb, path, "", "serviceaccounts", *account)
    else:
        yield Attributes(verb, path, "", "users", name=user.name)
    for group in groups:
        yield Attributes(verb, path, "", "groups", name=group)
    for key, values in user.extra.items():
        for value in values:
            yield Attributes(verb, path, AUTHENTICATION, f"userextras/{key}", name=value)
    if user.uid:
        yield Attributes(verb, path, AUTHENTICATION, "uids", name=user.uid)


def _service_account(name: str) -> tuple[str, str] | None:
    """The namespace and the name of a service account's user name."""
    parts = name.removeprefix(SERVICE_ACCOUNT_PREFIX).split(":")
    if not name.startswith(SERVICE_ACCOUNT_PREFIX) or len(parts) != 2:
        return None
    return parts[0], parts[1]


def _all_groups(name: str, groups: list[str]) -> tuple[str, ...]:
    """The requested groups, and the implied ones."""
    account = _service_account(name)
    if account is not None and not groups:
        return service_account_groups(account[0])
    if name == ANONYMOUS.name:
        implied = UNAUTHENTICATED
    elif UNAUTHENTICATED in groups:
        return tuple(groups)
    else:
        implied = AUTHENTICATED
    return tuple(groups) if implied in groups else (*groups, implied)


def _as_go_shows(uid: str, groups: list[str], extra: dict[str, tuple[str, ...]]) -> str:
    """The incomplete user, written as Kubernetes does in this message."""
    shown = ", ".join(f'"{key}":{_go_texts(values)}' for key, values in extra.items())
    extras = f"{{{shown}}}" if extra else "(nil)"
    return (
        f'&user.DefaultInfo{{Name:"", UID:"{uid}", Groups:{_go_texts(groups)}, '
        f"Extra:map[string][]string{extras}}}"
    )


def _go_texts(values: Iterable[str]) -> str:
    listed = ", ".join(f'"{value}"' for value in values)
    return f"[]string{{{listed}}}" if listed else "[]string(nil)"
