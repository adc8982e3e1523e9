"""An operator written with kopf: it makes a ConfigMap for every Greeting, and keeps its status.

`test_kopf.py` runs it as a process of its own.
"""

from __future__ import annotations

from typing import Any

import kopf
from kubernetes import client, config


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    config.load_kube_config()  # type: ignore[no-untyped-call]
    settings.posting.enabled = False
    settings.persistence.finalizer = "greetings.example.com/operator"


def _text(spec: dict[str, Any]) -> str:
    return f"{spec.get('word', 'Hello')}, {spec['name']}!"


@kopf.on.create("greetings.example.com", "v1", "greetings")  # type: ignore[arg-type]
def create(spec: Any, name: str, namespace: str, body: Any, **_: Any) -> dict[str, str]:
    made: Any = {"metadata": {"name": f"{name}-text"}, "data": {"text": _text(spec)}}
    kopf.adopt(made, owner=body)
    client.CoreV1Api().create_namespaced_config_map(namespace, made)
    return {"text": _text(spec)}


@kopf.on.update("greetings.example.com", "v1", "greetings", field="spec")  # type: ignore[arg-type]
def update(spec: Any, name: str, namespace: str, **_: Any) -> dict[str, str]:
    changed = {"data": {"text": _text(spec)}}
    client.CoreV1Api().patch_namespaced_config_map(f"{name}-text", namespace, changed)
    return {"text": _text(spec)}


@kopf.on.delete("greetings.example.com", "v1", "greetings")  # type: ignore[arg-type]
def delete(name: str, namespace: str, **_: Any) -> None:
    note: Any = {"metadata": {"name": f"{name}-gone"}}
    client.CoreV1Api().create_namespaced_config_map(namespace, note)
