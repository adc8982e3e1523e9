"""Objects for commands that read only: from a cluster, or from files such as kubectl prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from allot.cli.at_option import Moment, snapshot_of_recording
from allot.cli.errors import CommandError
from allot.cli.manifests import CLONE_KIND, Manifest, read_all
from allot.cli.which_cluster import chosen_kubeconfig, cluster_error
from allot.client import cluster_gates
from allot.client.options import Scope
from allot.client.resources import Resource
from allot.client.server_gates import ServerGates
from allot.client.snapshot import Snapshot
from allot.public.errors import ClusterError, ManifestError
from allot.public.loading import DEFAULT_NAMESPACE, objects_in
from allot.rules import RuleSet

Resources = Sequence[Resource[Any]]
Scopes = Mapping[Resource[Any], Scope]


class SnapshotSource(NamedTuple):
    """Files, or a cluster (`which_cluster`)."""

    files: tuple[str, ...] = ()
    kubeconfig: Path | None = None
    context: str | None = None
    at: Moment | None = None
    """The time that is asked about; None for now, or the end of a recording."""

    def check(self) -> None:
        """`CommandError` for files and a cluster together."""
        if self.files and (self.kubeconfig or self.context):
            raise CommandError(
                "files or a cluster, not both: leave out -f, or --kubeconfig and --context"
            )


def take(
    source: SnapshotSource,
    resources: Resources,
    user_agent: str,
    namespace: str = "",
    scopes: Scopes | None = None,
    gate_pages: Sequence[str] = (),
) -> Snapshot:
    """All objects of these resources; `CommandError` if they cannot be read.

    Of resources with a scope, only that scope is listed. Feature gates are read from the first of
    `gate_pages` that shows them.
    """
    source.check()
    if source.files:
        return _of_files(source, resources)
    import asyncio  # takes a tenth of the time of a command on files

    from allot.public.cluster_reading import Reading, read_cluster

    then = source.at.of_cluster() if source.at is not None else None
    what = Reading(resources, namespace, scopes or {}, gate_pages, then)
    kubeconfig = chosen_kubeconfig(source.kubeconfig, source.context)
    try:
        return asyncio.run(read_cluster(kubeconfig, source.context, user_agent, what))
    except ClusterError as error:
        raise cluster_error(error, source.kubeconfig, source.context) from error


def _of_files(source: SnapshotSource, resources: Resources) -> Snapshot:
    """The objects of files, or of a recording at the time that is asked about."""
    found = [snapshot_of_recording(file, source.at) for file in source.files]
    recordings = [each for each in found if each is not None]
    if not recordings:
        if source.at is not None:
            raise CommandError(f"--at needs a recording, and {source.files[0]} is none")
        return snapshot_of_files(source.files, resources)
    if len(source.files) > 1:
        raise CommandError("a recording is a whole cluster: leave out the other files")
    return recordings[0]


def rules_of_cluster(snapshot: Snapshot, source: SnapshotSource, asked: RuleSet | None) -> RuleSet:
    """The rules asked for, those of the cluster or its clone, or `seeds` for other files."""
    if source.files and not snapshot.server_version:
        return asked or RuleSet.SEEDS
    return cluster_gates.rules_of_cluster(snapshot, asked)


def namespace_of(source: SnapshotSource) -> str:
    """The namespace without `-n`: that of the context."""
    source.check()
    if source.files:
        return DEFAULT_NAMESPACE
    from allot.client.errors import ClientError
    from allot.client.kubeconfig import find_access

    try:
        kubeconfig = chosen_kubeconfig(source.kubeconfig, source.context)
        return find_access(kubeconfig, source.context).load().namespace
    except ClientError as error:
        raise cluster_error(error, source.kubeconfig, source.context) from error


def snapshot_of_files(files: Sequence[str], resources: Resources) -> Snapshot:
    """The objects of these kinds in files; `CommandError` for what cannot be read."""
    manifests = read_all(files)
    try:
        snapshot = objects_in(manifests, resources)
    except ManifestError as error:
        raise CommandError(str(error)) from None
    for manifest in manifests:
        if manifest.kind == CLONE_KIND:
            snapshot.server_version, snapshot.gates = clone_configuration(manifest)
    return snapshot


def clone_configuration(manifest: Manifest) -> tuple[str, ServerGates]:
    """The version, gates and rules of a cloned cluster; `CommandError` if they cannot be read."""
    from allot.questions.cluster_clone import read_configuration

    try:
        return read_configuration(manifest.data)
    except ValueError as error:
        raise CommandError(f"{manifest.source}: {CLONE_KIND}: {error}") from None
