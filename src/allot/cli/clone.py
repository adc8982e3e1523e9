"""`allot clone`: a cluster in a file, with only what scheduling reads."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from pathlib import Path
from typing import Final

import click

from allot.cli.echo import echo_text
from allot.cli.errors import EXIT_OK, CommandError
from allot.cli.snapshots import SnapshotSource, take
from allot.cli.which_cluster import cluster_options

_AGENT: Final = "allot-clone"
_SALT_BYTES: Final = 16


@click.command()
@cluster_options()
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="FILE",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="The file to write, readable by you only; - for standard output.",
)
@click.option(
    "--anonymize",
    is_flag=True,
    help="Rename namespaces, nodes, pods, claims, workloads and pools, consistently.",
)
def clone(kubeconfig: Path | None, context: str | None, output: str, anonymize: bool) -> int:
    """Write what scheduling reads of a cluster to a file that `allot up --from` runs.

    No environment, arguments, commands, images, annotations or contents of volumes; parameters of drivers only as a
    hash. The right to list is enough. Labels, device attributes and the names of classes stay as they are.

    \b
    allot clone --context prod -o prod.allot
    allot up --from prod.allot
    allot devices -f prod.allot
    """
    import msgspec

    from allot.client.server_gates import API_SERVER, SCHEDULER
    from allot.questions.cluster_clone import clone_cluster, configuration_of
    from allot.questions.observed_cluster import KINDS, ObservedCluster, UnreadableError

    source = SnapshotSource((), kubeconfig, context)
    objects = take(source, KINDS, _AGENT, gate_pages=(SCHEDULER, API_SERVER))
    try:
        notes = ObservedCluster(objects).checked().notes
    except UnreadableError as error:
        raise CommandError(str(error)) from None
    salt = secrets.token_bytes(_SALT_BYTES)
    items = [configuration_of(objects), *clone_cluster(objects, anonymize=anonymize, salt=salt)]
    lines = b",\n".join(msgspec.json.encode(item) for item in items)
    _write(output, b'{"apiVersion":"v1","kind":"List","items":[\n' + lines + b"\n]}\n")
    for note in notes:
        echo_text(f"note: {note}", err=True)
    if output != "-":
        click.echo(f"{len(items) - 1} objects in {output}; `allot up --from {output}` runs them")
    return EXIT_OK


def _write(output: str, content: bytes) -> None:
    """Replace the file at once; other users cannot read it at any time."""
    if output == "-":
        sys.stdout.buffer.write(content)
        return
    path = Path(output)
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # mode 0600
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise CommandError(f"{output}: {error.strerror}") from error
