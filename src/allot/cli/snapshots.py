"""Where commands that only look get their objects from: a cluster, or files such as kubectl prints."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click

from allot.api.base import ApiObject, replace
from allot.api.decoding import DecodeError
from allot.api.identities import GroupVersion, GroupVersionKind
from allot.api.raw import RawObject
from allot.api.resource import GROUP
from allot.api.scheme import UnknownKindError, decode_object
from allot.cli.apply import read_all
from allot.cli.errors import CommandError
from allot.cli.manifests import Manifest
from allot.client.options import Scope
from allot.client.resources import Resource
from allot.client.snapshot import Snapshot, server_version, take_snapshot
from allot.rules import RuleSet

if TYPE_CHECKING:
    from allot.client.client import Client

DEFAULT_NAMESPACE: Final = "default"

F = TypeVar("F", bound=Callable[..., Any])
Resources = Sequence[Resource[Any]]
Scopes = Mapping[Resource[Any], Scope]


class Source(NamedTuple):
    """Files, or the cluster that kubectl would use."""

    files: tuple[str, ...] = ()
    kubeconfig: Path | None = None
    context: str | None = None

    def check(self) -> None:
        """`CommandError` if it is both."""
        if self.files and (self.kubeconfig or self.context):
            raise CommandError(
                "files or a cluster, not both: leave out -f, or --kubeconfig and --context"
            )


def source_options(does: str) -> Callable[[F], F]:
    """`-f`, `--kubeconfig` and `--context`; the function gets `sources`, `kubeconfig` and `context`."""

    def decorate(command: F) -> F:
        command = click.option("--context", help="The context in the kubeconfig.")(command)
        command = click.option(
            "--kubeconfig",
            type=click.Path(dir_okay=False, path_type=Path),
            help="How to reach the cluster. Default: as kubectl.",
        )(command)
        return click.option(
            "-f",
            "--filename",
            "sources",
            multiple=True,
            metavar="FILE",
            help=f"{does} what is in files, directories, or - for standard input, instead of a cluster.",
        )(command)

    return decorate


def take(
    source: Source,
    resources: Resources,
    user_agent: str,
    namespace: str = "",
    scopes: Scopes | None = None,
    gate_pages: Sequence[str] = (),
) -> Snapshot:
    """All objects of these resources; `CommandError` if there is nothing to read from.

    Of resources with a scope, only that is read of a cluster. Its feature gates are read from the first of
    `gate_pages` that shows them.
    """
    source.check()
    if source.files:
        return snapshot_of_files(source.files, resources)
    return asyncio.run(
        _from_cluster(source, resources, user_agent, namespace, scopes or {}, gate_pages)
    )


OF_A_CLUSTER: Final = "those of the cluster; seeds for files"
"""Whose rules hold for questions about a cluster that is only looked at."""


def rules_of_cluster(snapshot: Snapshot, source: Source, asked: RuleSet | None) -> RuleSet:
    """Whose answers are given about a cluster, if the command line does not say it.

    Where neither its scheduler nor its API server says it, and the API server is not ours, another scheduler places the pods.
    """
    if asked is not None:
        return asked
    if snapshot.gates.rules is not None:
        return snapshot.gates.rules
    is_ours = bool(source.files) or "+allot." in snapshot.server_version
    return RuleSet.SEEDS if is_ours else RuleSet.V1_38


def namespace_of(source: Source) -> str:
    """The namespace of those who name none."""
    from allot.client.errors import ClientError
    from allot.client.kubeconfig import find_access

    source.check()
    if source.files:
        return DEFAULT_NAMESPACE
    try:
        return find_access(source.kubeconfig, source.context).load().namespace
    except ClientError as error:
        raise CommandError(str(error)) from error


async def _from_cluster(
    source: Source,
    resources: Resources,
    user_agent: str,
    namespace: str,
    scopes: Scopes,
    gate_pages: Sequence[str],
) -> Snapshot:
    from allot.client.client import Client
    from allot.client.connection import connect
    from allot.client.errors import ClientError
    from allot.client.retries import RetryPolicy
    from allot.client.server_gates import read_server_gates

    client: Client | None = None
    try:
        client = connect(source.kubeconfig, source.context, user_agent=user_agent)
        # Somebody is waiting: a server that is not there had better be known soon.
        impatient = Client(client.transport, retry=RetryPolicy(max_attempts=3))
        snapshot = await take_snapshot(impatient, resources, namespace, scopes)
        snapshot.server_version = await server_version(impatient)
        if gate_pages:
            snapshot.gates = await read_server_gates(impatient, gate_pages)
        return snapshot
    except ClientError as error:
        raise CommandError(str(error)) from error
    finally:
        if client is not None:
            await client.close()


# --- files ---


def snapshot_of_files(files: Sequence[str], resources: Iterable[Resource[Any]]) -> Snapshot:
    """The objects of these kinds in files; others are passed over.

    An object that is there twice, as in two dumps, counts as it was seen last. What people leave out when they
    write manifests by hand, but every object in a cluster has, is filled in.
    """
    snapshot = Snapshot()
    now = datetime.now(UTC)
    by_kind = {(resource.group, resource.kind): resource for resource in resources}
    for number, manifest in enumerate(read_all(files)):
        group_version = GroupVersion.parse(manifest.api_version)
        resource = by_kind.get((group_version.group, manifest.kind))
        if resource is None:
            continue
        gvk = GroupVersionKind(*group_version, manifest.kind)
        snapshot.put(resource, _completed(_decoded(manifest, gvk, resource, now), resource, number))
    return snapshot


def _decoded(
    manifest: Manifest, gvk: GroupVersionKind, resource: Resource[Any], now: datetime
) -> Any:
    try:
        if gvk.group == GROUP:
            return decode_object(manifest.body, gvk, now)
        return resource.codec.decode(manifest.body)
    except (DecodeError, UnknownKindError) as error:
        place = f"{manifest.source}:{manifest.place.line}"
        raise CommandError(f"{place}: {manifest.kind}/{manifest.name}: {error}") from None


def _completed(obj: Any, resource: Resource[Any], number: int) -> Any:
    """The object with a name, a namespace and a uid."""
    metadata = obj.metadata
    missing = {}
    if not metadata.name:
        missing["name"] = f"{metadata.generate_name}#{number}"
    if resource.namespaced and not metadata.namespace:
        missing["namespace"] = DEFAULT_NAMESPACE
    if not metadata.uid:
        where = missing.get("namespace", metadata.namespace)
        missing["uid"] = f"{resource.kind}/{where}/{missing.get('name', metadata.name)}"
    if not missing:
        return obj
    if isinstance(obj, RawObject):
        return obj.with_metadata(replace(metadata, **missing))
    assert isinstance(obj, ApiObject)
    return replace(obj, metadata=replace(metadata, **missing))
