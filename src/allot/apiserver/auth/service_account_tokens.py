"""Service account tokens: signed JWTs that expire."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Final, NamedTuple
from uuid import uuid4

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import (
    EllipticCurvePrivateKey,
    EllipticCurvePublicKey,
)
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from allot.api.times import written_time
from allot.apiserver.api_errors import bad_request, invalid
from allot.apiserver.auth.authentication import AUTHENTICATED, User
from allot.validation.fields import FieldPath
from allot.validation.fields import invalid as invalid_field

ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
ALGORITHM: Final = "ES256"
COORDINATE_BYTES: Final = 32
"""Of a point on the curve that the algorithm names."""
MIN_SECONDS: Final = 600
MAX_SECONDS: Final = 2**32
"""Longer requests are rejected, as in Kubernetes."""
LONGEST_SECONDS: Final = 365 * 24 * 3600
"""Longer requests get this, with a warning: --service-account-max-token-expiration in Kubernetes."""
DEFAULT_SECONDS: Final = 3600
EXTRA: Final = "authentication.kubernetes.io/"
_BOUND_KINDS: Final = ("pod", "secret", "node")


class TokenSubject(NamedTuple):
    """The service account of a token."""

    namespace: str
    name: str
    uid: str

    @property
    def user_name(self) -> str:
        return f"system:serviceaccount:{self.namespace}:{self.name}"


class BoundObject(NamedTuple):
    """An object that a token is bound to, or that it only names, such as the node of a pod."""

    name: str
    uid: str = ""

    def claim(self) -> dict[str, str]:
        return {"name": self.name, "uid": self.uid} if self.uid else {"name": self.name}


class TokenClaims(NamedTuple):
    """The claims of a token with a valid signature that has not expired."""

    subject: TokenSubject
    pod: BoundObject | None = None
    secret: BoundObject | None = None
    node: BoundObject | None = None
    """The node of the pod, or what the token is bound to if there is no pod."""
    token_id: str = ""

    @property
    def user(self) -> User:
        subject = self.subject
        groups = (
            "system:serviceaccounts",
            f"system:serviceaccounts:{subject.namespace}",
            AUTHENTICATED,
        )
        extra: dict[str, tuple[str, ...]] = {}
        if self.token_id:
            extra[f"{EXTRA}credential-id"] = (f"JTI={self.token_id}",)
        for kind, bound in (("pod", self.pod), ("node", self.node)):
            if bound is not None:
                extra[f"{EXTRA}{kind}-name"] = (bound.name,)
                if bound.uid:
                    extra[f"{EXTRA}{kind}-uid"] = (bound.uid,)
        return User(subject.user_name, subject.uid, groups, extra)


class Issued(NamedTuple):
    """The answer to a TokenRequest."""

    document: dict[str, Any]
    warnings: tuple[str, ...] = ()


class ServiceAccountTokens:
    """Signs and verifies tokens. Whether account and bound object still exist is checked in `bound_tokens`."""

    def __init__(self, key: EllipticCurvePrivateKey) -> None:
        self._key = key
        self._public = key.public_key()
        self._key_id = _key_id(self._public)

    def public_key(self) -> dict[str, Any]:
        """The key that verifies tokens, as a JSON web key."""
        numbers = self._public.public_numbers()
        return {
            "use": "sig",
            "kty": "EC",
            "kid": self._key_id,
            "crv": "P-256",
            "alg": ALGORITHM,
            "x": _encoded(numbers.x.to_bytes(COORDINATE_BYTES, "big")),
            "y": _encoded(numbers.y.to_bytes(COORDINATE_BYTES, "big")),
        }

    def issue(self, asked: dict[str, Any], bound: TokenClaims, now: datetime) -> Issued:
        """The TokenRequest with its token, for the account and the objects in `bound`."""
        spec = asked.get("spec") or {}
        seconds = spec.get("expirationSeconds")
        seconds = DEFAULT_SECONDS if seconds is None else seconds
        audiences = spec.get("audiences") or [ISSUER]
        _check(seconds, audiences)
        warnings: tuple[str, ...] = ()
        if seconds > LONGEST_SECONDS:
            warnings = (
                f"requested expiration of {seconds} seconds shortened to {LONGEST_SECONDS} seconds",
            )
            seconds = LONGEST_SECONDS
        expires = now + timedelta(seconds=seconds)
        subject = bound.subject
        own: dict[str, Any] = {
            "namespace": subject.namespace,
            "serviceaccount": {"name": subject.name, "uid": subject.uid},
        }
        for kind in _BOUND_KINDS:
            found: BoundObject | None = getattr(bound, kind)
            if found is not None:
                own[kind] = found.claim()
        claims = {
            "aud": audiences,
            "exp": int(expires.timestamp()),
            "iat": int(now.timestamp()),
            "nbf": int(now.timestamp()),
            "iss": ISSUER,
            "jti": str(uuid4()),
            "kubernetes.io": own,
            "sub": subject.user_name,
        }
        document = {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {
                "name": subject.name,
                "namespace": subject.namespace,
                "uid": subject.uid,
                "creationTimestamp": written_time(now),
            },
            "spec": {**spec, "audiences": audiences, "expirationSeconds": seconds},
            "status": {
                "token": jwt.encode(claims, self._key, ALGORITHM, headers={"kid": self._key_id}),
                "expirationTimestamp": written_time(expires),
            },
        }
        return Issued(document, warnings)

    def claims(self, token: str) -> TokenClaims | None:
        """The claims of a token; None if the signature is invalid, it has expired, or it is for another audience."""
        try:
            claims = jwt.decode(
                token,
                self._public,
                algorithms=[ALGORITHM],
                audience=ISSUER,
                issuer=ISSUER,
                options={"require": ["exp", "sub", "iss", "aud"]},
            )
            own = claims["kubernetes.io"]
            account = own["serviceaccount"]
            subject = TokenSubject(own["namespace"], account["name"], account["uid"])
            bound = {
                kind: BoundObject(own[kind]["name"], own[kind].get("uid", ""))
                for kind in _BOUND_KINDS
                if kind in own
            }
            return TokenClaims(subject, **bound, token_id=claims.get("jti", ""))
        except (jwt.InvalidTokenError, KeyError, TypeError, AttributeError):
            return None


def _encoded(value: bytes) -> str:
    return urlsafe_b64encode(value).rstrip(b"=").decode()


def _key_id(key: EllipticCurvePublicKey) -> str:
    """The hash of the key, as Kubernetes names keys."""
    encoded = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return _encoded(sha256(encoded).digest())


def _check(seconds: Any, audiences: Any) -> None:
    if not isinstance(seconds, int) or isinstance(seconds, bool):
        raise bad_request("spec.expirationSeconds must be a whole number")
    if not isinstance(audiences, list) or not all(isinstance(name, str) for name in audiences):
        raise bad_request("spec.audiences must be a list of strings")
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
