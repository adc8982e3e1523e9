"""The extension points after a node is chosen, from reserve to post_bind, each timed.

reserve ─► permit ─► (wait) ─► pre_bind ─► bind ─► post_bind

The binding may be sent with the last write of pre_bind (`ordered_binding`); it counts when pre_bind has succeeded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.durations import (
    BIND,
    PERMIT,
    POST_BIND,
    PRE_BIND,
    RESERVE,
    Durations,
)
from allot.scheduler.framework.plugins import PreBindPlugin
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.framework.status import Code, Status
from allot.scheduler.framework.waiting_pods import WaitingPod
from allot.scheduler.state.pods import PodInfo

if TYPE_CHECKING:
    from allot.scheduler.framework.ordered_binding import OrderedBinding


def run_reserve_and_permit(
    profile: Profile, durations: Durations, state: CycleState, pod: PodInfo, node_name: str
) -> Status | WaitingPod | None:
    """None if the pod can be bound, a waiting pod if a permit plugin says WAIT, or the failure."""
    samples = state.samples
    began = started = durations.now()
    for plugin in profile.reserve:
        status = plugin.reserve(state, pod, node_name)
        if samples is not None:
            samples.add(plugin.name, RESERVE, status.code, started)
            started = samples.now()
        if status.code is not Code.SUCCESS:
            durations.point(RESERVE, status.code, began)
            return status.by(plugin.name)
    began = started = durations.point(RESERVE, Code.SUCCESS, began)
    timeouts: dict[str, float] = {}
    for permit in profile.permit:
        status, timeout_seconds = permit.permit(state, pod, node_name)
        if samples is not None:
            samples.add(permit.name, PERMIT, status.code, started)
            started = samples.now()
        if status.code is Code.WAIT:
            timeouts[permit.name] = timeout_seconds
        elif not status.is_success:
            durations.point(PERMIT, status.code, began)
            return status.by(permit.name)
    durations.point(PERMIT, Code.WAIT if timeouts else Code.SUCCESS, began)
    return WaitingPod(pod, node_name, timeouts) if timeouts else None


async def run_pre_bind_and_bind(
    profile: Profile, durations: Durations, state: CycleState, pod: PodInfo, node_name: str
) -> Status:
    """SUCCESS once the pod is bound, or the first failure."""
    began = durations.now()
    needed = [plugin for plugin in profile.pre_bind if plugin.needs_pre_bind(state, pod, node_name)]
    binding = None
    if needed and profile.bind:
        binding = profile.bind[0].ordered_binding(state, pod, node_name)
    try:
        failure = await _run_pre_bind(needed, binding, state, pod, node_name)
        code = Code.SUCCESS if failure is None else failure.code
        began = durations.point(PRE_BIND, code, began)
        if failure is not None:
            message = f'running PreBind plugin "{failure.plugin}": {failure.message}'
            return Status(Code.ERROR, (message,), failure.plugin, failure.error)
        return await _run_bind(profile, binding, durations, state, pod, node_name, began)
    finally:
        if binding is not None:
            binding.cancel()


async def _run_pre_bind(
    plugins: Sequence[PreBindPlugin],
    binding: OrderedBinding | None,
    state: CycleState,
    pod: PodInfo,
    node_name: str,
) -> Status | None:
    """The first failure; the last plugin may send the binding."""
    samples = state.samples
    for plugin in plugins:
        if plugin is plugins[-1]:
            state.binding = binding
        started = samples.now() if samples is not None else 0.0
        status = await plugin.pre_bind(state, pod, node_name)
        if samples is not None:
            samples.add(plugin.name, PRE_BIND, status.code, started)
        if status.code is not Code.SUCCESS:
            return status.by(plugin.name)
    return None


async def _run_bind(
    profile: Profile,
    binding: OrderedBinding | None,
    durations: Durations,
    state: CycleState,
    pod: PodInfo,
    node_name: str,
    began: float,
) -> Status:
    samples, started = state.samples, began
    sent = await binding.outcome() if binding is not None else None
    for binder in profile.bind:
        status = await binder.bind(state, pod, node_name) if sent is None else sent
        sent = None
        if samples is not None:
            samples.add(binder.name, BIND, status.code, started)
            started = samples.now()
        if status.code is not Code.SKIP:
            durations.point(BIND, status.code, began)
            return status
    return Status(Code.ERROR, ("no bind plugin took the pod",))


def run_post_bind(
    profile: Profile, durations: Durations, state: CycleState, pod: PodInfo, node_name: str
) -> None:
    samples = state.samples
    began = started = durations.now()
    for plugin in profile.post_bind:
        plugin.post_bind(state, pod, node_name)
        if samples is not None:
            samples.add(plugin.name, POST_BIND, Code.SUCCESS, started)
            started = samples.now()
    durations.point(POST_BIND, Code.SUCCESS, began)
