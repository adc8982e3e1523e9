"""Seeded sequences of writes by several managers to one object."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

STEPS = 14
COUNT = 60
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"

Request = tuple[str, str, Any, str, str]
"""Method, path, body, content type, User-Agent."""

_CONDITION = {"reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}


class Sequence:
    """One object and random writes to it; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311 - the same requests for the same seed
        self._kind = ("map", "deployment", "claim")[seed % 3]

    def requests(self) -> list[Request]:
        return [self._start(), *(self._next() for _ in range(STEPS))]

    def _start(self) -> Request:
        whole = {
            "map": {**self._head(), "data": {"a": "0"}},
            "deployment": {
                **self._head(),
                "spec": {
                    "replicas": 1,
                    "selector": {"matchLabels": {"a": "b"}},
                    "template": {
                        "metadata": {"labels": {"a": "b"}},
                        "spec": {"containers": [{"name": "c", "image": "i"}]},
                    },
                },
            },
            "claim": {
                **self._head(),
                "spec": {
                    "devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "g"}}]}
                },
            },
        }[self._kind]
        if self._chance(0.5):
            return self._apply("", whole)
        return "POST", self._path, whole, "application/json", "creator/1"

    def _next(self) -> Request:
        status = self._kind == "claim" and self._chance(0.7)
        part = "/status" if status else ""
        content = self._status() if status else self._content()
        chance = self._random.random()
        if chance < 0.7:
            return self._apply(part, {**self._head(), **content})
        agent = f"{self._manager()}/1"
        # A strategic merge patch knows ports by their numbers alone.
        format_ = MERGE if chance < 0.9 or self._kind == "deployment" else STRATEGIC
        body = {name: value for name, value in content.items() if name != "kind"}
        return "PATCH", f"{self._path}/x{part}", self._merging(body), format_, agent

    def _apply(self, part: str, body: Any) -> Request:
        force = "&force=true" if self._chance(0.4) else ""
        path = f"{self._path}/x{part}?fieldManager={self._manager()}{force}"
        return "PATCH", path, body, APPLY, "applier/1"

    def _manager(self) -> str:
        return self._random.choice(("one", "two", "three"))

    @property
    def _path(self) -> str:
        return {
            "map": "/api/v1/namespaces/NS/configmaps",
            "deployment": "/apis/apps/v1/namespaces/NS/deployments",
            "claim": "/apis/resource.k8s.io/v1/namespaces/NS/resourceclaims",
        }[self._kind]

    def _head(self) -> dict[str, Any]:
        version, kind = {
            "map": ("v1", "ConfigMap"),
            "deployment": ("apps/v1", "Deployment"),
            "claim": ("resource.k8s.io/v1", "ResourceClaim"),
        }[self._kind]
        return {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}}

    def _content(self) -> dict[str, Any]:
        metadata: dict[str, Any] = {"name": "x"}
        if self._chance(0.5):
            metadata["labels"] = self._texts()
        if self._chance(0.3):
            metadata["annotations"] = self._texts()
        if self._chance(0.3):
            names = [name for name in ("a.b/c", "d.e/f", "g.h/i") if self._chance(0.5)]
            metadata["finalizers"] = names
        found: dict[str, Any] = {"metadata": metadata}
        if self._kind == "map" and self._chance(0.8):
            found["data"] = self._texts()
        if self._kind == "deployment":
            found["spec"] = self._deployment_spec()
        return found

    def _deployment_spec(self) -> dict[str, Any]:
        containers = []
        for name in ("c", "d"):
            if name == "d" and self._chance(0.6):
                continue
            container: dict[str, Any] = {"name": name, "image": self._random.choice("ij")}
            if self._chance(0.5):
                container["env"] = [
                    {"name": each, "value": self._random.choice("12")}
                    for each in ("A", "B", "C")
                    if self._chance(0.5)
                ]
                self._random.shuffle(container["env"])
            if self._chance(0.4):
                container["ports"] = [
                    {"containerPort": port, **protocol}
                    for port in (80, 81)
                    for protocol in ({}, {"protocol": "UDP"})
                    if self._chance(0.4)
                ]
            if self._chance(0.3):
                container["args"] = [self._random.choice("xy")]
            containers.append(container)
        spec: dict[str, Any] = {"template": {"spec": {"containers": containers}}}
        if self._chance(0.4):
            spec["template"]["spec"]["nodeSelector"] = self._texts()
        if self._chance(0.4):
            spec["replicas"] = self._random.randrange(3)
        if self._chance(0.3):
            spec["strategy"] = {"rollingUpdate": {"maxSurge": self._random.choice((1, "25%"))}}
        return spec

    def _status(self) -> dict[str, Any]:
        status: dict[str, Any] = {}
        if self._chance(0.8):
            results = [
                {"request": "r", "driver": "d.example.com", "pool": "p", "device": name}
                for name in ("d0", "d1")
            ]
            status["allocation"] = {"devices": {"results": results}}
        if self._chance(0.5):
            status["reservedFor"] = [
                {"resource": "pods", "name": self._random.choice("pq"), "uid": uid}
                for uid in ("u1", "u2", "u3")
                if self._chance(0.5)
            ]
        if self._chance(0.7):
            status["devices"] = [self._device(name) for name in ("d0", "d1") if self._chance(0.6)]
        return {"metadata": {"name": "x"}, "status": status}

    def _device(self, name: str) -> dict[str, Any]:
        device: dict[str, Any] = {"driver": "d.example.com", "pool": "p", "device": name}
        if self._chance(0.5):
            device["data"] = {"a": self._random.randrange(2)}
        if self._chance(0.5):
            device["networkData"] = {"ips": [f"10.0.0.{self._random.randrange(2)}/32"]}
        conditions = [
            {"type": each, "status": self._random.choice(("True", "False")), **_CONDITION}
            for each in ("A", "B")
            if self._chance(0.5)
        ]
        return {**device, "conditions": conditions} if conditions else device

    def _texts(self) -> dict[str, str]:
        return {name: self._random.choice("123") for name in "abc" if self._chance(0.5)}

    def _merging(self, body: Any) -> Any:
        """The same as a patch, in which null removes."""
        patch = copy.deepcopy(body)
        for part in (patch.get("data"), patch["metadata"].get("labels")):
            for name in list(part or {}):
                if self._chance(0.2):
                    part[name] = None
        return patch

    def _chance(self, chance: float) -> bool:
        return self._random.random() < chance
