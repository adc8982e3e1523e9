"""The cluster that a question is about: the one of a kubeconfig, files, or hardware that is only described."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from allot.cli import which_cluster
from allot.cli.at_option import Moment, at_option
from allot.cli.cluster_gates import gates_of_cluster
from allot.cli.completers import complete_hardware
from allot.cli.errors import CommandError
from allot.cli.gate_options import gate_options
from allot.cli.scheduler_configuration import load_configuration
from allot.cli.snapshots import SnapshotSource, namespace_of, take
from allot.cli.source_options import OF_A_CLUSTER, scheduler_config_option
from allot.cli.which_cluster import chosen_kubeconfig, cluster_error
from allot.client.resources import Resource
from allot.client.server_gates import API_SERVER, SCHEDULER
from allot.client.snapshot import Snapshot
from allot.client.wall_clock import wall_clock
from allot.driver.errors import HardwareError
from allot.driver.loading import load_hardware
from allot.public.cluster_reading import Reading, read_objects
from allot.questions.hardware_objects import hardware_objects
from allot.questions.observed_cluster import KINDS, ObservedCluster, UnreadableError
from allot.rules import RuleSet
from allot.scheduler.configuration import SchedulerConfiguration

if TYPE_CHECKING:
    from allot.client.client import Client

F = TypeVar("F", bound=Callable[..., Any])

BY_KUBERNETES = (
    "these are the answers of Kubernetes v1.38; for those of allot's scheduler: --rules seeds"
)


@dataclass(frozen=True)
class ClusterArguments:
    """The options that say which cluster, and how its scheduler is configured."""

    files: tuple[str, ...] = ()
    hardware: tuple[str, ...] = ()
    kubeconfig: Path | None = None
    context: str | None = None
    scheduler_config: Path | None = None
    feature_gates: str = ""
    rules: RuleSet | None = None
    at: Moment | None = None

    @property
    def is_offline(self) -> bool:
        return bool(self.files or self.hardware)

    @property
    def _source(self) -> SnapshotSource:
        return SnapshotSource(self.files or self.hardware, self.kubeconfig, self.context, self.at)

    @property
    def namespace(self) -> str:
        """The namespace without `-n`: that of the context."""
        return namespace_of(self._source)

    def load(
        self,
        agent: str,
        also: tuple[str, ...] = (),
        kinds: tuple[Resource[Any], ...] = KINDS,
    ) -> ObservedCluster:
        """The cluster; `CommandError` if it cannot be read. `also` are further files whose objects it has."""
        source = self._source
        source.check()
        configuration = load_configuration(self.scheduler_config, self.rules)
        if self.is_offline:
            if self.at is not None and not self.files:
                raise CommandError("--at needs a recording or a cluster, not --hardware alone")
            files = SnapshotSource(self.files, at=self.at)
            snapshot = take(files, kinds, agent) if self.files else Snapshot()
            self._add_hardware(snapshot)
        else:
            pages = (SCHEDULER, API_SERVER)
            snapshot = take(source, kinds, agent, gate_pages=pages)
        if also:
            added = take(SnapshotSource(also), KINDS, agent)
            for kind in KINDS:
                for obj in added.of(kind):
                    snapshot.put(kind, obj)
        cluster = self._observed(snapshot, configuration)
        try:
            cluster = cluster.checked()
        except UnreadableError as error:
            raise CommandError(str(error)) from None
        return cluster.with_inferred_nodes() if self.is_offline else cluster

    async def connect(self, agent: str) -> tuple[ObservedCluster, Client]:
        """The cluster without its objects, and a client that reads them; `CommandError` if it does not answer."""
        from allot.client.connection import connect
        from allot.client.errors import ClientError

        configuration = load_configuration(self.scheduler_config, self.rules)
        kubeconfig = chosen_kubeconfig(self.kubeconfig, self.context)
        client: Client | None = None
        try:
            client = connect(kubeconfig, self.context, user_agent=agent)
            snapshot = await read_objects(client, Reading((), gate_pages=(SCHEDULER, API_SERVER)))
            return self._observed(snapshot, configuration), client
        except ClientError as error:
            if client is not None:
                await client.close()
            raise cluster_error(error, self.kubeconfig, self.context) from error

    @property
    def title(self) -> str:
        """The name of the cluster's context."""
        from allot.client.errors import ClientError
        from allot.client.kubeconfig import find_access

        if self.context:
            return self.context
        try:
            kubeconfig = chosen_kubeconfig(self.kubeconfig, self.context)
            return find_access(kubeconfig, None).load().server
        except ClientError:
            return ""

    def _observed(
        self, snapshot: Snapshot, configuration: SchedulerConfiguration
    ) -> ObservedCluster:
        known = gates_of_cluster(snapshot, self._source, self.feature_gates, configuration.rules)
        notes = [known.assumption] if known.assumption else []
        if known.rules is RuleSet.V1_38 and self.rules is None:
            notes.append(BY_KUBERNETES)
        return ObservedCluster(
            snapshot,
            known.gates,
            known.rules,
            configuration,
            snapshot.time or wall_clock(),
            (*notes, *snapshot.notes),
        )

    def _add_hardware(self, snapshot: Snapshot) -> None:
        for resource, obj in described_objects(self.hardware):
            snapshot.put(resource, obj)


def described_objects(references: tuple[str, ...], suffix: str = "") -> list[tuple[Any, Any]]:
    """The nodes, slices and classes of hardware descriptions; `CommandError` if one cannot be read.

    `suffix` is added to the names of nodes.
    """
    try:
        return [
            found
            for reference in references
            for found in hardware_objects(load_hardware(reference, suffix=suffix))
        ]
    except HardwareError as error:
        raise CommandError(str(error)) from None


def cluster_options(
    *files: str, does: str = "", with_hardware: bool = True
) -> Callable[[F], Callable[..., Any]]:
    """The options; the function gets `cluster`, the `ClusterArguments`. `files` are the names of the option for files."""

    def decorate(command: F) -> Callable[..., Any]:
        @wraps(command)
        def bundled(**given: Any) -> Any:
            taken = {
                name: given.pop(name)
                for name in ClusterArguments.__dataclass_fields__
                if name in given
            }
            return command(cluster=ClusterArguments(**taken), **given)

        found = gate_options(OF_A_CLUSTER)(bundled)
        found = scheduler_config_option(found)
        found = which_cluster.cluster_options()(at_option(found))
        if with_hardware:
            found = click.option(
                "--hardware",
                multiple=True,
                metavar="PROFILE[=N]",
                shell_complete=complete_hardware,
                help="A cluster of this hardware: a profile or a file, with N nodes.",
            )(found)
        return click.option(
            *files,
            "files",
            multiple=True,
            metavar="FILE",
            help=does
            or "The cluster: files or directories with what kubectl get -o yaml prints, or - for standard input,"
            " instead of the cluster of the kubeconfig.",
        )(found)

    return decorate
