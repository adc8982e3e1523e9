"""Objects for commands that read only: from a cluster, or from files such as kubectl prints."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import click

from allot.cli.errors import CommandError
from allot.cli.manifests import read_all
from allot.client.options import Scope
from allot.client.resources import Resource
from allot.client.snapshot import Snapshot
from allot.public import cluster_gates
from allot.public.errors import ClusterError, ManifestError
from allot.public.loading import DEFAULT_NAMESPACE, Reading, objects_in, read_cluster
from allot.rules import RuleSet

F = TypeVar("F", bound=Callable[..., Any])
Resources = Sequence[Resource[Any]]
Scopes = Mapping[Resource[Any], Scope]


class Source(NamedTuple):
    """Files, or the cluster that kubectl would use."""

    files: tuple[str, ...] = ()
    kubeconfig: Path | None = None
    context: str | None = None

    def check(self) -> None:
        """`CommandError` for files and a cluster together."""
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
    """All objects of these resources; `CommandError` if they cannot be read.

    Of resources with a scope, only that scope is listed. Feature gates are read from the first of
    `gate_pages` that shows them.
    """
    source.check()
    if source.files:
        return snapshot_of_files(source.files, resources)
    what = Reading(resources, namespace, scopes or {}, gate_pages)
    try:
        return asyncio.run(read_cluster(source.kubeconfig, source.context, user_agent, what))
    except ClusterError as error:
        raise CommandError(str(error)) from error


OF_A_CLUSTER: Final = "those of the cluster; seeds for files"
"""The default of `--rules` for commands that only read a cluster."""


def rules_of_cluster(snapshot: Snapshot, source: Source, asked: RuleSet | None) -> RuleSet:
    """The rules asked for, those of the cluster, or `seeds` for files."""
    if source.files:
        return asked or RuleSet.SEEDS
    return cluster_gates.rules_of_cluster(snapshot, asked)


def namespace_of(source: Source) -> str:
    """The namespace without `-n`: that of the context."""
    from allot.client.errors import ClientError
    from allot.client.kubeconfig import find_access

    source.check()
    if source.files:
        return DEFAULT_NAMESPACE
    try:
        return find_access(source.kubeconfig, source.context).load().namespace
    except ClientError as error:
        raise CommandError(str(error)) from error


def snapshot_of_files(files: Sequence[str], resources: Resources) -> Snapshot:
    """The objects of these kinds in files; `CommandError` for what cannot be read."""
    manifests = read_all(files)
    try:
        return objects_in(manifests, resources)
    except ManifestError as error:
        raise CommandError(str(error)) from None
