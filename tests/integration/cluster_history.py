"""What must never have happened in a cluster, read from all that its API server ever said; and what must hold in the end."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from allot.testing.servers import LocalServer
from tests.integration.claim_history import History, is_done
from tests.integration.resource_claims_cluster import is_allocated, reserved_for

Json = dict[str, Any]

DRA: Final = "/apis/resource.k8s.io/v1"
PODS: Final = "/api/v1/pods"
CLAIMS: Final = f"{DRA}/resourceclaims"
JOBS: Final = "/apis/batch/v1/jobs"
DEPLOYMENTS: Final = "/apis/apps/v1/deployments"
REPLICA_SETS: Final = "/apis/apps/v1/replicasets"
NAMESPACES: Final = "/api/v1/namespaces"
REQUESTS: Final = "/apis/resource.k8s.io/v1alpha3/resourcepoolstatusrequests"
CONTENT_IN_NAMESPACES: Final = (PODS, CLAIMS, JOBS, DEPLOYMENTS, REPLICA_SETS)
EVERYTHING: Final = (*CONTENT_IN_NAMESPACES, NAMESPACES, REQUESTS)


class Event(NamedTuple):
    type: str
    object: Json

    @property
    def uid(self) -> str:
        return str(self.object["metadata"]["uid"])

    @property
    def is_end(self) -> bool:
        return self.type == "DELETED"


async def events_since(server: LocalServer, path: str, revision: str) -> list[Event]:
    """All that happened in a collection, in order."""
    events = []
    async with server.watch(path, resourceVersion=revision, timeoutSeconds="1") as stream:
        while (event := await stream.next()) is not None:
            events.append(Event(event["type"], event["object"]))
    return events


# --- what never happens ---


async def wrongs(server: LocalServer, revision: str) -> list[str]:
    """Everything since a revision that should not have been."""
    history = {path: await events_since(server, path, revision) for path in EVERYTHING}
    lives = History()
    lives.events = [event._asdict() for path in (PODS, CLAIMS) for event in history[path]]
    return [
        *lives.wrongs(),
        *devices_held_twice(history[CLAIMS]),
        *answers_written_again(history[REQUESTS]),
        *unsound_conclusions(history[JOBS]),
        *miscounted_jobs(history[JOBS], history[PODS]),
    ]


def devices_held_twice(claims: Iterable[Event]) -> Iterator[str]:
    holders: dict[tuple[str, ...], str] = {}
    held: dict[str, set[tuple[str, ...]]] = {}
    for event in claims:
        now = set() if event.is_end else _devices(event.object)
        for device in held.get(event.uid, set()) - now:
            del holders[device]
        for device in now:
            if holders.setdefault(device, event.uid) != event.uid:
                yield f"{'/'.join(device)} is held by {_name(event.object)} and another"
        held[event.uid] = now


def _devices(claim: Json) -> set[tuple[str, ...]]:
    results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
    return {(result["driver"], result["pool"], result["device"]) for result in results}


def answers_written_again(requests: Iterable[Event]) -> Iterator[str]:
    answers: dict[str, Json] = {}
    for event in requests:
        status = event.object.get("status")
        if status and answers.setdefault(event.uid, status) != status:
            yield f"{_name(event.object)} was answered again"
        if not status and event.uid in answers:
            yield f"{_name(event.object)} lost its answer"


def unsound_conclusions(jobs: Iterable[Event]) -> Iterator[str]:
    """Conditions that end a job stay, and are true when they are set; numbers of finished pods only grow."""
    before: dict[str, tuple[set[str], int, int]] = {}
    for event in jobs:
        status = event.object.get("status", {})
        said = {each["type"] for each in status.get("conditions", ()) if each["status"] == "True"}
        now = said, status.get("succeeded", 0), status.get("failed", 0)
        known = before.get(event.uid, (set(), 0, 0))
        if not (known[0] <= now[0] and known[1] <= now[1] and known[2] <= now[2]):
            yield f"{_name(event.object)} had {known}, then {now}"
        if "Complete" in said and now[1] < event.object["spec"]["completions"]:
            yield f"{_name(event.object)} is complete with {now}"
        before[event.uid] = now


def miscounted_jobs(jobs: Iterable[Event], pods: Iterable[Event]) -> Iterator[str]:
    """Of the pods of a job that succeeded each is counted once; of an index one."""
    succeeded: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for event in pods:
        owners = event.object["metadata"].get("ownerReferences", ())
        if event.object["status"].get("phase") == "Succeeded" and owners:
            labels = event.object["metadata"].get("labels", {})
            index = labels.get("batch.kubernetes.io/job-completion-index", event.uid)
            succeeded[owners[0]["uid"]][event.uid] = index
    for job in {event.uid: event.object for event in jobs}.values():
        counted = job.get("status", {}).get("succeeded", 0)
        there_were = len(set(succeeded[job["metadata"]["uid"]].values()))
        if counted > there_were:
            yield f"{_name(job)} counts {counted} pods that succeeded, there were {there_were}"


async def overshot_jobs(server: LocalServer, revision: str) -> list[str]:
    """Jobs of which more pods succeeded than they wanted: work that was not needed."""
    jobs = {event.uid: event.object for event in await events_since(server, JOBS, revision)}
    return [
        f"{_name(job)} wanted {job['spec']['completions']}, got {succeeded}"
        for job in jobs.values()
        if (succeeded := job.get("status", {}).get("succeeded", 0)) > job["spec"]["completions"]
    ]


# --- what holds in the end ---


async def unsettled(server: LocalServer) -> list[str]:
    """What is not yet as it must be in the end."""
    found = {path: (await server.get(path))["items"] for path in EVERYTHING}
    return [
        *_left_in_namespaces(found),
        *(f"pod {_name(pod)} is still going" for pod in found[PODS] if _is_going(pod)),
        *_unsettled_claims(found[CLAIMS], found[PODS]),
        *_unsettled_jobs(found[JOBS], found[PODS]),
        *_unsettled_deployments(found[DEPLOYMENTS], found[REPLICA_SETS], found[PODS]),
        *(f"{_name(one)} has no answer" for one in found[REQUESTS] if not one.get("status")),
    ]


def _is_going(obj: Json) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def _left_in_namespaces(found: dict[str, list[Json]]) -> Iterator[str]:
    names = {space["metadata"]["name"] for space in found[NAMESPACES]}
    for space in found[NAMESPACES]:
        if "deletionTimestamp" in space["metadata"]:
            yield f"namespace {_name(space)} is still going"
    for path in CONTENT_IN_NAMESPACES:
        for obj in found[path]:
            if obj["metadata"]["namespace"] not in names:
                yield f"{_name(obj)} is in no namespace"


def _unsettled_claims(claims: list[Json], pods: list[Json]) -> Iterator[str]:
    pod_by_uid = {pod["metadata"]["uid"]: pod for pod in pods}

    def needs_it(uid: str) -> bool:
        return uid in pod_by_uid and not is_done(pod_by_uid[uid])

    claim_by_name = {_name(claim): claim for claim in claims}
    for name, claim in claim_by_name.items():
        owners = [owner["uid"] for owner in claim["metadata"].get("ownerReferences", ())]
        if not all(map(needs_it, owners)):
            yield f"claim {name} is left over"
        if "deletionTimestamp" in claim["metadata"] and not reserved_for(claim):
            yield f"claim {name} is still going"
        if not all(map(needs_it, reserved_for(claim))):
            yield f"claim {name} is reserved for a pod that is done"
        if is_allocated(claim) and not reserved_for(claim):
            yield f"claim {name} is allocated without a consumer"
    for pod in filter(lambda pod: not is_done(pod), pods):
        if pod["status"].get("phase") != "Running":
            yield f"pod {_name(pod)} does not run"
        for claim_name in _claims_of(pod):
            claim_or_none = claim_by_name.get(f"{pod['metadata']['namespace']}/{claim_name}")
            if claim_or_none is None or pod["metadata"]["uid"] not in reserved_for(claim_or_none):
                yield f"pod {_name(pod)} has no reservation of {claim_name}"


def _claims_of(pod: Json) -> Iterator[str | None]:
    made = {
        told["name"]: told.get("resourceClaimName")
        for told in pod["status"].get("resourceClaimStatuses", ())
    }
    for entry in pod["spec"].get("resourceClaims", ()):
        yield entry.get("resourceClaimName") or made.get(entry["name"])


def _unsettled_jobs(jobs: list[Json], pods: list[Json]) -> Iterator[str]:
    for job in jobs:
        status = job.get("status", {})
        said = {each["type"] for each in status.get("conditions", ()) if each["status"] == "True"}
        if "Complete" not in said:
            yield f"job {_name(job)} is not complete: {status}"
        if status.get("active") or status.get("uncountedTerminatedPods"):
            yield f"job {_name(job)} is complete, and yet {status}"
    for pod in pods:
        if pod["status"].get("phase") == "Succeeded" and pod["metadata"].get("finalizers"):
            yield f"pod {_name(pod)} is not counted"


def _unsettled_deployments(
    deployments: list[Json], replica_sets: list[Json], pods: list[Json]
) -> Iterator[str]:
    pods_by_owner = Counter(_owner(pod) for pod in pods if not is_done(pod))
    for one in replica_sets:
        size = one["spec"]["replicas"]
        if pods_by_owner[one["metadata"]["uid"]] != size:
            yield f"replica set {_name(one)} has not {size} pods"
        if (
            one["status"].get("availableReplicas", 0) != size
            or one["status"].get("replicas") != size
        ):
            yield f"replica set {_name(one)} of {size} says {one['status']}"
    for deployment in deployments:
        size, status = deployment["spec"]["replicas"], deployment.get("status", {})
        sets = [one for one in replica_sets if _owner(one) == deployment["metadata"]["uid"]]
        sizes = sorted(one["spec"]["replicas"] for one in sets if one["spec"]["replicas"])
        if sizes != ([size] if size else []):
            yield f"deployment {_name(deployment)} of {size} has sets of {sizes}"
        told = [status.get(f"{kind}eplicas", 0) for kind in ("r", "updatedR", "availableR")]
        if (
            told != [size] * 3
            or status.get("observedGeneration") != deployment["metadata"]["generation"]
        ):
            yield f"deployment {_name(deployment)} of {size} says {status}"


async def orphans(server: LocalServer) -> list[str]:
    """All objects, of whatever kind, with an owner that is not there."""
    objects = [obj async for obj in _every_object(server)]
    uids = {obj["metadata"].get("uid") for obj in objects}
    return [
        f"{obj.get('kind')} {_name(obj)}"
        for obj in objects
        for owner in obj["metadata"].get("ownerReferences", ())
        if owner["uid"] not in uids
    ]


async def _every_object(server: LocalServer) -> Any:
    groups = (await server.get("/apis"))["groups"]
    roots = ["/api/v1", *(f"/apis/{each['preferredVersion']['groupVersion']}" for each in groups)]
    for root in roots:
        for resource in (await server.get(root))["resources"]:
            if "/" not in resource["name"] and "list" in resource["verbs"]:
                for obj in (await server.get(f"{root}/{resource['name']}"))["items"]:
                    yield {"kind": resource["kind"], **obj}


def _owner(obj: Json) -> str | None:
    owners = obj["metadata"].get("ownerReferences", ())
    return owners[0]["uid"] if owners else None


def _name(obj: Json) -> str:
    metadata = obj["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}".removeprefix("/")
