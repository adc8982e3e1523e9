"""The stories, one for each KEP. The manifests are in `examples/`."""

from __future__ import annotations

from typing import Final

from allot.cli.demo.needs import Need
from allot.cli.demo.steps import Apply, Get, Scene, StartFabric, Story, Until

NAMESPACE: Final = "allot-demo"
FABRIC_DRIVER: Final = "fabric.example.com"
START: Final = "`allot up`"
"""Without options it starts the hardware that the stories need."""
DEVICE_CLASSES: Final = (
    "gpu.example.com",
    "rdma.example.com",
    "shared-nic.example.com",
    FABRIC_DRIVER,
)
"""The device classes of that hardware."""

# --- what is shown ---

# Files in examples/columns/, which kubectl reads, too.
PODS: Final = "pods"
NOMINATIONS: Final = "nominations"
ALTERNATIVES: Final = "alternatives"
SHARES: Final = "shares"
CONDITIONS: Final = "conditions"
TAINTS: Final = "taints"
POOLS: Final = "pools"
DEVICES: Final = "devices"


def _condition(type_: str) -> str:
    return f'.status.conditions[?(@.type=="{type_}")].status'


def _claims(columns: str, count: int = 1, name: str = "") -> Get:
    """Claims, once so many are allocated."""
    return Get("resourceclaims", (Until(count, ".status.allocation"),), columns, name)


def _running(count: int = 1, columns: str = PODS) -> Get:
    """Pods, once so many run."""
    return Get("pods", (Until(count, ".status.phase", "Running"),), columns)


def _answered(columns: str = "") -> Get:
    """The ResourcePoolStatusRequest, once it is answered."""
    until = Until(1, _condition("Complete"), "True")
    return Get("resourcepoolstatusrequests", (until,), columns, name="check-gpus")


# --- the stories ---

_GPUS = "gpu.example.com"
_NICS = "nic.example.com"
_ONE_GPU = Need((_GPUS,), 1)
_ALL_SERVERS = Need((_GPUS, _NICS))
_ONE_SERVER = Need((_GPUS, _NICS), on_one_node=True)
_SHARED_NICS = Need(("shared-nic.example.com",))
_FABRIC = Need((FABRIC_DRIVER,))

_BEST = "4816-prioritized-list/story-1.yaml"
_WORKERS = "4816-prioritized-list/as-many-as-possible.yaml"
_SHARED = "5075-consumable-capacity/story-1.yaml"
_DISTINCT = "5075-consumable-capacity/story-2.yaml"
_GUARANTEED = "5075-consumable-capacity/story-3.yaml"
_BORROWED = "5007-binding-conditions/story-2.yaml"
_BROKEN = "5007-binding-conditions/story-2-failure.yaml"
_STATUS = "5677-pool-status/story-1.yaml"
_NUMA = "6080-derived-attributes/gpu-nic.yaml"

_PRIORITIZED_LIST: Final = Story(
    "4816",
    "Alternatives in order of preference",
    (
        Scene(
            "A pod wants a B200. Failing that, an H100; failing that, two A100s together. This cluster has H100s "
            "only. Without alternatives the pod would stay pending, or its author would have to know that.",
            (Apply(_BEST), _claims(ALTERNATIVES), _running()),
            "The claim says which alternative it got: gpu/previous.",
            (_BEST,),
            _ONE_GPU,
        ),
        Scene(
            "Four workers want as many GPUs as they can get: six, or else two, or else one; each with a network "
            "card on the same server. There are two servers with eight GPUs.",
            (Apply(_WORKERS), _claims(ALTERNATIVES, 4), _running(4)),
            "The first two have six. The others have two each, on the PCIe root of their network card: that "
            "constraint is for this alternative only.",
            (_WORKERS,),
            _ALL_SERVERS,
        ),
    ),
)

_CONSUMABLE_CAPACITY: Final = Story(
    "5075",
    "One device shared by many claims",
    (
        Scene(
            "The network cards of shared-nic-0 can be allocated to many claims at once. Three pods ask for one "
            "without an amount, and get the driver's default: 1G and one virtual function.",
            (Apply(_SHARED), _claims(SHARES, 3)),
            "All three share eth1.",
            needs=_SHARED_NICS,
        ),
        Scene(
            "A gateway wants two interfaces. Two shares of one card would not help, so the claim asks for two that "
            "differ in their attribute interfaceName.",
            (Apply(_DISTINCT), _claims(SHARES, name="two-interfaces")),
            "They are eth1 and eth2.",
            (_SHARED, _DISTINCT),
            _SHARED_NICS,
        ),
        Scene(
            "Five pods want 39.5G guaranteed, and one names no amount. The driver counts in steps of 1G, so each of "
            "the five consumes 40G; there are two cards with 100G.",
            (
                Apply(_GUARANTEED),
                Get(
                    "pods",
                    (
                        Until(4, ".status.phase", "Running"),
                        Until(1, _condition("PodScheduled"), "False"),
                    ),
                    PODS,
                    selector="app=stream",
                ),
                _claims(SHARES, 5),
            ),
            "Two of them fit on a card. The fifth is pending: neither card has 40G left. The pod without an amount "
            "consumes the driver's default, 1G. "
            f"`allot explain -n {NAMESPACE} pod/NAME` says the same of any pod, and what would help.",
            (_GUARANTEED,),
            _SHARED_NICS,
        ),
    ),
)

_BINDING_CONDITIONS: Final = Story(
    "5007",
    "Devices that are attached before a pod is bound",
    (
        Scene(
            "The rack has six GPUs that are in no server. One is attached over the fabric to the node that the "
            "scheduler chose; until that is done, the pod must not start there.",
            (
                Apply(_BORROWED),
                _claims(CONDITIONS),
                Get("pods", (Until(1, ".status.nominatedNodeName"),), NOMINATIONS),
            ),
            "The claim has its device and the pod a nominated node, but no controller attaches the device yet.",
            needs=_FABRIC,
        ),
        Scene(
            "Now a controller runs for the fabric: attaching a GPU takes three seconds.",
            (StartFabric("ready after 3s"), _running(columns=NOMINATIONS), _claims(CONDITIONS)),
            "The pod was bound as soon as the condition was True.",
            (_BORROWED,),
            _FABRIC,
        ),
        Scene(
            "This time the port of gpu-0 is down. The claim gets gpu-0 first, because it is free.",
            (
                StartFabric("gpu-0: fail LinkDown after 2s; ready after 2s"),
                Apply(_BROKEN),
                _running(),
                _claims(CONDITIONS),
                Get("devicetaintrules", (Until(1),), TAINTS),
            ),
            "The failure released the allocation, and gpu-0 is tainted so that no other claim gets it. The pod was "
            "not affected: it was not bound before a device was ready.",
            (_BROKEN,),
            _FABRIC,
        ),
    ),
)

_POOL_STATUS: Final = Story(
    "5677",
    "How many devices are free",
    (
        Scene(
            "Users cannot see each other's claims, so they cannot count which GPUs are free. They can ask for it. "
            "First, another pod takes a GPU.",
            (Apply(_BEST), _running(), Apply(_STATUS, replace=True), _answered(), _answered(POOLS)),
            "A controller has counted and written the answer into the status. A request is answered once; for "
            "current numbers create another one.",
            (_BEST, _STATUS),
            _ONE_GPU,
        ),
    ),
)

_DERIVED_ATTRIBUTES: Final = Story(
    "6080",
    "Attributes derived by expressions",
    (
        Scene(
            "A network card and two GPUs shall be on the same NUMA node. The GPUs' driver publishes numaNode: 1, the "
            "cards' driver topology: numa1-rail3. No attribute of one can be compared with one of the other. So the "
            "claim derives an attribute of the same name and meaning from each, with an expression.",
            (Apply(_NUMA), _claims(DEVICES), _running()),
            "The claim wants rdma-3, which is on NUMA node 1; the GPUs there are gpu-4 to gpu-7.",
            (_NUMA,),
            _ONE_SERVER,
        ),
    ),
)

STORIES: Final = (
    _PRIORITIZED_LIST,
    _CONSUMABLE_CAPACITY,
    _BINDING_CONDITIONS,
    _POOL_STATUS,
    _DERIVED_ATTRIBUTES,
)
