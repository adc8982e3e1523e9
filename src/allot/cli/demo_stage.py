"""Where the stories of `allot demo` are played: a namespace of their own in a running cluster.

What kubectl would do is done through the API; the commands shown are those that do the same.
"""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from allot.api.identities import GroupVersion, ObjectKey
from allot.cli.demo_script import (
    DEVICE_CLASSES,
    FABRIC_DRIVER,
    HARDWARE,
    NAMESPACE,
    Act,
    Apply,
    Delete,
    Look,
    StartFabric,
    StopFabric,
)
from allot.cli.errors import CommandError
from allot.cli.kubectl_output import custom_columns, server_table
from allot.cli.manifests import read_all

if TYPE_CHECKING:
    from allot.api.raw import RawObject
    from allot.client.client import Client
    from allot.client.resources import Resource

_OURS: Final = "allot.dev/demo"
"""The label of a namespace that a demo made."""
_PATIENCE_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.1
_AS_TABLE: Final = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}

Say = Callable[[str], None]


class Stage:
    """Performs acts, and shows them as commands with their output."""

    def __init__(self, client: Client, examples: Path, show: Say, *, kubectl: str) -> None:
        """`kubectl` is how users call it: with what they need to reach this cluster."""
        self._client = client
        self._examples = examples
        self._show = show
        self._kubectl = kubectl
        self._resources: dict[str, Resource[RawObject]] = {}
        self._fabric: asyncio.Task[None] | None = None
        self._made: list[tuple[Resource[RawObject], ObjectKey]] = []
        """Objects that do not go with the namespace."""
        self._old_taints: frozenset[str] = frozenset()

    async def set_up(self) -> None:
        """`CommandError` if this is no cluster for the stories."""
        from allot.client.apply import resource_of
        from allot.client.discovery import discover

        for kind in (await discover(self._client)).kinds:
            self._resources[f"{kind.api_version}/{kind.kind}"] = resource_of(kind)
            self._resources.setdefault(kind.plural, resource_of(kind))
        missing = set(DEVICE_CLASSES) - set(await self._names("deviceclasses"))
        if missing:
            hardware = " ".join(f"--hardware {each}" for each in HARDWARE)
            raise CommandError(
                f"this cluster has no device class {min(missing)}: the stories need the cluster of "
                f"`./scripts/up`, which is `allot up {hardware}`"
            )
        self._old_taints = frozenset(await self._names("devicetaintrules"))
        await self._remove_namespace()
        namespace = {"metadata": {"name": NAMESPACE, "labels": {_OURS: "true"}}}
        await self._create_namespace(namespace)

    async def clear(self) -> None:
        """Remove all that the stories made."""
        await self._stop_fabric()
        if not self._resources:
            return  # not even set up
        for resource, key in self._made:
            await self._delete_if_there(resource, key)
        rules = self._resource("devicetaintrules")
        for name in set(await self._names("devicetaintrules")) - self._old_taints:
            await self._delete_if_there(rules, ObjectKey("", name))
        await self._remove_namespace()

    async def perform(self, act: Act) -> None:
        match act:
            case Apply():
                await self._apply(act)
            case Delete(path):
                await self._delete(path)
            case Look():
                await self._look(act)
            case StartFabric(script):
                await self._start_fabric(script)
            case StopFabric():
                await self._stop_fabric()

    # --- acts ---

    async def _apply(self, act: Apply) -> None:
        from allot.client.apply import apply

        documents = self._documents(act.path)
        self._command(f"apply -n {NAMESPACE} -f {self._shown(act.path)}")
        for document in documents:
            resource = self._resource_of(document)
            if not resource.namespaced:
                key = ObjectKey("", document["metadata"]["name"])
                if act.renews:
                    await self._delete_if_there(resource, key)
                self._made.append((resource, key))
        for obj in await apply(self._client, documents, NAMESPACE):
            self._show(f"{_spoken(obj.data)}/{obj.metadata.name} created")

    async def _delete(self, path: str) -> None:
        from allot.client.options import DeleteOptions

        self._command(f"delete -n {NAMESPACE} -f {self._shown(path)}")
        gone = []
        for document in self._documents(path):
            resource = self._resource_of(document)
            key = ObjectKey(NAMESPACE if resource.namespaced else "", document["metadata"]["name"])
            await self._client.delete(resource, key, DeleteOptions(propagation_policy="Background"))
            self._show(f'{_spoken(document)} "{key.name}" deleted')
            gone.append((resource, key))
        for resource, key in gone:
            await self._wait_until_gone(resource, key)
        # The next story counts on all devices: pods of a Deployment, and claims of pods, go a little later.
        for plural in ("pods", "resourceclaims"):
            await self._wait_for_owners(plural)

    async def _look(self, act: Look) -> None:
        words = ["get", act.plural]
        resource = self._resource(act.plural)
        if resource.namespaced:
            words[1:1] = ["-n", NAMESPACE]
        if act.name:
            words.append(act.name)
        if act.selector:
            words += ["-l", act.selector]
        if act.is_wide:
            words += ["-o", "wide"]
        command = " ".join(words)
        if act.columns:
            columns = ",".join(f"{heading}:{path}" for heading, path in act.columns.items())
            command += f" \\\n    -o custom-columns={shlex.quote(columns)}"
        self._command(command)
        items = await self._wait_for(act)
        if act.columns:
            lines = custom_columns(items, act.columns)
        else:
            table = await self._read(resource, act.name, act.selector, _AS_TABLE)
            lines = server_table(table, is_wide=act.is_wide)
        self._show("\n".join(lines))

    async def _start_fabric(self, script: str) -> None:
        from allot.controllers.binding import BindingController, TaintRules
        from allot.controllers.binding.simulation import SimulatedAttacher, parse_script

        self._show(
            f"$ allot binding-controller --driver {FABRIC_DRIVER} --script {shlex.quote(script)} &"
        )
        fabric = SimulatedAttacher(parse_script(script), clock=self._client.clock, tell=self._show)
        quarantine = TaintRules(self._client, FABRIC_DRIVER)
        controller = BindingController(self._client, FABRIC_DRIVER, fabric, quarantine=quarantine)
        self._fabric = asyncio.create_task(controller.run())

    async def _stop_fabric(self) -> None:
        fabric, self._fabric = self._fabric, None
        if fabric is not None:
            fabric.cancel()
            with suppress(asyncio.CancelledError):
                await fabric

    # --- what they are made of ---

    def _command(self, words: str) -> None:
        self._show(f"$ {self._kubectl} {words}")

    def _shown(self, path: str) -> str:
        """The file as it is best called from here."""
        whole = str(self._examples / path)
        short = os.path.relpath(whole)
        return whole if short.startswith(os.pardir) else short

    def _documents(self, path: str) -> list[Mapping[str, Any]]:
        return [manifest.data for manifest in read_all([str(self._examples / path)])]

    def _resource(self, plural: str) -> Resource[RawObject]:
        found = self._resources.get(plural)
        if found is None:
            raise CommandError(f"the server has no {plural}; is a feature gate off?")
        return found

    def _resource_of(self, document: Mapping[str, Any]) -> Resource[RawObject]:
        return self._resource(f"{document['apiVersion']}/{document['kind']}")

    async def _names(self, plural: str) -> list[str]:
        return [
            obj.metadata.name for obj in (await self._client.list(self._resource(plural))).items
        ]

    async def _read(
        self,
        resource: Resource[RawObject],
        name: str = "",
        selector: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        path = resource.collection_path(NAMESPACE)
        query = {"labelSelector": selector} if selector else {}
        if name:
            query["fieldSelector"] = f"metadata.name={name}"
        response = await self._client.request("GET", path, query, may_repeat=True, headers=headers)
        found: dict[str, Any] = msgspec.json.decode(response.body)
        return found

    async def _wait_for(self, act: Look) -> list[dict[str, Any]]:
        resource = self._resource(act.plural)
        items: list[dict[str, Any]] = []

        async def is_so() -> bool:
            items[:] = (await self._read(resource, act.name, act.selector))["items"]
            return act.until.is_there(items)

        if not await self._within_patience(is_so):
            raise CommandError(
                f"waited {_PATIENCE_SECONDS:g} s for {act.until.description} in vain; "
                f"are the devices in use? `allot status` tells{_why_pending(items)}"
            )
        return items

    async def _wait_until_gone(self, resource: Resource[RawObject], key: ObjectKey) -> None:
        async def is_gone() -> bool:
            return await self._client.find(resource, key) is None

        if not await self._within_patience(is_gone):
            raise CommandError(
                f"{resource.plural} {key.name} is not gone after {_PATIENCE_SECONDS:g} s; "
                "are the controllers running?"
            )

    async def _wait_for_owners(self, plural: str) -> None:
        """Until nothing of this kind is left whose owner is gone or going."""
        from allot.client.options import Scope

        resource = self._resource(plural)

        async def is_so() -> bool:
            found = (await self._client.list(resource, Scope(namespace=NAMESPACE))).items
            for obj in found:
                if obj.metadata.deletion_timestamp:
                    return False
                for owner in obj.data["metadata"].get("ownerReferences") or ():
                    kind = self._resources[f"{owner['apiVersion']}/{owner['kind']}"]
                    key = ObjectKey(NAMESPACE, owner["name"])
                    if await self._client.find(kind, key) is None:
                        return False
            return True

        await self._within_patience(is_so)

    async def _within_patience(self, is_so: Callable[[], Any]) -> bool:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _PATIENCE_SECONDS
        while not await is_so():
            if loop.time() > deadline:
                return False
            await asyncio.sleep(_POLL_SECONDS)
        return True

    async def _delete_if_there(self, resource: Resource[RawObject], key: ObjectKey) -> None:
        from allot.client.errors import ApiStatusError

        try:
            await self._client.delete(resource, key)
        except ApiStatusError as error:
            if not error.is_not_found:
                raise

    async def _create_namespace(self, namespace: dict[str, Any]) -> None:
        from allot.api.raw import RawObject

        await self._client.create(self._resource("v1/Namespace"), RawObject(namespace))

    async def _remove_namespace(self) -> None:
        """What an earlier demo left, or this one; nobody else's."""
        namespaces, key = self._resource("v1/Namespace"), ObjectKey("", NAMESPACE)
        found = await self._client.find(namespaces, key)
        if found is None:
            return
        if _OURS not in found.metadata.labels:
            raise CommandError(
                f"there is a namespace {NAMESPACE} that no demo made; remove it first"
            )
        if not found.metadata.deletion_timestamp:
            await self._delete_if_there(namespaces, key)
        await self._wait_until_gone(namespaces, key)


def _spoken(document: Mapping[str, Any]) -> str:
    """As kubectl calls what it wrote: `pod`, `deployment.apps`."""
    group = GroupVersion.parse(document["apiVersion"]).group
    kind: str = document["kind"].lower()
    return f"{kind}.{group}" if group else kind


def _why_pending(items: Sequence[Mapping[str, Any]]) -> str:
    from allot.cli.kubectl_output import values_at

    path = '.status.conditions[?(@.type=="PodScheduled")].message'
    messages = [message for item in items for message in values_at(item, path)]
    return f". {messages[0]}" if messages else ""
