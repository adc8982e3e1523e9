"""Described hardware as documents: the objects that are created for it, and its example."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec
import yaml

from allot.api.decoding import to_builtin
from allot.api.raw import RawObject

if TYPE_CHECKING:
    from allot.driver.hardware import Hardware

EXAMPLE: Final = "example"


def documents_of(hardware: Hardware) -> Iterator[dict[str, Any]]:
    """The nodes, ResourceSlices and DeviceClasses, as they would be created."""
    from allot.questions.hardware_objects import hardware_objects

    for resource, obj in hardware_objects(hardware):
        written = plain(obj.data if isinstance(obj, RawObject) else obj)
        written["metadata"].pop("uid", None)
        yield {"apiVersion": resource.api_version, "kind": resource.kind, **written}


def example_documents(hardware: Hardware) -> Iterator[dict[str, Any]]:
    """The example claim, and a pod that uses it."""
    if hardware.example_claim is None:
        return
    yield {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": EXAMPLE},
        "spec": plain(hardware.example_claim),
    }
    container = {
        "name": "main",
        "image": "registry.k8s.io/pause:3.10",
        "resources": {"claims": [{"name": "devices"}]},
    }
    yield {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": EXAMPLE},
        "spec": {
            "containers": [container],
            "resourceClaims": [{"name": "devices", "resourceClaimName": EXAMPLE}],
        },
    }


def print_yaml(document: dict[str, Any]) -> None:
    click.echo("---")
    click.echo(as_yaml(document), nl=False)


def as_yaml(document: Any) -> str:
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)


def plain(value: Any) -> dict[str, Any]:
    """The object as parsed JSON."""
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(value, enc_hook=to_builtin))
    return found
