"""One scenario, from its namespaces to cleaning up."""

from __future__ import annotations

import secrets
import string
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.acceptance.runner import steps
from tests.acceptance.runner.cluster import Cluster
from tests.acceptance.runner.expectations import Expectation, one_or_many, shown, unmet
from tests.acceptance.runner.kubectl import manifests_in, unmet_by
from tests.acceptance.runner.nodes import create_ready_node
from tests.acceptance.runner.outcome import ScenarioFailedError, StepFailedError
from tests.acceptance.runner.paths import Json, find, remove_at, set_at
from tests.acceptance.runner.placeholders import fill_in
from tests.acceptance.runner.resources import path_of_collection, path_of_reference
from tests.acceptance.runner.rest import CONTENT_TYPE_BY_PATCH, JSON, Answer, RestError
from tests.acceptance.runner.scenarios import NodeToCreate, Scenario
from tests.acceptance.runner.steps import RawStep, Step, read_step, verb_of
from tests.acceptance.runner.traces import Traces
from tests.acceptance.runner.watching import perform_watch

PREFIX_LETTERS = string.ascii_lowercase + string.digits
RETRY_SECONDS = 0.5
CONFLICT_RETRIES = 8
HOLD_INTERVAL_SECONDS = 0.2
FIRST_POLL_SECONDS, SLOWEST_POLL_SECONDS = 0.02, 0.5


class ScenarioRun:
    """A scenario under a prefix of its own."""

    def __init__(self, cluster: Cluster, scenario: Scenario) -> None:
        self._cluster = cluster
        self._client = cluster.client
        self._scenario = scenario
        self._prefix = "a" + "".join(secrets.choice(PREFIX_LETTERS) for _ in range(6))
        self._namespace = f"{self._prefix}-ns"
        self._driver = f"{self._prefix}.example.com"
        self._variables: dict[str, Json] = {
            "P": self._prefix,
            "D": self._driver,
            "NS": self._namespace,
            "SHORT": cluster.short_timeout_scheduler,
            "SERVER": cluster.client.server,
        }
        self._traces = Traces(self._client, self._driver)

    def run(self) -> None:
        """Raises ScenarioFailedError if the cluster does not behave as the scenario says."""
        place = "setup"
        try:
            self._set_up()
            for number, manifest in enumerate(self._scenario.manifests):
                place = f"manifest {number} ({manifest['kind']})"
                self._perform({"create": manifest})
            for number, step in enumerate(self._scenario.steps):
                place = f"step {number} ({step.get('name') or verb_of(step)})"
                self._perform(step)
        except (StepFailedError, RestError) as error:
            reason = str(error) + self._pods_at_a_glance()
            raise ScenarioFailedError(self._scenario.name, place, reason) from error
        finally:
            self._traces.remove()

    def _set_up(self) -> None:
        more = [f"{self._prefix}-{name}" for name in self._scenario.namespaces]
        for name in [self._namespace, *more]:
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            self._client.call("POST", "/api/v1/namespaces", body=namespace)
            self._traces.add(namespace)
        for each in self._scenario.nodes:
            node = NodeToCreate(each) if isinstance(each, str) else each
            name = f"{self._prefix}-{node.name}"
            labels = {
                "accept.dev/scenario": self._prefix,
                "accept.dev/node": node.name,
                **fill_in(node.labels, self._variables),
            }
            if self._cluster.nodes is not None:
                self._cluster.nodes.add(name)
            create_ready_node(self._client, name, labels, fill_in(node.resources, self._variables))
            self._traces.add({"kind": "Node", "metadata": {"name": name}})

    def _perform(self, raw: RawStep) -> None:
        retries = read_step(raw, self._variables).retries
        for _ in range(retries):
            try:
                self._perform_once(raw)
            except StepFailedError:
                time.sleep(RETRY_SECONDS)
            else:
                return
        self._perform_once(raw)

    def _perform_once(self, raw: RawStep) -> None:
        step: Step = read_step(raw, self._variables)
        match step:
            case steps.Create():
                self._create(step)
            case steps.Apply():
                self._apply(step)
            case steps.Put(put=reference, body=body):
                self._ask(step, "PUT", self._path(reference), body)
            case steps.Update():
                self._update(step)
            case steps.Patch(patch=reference, body=body, type=kind):
                self._ask(step, "PATCH", self._path(reference), body, CONTENT_TYPE_BY_PATCH[kind])
            case steps.Delete():
                for reference in one_or_many(step.delete):
                    self._ask(step, "DELETE", self._path(reference), step.options)
            case steps.Get(get=reference):
                self._ask(step, "GET", self._path(reference))
            case steps.Raw():
                self._raw(step)
            case steps.Wait():
                self._wait(step)
            case steps.Hold():
                self._hold(step)
            case steps.Watch():
                self._watch(step)
            case steps.KubectlStep():
                self._kubectl(step)
            case steps.Sleep(sleep=seconds):
                time.sleep(seconds)
            case steps.Assert(expectations=expectations):
                fail_if(unmet(self._variables, expectations))
            case steps.Parallel(parallel=inner):
                self._in_parallel(inner)
            case steps.Repeat():
                for number in range(step.repeat):
                    self._variables["i"] = number
                    self._in_turn(step.steps)
            case _:
                raise NotImplementedError(step)

    def _create(self, step: steps.Create) -> None:
        for manifest in one_or_many(step.create):
            path = path_of_collection(manifest, self._namespace)
            answer = self._send(step, "POST", path, manifest)
            if not answer.is_error and "dryRun" not in step.query:
                self._traces.add(answer.body)
            self._judge(step, answer)

    def _apply(self, step: steps.Apply) -> None:
        query = {"fieldManager": step.manager, **step.query}
        if step.force:
            query.setdefault("force", "true")
        for manifest in one_or_many(step.apply):
            path = f"{path_of_collection(manifest, self._namespace)}/{manifest['metadata']['name']}"
            if step.subresource:
                path += f"/{step.subresource}"
            answer = self._client.request(
                "PATCH",
                path,
                query=query,
                body=manifest,
                content_type=CONTENT_TYPE_BY_PATCH["apply"],
                headers=headers_of(step),
            )
            if not answer.is_error and "dryRun" not in query:
                self._traces.add(manifest)
            self._judge(step, answer)

    def _update(self, step: steps.Update) -> None:
        """A conflict means that another client was faster: read again, unless an error is what is wanted."""
        path = self._path(step.update)
        for _ in range(CONFLICT_RETRIES):
            document = self._client.call("GET", path.removesuffix("/status"))
            for place, value in step.set.items():
                set_at(document, place, value)
            for place in step.unset:
                remove_at(document, place)
            answer = self._send(step, "PUT", path, document)
            if answer.code != 409 or step.expect_error is not None:
                break
        self._judge(step, answer)

    def _raw(self, step: steps.Raw) -> None:
        request = step.raw
        answer = self._send(step, request.method, request.path, request.body, request.content_type)
        self._judge(step, answer)
        fail_if([f"header {each}" for each in unmet(answer.headers, step.expect_headers)])
        text = answer.body if isinstance(answer.body, str) else shown(answer.body)
        fail_if([f"{text!r} lacks {part!r}" for part in step.text_contains if part not in text])

    def _wait(self, step: steps.Wait) -> None:
        limit = self._scenario.timeout if step.timeout is None else step.timeout
        limit *= self._cluster.patience
        deadline = time.monotonic() + limit
        pause = FIRST_POLL_SECONDS
        while True:
            answer = self._client.request("GET", self._path(step.wait), query=step.query)
            missing = still_missing(step, answer)
            if not missing:
                if not step.gone:
                    self._save(step.save, answer.body)
                return
            if time.monotonic() > deadline:
                raise StepFailedError(f"{step.wait}, after {limit:g} s: {'; '.join(missing)}")
            time.sleep(pause)
            pause = min(pause * 1.5, SLOWEST_POLL_SECONDS)

    def _hold(self, step: steps.Hold) -> None:
        end = time.monotonic() + step.seconds
        while True:
            answer = self._client.request("GET", self._path(step.hold), query=step.query)
            fail_if(unmet_in(answer, step.expect), f"{step.hold} did not hold")
            if time.monotonic() > end:
                return
            time.sleep(HOLD_INTERVAL_SECONDS)

    def _watch(self, step: steps.Watch) -> None:
        perform_watch(
            step,
            self._client,
            self._path(step.watch),
            headers_of(step),
            step.timeout * self._cluster.patience,
            lambda: self._in_turn(step.steps),
            self._save,
        )

    def _kubectl(self, step: steps.KubectlStep) -> None:
        kubectl, call = self._cluster.kubectl, step.call
        if kubectl is None:
            raise StepFailedError("there is no kubectl")
        for manifest in manifests_in(call.stdin):
            self._traces.add(manifest)
        for attempt in range(call.retries + 1):
            if attempt:
                time.sleep(RETRY_SECONDS)
            output = kubectl.run(call, self._namespace)
            wrong = unmet_by(output, call)
            if not wrong:
                break
        fail_if(wrong, f"kubectl {call.args}: {output}")
        if call.save_stdout:
            self._variables[call.save_stdout] = output.stdout.strip()

    def _in_turn(self, inner: Sequence[RawStep]) -> None:
        for each in inner:
            self._perform(each)

    def _in_parallel(self, inner: Sequence[RawStep]) -> None:
        with ThreadPoolExecutor(max(len(inner), 1)) as pool:
            done = [pool.submit(self._perform, each) for each in inner]
        for each in done:
            each.result()

    def _ask(
        self,
        step: steps.Asking,
        method: str,
        path: str,
        body: Json = None,
        content_type: str = JSON,
    ) -> None:
        self._judge(step, self._send(step, method, path, body, content_type))

    def _send(
        self,
        step: steps.Asking,
        method: str,
        path: str,
        body: Json = None,
        content_type: str = JSON,
    ) -> Answer:
        return self._client.request(
            method,
            path,
            query=step.query,
            body=body,
            content_type=content_type,
            headers=headers_of(step),
        )

    def _judge(self, step: steps.Asking, answer: Answer) -> None:
        if step.expect_error is not None:
            fail_if(step.expect_error.unmet(answer.code, answer.body))
        elif answer.is_error:
            raise StepFailedError(f"HTTP {answer.code}: {shown(answer.body)}")
        if step.code is not None and answer.code != step.code:
            raise StepFailedError(f"expected HTTP {step.code}, got {answer.code}")
        fail_if(unmet(answer.body, step.expect))
        self._save(step.save, answer.body)

    def _save(self, paths: Mapping[str, str], document: Json) -> None:
        for name, path in paths.items():
            self._variables[name] = find(document, path).value

    def _path(self, reference: str) -> str:
        return path_of_reference(reference, self._namespace)

    def _pods_at_a_glance(self) -> str:
        """What the pods wait for is most often the reason."""
        answer = self._client.request("GET", self._path("pods"))
        if answer.is_error:
            return ""
        lines = [
            f"\n  pod {pod['metadata']['name']}: {pod['status'].get('phase')}"
            f" on {pod['spec'].get('nodeName', 'no node')}"
            f" {find(pod, 'status.conditions[?type=PodScheduled].message').value or ''}"
            for pod in answer.body["items"][:6]
        ]
        return "".join(lines)


def headers_of(step: steps.Asking | steps.Watch) -> dict[str, str]:
    if not step.impersonate:
        return step.headers
    return {
        **step.headers,
        "Impersonate-User": step.impersonate,
        "Impersonate-Group": "system:authenticated",
    }


def still_missing(step: steps.Wait, answer: Answer) -> list[str]:
    if step.gone:
        return [] if answer.code == 404 else [f"it is still there (HTTP {answer.code})"]
    return unmet_in(answer, step.expect)


def unmet_in(answer: Answer, expectations: Sequence[Expectation]) -> list[str]:
    return [f"HTTP {answer.code}"] if answer.is_error else unmet(answer.body, expectations)


def fail_if(wrong: Sequence[str], about: str = "") -> None:
    if wrong:
        raise StepFailedError(": ".join(filter(None, [about, "; ".join(wrong)])))
