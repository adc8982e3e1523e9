"""Performs the steps of a story in a namespace of its own, and shows each as a command with its output.

Steps go through the API; the commands shown are those with which a user does the same.
"""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from allot.api.identities import GroupVersion, ObjectKey
from allot.api.raw import RawObject
from allot.cli.demo.needs import Devices, Need, obstacles
from allot.cli.demo.steps import Apply, Get, Scene, StartFabric, Step
from allot.cli.demo.stories import DEVICE_CLASSES, FABRIC_DRIVER, NAMESPACE, START
from allot.cli.errors import CommandError
from allot.cli.kubectl_output import custom_columns, server_table, values_at
from allot.cli.manifests import read_all
from allot.client.apply import apply, resource_of
from allot.client.client import Client
from allot.client.discovery import discover
from allot.client.errors import ApiStatusError
from allot.client.options import DeleteOptions, Scope
from allot.client.resources import (
    DEVICE_TAINT_RULES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from allot.controllers.binding import BindingController, TaintRules
from allot.controllers.binding.simulation import SimulatedAttacher, parse_script
from allot.task_cancellation import cancel_and_wait

_LABEL: Final = "allot.dev/demo"
"""On a namespace that a demo created."""
_TIMEOUT_SECONDS: Final = 60.0
_SILENT_SECONDS: Final = 5.0
"""A longer wait is mentioned."""
_POLL_SECONDS: Final = 0.1
_AS_TABLE: Final = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
_MESSAGE: Final = '.status.conditions[?(@.type=="PodScheduled")].message'


class Runner:
    """Runs scenes in a cluster. `set_up` comes first; `clean_up` last, however it ends."""

    def __init__(self, client: Client, examples: Path, show: Callable[[str], None]) -> None:
        self._client = client
        self._examples = examples
        self._show = show
        self._resources: dict[str, Resource[RawObject]] = {}
        self._fabric: asyncio.Task[None] | None = None
        self._cluster_scoped: list[tuple[Resource[RawObject], ObjectKey]] = []
        """Objects that are not deleted with the namespace."""
        self._existing_rules: frozenset[str] = frozenset()
        here = Path.cwd()
        self.directory = here if examples.is_relative_to(here) else examples
        """Where the commands shown can be typed: their paths are short there."""

    async def set_up(self) -> None:
        """`CommandError` if the cluster lacks the hardware of the stories."""
        for kind in (await discover(self._client)).kinds:
            self._resources[f"{kind.api_version}/{kind.kind}"] = resource_of(kind)
            self._resources.setdefault(kind.plural, resource_of(kind))
        missing = set(DEVICE_CLASSES) - await self._names("deviceclasses")
        if missing:
            raise CommandError(
                f"this cluster has no device class {min(missing)}: the stories need one started with {START}"
            )
        self._existing_rules = frozenset(await self._names("devicetaintrules"))
        await self._remove_namespace()
        namespace = {"metadata": {"name": NAMESPACE, "labels": {_LABEL: "true"}}}
        await self._client.create(self._resource("v1/Namespace"), RawObject(namespace))

    async def clean_up(self) -> None:
        """Remove everything that the stories created."""
        await self._stop_fabric()
        if not self._resources:
            return  # not even set up
        rules = self._resource("devicetaintrules")
        created = await self._names("devicetaintrules") - self._existing_rules
        left = [*self._cluster_scoped, *((rules, ObjectKey("", name)) for name in created)]
        for resource, key in left:
            await self._delete_if_exists(resource, key)
        await self._remove_namespace()

    async def obstacles(self, need: Need) -> list[str]:
        """What holds the devices of a scene: one line for each device that is not free."""
        claims = (await self._client.list(RESOURCE_CLAIMS)).items
        slices = (await self._client.list(RESOURCE_SLICES)).items
        rules = (await self._client.list(DEVICE_TAINT_RULES)).items
        others = [claim for claim in claims if claim.metadata.namespace != NAMESPACE]
        return obstacles(need, Devices(slices, others, rules))

    async def step(self, step: Step) -> None:
        match step:
            case Apply():
                await self._apply(step)
            case Get():
                await self._get(step)
            case StartFabric(script):
                self._start_fabric(script)

    async def end(self, scene: Scene) -> None:
        """Delete what the scene created, and wait until its devices are free for the next one."""
        for path in scene.delete:
            self._command(f"delete -n {NAMESPACE} \\\n    -f {self._shown(path)}")
            for document in self._documents(path):
                resource = self._resource_of(document)
                name = document["metadata"]["name"]
                key = ObjectKey(NAMESPACE if resource.namespaced else "", name)
                await self._delete_if_exists(resource, key)
                self._show(f'{_printed_kind(document)} "{name}" deleted')
        if scene.delete:
            await self._wait(self._is_empty, "pods and claims to be deleted")
            await self._stop_fabric()

    # --- steps ---

    async def _apply(self, step: Apply) -> None:
        documents = self._documents(step.path)
        self._command(f"apply -n {NAMESPACE} \\\n    -f {self._shown(step.path)}")
        for document in documents:
            resource = self._resource_of(document)
            if not resource.namespaced:
                key = ObjectKey("", document["metadata"]["name"])
                if step.replace:
                    await self._delete_if_exists(resource, key)
                self._cluster_scoped.append((resource, key))
        for obj in await apply(self._client, documents, NAMESPACE):
            self._show(f"{_printed_kind(obj.data)}/{obj.metadata.name} created")

    async def _get(self, step: Get) -> None:
        resource = self._resource(step.plural)
        namespace = f"-n {NAMESPACE} " if resource.namespaced else ""
        command = " ".join([f"get {namespace}{step.plural}", *step.words])
        if step.columns:
            command += f" \\\n    -o custom-columns-file={self._shown(_columns_file(step))}"
        self._command(command)
        items: list[dict[str, Any]] = []

        async def is_so() -> bool:
            items[:] = (await self._list(resource, step))["items"]
            return all(condition.holds(items) for condition in step.until)

        wanted = f"{step.plural}: {' and '.join(map(str, step.until))}"
        await self._wait(is_so, wanted, lambda: _advice(items))
        if step.columns:
            lines = custom_columns(items, self._columns(step))
        else:
            lines = server_table(await self._list(resource, step, _AS_TABLE))
        self._show("\n".join(lines))

    def _start_fabric(self, script: str) -> None:
        self._show(
            f"$ allot binding-controller --driver {FABRIC_DRIVER} \\\n    --script {shlex.quote(script)} &"
        )
        attacher = SimulatedAttacher(
            parse_script(script), clock=self._client.clock, report=self._show
        )
        quarantine = TaintRules(self._client, FABRIC_DRIVER)
        controller = BindingController(self._client, FABRIC_DRIVER, attacher, quarantine=quarantine)
        self._fabric = asyncio.create_task(controller.run())

    async def _stop_fabric(self) -> None:
        fabric, self._fabric = self._fabric, None
        await cancel_and_wait(fabric)

    # --- files and resources ---

    def _command(self, words: str) -> None:
        self._show(f"$ kubectl {words}")

    def _shown(self, path: str) -> str:
        """The file as commands name it in `directory`."""
        return os.path.relpath(self._examples / path, self.directory)

    def _columns(self, step: Get) -> dict[str, str]:
        """Paths by heading, from a file for `kubectl -o custom-columns-file`."""
        text = (self._examples / _columns_file(step)).read_text(encoding="utf-8")
        headings, paths = (line.split() for line in text.splitlines())
        return dict(zip(headings, paths, strict=True))

    def _documents(self, path: str) -> list[Mapping[str, Any]]:
        return [manifest.data for manifest in read_all([str(self._examples / path)])]

    def _resource(self, plural: str) -> Resource[RawObject]:
        found = self._resources.get(plural)
        if found is None:
            raise CommandError(f"the server does not serve {plural}: is a feature gate off?")
        return found

    def _resource_of(self, document: Mapping[str, Any]) -> Resource[RawObject]:
        return self._resource(f"{document['apiVersion']}/{document['kind']}")

    # --- the API ---

    async def _names(self, plural: str) -> set[str]:
        found = await self._client.list(self._resource(plural))
        return {obj.metadata.name for obj in found.items}

    async def _list(
        self, resource: Resource[RawObject], step: Get, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        query = {"labelSelector": step.selector} if step.selector else {}
        if step.name:
            query["fieldSelector"] = f"metadata.name={step.name}"
        path = resource.collection_path(NAMESPACE)
        response = await self._client.request("GET", path, query, may_repeat=True, headers=headers)
        return msgspec.json.decode(response.body, type=dict[str, Any])

    async def _is_empty(self) -> bool:
        """Whether the namespace has neither pods nor claims."""
        scope = Scope(namespace=NAMESPACE)
        for plural in ("pods", "resourceclaims"):
            if (await self._client.list(self._resource(plural), scope)).items:
                return False
        return True

    async def _wait(
        self,
        is_so: Callable[[], Awaitable[bool]],
        wanted: str,
        advice: Callable[[], str] = lambda: "are the controllers running?",
    ) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _TIMEOUT_SECONDS
        mention_at = loop.time() + _SILENT_SECONDS
        while not await is_so():
            if loop.time() > mention_at:
                self._show(f"waiting for {wanted} ...")
                mention_at = deadline
            if loop.time() > deadline:
                raise CommandError(
                    f"timed out after {_TIMEOUT_SECONDS:g} s waiting for {wanted}; {advice()}"
                )
            await asyncio.sleep(_POLL_SECONDS)

    async def _delete_if_exists(self, resource: Resource[RawObject], key: ObjectKey) -> None:
        try:
            await self._client.delete(resource, key, DeleteOptions(propagation_policy="Background"))
        except ApiStatusError as error:
            if not error.is_not_found:
                raise

    async def _remove_namespace(self) -> None:
        """Delete the namespace of this demo, or of an earlier one that was killed."""
        namespaces, key = self._resource("v1/Namespace"), ObjectKey("", NAMESPACE)
        found = await self._client.find(namespaces, key)
        if found is None:
            return
        if _LABEL not in found.metadata.labels:
            raise CommandError(
                f"the namespace {NAMESPACE} was not created by a demo: delete it first"
            )
        if not found.metadata.deletion_timestamp:
            await self._delete_if_exists(namespaces, key)

        async def is_gone() -> bool:
            return await self._client.find(namespaces, key) is None

        await self._wait(is_gone, f"the namespace {NAMESPACE} to be deleted")


def _columns_file(step: Get) -> str:
    return f"columns/{step.columns}.txt"


def _printed_kind(document: Mapping[str, Any]) -> str:
    """As kubectl prints it: `pod`, `deployment.apps`."""
    group = GroupVersion.parse(document["apiVersion"]).group
    kind: str = document["kind"].lower()
    return f"{kind}.{group}" if group else kind


def _advice(items: Sequence[Mapping[str, Any]]) -> str:
    messages = [message for item in items for message in values_at(item, _MESSAGE)]
    return f"`allot status` shows devices in use{f'. {messages[0]}' if messages else ''}"
