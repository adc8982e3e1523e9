"""Asks a kube-apiserver about objects with the changes of `data/kind-changes.yaml`, and keeps its answers.

`python -m tests.conformance.kind_recording KUBECONFIG`
"""

from __future__ import annotations

import copy
import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from tests.custom_resources.recording import Connection
from tests.custom_resources.steps import Step

DATA: Final = Path(__file__).parent / "data"
GOOD: Final = DATA / "kinds.jsonl.gz"
CHANGES: Final = DATA / "kind-changes.yaml"
CHANGED: Final = DATA / "changed-kinds.jsonl.gz"
QUERY: Final = "?dryRun=All&fieldValidation=Strict"
Vector = dict[str, Any]
FURTHER: Final = {
    "resourcequotas": {
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "x"},
        "spec": {"hard": {"pods": "1"}},
    },
    "services": {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"},
        "spec": {"ports": [{"port": 80}]},
    },
    "pods": {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    },
}  # fmt: skip
"""Good objects of core kinds that have no vectors in `GOOD`."""


def good_objects() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Resource, path and object."""
    with gzip.open(GOOD, "rt", encoding="utf-8") as lines:
        for vector in map(json.loads, lines):
            if vector.get("good"):
                yield vector["resource"], vector["path"], vector["body"]
    for resource, body in FURTHER.items():
        yield resource, f"/api/v1/namespaces/default/{resource}", body


def changed(body: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """`body` with values at paths; None removes what is there. It has a name of its own, if it may have any."""
    result = copy.deepcopy(body)
    if result["metadata"]["name"] == "x":
        result["metadata"]["name"] = "changed"
    for path, value in changes.items():
        *above, last = (int(name) if name.isdigit() else name for name in path.split("."))
        place: Any = result
        for name in above:
            if isinstance(name, str):
                place.setdefault(name, {})
            place = place[name]
        if value is None:
            place.pop(last, None)
        else:
            place[last] = value
    return result


def record(kubeconfig: Path) -> Iterator[Vector]:
    connection = Connection(kubeconfig)
    objects = {resource: (path, body) for resource, path, body in good_objects()}
    for resource, all_changes in yaml.safe_load(CHANGES.read_text(encoding="utf-8")).items():
        path, good = objects[resource]
        for changes in all_changes:
            body = changed(good, changes)
            answer = connection.ask(
                Step("POST", path + QUERY, body), "absent.example.org", "absent"
            )
            yield {"resource": resource, "path": path, "body": body, **told(answer)}


def told(answer: dict[str, Any]) -> Vector:
    code, body = answer["code"], answer["body"]
    if code < 300:
        parts = {name: body[name] for name in ("spec", "status") if name in body}
        return {"code": code, "answer": parts}
    causes = (body.get("details") or {}).get("causes")
    return {
        "code": code,
        "message": body["message"],
        "causes": causes and [[cause.get("field", ""), cause["message"]] for cause in causes],
    }


if __name__ == "__main__":
    found = "".join(json.dumps(vector) + "\n" for vector in record(Path(sys.argv[1])))
    CHANGED.write_bytes(gzip.compress(found.encode(), mtime=0))
