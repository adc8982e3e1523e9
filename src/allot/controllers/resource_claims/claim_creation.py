"""Creates claims from templates, and writes their names to the status of pods."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import islice
from typing import Final, NamedTuple

from allot.api.claims import ResourceClaim
from allot.api.core import Pod, PodClaimEntry
from allot.api.identities import ObjectKey
from allot.api.similar_names import did_you_mean, similar_names
from allot.client.client import Client
from allot.client.clock import Timer
from allot.client.errors import ApiStatusError, ClientError
from allot.client.events import WARNING, Recorder, reference_to
from allot.client.informer import Informer
from allot.client.ordered_client import in_order
from allot.client.resources import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from allot.controllers.resource_claims.indexes import CLAIMS_BY_POD, owning_pod
from allot.controllers.resource_claims.metrics import ClaimMetrics
from allot.controllers.resource_claims.mutation_cache import (
    CREATED_CLAIM_TTL_SECONDS,
    CreatedClaims,
)
from allot.controllers.resource_claims.pods import uid_of
from allot.controllers.resource_claims.templates import (
    ClaimTemplate,
    claim_already_made,
    claim_from,
    claim_key,
    claim_statuses_to_write,
    is_made_for,
    refusal,
)
from allot.features import FeatureGates

log = logging.getLogger(__name__)

TEMPLATES: Final = RESOURCE_CLAIM_TEMPLATES.as_raw(ClaimTemplate)
_RAW_CLAIMS: Final = RESOURCE_CLAIMS.as_raw()

NAME_ATTEMPTS: Final = 10
MAX_COMPARED: Final = 500
"""Template names that are compared to suggest a similar one."""
REASON: Final = "FailedResourceClaimCreation"
ACTION: Final = "CreatingResourceClaim"
FIELD_MANAGER: Final = "ResourceClaimController"
"""That kube-controller-manager applies the names of claims with."""


class ClaimCreationError(Exception):
    """A claim cannot be created now."""

    def __init__(self, reason: str, *, is_retryable: bool = False) -> None:
        super().__init__(reason)
        self.is_retryable = is_retryable
        """Whether to retry without a watch event."""


class _NewClaim(NamedTuple):
    """A claim to create for an entry of a pod."""

    entry: str
    key: ObjectKey
    template: ClaimTemplate


class ClaimCreator:
    """Creates claims for pods; never two for one entry, see `templates`."""

    def __init__(
        self,
        client: Client,
        claims: Informer[ResourceClaim],
        templates: Informer[ClaimTemplate],
        recorder: Recorder,
        gates: FeatureGates,
        metrics: ClaimMetrics,
        requeue: Callable[[ObjectKey], None],
    ) -> None:
        """`requeue` queues a pod again."""
        self._client = client
        self._claims = claims
        self._templates = templates
        self._recorder = recorder
        self._gates = gates
        self._metrics = metrics
        self._requeue = requeue
        self._created = CreatedClaims(client.clock.now)
        self._expiry: Timer | None = None

    def claim_seen(self, key: ObjectKey) -> None:
        """The informer has received a claim."""
        self._created.forget(key)

    def has_created_all(self, pod: Pod) -> bool:
        """Whether the claims of all entries with a template are known, and the pod's status names them."""
        statuses, uid = pod.claim_statuses, uid_of(pod)
        for entry_name, _, template in pod.claim_entries:
            if not template:
                continue
            if entry_name not in statuses:
                return False
            name = statuses[entry_name]
            if name is not None and not self._is_known(ObjectKey(pod.key.namespace, name), uid):
                return False
        return True

    async def create_missing(self, pod: Pod) -> None:
        """Create the claims of all entries with a template, and write their names to the pod's status."""
        if await self._create_at_once(pod):
            return
        claim_by_entry = {}
        failed: ClaimCreationError | None = None
        for entry in pod.claim_entries:
            if not entry.template_name:
                continue
            try:
                claim = await self._claim_of(pod, entry)
            except ClaimCreationError as failure:
                self._complain(pod, f"PodResourceClaim {entry.name}: {failure}")
                if failure.is_retryable:
                    failed = failure
            else:
                if claim is not None:
                    claim_by_entry[entry.name] = claim
        await self._write_claim_statuses(pod, claim_by_entry)
        if failed is not None:
            raise failed

    async def _create_at_once(self, pod: Pod) -> bool:
        """The same for a new pod, in one message. False if something is left to do."""
        uid = uid_of(pod)
        if pod.claim_statuses or self._claims.by_index(CLAIMS_BY_POD, uid):
            return False
        new_claims: list[_NewClaim] = []
        names: dict[str, str] = {}
        for entry in pod.claim_entries:
            if not entry.template_name:
                continue
            key = claim_key(pod, entry.name)
            template = self._templates.get(ObjectKey(key.namespace, entry.template_name))
            if (
                template is None
                or refusal(template, self._gates) is not None
                or self._created.is_made_for(key, uid)
            ):
                return False
            new_claims.append(_NewClaim(entry.name, key, template))
            names[entry.name] = key.name
        if not new_claims:
            return False
        statuses = claim_statuses_to_write(pod, names)
        client = in_order(self._client, len(new_claims) + 1)
        if statuses is None or client is None:
            return False
        sent = [self._submit(client, pod, new) for new in new_claims]
        named = self._apply(client, pod, statuses)
        for new, created in zip(new_claims, sent, strict=True):
            with suppress(ClientError):  # then the names are not written either
                await created
                self._note_created(new.key, pod, new.template)
        try:
            await named
        except ClientError:
            return False
        return True

    def _submit(self, client: Client, pod: Pod, new: _NewClaim) -> Awaitable[object]:
        claim = claim_from(new.template, pod, new.entry, new.key.name)
        return client.submit_create(_RAW_CLAIMS, claim)

    async def _claim_of(self, pod: Pod, entry: PodClaimEntry) -> str | None:
        """The name of an entry's claim, created if missing; None if the entry needs none."""
        uid, (namespace, _) = uid_of(pod), pod.key
        statuses = pod.claim_statuses
        if entry.name in statuses:
            name = statuses[entry.name]
            key = ObjectKey(namespace, name or "")
            if name is None or self._is_known(key, uid):
                return name
            if await self._owner_on_server(key) == uid:
                return name
        made = claim_already_made(self._claims.by_index(CLAIMS_BY_POD, uid), uid, entry.name)
        if made is not None:
            return made.metadata.name
        key = claim_key(pod, entry.name)
        if self._created.is_made_for(key, uid):
            return key.name
        return await self._create(pod, entry)

    def _is_known(self, key: ObjectKey, pod_uid: str) -> bool:
        """Whether a claim was created for the pod, as far as is known without the server."""
        claim = self._claims.get(key)
        if claim is not None and is_made_for(claim, pod_uid):
            return True
        return self._created.is_made_for(key, pod_uid)

    def _note_created(self, key: ObjectKey, pod: Pod, template: ClaimTemplate) -> None:
        self._metrics.attempts.add(template.uses, worked=True)
        if self._claims.get(key) is None:  # the watch may be faster than the response
            self._created.add(key, pod.key, uid_of(pod))
            self._expect_created()
        log.info("pod %s: created claim %s", pod.key, key.name)

    def _expect_created(self) -> None:
        """Requeue the pods of created claims if the informer does not get the claims in time."""
        if self._expiry is None and self._created:
            clock = self._client.clock
            self._expiry = clock.call_later(CREATED_CLAIM_TTL_SECONDS, self._expire_created)

    def _expire_created(self) -> None:
        self._expiry = None
        for pod in self._created.expire():
            self._requeue(pod)
        self._expect_created()

    async def _owner_on_server(self, key: ObjectKey) -> str | None:
        """The uid of the pod that a claim was created for, empty if for none; None if the claim does not exist."""
        claim = await self._client.find(RESOURCE_CLAIMS, key)
        if claim is None:
            return None
        owner = owning_pod(claim)
        return owner.uid if owner is not None else ""

    async def _create(self, pod: Pod, entry: PodClaimEntry) -> str | None:
        template = await self._template(ObjectKey(pod.key.namespace, entry.template_name))
        if (reason := refusal(template, self._gates)) is not None:
            raise ClaimCreationError(reason)
        for attempt in range(NAME_ATTEMPTS):
            key = claim_key(pod, entry.name, attempt)
            try:
                await self._submit(self._client, pod, _NewClaim(entry.name, key, template))
                self._note_created(key, pod, template)
            except ApiStatusError as error:
                if error.is_namespace_terminating:
                    return None  # the pod is deleted with the namespace
                if not error.is_already_exists:
                    self._metrics.attempts.add(template.uses, worked=False)
                    text = f"create ResourceClaim {key.name}: {error.message}"
                    raise ClaimCreationError(text, is_retryable=True) from error
                owner = await self._owner_on_server(key)
                if owner is None:  # deleted meanwhile: retry with the same name
                    raise
                if owner == uid_of(pod):
                    return key.name
            else:
                return key.name
        raise ClaimCreationError(
            f"all generated names up to {key.name} are in use", is_retryable=True
        )

    async def _template(self, key: ObjectKey) -> ClaimTemplate:
        template = self._templates.get(key)
        if template is None:
            # The informer may be outdated. Otherwise it delivers an event when the template is created.
            template = await self._templates.find_live(key)
        if template is None:
            missing = f'resourceclaimtemplate.resource.k8s.io "{key.name}" not found'
            text = f'resource claim template "{key.name}": {missing}{self._similar_templates(key)}'
            raise ClaimCreationError(text)
        return template

    def _similar_templates(self, key: ObjectKey) -> str:
        """A suggestion of a template with a similar name."""
        known = (template.key for template in self._templates.list())
        names = (other.name for other in known if other.namespace == key.namespace)
        similar = similar_names(key.name, islice(names, MAX_COMPARED), limit=1)
        return did_you_mean(f'"{name}"' for name in similar)

    async def _write_claim_statuses(self, pod: Pod, claim_by_entry: dict[str, str]) -> None:
        """Apply the names to the pod's status."""
        statuses = claim_statuses_to_write(pod, claim_by_entry)
        if statuses is None:
            return
        try:
            await self._apply(self._client, pod, statuses)
        except ApiStatusError as error:
            # A conflict means that the pod was replaced.
            if not (error.is_not_found or error.is_conflict):
                raise

    def _apply(self, client: Client, pod: Pod, statuses: list[dict[str, str]]) -> Awaitable[object]:
        fields = {"metadata": {"uid": uid_of(pod)}, "status": {"resourceClaimStatuses": statuses}}
        return client.submit_apply(PODS, pod.key, fields, FIELD_MANAGER, subresource="status")

    def _complain(self, pod: Pod, note: str) -> None:
        log.info("pod %s: %s", pod.key, note)
        self._recorder.event(reference_to(PODS, pod), WARNING, REASON, ACTION, note)
