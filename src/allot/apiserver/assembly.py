"""Assembles an API server around a store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from allot.api.raw import RawObject
from allot.apiserver.admission.chain import Admission, AdmissionPlugin
from allot.apiserver.admission.creation_limits import CreationLimit, PoolStatusRequestLimit
from allot.apiserver.admission.node_restriction import NodeRestriction
from allot.apiserver.admission.plugin_order import ordered_plugins
from allot.apiserver.admission.resource_quota import ResourceQuotaAdmission
from allot.apiserver.api_errors import ApiError
from allot.apiserver.audit.auditor import Auditor
from allot.apiserver.auth.access_reviews import AccessReviews
from allot.apiserver.auth.authentication import Authentication, Authenticator
from allot.apiserver.auth.authorization import (
    Authorizer,
    AuthorizerChain,
    IsGranted,
    nothing_is_granted,
)
from allot.apiserver.auth.bound_tokens import LiveTokens
from allot.apiserver.auth.node_authorizer import NodeAuthorizer
from allot.apiserver.auth.node_graph import NodeGraph
from allot.apiserver.auth.rbac.authorizer import RbacAuthorizer
from allot.apiserver.auth.rbac.policy_feed import PolicyFeed
from allot.apiserver.auth.service_account_tokens import ServiceAccountTokens
from allot.apiserver.dynamic_admission.admission import DynamicAdmission
from allot.apiserver.dynamic_admission.conversion_webhooks import ConversionWebhookCalls
from allot.apiserver.dynamic_admission.policy_status import PolicyStatus
from allot.apiserver.dynamic_admission.webhook_endpoints import WebhookEndpoints
from allot.apiserver.http.app import App
from allot.apiserver.http.component_health import ComponentHealth, HealthChecks
from allot.apiserver.http.component_statuses import ComponentStatuses
from allot.apiserver.http.definition_managers import definition_managers
from allot.apiserver.http.endpoints import NonResourceEndpoints
from allot.apiserver.http.flow_control import FlowControl, FlowLimits
from allot.apiserver.http.handlers import Handlers
from allot.apiserver.http.health import HealthEndpoints
from allot.apiserver.http.http_exchange import TransferLimits
from allot.apiserver.http.issuer_discovery import IssuerDiscovery
from allot.apiserver.http.metrics import Metrics
from allot.apiserver.http.subresources import Subresources
from allot.apiserver.http.writing import WriteHandlers
from allot.apiserver.kinds.request import Caller, RequestInfo
from allot.apiserver.kinds.resources import RESOURCES, Resource
from allot.apiserver.pacing import Workers
from allot.apiserver.registry.api_service_availability import ApiServiceAvailability
from allot.apiserver.registry.authentication_trust import publish_client_ca
from allot.apiserver.registry.begin_hooks import BeginHooks
from allot.apiserver.registry.bootstrap_roles import ensure_bootstrap_roles
from allot.apiserver.registry.conversion import Converter
from allot.apiserver.registry.custom_definitions import CustomDefinitions
from allot.apiserver.registry.event_expiry import DEFAULT_TTL, EventExpiry
from allot.apiserver.registry.kubernetes_endpoints import endpoint_documents, server_endpoint
from allot.apiserver.registry.object_store import ObjectStore
from allot.apiserver.registry.reading import Reader
from allot.apiserver.registry.served import ServedResources
from allot.apiserver.registry.service_addresses import ServiceAddresses
from allot.apiserver.registry.system_objects import SystemObjects
from allot.apiserver.registry.token_requests import TokenRequests
from allot.apiserver.watch_cache.caches import Caches, resource_named
from allot.apiserver.watch_cache.codecs import codec_for
from allot.apiserver.watch_cache.window import WINDOW
from allot.client.wall_clock import wall_clock
from allot.exposition import show_gates
from allot.features import FeatureGates
from allot.storage.interface import StorageError, Store
from allot.task_cancellation import cancel_and_wait
from allot.validation.cel_checker import CelChecker

STORAGE_SECONDS: Final = 2.0
"""Timeout of the storage health check."""
FIRST_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")


class ApiServer:
    """An API server without a socket: `app` speaks ASGI."""

    def __init__(
        self,
        store: Store,
        gates: FeatureGates,
        authenticators: Sequence[Authenticator],
        tokens: ServiceAccountTokens,
        *,
        authorizer: Authorizer | None = None,
        plugins: Sequence[AdmissionPlugin] = (),
        resources: Sequence[Resource] = RESOURCES,
        clock: Callable[[], datetime] = wall_clock,
        window: int = WINDOW,
        event_ttl: timedelta = DEFAULT_TTL,
        address: Callable[[], str] = lambda: "",
        pool_status_limit: CreationLimit = CreationLimit(),  # noqa: B008 - a value
        flow_limits: FlowLimits = FlowLimits(),  # noqa: B008 - a value
        transfer_limits: TransferLimits = TransferLimits(),  # noqa: B008 - a value
        auditor: Auditor | None = None,
        client_ca: str = "",
        taints_new_nodes: bool = True,
        protects_volumes: bool = False,
    ) -> None:
        """`client_ca` has the certificates (PEM) whose client certificates are trusted.

        `taints_new_nodes`, `protects_volumes`: for servers with controllers that remove the taint and the finalizers.
        """
        self.store = store
        self._client_ca = client_ca
        self._gates = gates
        self.caches = Caches(store, window=window)
        self.metrics = Metrics()
        show_gates(gates, self.metrics.registry)
        self._policies = policies = PolicyFeed(self.caches)
        self._graph = NodeGraph(self.caches)
        is_granted: IsGranted = nothing_is_granted
        if authorizer is None:
            rbac = RbacAuthorizer(policies)
            authorizer = AuthorizerChain([NodeAuthorizer(self._graph), rbac])
            is_granted = rbac.is_granted
        authentication = Authentication([*authenticators, LiveTokens(tokens, self.caches, clock)])
        node_restriction = NodeRestriction(self._graph, authorizer)
        self._workers = workers = Workers()
        quotas = ResourceQuotaAdmission(self.caches, gates, clock, workers)
        served = ServedResources(gates, resources)
        conversions = ConversionWebhookCalls(WebhookEndpoints(self.caches), workers)
        converter = Converter(conversions, workers)
        self._dynamic = DynamicAdmission(self.caches, served, authorizer, converter)
        admission = Admission(
            ordered_plugins(
                store,
                self.caches,
                gates,
                policies,
                node_restriction,
                [*plugins, PoolStatusRequestLimit(pool_status_limit)],
                workers,
                taints_new_nodes=taints_new_nodes,
                protects_volumes=protects_volumes,
            ),
            quotas.creation_lock,
            self._dynamic,
            quotas,
        )
        hooks = BeginHooks([ServiceAddresses(store, self.caches, workers)])
        self.objects = ObjectStore(
            store, self.caches, gates, CelChecker(), admission, hooks, workers, converter, clock
        )
        self._policy_status = PolicyStatus(self.caches, self.objects, served)
        self._api_services = ApiServiceAvailability(self.caches, self.objects, clock)
        self.reader = Reader(store, self.caches, converter, workers)
        writes = WriteHandlers(self.objects, self.reader, authorizer, workers, is_granted)
        requests = TokenRequests(self.reader, tokens, clock)
        parts = Subresources(
            self.objects,
            self.reader,
            self.caches,
            writes,
            requests,
            node_restriction.check_token,
            clock,
            workers,
            self._dynamic,
        )
        reviews = AccessReviews(authorizer, policies, authentication, clock, workers)
        self.component_checks = HealthChecks(self._store_status)
        components = ComponentStatuses(self.component_checks)
        handlers = Handlers(
            store,
            self.caches,
            self.reader,
            writes,
            parts,
            reviews,
            components,
            clock,
            workers,
            converter,
        )
        self._system_objects = SystemObjects(
            store, self.caches, clock, lambda: _endpoint_documents(address())
        )
        self._expiry = EventExpiry(store, self.caches, clock, event_ttl)
        self._sweeping: asyncio.Task[None] | None = None
        self._ready = False
        self._closing = False
        health = HealthEndpoints(
            {"ping": _fine}, {"storage": self._storage_health, "shutdown": self._shutdown_health}
        )
        self._custom = CustomDefinitions(self.caches, self.objects, served, definition_managers)
        endpoints = self._endpoints = NonResourceEndpoints(
            health,
            self.metrics,
            served,
            address,
            store.revision_at,
            IssuerDiscovery(tokens, address),
            self._api_services.is_remote,
        )
        self.app = App(
            handlers,
            endpoints,
            authentication,
            authorizer,
            self.metrics,
            FlowControl(flow_limits, self.metrics),
            served,
            self.caches,
            gates,
            transfer_limits,
            auditor,
            is_granted,
        )

    async def start(self) -> None:
        """Create the namespaces of every cluster, and start background tasks."""
        namespaces = resource_named("", "namespaces")
        for name in FIRST_NAMESPACES:
            await self._ensure(
                namespaces, {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}}
            )
        await self._system_objects.start()
        await ensure_bootstrap_roles(self.store, self.caches, self._gates, self.objects.clock)
        if self._client_ca:
            await publish_client_ca(self.store, self.caches, self._client_ca, self.objects.clock)
        await self._custom.start()
        await self._policies.start()
        await self._graph.start()
        await self._dynamic.start()
        await self._policy_status.start()
        await self._api_services.start()
        self._sweeping = asyncio.create_task(self._expiry.run())
        self._ready = True

    async def _ensure(self, resource: Any, document: dict[str, Any]) -> None:
        codec = codec_for(resource)
        body = RawObject(document).to_json()
        obj = codec.decode(body, codec.storage_version, self.objects.clock())
        info = RequestInfo(Caller("system:apiserver", {}, lambda _: True), "v1", "create")
        try:
            await self.objects.create(resource, "", obj, info)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise

    def begin_shutdown(self) -> None:
        """Report not ready and let watches end."""
        self._closing = True
        self.app.close()

    async def close(self) -> None:
        self.begin_shutdown()
        await cancel_and_wait(self._sweeping)
        await self._system_objects.stop()
        await self._custom.stop()
        await self._policy_status.stop()
        await self._api_services.stop()
        await self.caches.close()
        self._dynamic.close()
        self._endpoints.close()
        self._workers.close()

    async def _storage_health(self) -> str | None:
        try:
            async with asyncio.timeout(STORAGE_SECONDS):
                await self.store.revision()
        except TimeoutError:
            return f"no answer within {STORAGE_SECONDS:g} s"
        except StorageError as error:
            return str(error)
        return self.store.trouble

    async def _store_status(self) -> ComponentHealth:
        problem = await self._storage_health()
        return ComponentHealth(True) if problem is None else ComponentHealth(False, problem)

    async def _shutdown_health(self) -> str | None:
        if self._closing:
            return "the server is shutting down"
        return None if self._ready else "the server is starting"


async def _fine() -> str | None:
    return None


def _endpoint_documents(address: str) -> list[dict[str, Any]]:
    endpoint = server_endpoint(address)
    return [] if endpoint is None else endpoint_documents(endpoint)
