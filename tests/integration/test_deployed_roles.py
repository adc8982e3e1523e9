"""The roles in `deploy/` grant all that the components ask for.

The scheduler and the controllers run as the service accounts of `deploy/`, against a server that refuses what the roles do
not grant. Time is virtual.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric import ec

from allot import features
from allot.api.identities import ObjectKey
from allot.apiserver.assembly import ApiServer
from allot.apiserver.auth.authentication import MASTERS, StaticTokens, User
from allot.apiserver.auth.service_account_tokens import ServiceAccountTokens
from allot.client.apply import apply
from allot.client.client import Client
from allot.client.component_users import ComponentUser
from allot.client.in_process import InProcessTransport
from allot.client.leader_election import LeaderElector
from allot.client.options import DeleteOptions
from allot.client.resources import (
    DEVICE_TAINT_RULES,
    JOBS,
    NAMESPACES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_POOL_STATUS_REQUESTS,
    STATEFUL_SETS,
)
from allot.cluster import Cluster
from allot.components import ClusterParts, ClusterTime
from allot.controllers.binding import BindingController
from allot.controllers.binding.simulation import SimulatedAttacher
from allot.driver.loading import load_hardware
from allot.kubelet.settings import KubeletSettings
from allot.scheduler.configuration import SchedulerConfiguration
from allot.storage.memory import MemoryStore
from allot.testing.virtual_time import VirtualClock, run_in_virtual_time
from tests.integration.deployed_roles import Ask, DeployedRoles, manifests

SCHEDULER = "system:serviceaccount:allot-system:allot-scheduler"
CONTROLLERS = "system:serviceaccount:allot-system:allot-controller-manager"
ADMIN = "admin-token"
ACCOUNTS = {"allot-scheduler": SCHEDULER, "allot-controller-manager": CONTROLLERS}
"""By the name under which a component introduces itself."""
POOL_STATUS = "resourcepoolstatusrequest-controller"
DEFAULT_FILES = ("rbac.yaml",)
ALL_FILES = ("rbac.yaml", "all-controllers.yaml")


def a_server(roles: DeployedRoles, clock: VirtualClock) -> ApiServer:
    users = {ADMIN: User("admin", groups=(MASTERS,))}
    users |= {account: User(account) for account in ACCOUNTS.values()}
    return ApiServer(
        MemoryStore(),
        features.DEFAULTS,
        [StaticTokens(users)],
        ServiceAccountTokens(ec.generate_private_key(ec.SECP256R1())),
        authorizer=roles,
        clock=clock.whole_seconds,
    )


class DeployedCluster(Cluster):
    """A cluster whose scheduler and controllers may do what `deploy/` allows them."""

    def _component_client(self, user: ComponentUser, user_agent: str) -> Client:
        token = ACCOUNTS.get(user_agent.partition("/")[0], ADMIN)
        transport = InProcessTransport(self.server.app, token, user_agent)
        client = Client(transport, clock=self._time.clock)
        self.clients.append(client)
        return client


Story = Callable[[Client], Awaitable[None]]


def play(story: Story, files: Sequence[str], controllers: Sequence[str]) -> DeployedRoles:
    """The story with all components; what they asked for is in the roles."""
    roles = DeployedRoles(manifests(*files))

    async def run() -> None:
        clock = VirtualClock()
        server = a_server(roles, clock)
        await server.start()
        parts = ClusterParts(
            SchedulerConfiguration(),
            controllers,
            KubeletSettings(all_nodes=True),
            [load_hardware(each) for each in ("gpu-server=1", "fabric")],
        )
        times = ClusterTime(clock, clock.now, clock.whole_seconds)
        cluster = DeployedCluster(
            server, ADMIN, parts, features.DEFAULTS, times, shares_informers=False
        )
        await cluster.start()
        try:
            await story(cluster.client("test"))
        finally:
            await cluster.stop()
            await server.close()

    try:
        run_in_virtual_time(run())
    except TimeoutError:
        assert roles.refused == []  # that would be why
        raise
    return roles


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(600):
        while not await is_so():
            await asyncio.sleep(0.5)


async def apply_text(client: Client, text: str) -> None:
    await apply(client, [document for document in yaml.safe_load_all(text) if document])


async def has_phase(client: Client, name: str, phase: str, namespace: str = "default") -> bool:
    pod = await client.find(PODS, ObjectKey(namespace, name))
    return pod is not None and pod.data["status"].get("phase") == phase


def pod(name: str, extra: str = "", limits: str = "{cpu: 1}") -> str:
    return f"""
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  {extra}
  containers:
  - name: main
    image: registry.k8s.io/pause:3.10
    resources: {{limits: {limits}}}
---
"""


TEMPLATE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-gpu}
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly: {deviceClassName: gpu.example.com}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: attached}
spec:
  devices:
    requests:
    - name: gpu
      exactly: {deviceClassName: fabric.example.com}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: important}
value: 1000
---
"""
WITH_TEMPLATE = "resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}]"
WITH_CLAIM = "resourceClaims: [{name: gpu, resourceClaimName: attached}]"
TAINT = """
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: broken}
spec:
  deviceSelector: {driver: gpu.example.com}
  taint: {key: example.com/broken, effect: NoExecute}
"""


async def scheduling_story(client: Client) -> None:
    """Claims from templates, a device that is attached, an extended resource, a pod that makes room, one that cannot."""
    await apply_text(client, TEMPLATE + pod("plain") + pod("claimed", WITH_TEMPLATE))
    await apply_text(client, pod("extended", limits="{example.com/gpu: 1}"))
    for name in ("plain", "claimed", "extended"):
        await until(lambda name=name: has_phase(client, name, "Running"))  # type: ignore[misc]
    fabric = BindingController(client, "fabric.example.com", SimulatedAttacher())
    attaching = asyncio.create_task(fabric.run())
    await apply_text(client, pod("waiting", WITH_CLAIM))
    await until(lambda: has_phase(client, "waiting", "Running"))
    attaching.cancel()
    large = "nodeSelector: {example.com/hardware: gpu-server}"
    await apply_text(client, pod("large", large, "{cpu: 90}"))
    await until(lambda: has_phase(client, "large", "Running"))
    await apply_text(
        client, pod("pressing", f"priorityClassName: important\n  {large}", "{cpu: 90}")
    )
    await until(lambda: has_phase(client, "pressing", "Running"))
    await apply_text(client, pod("too-large", limits="{cpu: 1000}"))

    async def is_refused() -> bool:
        found = await client.get(PODS, ObjectKey("default", "too-large"))
        conditions = found.data["status"].get("conditions") or ()
        return any(each.get("reason") == "Unschedulable" for each in conditions)

    await until(is_refused)
    for name in ("claimed", "waiting", "extended"):
        await client.delete(PODS, ObjectKey("default", name))

    async def is_tidy() -> bool:
        return [claim.metadata.name for claim in (await client.list(RESOURCE_CLAIMS)).items] == [
            "attached"
        ]

    await until(is_tidy)


async def _is_gone(client: Client, resource: Any, name: str, namespace: str = "default") -> bool:
    return await client.find(resource, ObjectKey(namespace, name)) is None


DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: team}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: pause}]}
---
"""
WORKLOADS = (
    DEPLOYMENT
    + """
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: some, namespace: team}
spec: {hard: {pods: "100"}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: team}
spec:
  replicas: 1
  serviceName: db
  persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Delete}
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: main, image: pause}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: team}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: main, image: pause}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: once, namespace: team}
spec:
  ttlSecondsAfterFinished: 5
  template:
    metadata: {annotations: {allot.dev/run-seconds: "1"}}
    spec:
      restartPolicy: Never
      containers: [{name: main, image: pause}]
"""
)
QUESTION = """
apiVersion: resource.k8s.io/v1alpha1
kind: ResourcePoolStatusRequest
metadata: {name: how-many}
spec: {driver: gpu.example.com, ttlSecondsAfterComplete: 5}
"""


async def controllers_story(client: Client) -> None:
    """Workloads, a rollout, a question, a device that breaks, a node that is lost, a namespace that goes."""
    await apply_text(client, WORKLOADS)
    await apply_text(client, QUESTION)
    await until(lambda: _is_answered(client))
    await apply_text(client, TEMPLATE + pod("claimed", WITH_TEMPLATE))
    await until(lambda: has_phase(client, "claimed", "Running"))
    await until(lambda: _has_claims(client))
    await apply_text(client, DEPLOYMENT.replace("image: pause", "image: pause:3.10"))
    await until(lambda: _is_gone(client, JOBS, "once", "team"))
    await apply_text(client, TAINT)
    await until(lambda: _is_gone(client, PODS, "claimed"))
    await asyncio.sleep(5)
    await client.delete(DEVICE_TAINT_RULES, ObjectKey("", "broken"))
    await client.delete(
        STATEFUL_SETS, ObjectKey("team", "db"), DeleteOptions(propagation_policy="Foreground")
    )
    await until(lambda: _is_gone(client, STATEFUL_SETS, "db", "team"))
    await apply_text(client, pod("finishing", WITH_TEMPLATE))
    await client.delete(NAMESPACES, ObjectKey("", "team"))
    await until(lambda: _is_gone(client, NAMESPACES, "team", ""))


async def _is_answered(client: Client) -> bool:
    found = await client.find(RESOURCE_POOL_STATUS_REQUESTS, ObjectKey("", "how-many"))
    return found is not None and found.status is not None and bool(found.status.conditions)


async def _has_claims(client: Client) -> bool:
    sets = await client.find(STATEFUL_SETS, ObjectKey("team", "db"))
    return sets is not None and bool(sets.data["status"].get("currentRevision"))


async def question_story(client: Client) -> None:
    await apply_text(client, QUESTION)
    await until(lambda: _is_answered(client))
    await until(lambda: _is_gone(client, RESOURCE_POOL_STATUS_REQUESTS, "how-many", ""))


def test_scheduler_may_do_what_it_does() -> None:
    roles = play(scheduling_story, ALL_FILES, ("*",))

    assert [refused for refused in roles.refused if refused[0] == SCHEDULER] == []
    asked = roles.asked[SCHEDULER]
    assert {
        Ask("create", "", "pods/binding"),
        Ask("delete", "", "pods"),
        Ask("patch", "", "pods/status"),
        Ask("create", "resource.k8s.io", "resourceclaims"),
        Ask("update", "resource.k8s.io", "resourceclaims/status"),
        Ask("update", "resource.k8s.io", "resourceclaims/binding"),
        Ask("create", "events.k8s.io", "events"),
    } <= asked


def test_all_controllers_may_do_what_they_do() -> None:
    roles = play(controllers_story, ALL_FILES, ("*",))

    assert [refused for refused in roles.refused if refused[0] == CONTROLLERS] == []
    asked = roles.asked[CONTROLLERS]
    assert {
        Ask("create", "resource.k8s.io", "resourceclaims"),
        Ask("create", "", "pods"),
        Ask("create", "apps", "replicasets"),
        Ask("update", "apps", "deployments/status"),
        Ask("create", "apps", "controllerrevisions"),
        Ask("create", "", "persistentvolumeclaims"),
        Ask("update", "batch", "jobs/status"),
        Ask("update", "", "resourcequotas/status"),
        Ask("create", "", "serviceaccounts"),
        Ask("update", "", "namespaces/finalize"),
        Ask("update", "resource.k8s.io", "devicetaintrules/status"),
        Ask("update", "resource.k8s.io", "resourcepoolstatusrequests/status"),
    } <= asked


def test_controller_manager_may_answer_questions_and_nothing_else() -> None:
    roles = play(question_story, DEFAULT_FILES, (POOL_STATUS,))

    assert [refused for refused in roles.refused if refused[0] == CONTROLLERS] == []
    granted = next(
        each["rules"]
        for each in manifests(*DEFAULT_FILES)
        if each["kind"] == "ClusterRole" and each["metadata"]["name"] == "allot-pool-status"
    )
    wanted = {
        Ask(verb, group, resource)
        for rule in granted
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        if resource != "events"
    }
    never_asked = wanted - roles.asked[CONTROLLERS]
    # Our server lists in watches; others may not, and then there is `list`.
    assert {ask for ask in never_asked if ask.verb not in ("get", "list")} == set()


@pytest.mark.parametrize("account", ACCOUNTS)
def test_component_may_hold_its_lease(account: str) -> None:
    roles = DeployedRoles(manifests(*DEFAULT_FILES))
    led: list[bool] = []

    async def lead() -> None:
        led.append(True)
        await asyncio.sleep(60)

    async def run() -> None:
        server = a_server(roles, VirtualClock())
        await server.start()
        admin = Client(InProcessTransport(server.app, ADMIN))
        await apply(admin, manifests("rbac.yaml"))
        client = Client(InProcessTransport(server.app, ACCOUNTS[account]))
        await LeaderElector(client, ObjectKey("allot-system", account), "one").run(lead)
        await server.close()

    run_in_virtual_time(run())

    assert led
    assert roles.refused == []
