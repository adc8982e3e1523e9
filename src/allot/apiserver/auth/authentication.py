"""Authentication: a chain of authenticators; the first that recognises the credentials decides."""

from __future__ import annotations

import csv
import hashlib
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from allot.apiserver.api_errors import unauthorized

MASTERS: Final = "system:masters"
AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
SERVICE_ACCOUNTS: Final = "system:serviceaccounts"
SERVICE_ACCOUNT_PREFIX: Final = "system:serviceaccount:"


class User(NamedTuple):
    """An authenticated user."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}


ANONYMOUS: Final = User("system:anonymous", groups=(UNAUTHENTICATED,))


def service_account_groups(namespace: str) -> tuple[str, ...]:
    """The groups of every service account of a namespace."""
    return SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}", AUTHENTICATED


class PeerCertificate(NamedTuple):
    """The subject of a client certificate signed by the cluster's certificate authority."""

    common_name: str
    organizations: tuple[str, ...]
    not_before: float = 0.0
    not_after: float = math.inf
    """The period of validity, in seconds since 1970."""


class Credentials(NamedTuple):
    """The credentials of a request."""

    bearer_token: str | None
    certificate: PeerCertificate | None = None


class Authenticator(Protocol):
    async def authenticate(self, credentials: Credentials) -> User | None:
        """The user, or None if the credentials are not recognised."""


class CertificateAuthenticator:
    """Client certificates: the common name is the user, the organizations are the groups."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock

    async def authenticate(self, credentials: Credentials) -> User | None:
        certificate = credentials.certificate
        if certificate is None or not certificate.common_name:
            return None
        if not certificate.not_before <= self._clock() <= certificate.not_after:
            return None
        return _user_of(certificate.common_name, certificate.organizations)


@lru_cache(maxsize=1024)
def _user_of(common_name: str, organizations: tuple[str, ...]) -> User:
    return User(common_name, groups=(*organizations, AUTHENTICATED))


class StaticTokens:
    """Tokens that are known from the start."""

    def __init__(self, user_by_token: Mapping[str, User]) -> None:
        # Looked up by digest, so that timing reveals nothing about the tokens.
        self._known = {
            _digest(token.encode("utf-8", "surrogateescape")): user
            for token, user in user_by_token.items()
        }

    async def authenticate(self, credentials: Credentials) -> User | None:
        if credentials.bearer_token is None:
            return None
        return self._known.get(_digest(credentials.bearer_token.encode("utf-8", "surrogateescape")))


def _digest(token: bytes) -> bytes:
    # For such short texts it takes a fraction of the time of SHA-256.
    return hashlib.blake2b(token).digest()


class Authentication:
    """All authenticators in order. Unrecognised credentials are refused; a request without credentials is anonymous."""

    def __init__(self, authenticators: Iterable[Authenticator]) -> None:
        self._authenticators: Sequence[Authenticator] = tuple(authenticators)

    async def user_for(self, credentials: Credentials) -> User:
        for authenticator in self._authenticators:
            user = await authenticator.authenticate(credentials)
            if user is not None:
                return user
        if credentials.bearer_token is not None or credentials.certificate is not None:
            raise unauthorized()
        return ANONYMOUS


class TokenFileError(Exception):
    """The token file cannot be used; the message says which line and why."""


def read_token_file(path: Path) -> dict[str, User]:
    """Tokens from a file as kube-apiserver reads it: `token,user,uid[,"group1,group2"]` per line."""
    users: dict[str, User] = {}
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TokenFileError(f"{path}: {error}") from error
    for number, row in enumerate(csv.reader(text.splitlines()), start=1):
        if not row:
            continue
        if len(row) < 3:
            raise TokenFileError(
                f"{path}, line {number}: a token needs at least 3 columns (token, user, uid), "
                f"found {len(row)}"
            )
        token, name, uid, *rest = (column.strip() for column in row)
        if not token or not name:
            raise TokenFileError(f"{path}, line {number}: the token or the user is empty")
        if token in users:
            raise TokenFileError(f"{path}, line {number}: duplicate token")
        groups = tuple(group.strip() for group in rest[0].split(",")) if rest and rest[0] else ()
        users[token] = User(name, uid, (*groups, AUTHENTICATED))
    return users
