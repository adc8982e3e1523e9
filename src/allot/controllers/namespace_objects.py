"""Per-namespace objects: the service account `default` and the config map with the API server's CA certificate.

Recreated when deleted or modified.
"""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from typing import Any, Final

from allot.api.core import Namespace
from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.client.client import Client
from allot.client.errors import ApiStatusError
from allot.client.http import HttpTransport
from allot.client.options import Scope
from allot.client.resources import CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS, Resource
from allot.controllers.controller import ControllerContext, QueueController

log = logging.getLogger(__name__)

DEFAULT_ACCOUNT: Final = "default"
ROOT_CA: Final = "kube-root-ca.crt"
AUTHENTICATION: Final = ObjectKey("kube-system", "extension-apiserver-authentication")
CLIENT_CA: Final = "client-ca-file"
DESCRIPTION: Final = "kubernetes.io/description"


def is_active(namespace: Namespace) -> bool:
    return namespace.metadata.deletion_timestamp is None and not namespace.is_terminating


class NamespaceObjectController(QueueController[str]):
    """Keeps one object of a fixed name in every active namespace. Keys are namespaces."""

    def __init__(
        self, context: ControllerContext, resource: Resource[RawObject], name: str
    ) -> None:
        super().__init__(context)
        self._resource = resource
        self._object_name = name
        informers = context.informers
        self._namespaces = informers.informer(NAMESPACES)
        self._namespaces.add_handlers(
            on_add=lambda new: self.queue.add(new.metadata.name),
            on_update=lambda _, new: self.queue.add(new.metadata.name),
        )
        scope = Scope(field_selector=f"metadata.name={name}")
        self._objects = informers.informer(resource, scope)
        self._objects.add_handlers(
            on_update=lambda _, new: self.queue.add(new.metadata.namespace),
            on_delete=lambda old: self.queue.add(old.metadata.namespace),
        )

    @abstractmethod
    def wanted(self, namespace: str, found: RawObject | None) -> RawObject | None:
        """The wanted object; `found` itself if it is up to date; None if none is wanted."""

    async def reconcile(self, key: str) -> None:
        namespace = self._namespaces.get(ObjectKey("", key))
        if namespace is None or not is_active(namespace):
            return
        found = self._objects.get(ObjectKey(key, self._object_name))
        wanted = self.wanted(key, found)
        if wanted is None or wanted is found:
            return
        try:
            if found is None:
                await self.client.create(self._resource, wanted)
            else:
                await self.client.update(self._resource, wanted)
        except ApiStatusError as error:
            if not (
                error.is_already_exists or error.is_namespace_terminating or error.is_not_found
            ):
                raise


def _named(resource: Resource[Any], namespace: str, name: str, **rest: Any) -> RawObject:
    return RawObject(
        {
            "kind": resource.kind,
            "apiVersion": resource.api_version,
            "metadata": {"name": name, "namespace": namespace},
            **rest,
        }
    )


class ServiceAccountController(NamespaceObjectController):
    """Creates the service account of pods that do not name one."""

    name = "serviceaccount-controller"
    queue_name = "serviceaccount"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context, SERVICE_ACCOUNTS, DEFAULT_ACCOUNT)

    def wanted(self, namespace: str, found: RawObject | None) -> RawObject | None:
        return found or _named(SERVICE_ACCOUNTS, namespace, DEFAULT_ACCOUNT)


class RootCaPublisher(NamespaceObjectController):
    """Publishes the CA certificate with which pods verify the API server."""

    name = "root-ca-certificate-publisher-controller"
    queue_name = "root_ca_cert_publisher"

    def __init__(self, context: ControllerContext, certificates: str | None = None) -> None:
        """By default the CA certificates of the controller's own client are published.

        A client in the server's process has none: then those that the server publishes for client certificates,
        whose authority has also signed the server's own.
        """
        super().__init__(context, CONFIG_MAPS, ROOT_CA)
        self._certificates = certificates
        scope = Scope(
            AUTHENTICATION.namespace, field_selector=f"metadata.name={AUTHENTICATION.name}"
        )
        self._published = context.informers.informer(CONFIG_MAPS, scope)

    async def run(self) -> None:
        if not self._certificates:
            own = await asyncio.to_thread(trusted_certificates, self.client)
            published = self._published.get(AUTHENTICATION)
            ca = published.get("data", CLIENT_CA) if published is not None else None
            self._certificates = own or ca or ""
        if not self._certificates:
            log.info("no CA certificate to publish")
        await super().run()

    def wanted(self, namespace: str, found: RawObject | None) -> RawObject | None:
        if not self._certificates:
            return None
        data = {"ca.crt": self._certificates}
        if found is None:
            made = _named(CONFIG_MAPS, namespace, ROOT_CA, data=data)
            return made.with_value({DESCRIPTION: ROOT_CA_DESCRIPTION}, "metadata", "annotations")
        return found if found.get("data") == data else found.with_value(data, "data")


ROOT_CA_DESCRIPTION: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)
"""As in Kubernetes, for tools that compare."""


def trusted_certificates(client: Client) -> str:
    """The CA certificates with which the client verifies the server; empty if it uses the system's."""
    transport = client.transport
    return transport.root_certificates if isinstance(transport, HttpTransport) else ""
