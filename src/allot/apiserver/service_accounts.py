"""Tokens of service accounts: signed statements that expire (serviceaccounts/token, TokenRequest)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import uuid4

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from allot.api.times import written_time
from allot.apiserver.api_errors import bad_request, invalid
from allot.apiserver.authentication import AUTHENTICATED, Credentials, User
from allot.validation.fields import FieldPath
from allot.validation.fields import invalid as invalid_field

ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
ALGORITHM: Final = "ES256"
MIN_SECONDS: Final = 600
MAX_SECONDS: Final = 2**32
DEFAULT_SECONDS: Final = 3600


class TokenSubject(NamedTuple):
    """The service account a token speaks for."""

    namespace: str
    name: str
    uid: str

    @property
    def user_name(self) -> str:
        return f"system:serviceaccount:{self.namespace}:{self.name}"


class ServiceAccountTokens:
    """Issues tokens and recognises them."""

    def __init__(self, key: EllipticCurvePrivateKey) -> None:
        self._key = key
        self._public = key.public_key()

    def issue(self, subject: TokenSubject, asked: dict[str, Any], now: datetime) -> dict[str, Any]:
        """The TokenRequest with its token."""
        spec = asked.get("spec") or {}
        seconds = spec.get("expirationSeconds")
        seconds = DEFAULT_SECONDS if seconds is None else seconds
        audiences = spec.get("audiences") or [ISSUER]
        _check(seconds, audiences)
        expires = now + timedelta(seconds=seconds)
        claims = {
            "aud": audiences,
            "exp": int(expires.timestamp()),
            "iat": int(now.timestamp()),
            "nbf": int(now.timestamp()),
            "iss": ISSUER,
            "jti": str(uuid4()),
            "kubernetes.io": {
                "namespace": subject.namespace,
                "serviceaccount": {"name": subject.name, "uid": subject.uid},
            },
            "sub": subject.user_name,
        }
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {
                "name": subject.name,
                "namespace": subject.namespace,
                "creationTimestamp": written_time(now),
            },
            "spec": {**spec, "audiences": audiences, "expirationSeconds": seconds},
            "status": {
                "token": jwt.encode(claims, self._key, ALGORITHM),
                "expirationTimestamp": written_time(expires),
            },
        }

    def authenticate(self, credentials: Credentials) -> User | None:
        """The service account behind a token of ours that has not expired."""
        if credentials.bearer_token is None:
            return None
        try:
            claims = jwt.decode(
                credentials.bearer_token,
                self._public,
                algorithms=[ALGORITHM],
                audience=ISSUER,
                issuer=ISSUER,
                options={"require": ["exp", "sub", "iss", "aud"]},
            )
            own = claims["kubernetes.io"]
            account = own["serviceaccount"]
            subject = TokenSubject(own["namespace"], account["name"], account["uid"])
        except (jwt.InvalidTokenError, KeyError, TypeError):
            return None
        groups = (
            "system:serviceaccounts",
            f"system:serviceaccounts:{subject.namespace}",
            AUTHENTICATED,
        )
        return User(subject.user_name, subject.uid, groups)


def _check(seconds: Any, audiences: Any) -> None:
    if not isinstance(seconds, int) or isinstance(seconds, bool):
        raise bad_request("spec.expirationSeconds must be a whole number")
    if not isinstance(audiences, list) or not all(isinstance(name, str) for name in audiences):
        raise bad_request("spec.audiences must be a list of texts")
    path = FieldPath("spec") / "expirationSeconds"
    if seconds < MIN_SECONDS:
        detail = "may not specify a duration less than 10 minutes"
        raise invalid(
            "authentication.k8s.io", "TokenRequest", "", [invalid_field(path, seconds, detail)]
        )
    if seconds > MAX_SECONDS:
        detail = "may not specify a duration larger than 2^32 seconds"
        raise invalid(
            "authentication.k8s.io", "TokenRequest", "", [invalid_field(path, seconds, detail)]
        )
