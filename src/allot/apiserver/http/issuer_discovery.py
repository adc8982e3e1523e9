"""Service account issuer discovery: who signs tokens of service accounts, and the keys to verify them with.

`/.well-known/openid-configuration` and `/openid/v1/jwks`, for others that accept such tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from allot.apiserver import api_errors
from allot.apiserver.api_errors import ApiError, Details
from allot.apiserver.auth.service_account_tokens import ALGORITHM, ISSUER, ServiceAccountTokens
from allot.apiserver.http.requests import ApiRequest
from allot.apiserver.http.responses import Response

PATHS: Final = ("/.well-known/openid-configuration", "/openid/v1/jwks")
KEYS_TYPE: Final = "application/jwk-set+json"
CACHED: Final = b"public, max-age=3600"


class IssuerDiscovery:
    """The two documents. `address` is the host and port of the server."""

    def __init__(self, tokens: ServiceAccountTokens, address: Callable[[], str]) -> None:
        self._tokens = tokens
        self._address = address

    def find(self, parts: Sequence[str], request: ApiRequest) -> Response | None:
        found = self._document(parts)
        if found is None or request.method == "GET":
            return None if found is None else _accepted(found, request)
        raise api_errors.method_not_allowed()

    def _document(self, parts: Sequence[str]) -> Response | None:
        match parts:
            case [".well-known", "openid-configuration"]:
                body = {
                    "issuer": ISSUER,
                    "jwks_uri": f"https://{self._address()}{PATHS[1]}",
                    "response_types_supported": ["id_token"],
                    "subject_types_supported": ["public"],
                    "id_token_signing_alg_values_supported": [ALGORITHM],
                }
                return _document(body, "application/json")
            case ["openid", "v1", "jwks"]:
                return _document({"keys": [self._tokens.public_key()]}, KEYS_TYPE)
        return None


def _document(body: object, content_type: str) -> Response:
    return Response(200, msgspec.json.encode(body), content_type, cache_control=CACHED)


def _accepted(document: Response, request: ApiRequest) -> Response:
    """The document; 406 if the client does not take its type."""
    accepted = [part.partition(";")[0].strip() for part in request.header("accept").split(",")]
    if {*accepted} & {"", "*/*", "application/*", document.content_type}:
        return document
    message = f"406: Not Acceptable\n\nAvailable representations: {document.content_type}"
    raise ApiError(406, "NotAcceptable", message, Details())
