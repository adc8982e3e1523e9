"""Transfer: the explanation of one node for another in the same equivalence class.

Their devices differ only in the names of pools and holders.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from allot.allocation.allocated_devices import Ledger, shown_holder
from allot.allocation.explain.findings import (
    Conflict,
    Explanation,
    Refusal,
    RequestReport,
)
from allot.allocation.explain.reasons import AnyReason, ConstraintUnmet, Held
from allot.allocation.pools import PoolId
from allot.allocation.problem import AllocationProblem
from allot.api.identities import DeviceId


def transferred(
    explanation: Explanation, explained: AllocationProblem, problem: AllocationProblem
) -> Explanation:
    """The explanation of `explained` as one of `problem`: the same claims on an equivalent node."""
    pools = {
        old.id: new.id
        for old, new in zip(
            explained.inventory.view(explained.node).pools,
            problem.inventory.view(problem.node).pools,
            strict=True,
        )
    }
    names = _Names(pools, problem.ledger)
    conflict = explanation.conflict
    return explanation._replace(
        node=problem.node.name,
        pools=tuple(
            each._replace(pool=pools[PoolId(each.driver, each.pool)].pool)
            for each in explanation.pools
        ),
        requests=tuple(map(names.report, explanation.requests)),
        conflict=names.conflict(conflict) if conflict is not None else None,
    )


class _Names:
    def __init__(self, pools: Mapping[PoolId, PoolId], ledger: Ledger) -> None:
        self._pools = pools
        self._ledger = ledger

    def device(self, device: DeviceId) -> DeviceId:
        pool = self._pools[PoolId(device.driver, device.pool)]
        return pool.device_id(device.device)

    def text(self, device: str) -> str:
        """The same for a device that is written as `driver/pool/device`."""
        driver, _, rest = device.partition("/")
        pool, _, name = rest.rpartition("/")
        return str(self.device(DeviceId(driver, pool, name)))

    def report(self, report: RequestReport) -> RequestReport:
        devices_by_reason: dict[AnyReason, list[DeviceId]] = {}
        for refusal in report.refusals:
            for device in map(self.device, refusal.devices):
                reason = self._reason(refusal.reason, device)
                devices_by_reason.setdefault(reason, []).append(device)
        refusals = [Refusal(reason, tuple(own)) for reason, own in devices_by_reason.items()]
        return report._replace(refusals=tuple(refusals))

    def _reason(self, reason: AnyReason, device: DeviceId) -> AnyReason:
        match reason:
            case Held():
                holders = tuple(map(shown_holder, self._ledger.holders(device)))
                return replace(reason, claims=holders)
            case ConstraintUnmet(others=others):
                renamed = tuple(replace(each, device=self.text(each.device)) for each in others)
                return replace(reason, others=renamed)
        return reason

    def conflict(self, conflict: Conflict) -> Conflict:
        constraints = tuple(
            replace(
                constraint,
                sides=tuple(
                    replace(
                        side,
                        values=tuple(
                            replace(each, devices=tuple(map(self.text, each.devices)))
                            for each in side.values
                        ),
                        without=tuple(map(self.text, side.without)),
                    )
                    for side in constraint.sides
                ),
            )
            for constraint in conflict.constraints
        )
        return replace(conflict, constraints=constraints)
