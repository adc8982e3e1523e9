"""A driver of simulated hardware: it prepares what was allocated, without devices for the container runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from allot.api.claims import ResourceClaim
from allot.api.identities import ObjectKey
from allot.kubelet.dra.claim_info import (
    ClaimReference,
    PreparedClaim,
    PreparedDevice,
    base_request_name,
    results_by_driver,
)


class SimulatedDriver:
    """Answers without a socket, from the claims that the node knows."""

    is_simulated = True

    def __init__(self, driver: str, find: Callable[[ObjectKey], ResourceClaim | None]) -> None:
        self.driver = driver
        self._find = find

    def prepare_at_once(self, claims: Sequence[ClaimReference]) -> Mapping[str, PreparedClaim]:
        return {claim.uid: self._prepared(claim) for claim in claims}

    async def prepare(self, claims: Sequence[ClaimReference]) -> Mapping[str, PreparedClaim]:
        return self.prepare_at_once(claims)

    async def unprepare(self, claims: Sequence[ClaimReference]) -> Mapping[str, str]:
        return dict.fromkeys((claim.uid for claim in claims), "")

    def _prepared(self, reference: ClaimReference) -> PreparedClaim:
        claim = self._find(reference.key)
        if claim is None or claim.metadata.uid != reference.uid:
            return PreparedClaim(error=f"claim {reference.key} was replaced or deleted")
        return PreparedClaim(
            tuple(
                PreparedDevice(
                    result.pool,
                    result.device,
                    (base_request_name(result.request),),
                    share_id=result.share_id,
                )
                for result in results_by_driver(claim).get(self.driver, ())
            )
        )
