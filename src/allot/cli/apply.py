"""Apply manifests to a cluster, and restore objects of another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from allot.cli.errors import CommandError

if TYPE_CHECKING:
    from allot.cli.at_option import Moment
    from allot.cli.manifests import Manifest
    from allot.client.apply import RefusedError, UnknownKindError
    from allot.client.client import Client
    from allot.client.restore import Restored


class StartObjects(NamedTuple):
    """Objects that a cluster starts with."""

    dumped: Sequence[Manifest] = ()
    """Objects of another cluster, restored before any component runs."""
    written: Sequence[Manifest] = ()
    """Manifests as people write them, applied when the cluster is ready."""

    @property
    def configuration(self) -> Manifest | None:
        """How a cloned cluster is configured."""
        if not self.dumped:
            return None
        from allot.cli.manifests import CLONE_KIND

        return next((each for each in self.dumped if each.kind == CLONE_KIND), None)

    @classmethod
    def read(
        cls, sources: Sequence[str], clone: str | None = None, at: Moment | None = None
    ) -> Self:
        """What is in these files, and in a clone or a recording; `CommandError` for the first that cannot be read."""
        if at is not None and clone is None:
            raise CommandError("--at needs --from with a recording")
        if not sources and clone is None:
            return cls()
        from allot.cli.manifests import read_all
        from allot.client.restore import is_dumped

        manifests = read_all(sources)
        dumped = [each for each in manifests if is_dumped(each.data)]
        written = [each for each in manifests if not is_dumped(each.data)]
        if clone is not None:
            dumped = [*_cluster_in(clone, at), *dumped]
        return cls(dumped, written)


def _cluster_in(path: str, at: Moment | None) -> Sequence[Manifest]:
    """The objects of a clone, or of a recording at a time, by default at its end; the first is the configuration."""
    from allot.cli.at_option import snapshot_of_recording
    from allot.cli.manifests import CLONE_KIND, Manifest, read_all

    recorded = snapshot_of_recording(path, at)
    if recorded is not None:
        from allot.apiserver.yaml_documents import YamlLocation
        from allot.questions.cluster_clone import clone_cluster, configuration_of

        objects = (configuration_of(recorded), *clone_cluster(recorded))
        return [Manifest(path, each, b"", YamlLocation()) for each in objects]
    if at is not None:
        raise CommandError(f"--at needs a recording, and {path} is none")
    found = read_all([path])
    if not found or found[0].kind != CLONE_KIND:
        raise CommandError(
            f"--from: {path} is not written by allot clone or allot record; -f loads other files"
        )
    return found


async def restore_objects(client: Client, dumped: Sequence[Manifest]) -> Restored:
    """Restore objects with their status; `CommandError` for the first that is refused."""
    from allot.cli.manifests import CLONE_KIND
    from allot.client.apply import RefusedError
    from allot.client.restore import restore

    dumped = [each for each in dumped if each.kind != CLONE_KIND]
    prepared = [_simulated(each.data) for each in dumped]
    by_document = dict(zip(map(id, prepared), dumped, strict=True))
    try:
        return await restore(client, prepared)
    except RefusedError as error:
        raise _refused(by_document[id(error.document)], error) from error


def _simulated(document: dict[str, Any]) -> dict[str, Any]:
    """A node with the label of simulated nodes: no kubelet of its own runs here."""
    from allot.kubelet.settings import SIMULATED_LABEL

    if document.get("kind") != "Node" or document.get("apiVersion") != "v1":
        return document
    metadata = document.get("metadata") or {}
    labels = {**(metadata.get("labels") or {}), SIMULATED_LABEL: "true"}
    return {**document, "metadata": {**metadata, "labels": labels}}


async def apply_manifests(client: Client, manifests: Sequence[Manifest]) -> int:
    """Number of objects applied; `CommandError` for the first that is refused."""
    from allot.client.apply import RefusedError, UnknownKindError, apply

    try:
        await apply(client, [manifest.data for manifest in manifests])
    except (RefusedError, UnknownKindError) as error:
        manifest = next(each for each in manifests if each.data is error.document)
        raise _refused(manifest, error) from error
    return len(manifests)


def _refused(manifest: Manifest, error: RefusedError | UnknownKindError) -> CommandError:
    """The error with the file and the object."""
    text = str(error)
    if manifest.name and manifest.name not in text:
        text = f"{manifest.kind}/{manifest.name}: {text}"
    return CommandError(f"{manifest.source}: {text}")
