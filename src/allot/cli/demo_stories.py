"""The stories of `allot demo`, one for each KEP. The manifests are in `examples/`."""

from __future__ import annotations

from typing import Final

from allot.cli import demo_script as look_at
from allot.cli.demo_script import (
    NAMESPACE,
    Apply,
    Delete,
    Look,
    Scene,
    StartFabric,
    StopFabric,
    Story,
    allocated,
    condition,
    nominated,
    phases,
    present,
)

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
    "The best that there is: alternatives in order",
    (
        Scene(
            "A pod wants a B200. Failing that, an H100; failing that, two A100s together. This cluster has H100s "
            "only. Without alternatives the pod would wait forever, or its author would have to know that.",
            (
                Apply(_BEST),
                Look("resourceclaims", allocated(1), look_at.ALTERNATIVES),
                Look("pods", phases(Running=1), look_at.PODS),
            ),
            "The claim says which alternative it came to: gpu/previous.",
            (Delete(_BEST),),
        ),
        Scene(
            "Four workers want as many GPUs as they can get: six, or else two, or else one; each with a network "
            "card on the same server. There are two servers with eight GPUs.",
            (
                Apply(_WORKERS),
                Look("resourceclaims", allocated(4), look_at.ALTERNATIVES),
                Look("pods", phases(Running=4), look_at.PODS),
            ),
            "Two came first and have six. The others have two each, on the PCIe root of their network card: that "
            "constraint is for this alternative only.",
            (Delete(_WORKERS),),
        ),
    ),
)

_CONSUMABLE_CAPACITY: Final = Story(
    "5075",
    "One device for many: capacity that is consumed",
    (
        Scene(
            "The network cards of shared-nic-0 can be given to many claims at once. Three pods ask for one and for "
            "nothing in particular, and get what the driver says is usual: 1G and one virtual function.",
            (Apply(_SHARED), Look("resourceclaims", allocated(3), look_at.SHARES)),
            "All three share eth1.",
        ),
        Scene(
            "A gateway wants two interfaces. Two shares of one card would be no use to it, so the claim asks for "
            "two that differ in their attribute interfaceName.",
            (
                Apply(_DISTINCT),
                Look("resourceclaims", allocated(1), look_at.SHARES, name="two-interfaces"),
            ),
            "They are eth1 and eth2.",
            (Delete(_SHARED), Delete(_DISTINCT)),
        ),
        Scene(
            "Five pods want 39.5G guaranteed, and one does not say. The driver counts in steps of 1G, so it is 40G for each; and there are "
            "two cards with 100G.",
            (
                Apply(_GUARANTEED),
                Look("pods", phases(Running=4, Pending=1), look_at.PODS, selector="app=stream"),
                Look("resourceclaims", allocated(5), look_at.SHARES),
            ),
            "Two of them fit on a card. The fifth waits: what is left of two cards does not make one. A pod that does "
            "not say how much it needs gets the driver's default, 1G. "
            f"`allot explain -n {NAMESPACE} pod/NAME` tells the same of any pod, and what would help.",
            (Delete(_GUARANTEED),),
        ),
    ),
)

_BINDING_CONDITIONS: Final = Story(
    "5007",
    "Not ready yet: devices that are attached first",
    (
        Scene(
            "The rack has six GPUs that are in no server. One is attached over the fabric to the node that the "
            "scheduler chose; until that is done, the pod must not start there.",
            (
                Apply(_BORROWED),
                Look("resourceclaims", allocated(1), look_at.CONDITIONS),
                Look("pods", nominated(1), is_wide=True),
            ),
            "The claim has its device and the pod a nominated node, but nobody attaches anything yet.",
        ),
        Scene(
            "Now somebody plays the fabric: it takes three seconds to attach a GPU.",
            (
                StartFabric("ready after 3s"),
                Look("pods", phases(Running=1), is_wide=True),
                Look("resourceclaims", allocated(1), look_at.CONDITIONS),
            ),
            "As soon as the condition was True the pod was bound.",
            (Delete(_BORROWED), StopFabric()),
        ),
        Scene(
            "Another day the port of gpu-0 is dark. The claim gets gpu-0 first, because it is free.",
            (
                StartFabric("gpu-0: fail LinkDown after 2s; ready after 2s"),
                Apply(_BROKEN),
                Look("pods", phases(Running=1), look_at.PODS),
                Look("resourceclaims", allocated(1), look_at.CONDITIONS),
                Look("devicetaintrules", present(), look_at.TAINTS),
            ),
            "The failure took the allocation back, and gpu-0 is tainted so that nobody gets it. The pod never "
            "noticed: it was not bound before a device was ready.",
            (Delete(_BROKEN), StopFabric()),
        ),
    ),
)

_POOL_STATUS: Final = Story(
    "5677",
    "What is left: asking for the state of pools",
    (
        Scene(
            "Users cannot see each other's claims, so they cannot count which GPUs are free. They can ask for it. "
            "First, somebody takes a GPU.",
            (
                Apply(_BEST),
                Look("pods", phases(Running=1), look_at.PODS),
                Apply(_STATUS, renews=True),
                Look("resourcepoolstatusrequests", condition("Complete"), name="check-gpus"),
                Look(
                    "resourcepoolstatusrequests",
                    condition("Complete"),
                    look_at.POOLS,
                    name="check-gpus",
                ),
            ),
            "A controller has counted and written the answer into the status. The question can be asked once; for "
            "fresh figures ask again.",
            (Delete(_BEST), Delete(_STATUS)),
        ),
    ),
)

_DERIVED_ATTRIBUTES: Final = Story(
    "6080",
    "In other words: attributes that are derived",
    (
        Scene(
            "A network card and two GPUs shall be on the same NUMA node. The GPUs' driver publishes numaNode: 1, the "
            "cards' driver topology: numa1-rail3. No attribute of one can be compared with one of the other. So the "
            "claim derives one of the same name and meaning from each, with an expression.",
            (
                Apply(_NUMA),
                Look("resourceclaims", allocated(1), look_at.DEVICES),
                Look("pods", phases(Running=1), look_at.PODS),
            ),
            "The claim wants rdma-3, which is on NUMA node 1; there the GPUs are gpu-4 to gpu-7.",
            (Delete(_NUMA),),
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
