"""Ordinary users: every now and then a pod with a small claim of its own, which must be bound before long."""

from __future__ import annotations

import threading
import time
from typing import Any, Final

from tests.acceptance.runner.rest import CONNECTION_ERRORS, Answer, RestClient
from tests.attacks.manifests import collection

EVERY_SECONDS: Final = 1.5
POLL_SECONDS: Final = 0.05
CLASS: Final = "ordinary.example.com"
PODS: Final = collection("Pod")
CLAIMS: Final = collection("ResourceClaim")


class OrdinaryPods:
    """A thread that creates them, waits until they are bound, and deletes them again."""

    def __init__(self, client: RestClient, prefix: str = "ordinary") -> None:
        self._client, self._prefix = client, prefix
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._waiting: dict[str, float] = {}
        self.bound: dict[str, float] = {}
        """The seconds that each one took, from before its claim was created."""
        self.problems: list[str] = []

    def start(self) -> None:
        self._thread.start()

    def finish(self, seconds: float) -> None:
        """Create no more, and wait for those that are not yet bound, at most so long."""
        self._stopping.set()
        self._thread.join(seconds)
        self._client.close()

    @property
    def unbound(self) -> dict[str, float]:
        """Those that still wait, and for how long."""
        now = time.monotonic()
        return {name: now - since for name, since in self._waiting.copy().items()}

    @property
    def slowest(self) -> float:
        return max([*self.bound.values(), *self.unbound.values()], default=0.0)

    def _run(self) -> None:
        number, next_at = 0, time.monotonic()
        while not self._stopping.is_set() or self._waiting:
            if not self._stopping.is_set() and time.monotonic() >= next_at:
                self._create(f"{self._prefix}-{number}")
                number += 1
                next_at = time.monotonic() + EVERY_SECONDS
            for name in list(self._waiting):
                self._look_at(name)
            time.sleep(POLL_SECONDS)

    def _create(self, name: str) -> None:
        self._waiting[name] = time.monotonic()
        exactly = {"deviceClassName": CLASS}
        claim = {"devices": {"requests": [{"name": "one", "exactly": exactly}]}}
        container = {"name": "c", "image": "pause", "resources": {"claims": [{"name": "one"}]}}
        claims = [{"name": "one", "resourceClaimName": name}]
        pod = {"containers": [container], "resourceClaims": claims}
        for path, spec in ((CLAIMS, claim), (PODS, pod)):
            answer = self._ask("POST", path, {"metadata": {"name": name}, "spec": spec})
            if answer.is_error:
                self.problems.append(f"{path}: {answer.code} {str(answer.body)[:300]}")

    def _look_at(self, name: str) -> None:
        answer = self._ask("GET", f"{PODS}/{name}")
        if answer.is_error or not answer.body["spec"].get("nodeName"):
            return
        self.bound[name] = time.monotonic() - self._waiting.pop(name)
        for path in (f"{PODS}/{name}?gracePeriodSeconds=0", f"{CLAIMS}/{name}"):
            self._ask("DELETE", path)

    def _ask(self, method: str, path: str, body: Any = None) -> Answer:
        """Try again while the server is busy or out of reach, as every client does."""
        while True:
            try:
                answer = self._client.request(method, path, body=body)
            except CONNECTION_ERRORS as error:
                self.problems.append(f"{method} {path}: {error!r}")
                answer = Answer(503, {}, "")
            if answer.code not in (429, 503) or len(self.problems) > 100:
                return answer
            time.sleep(float(answer.headers.get("retry-after", "0.5")))
