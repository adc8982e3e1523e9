"""Calls of conversion webhooks: a ConversionReview about objects in one version, answered in another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from allot.apiserver.api_errors import ApiError
from allot.apiserver.dynamic_admission.conversion_responses import (
    GROUP,
    ConversionError,
    checked_object,
    json_problem,
    read_conversion_review,
    read_objects,
)
from allot.apiserver.dynamic_admission.served_request import without_seat
from allot.apiserver.dynamic_admission.webhook_client import WebhookCallError, WebhookClient
from allot.apiserver.dynamic_admission.webhook_endpoints import WebhookEndpoints
from allot.apiserver.kinds.custom_versions import CustomKind
from allot.apiserver.pacing import Pacer, Workers
from allot.apiserver.registry.uids import new_uid
from allot.validation.custom_resource_parts import REVIEW_VERSIONS

Document = dict[str, Any]

TIMEOUT_SECONDS: Final = 30
"""How long a conversion webhook may take, as in Kubernetes; it cannot be configured."""
_NO_RESPONSE: Final[Document] = {"uid": "", "convertedObjects": None, "result": {"metadata": {}}}
"""As Kubernetes sends it with a request."""


class ConversionWebhookCalls:
    """The conversion webhooks of all definitions."""

    def __init__(self, endpoints: WebhookEndpoints, workers: Workers) -> None:
        self._endpoints = endpoints
        self._workers = workers
        self._client = WebhookClient()

    async def convert(
        self, kind: CustomKind, documents: Sequence[bytes], version: str
    ) -> list[Document]:
        """The documents in another version; 500 if the webhook does not convert all of them."""
        definition = kind.definition
        pacer = Pacer()
        originals = [msgspec.json.decode(each) async for each in pacer.each(documents)]
        desired = f"{definition.group}/{version}"
        first = originals[0]
        source = f"{first['apiVersion']}, Kind={first['kind']}"
        webhook: Mapping[str, Any] = definition.get("spec", "conversion", "webhook", default={})
        try:
            found = await self._ask(definition.metadata.name, webhook, documents, desired)
        except (WebhookCallError, ConversionError) as error:
            raise _failure(f"conversion webhook for {source} failed: {error}") from None
        if len(found) != len(originals):
            raise _failure(
                f"conversion webhook for {source} returned {len(found)} objects, "
                f"expected {len(originals)}"
            )
        other = next((each for each in found if not isinstance(each, dict)), None)
        if other is not None:
            raise _failure(json_problem(other))
        made: list[Document] = []
        pairs = zip(originals, found, strict=True)
        async for index, (original, answer) in pacer.each(enumerate(pairs)):
            try:
                made.append(checked_object(original, answer, desired, index, len(originals)))
            except ConversionError as error:
                raise _failure(f"conversion webhook for {source} {error}") from None
        return made

    async def _ask(
        self, name: str, webhook: Mapping[str, Any], documents: Sequence[bytes], desired: str
    ) -> list[Any]:
        versions = webhook.get("conversionReviewVersions") or ()
        version = next((each for each in versions if each in REVIEW_VERSIONS), "v1")
        uid = new_uid()
        body = msgspec.json.encode(
            {
                "kind": "ConversionReview",
                "apiVersion": f"{GROUP}/{version}",
                "request": {
                    "uid": uid,
                    "desiredAPIVersion": desired,
                    "objects": [msgspec.Raw(each) for each in documents],
                },
                "response": _NO_RESPONSE,
            }
        )
        client: Mapping[str, Any] = webhook.get("clientConfig") or {}
        async with without_seat():
            endpoint = await self._endpoints.find(client, TIMEOUT_SECONDS)
            bundle = client.get("caBundle") or ""
            response = await self._client.call(name, endpoint, bundle, body, TIMEOUT_SECONDS)
        return await self._workers.run(
            len(response.body),
            lambda: read_objects(read_conversion_review(response), uid, version),
        )


def _failure(message: str) -> ApiError:
    return ApiError(500, "", message)
