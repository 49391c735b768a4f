"""The sandboxes of the clients: those with an id, and those that one execution borrows."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from wcpod.exceptions import WcpodError
from wcpod.sandbox import AsyncSandbox, ExecutionResult, FetchPolicy, Limits

OnOutput = Callable[[str, str], None]


class Refused(Exception):
    """The server does not do what a client asks for; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What clients may use.

    Attributes:
        limits: The largest limits of an execution, and those of a client that asks for none.
        hosts: Hosts that `call_tool("fetch_url", url=...)` may read; none by default.
        archive: Folder of recorded pages that stands in for the network.
        contact: How a site can reach the operator, shown in the user agent.
        sandboxes: Most sandboxes at once.
        idle_seconds: A sandbox that nobody has used for so long is destroyed.
    """

    limits: Limits = field(default_factory=Limits)
    hosts: tuple[str, ...] = ()
    archive: Path | None = None
    contact: str | None = None
    sandboxes: int = 4
    idle_seconds: float = 600.0


@dataclass(slots=True, eq=False)
class _Tenant:
    sandbox: AsyncSandbox
    running: int = 0
    used: float = field(default_factory=time.monotonic)


class Tenancy:
    """The sandboxes of the clients. For one event loop."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._policy = FetchPolicy(terms.hosts) if terms.hosts else None
        self._tenants: dict[str, _Tenant] = {}
        self._spare: list[_Tenant] = []
        self._borrowed = 0
        self._booting = 0
        self._returned = asyncio.Event()

    async def create(self, limits: Limits) -> str:
        """Boot a sandbox; returns its id.

        Raises:
            Refused: if there are as many as there may be.
            WcpodError: if none boots.
        """
        if self._taken() >= self._terms.sandboxes and self._spare:
            await self._spare.pop().sandbox.close()
        if self._taken() >= self._terms.sandboxes:
            raise Refused(f"there are {self._terms.sandboxes} sandboxes already; destroy one first")
        # A task of its own: a client that gives up meanwhile leaves no sandbox behind that nobody knows of.
        return await asyncio.shield(asyncio.ensure_future(self._boot_named(limits)))

    async def execute(
        self,
        name: str,
        code: str,
        *,
        inputs: Mapping[str, bytes] | None = None,
        limits: Limits | None = None,
        on_output: OnOutput | None = None,
    ) -> ExecutionResult:
        """Run code in the sandbox of that id. When the client gives up, the guest is stopped."""
        return await self._run(self._tenant(name), code, inputs, limits, on_output)

    async def execute_once(
        self,
        code: str,
        *,
        inputs: Mapping[str, bytes] | None = None,
        limits: Limits | None = None,
        on_output: OnOutput | None = None,
    ) -> ExecutionResult:
        """Run code in a sandbox that is borrowed for it, and waits for one where all are busy.

        Raises:
            Refused: if every sandbox belongs to a client.
            WcpodError: if none boots.
        """
        async with self._lent() as tenant:
            return await self._run(tenant, code, inputs, limits, on_output)

    async def destroy(self, name: str) -> None:
        """Give a sandbox back; what runs in it is stopped."""
        tenant = self._tenant(name)
        del self._tenants[name]
        await tenant.sandbox.close()
        self._tell_waiting()

    async def evict_idle(self) -> None:
        """Destroy each sandbox whose time is over; never returns."""
        while True:
            await asyncio.sleep(min(self._terms.idle_seconds / 4, 30.0))
            oldest = time.monotonic() - self._terms.idle_seconds
            for name, tenant in list(self._tenants.items()):
                if not tenant.running and tenant.used < oldest:
                    await self.destroy(name)
            for tenant in [spare for spare in self._spare if spare.used < oldest]:
                self._spare.remove(tenant)
                await tenant.sandbox.close()

    async def close(self) -> None:
        """Destroy them all."""
        for name in list(self._tenants):
            await self.destroy(name)
        while self._spare:
            await self._spare.pop().sandbox.close()

    def _taken(self) -> int:
        return len(self._tenants) + len(self._spare) + self._borrowed + self._booting

    async def _boot(self, limits: Limits) -> AsyncSandbox:
        self._booting += 1
        try:
            return await AsyncSandbox.create(
                limits=limits, policy=self._policy, archive=self._terms.archive, contact=self._terms.contact
            )
        finally:
            self._booting -= 1

    async def _boot_named(self, limits: Limits) -> str:
        sandbox = await self._boot(limits)
        name = f"sandbox-{secrets.token_hex(8)}"
        self._tenants[name] = _Tenant(sandbox)
        return name

    async def _boot_spare(self) -> None:
        self._spare.append(_Tenant(await self._boot(self._terms.limits)))
        self._tell_waiting()

    @asynccontextmanager
    async def _lent(self) -> AsyncIterator[_Tenant]:
        """A sandbox for one execution. It is kept afterwards, unless it failed."""
        tenant = await self._next_spare()
        self._borrowed += 1
        kept = True
        try:
            yield tenant
        except WcpodError:
            kept = False
            await tenant.sandbox.close()
            raise
        finally:
            self._borrowed -= 1
            if kept:
                self._spare.append(tenant)
            self._tell_waiting()

    async def _next_spare(self) -> _Tenant:
        while not self._spare:
            if self._taken() < self._terms.sandboxes:
                # A task of its own: when the client gives up, the next one finds what it booted.
                await asyncio.shield(asyncio.ensure_future(self._boot_spare()))
            elif self._borrowed or self._booting:
                await self._returned.wait()
            else:
                raise Refused(f"all {self._terms.sandboxes} sandboxes are taken; destroy one first")
        return self._spare.pop()

    def _tell_waiting(self) -> None:
        self._returned.set()
        self._returned = asyncio.Event()

    async def _run(
        self,
        tenant: _Tenant,
        code: str,
        inputs: Mapping[str, bytes] | None,
        limits: Limits | None,
        on_output: OnOutput | None,
    ) -> ExecutionResult:
        tenant.running += 1
        run = asyncio.ensure_future(tenant.sandbox.run(code, inputs=inputs, limits=limits, on_output=on_output))
        run.add_done_callback(lambda _: self._rested(tenant))
        try:
            # The run is a task of its own: stopping the guest takes its time, whatever happens to the request.
            return await asyncio.shield(run)
        except asyncio.CancelledError:
            run.cancel()
            raise

    def _tenant(self, name: str) -> _Tenant:
        try:
            return self._tenants[name]
        except KeyError:
            raise Refused(
                f"there is no sandbox {name[:80]!r}: never made, destroyed, or idle for more than "
                f"{self._terms.idle_seconds:g} seconds"
            ) from None

    def _rested(self, tenant: _Tenant) -> None:
        tenant.running -= 1
        tenant.used = time.monotonic()
