"""Whether the server lives and is ready, check by check."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from allot.apiserver.http.responses import Response, text_response

Checks = Mapping[str, Callable[[], Awaitable[str | None]]]
"""Each says what is wrong, or None."""


class HealthEndpoints:
    """/healthz, /livez and /readyz, as a whole or for one check."""

    def __init__(self, live: Checks, ready: Checks) -> None:
        self._checks = {"livez": live, "healthz": {**live, **ready}, "readyz": {**live, **ready}}

    async def answer(self, parts: list[str], *, verbose: bool) -> Response:
        page, *names = parts
        checks = self._checks[page]
        if names:
            name = "/".join(names)
            if name not in checks:
                return text_response(404, "404 page not found\n")
            checks = {name: checks[name]}
        lines: list[str] = []
        failed = False
        for name, check in checks.items():
            problem = await check()
            failed = failed or problem is not None
            lines.append(f"[+]{name} ok" if problem is None else f"[-]{name} failed: {problem}")
        if failed:
            return text_response(500, "\n".join([*lines, f"{page} check failed", ""]))
        if verbose:
            return text_response(200, "\n".join([*lines, f"{page} check passed", ""]))
        return text_response(200, "ok")
