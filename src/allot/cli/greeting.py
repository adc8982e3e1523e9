"""What `allot up` says: what it starts, and when it is ready what to type next."""

from __future__ import annotations

import shlex
import shutil
from typing import TYPE_CHECKING, NamedTuple

from allot.cli.cluster_options import ClusterOptions
from allot.cli.data_directory import DEFAULT, KUBECONFIG, LOG_FILE
from allot.cli.last_start import where_state_is

if TYPE_CHECKING:
    from allot.client.client import Client


class Facts(NamedTuple):
    """What a cluster has."""

    nodes: int
    devices: int
    classes: frozenset[str]


async def read_facts(client: Client) -> Facts:
    """Counted without decoding nodes and devices, of which there may be 100,000."""
    from allot.client.metadata import with_metadata_only
    from allot.client.resources import DEVICE_CLASSES as CLASSES
    from allot.client.resources import NODES
    from allot.client.slice_sizes import SLICE_SIZES

    sizes = (await client.list(SLICE_SIZES)).items
    nodes = (await client.list(with_metadata_only(NODES))).items
    classes = (await client.list(with_metadata_only(CLASSES))).items
    names = frozenset(each.metadata.name for each in classes)
    return Facts(len(nodes), sum(each.device_count for each in sizes), names)


def starting_line(asked: ClusterOptions) -> str:
    hardware = f" with {', '.join(asked.hardware)}" if asked.hardware else ""
    return f"starting a cluster in {asked.data_dir}{hardware} ..."


class Greeting(NamedTuple):
    """The cluster's size, what to type next, and how to stop it."""

    asked: ClusterOptions
    url: str
    facts: Facts
    seconds: float
    is_detached: bool = False
    is_merged: bool = False
    dashboard: str = ""
    """The address of the dashboard."""

    def text(self) -> str:
        facts = self.facts
        first = f"allot is ready after {self.seconds:.1f} s: {self.url}, {facts.nodes} nodes, {facts.devices} devices"
        where = "" if self.is_detached else ", in another terminal"
        page = [f"Dashboard: {self.dashboard}"] if self.dashboard else []
        steps = [f"Type next{where}:", "", *(f"  {each}" for each in self.next_steps())]
        lines = [first, *page, *steps]
        return "\n".join([*lines, "", self._end()])

    def next_steps(self) -> list[str]:
        """Commands that work in this cluster, in the directory in which it was started."""
        from allot.cli.demo.stories import DEVICE_CLASSES

        ours = ["allot status"] if self.facts.devices else []
        if self.facts.classes.issuperset(DEVICE_CLASSES) and self.asked.has_scheduler:
            ours.append("allot demo")
        if not self.facts.nodes and self.asked.has_nodes:
            ours.append("allot nodes --profiles")
        export = (
            f"export KUBECONFIG={shlex.quote(str((self.asked.data_dir / KUBECONFIG).absolute()))}"
        )
        theirs = [] if self.is_merged else [export]
        if shutil.which("kubectl"):
            theirs.append("kubectl get nodes,resourceslices,deviceclasses")
        # allot's own commands find the cluster in .allot; one in another directory they must be told.
        is_found = self.is_merged or self.asked.data_dir.absolute() == DEFAULT.absolute()
        return [*ours, *theirs] if is_found else [*theirs, *ours]

    def _end(self) -> str:
        data_dir = self.asked.data_dir
        option = "" if data_dir.absolute() == DEFAULT.absolute() else f" --data-dir {data_dir}"
        stop = f"`allot down{option}`" if self.is_detached else "Ctrl-C"
        place = where_state_is(self.asked.storage, data_dir)
        state = (
            f"the state stays in {place}" if place else "its objects are in memory, and end with it"
        )
        log = f" Log: {data_dir / LOG_FILE}." if self.is_detached else ""
        return f"{stop} stops it; {state}.{log}"
