"""Random sequences of runs, stops, snapshots, forks and threads, each from a seed: `python tests/sandbox/sequences.py`.

After every run a probe looks at what the next run begins with: it must be the state that the sandbox was told to start
from, whatever ran before and however it ended. Every run has a marker of its own, which no other output may show.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from wcpod import AsyncSandbox, ExecutionResult, Limits, Sandbox, Snapshot
from wcpod.exceptions import SnapshotError

MARK = "mark-of-run-"
WHOLE_MARK = re.compile(rf"{MARK}[0-9a-z-]*?-\.")

PROBE = """
import builtins, hashlib, os, sys
seen = [sorted(sys.modules), sorted(vars(builtins)), sorted(globals()), os.getcwd(), sorted(os.environ.items())]
for folder, folders, files in sorted(os.walk("/")):
    if not folder.startswith(("/lib", "/usr")):
        seen.append((folder, sorted(folders), [(f, os.path.getsize(os.path.join(folder, f))) for f in sorted(files)]))
seen.append([type(getattr(builtins, name)).__name__ for name in sorted(vars(builtins))])
print(hashlib.sha256(repr(seen).encode()).hexdigest())
"""
"""Prints what a run begins with, as a hash."""

#: Code, and the kinds that it may end with. `{mark}` is the run's own.
CODES: list[tuple[str, set[str]]] = [
    ("print('{mark}')", {"ok"}),
    ("import builtins\nbuiltins.left = '{mark}'\nprint('{mark}')", {"ok"}),
    ("open('/tmp/left', 'w').write('{mark}')\nopen('/output/f', 'w').write('{mark}')", {"ok"}),
    ("import os\nos.environ['LEFT'] = '{mark}'\nos.chdir('/output')", {"ok"}),
    ("import sys, json\njson.dumps = None\nsys.modules['left'] = json\nlen = None", {"ok"}),
    ("import shutil\nshutil.rmtree('/', ignore_errors=True)\nprint('{mark}')", {"ok", "error"}),
    ("raise ValueError('{mark}')", {"error"}),
    ("import sys\nsys.exit(3)", {"error"}),
    ("import os\nos._exit(0)", {"ok", "error", "crash"}),
    ("x = ['{mark}'] * 100_000\ny = bytearray(8 << 20)\nprint(len(y))", {"ok"}),
    ("a = []\nwhile True: a.append(bytearray(1 << 20))", {"memory", "timeout"}),
    ("while True: pass", {"timeout"}),
    ("import time\ntime.sleep(60)", {"timeout"}),
    ("9**9**9", {"timeout", "memory"}),
    ("while True: print('{mark}' * 100)", {"output", "timeout"}),
    ("print(call_tool('echo', text='{mark}'))", {"ok"}),
    ("for _ in range(300):\n    try: call_tool('echo', text='x')\n    except Exception: pass\nprint('{mark}')", {"ok"}),
    ("call_tool('slow')", {"timeout"}),
    ("def f(n): return f(n + 1)\nf(0)", {"error"}),
    ("import threading\nthreading.Thread(target=print, args=('{mark}',)).start()", {"ok"}),
]


class Wrong(AssertionError):
    """A sequence did what it must not."""


@dataclass
class Sequence:
    """One sequence, made by its seed."""

    seed: int
    slowness: float = 1.0
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.marks = 0
        self.released = threading.Event()

    def sandbox(self, snapshot: Snapshot | None = None) -> Sandbox:
        tools: dict[str, Callable[..., object]] = {"echo": lambda text: text, "slow": lambda: self.released.wait(5)}
        return Sandbox(limits=Limits(seconds=20 * self.slowness, memory_mib=64), tools=tools, snapshot=snapshot)

    def play(self, steps: int) -> Counter[str]:
        """Does the steps.

        Raises:
            Wrong: names seed and step.
        """
        made = self.sandbox()
        try:
            self.clean = made.snapshot()
            self.expected = self.probed(made, None)
            for step in range(steps):
                act = self.random.choices(
                    [self.run, self.cancel, self.captured, self.threads, self.forked, self.replaced],
                    [10, 4, 2, 2, 1, 1],
                )[0]
                self.counts[act.__name__] += 1
                try:
                    made = act(made)
                    self.probed(made, self.expected)
                except Exception as error:
                    raise Wrong(f"seed {self.seed}, step {step} ({act.__name__}): {error!r}") from error
        finally:
            self.released.set()
            made.close()
        return self.counts

    def probed(self, sandbox: Sandbox, expected: str | None) -> str:
        result = sandbox.run(PROBE)
        self.counts["probes"] += 1
        if result.kind != "ok" or (expected is not None and result.stdout.strip() != expected):
            raise Wrong(f"the run began with something else: {result}")
        return result.stdout.strip()

    def code(self) -> tuple[str, str, set[str]]:
        code, kinds = self.random.choice(CODES)
        self.marks += 1
        mark = f"{MARK}{self.seed}-{self.marks}-."
        return code.replace("{mark}", mark), mark, kinds

    def checked(self, result: ExecutionResult, mark: str, kinds: set[str]) -> None:
        self.counts[f"kind {result.kind}"] += 1
        if result.kind not in kinds:
            raise Wrong(f"kind {result.kind}, not one of {sorted(kinds)}: {result}")
        texts = [result.stdout, result.stderr, *(content.decode(errors="replace") for content in result.files.values())]
        for text in texts:
            if set(WHOLE_MARK.findall(text)) - {mark}:
                raise Wrong(f"the output of another run, not of {mark}: {text[:500]!r}")

    def run(self, sandbox: Sandbox) -> Sandbox:
        code, mark, kinds = self.code()
        seconds = (0.05 + 0.2 * self.random.random()) * self.slowness if "timeout" in kinds else 20 * self.slowness
        self.checked(sandbox.run(code, limits=Limits(seconds=seconds, memory_mib=64)), mark, kinds)
        return sandbox

    def cancel(self, sandbox: Sandbox) -> Sandbox:
        """Cancelled at any moment."""
        code, mark, kinds = self.code()
        seconds = self.random.random() * 0.05 * self.slowness

        async def cancelled() -> None:
            asynchronous = AsyncSandbox.__new__(AsyncSandbox)
            asynchronous._sandbox = sandbox
            limits = Limits(seconds=0.3 * self.slowness, memory_mib=64)
            task = asyncio.create_task(asynchronous.run(code, limits=limits))
            await asyncio.sleep(seconds)
            task.cancel()
            (ended,) = await asyncio.gather(task, return_exceptions=True)
            if isinstance(ended, ExecutionResult):
                self.checked(ended, mark, kinds | {"timeout"})
            elif not isinstance(ended, asyncio.CancelledError):
                raise ended

        asyncio.run(cancelled())
        return sandbox

    def captured(self, sandbox: Sandbox) -> Sandbox:
        """What a run left is kept, used, and given up again."""
        code, mark, kinds = self.code()
        seconds = 0.2 * self.slowness if "timeout" in kinds else 20 * self.slowness
        result = sandbox.run(code, limits=Limits(seconds=seconds, memory_mib=64))
        self.checked(result, mark, kinds)
        try:
            left = sandbox.snapshot(of_last_run=True)
        except SnapshotError:
            if result.kind in ("ok", "error") and "_exit" not in code:
                raise
            return sandbox
        if result.kind not in ("ok", "error", "memory"):
            raise Wrong(f"a snapshot of a run that ended as {result.kind}")
        sandbox.restore(left)
        sandbox.run("print('used')")
        sandbox.restore(self.clean)
        return sandbox

    def threads(self, sandbox: Sandbox) -> Sandbox:
        """Several threads at once, on this sandbox and on others of the same state."""

        def work(number: int) -> None:
            mark = f"{MARK}{self.seed}-thread-{number}-."
            own = sandbox if number % 2 else self.sandbox(self.clean)
            try:
                stop = "while True: pass" if number % 3 == 0 else f"print('{mark}')"
                limits = Limits(seconds=(0.05 if number % 3 == 0 else 20) * self.slowness, memory_mib=64)
                result = own.run(stop, limits=limits)
                self.checked(result, mark, {"timeout"} if number % 3 == 0 else {"ok"})
                self.probed(own, self.expected)
            finally:
                if own is not sandbox:
                    own.close()

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(6)))
        return sandbox

    def forked(self, sandbox: Sandbox) -> Sandbox:
        """A child makes a sandbox of its own."""
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with self.sandbox(self.clean) as own:
                    code = 0 if own.run("print('child')").stdout == "child\n" else 2
            finally:
                os._exit(code)
        status = os.waitpid(child, 0)[1]
        if status:
            raise Wrong(f"a child ended with status {status}")
        return sandbox

    def replaced(self, sandbox: Sandbox) -> Sandbox:
        """Closed, and another one made."""
        sandbox.close()
        return self.sandbox(self.clean)


def play_for(seconds: float, first: int, say: Callable[[str], None]) -> Counter[str]:
    """Plays sequences of 25 steps until the time is over."""
    total: Counter[str] = Counter()
    end = time.monotonic() + seconds
    seed = first
    while time.monotonic() < end:
        total += Sequence(seed).play(25)
        total["sequences"] += 1
        seed += 1
        say(f"seed {seed}: {sum(total[name] for name in total if name.startswith('kind '))} runs")
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="for how long (default 60)")
    parser.add_argument("--seed", type=int, default=None, help="the first seed (default: the time)")
    arguments = parser.parse_args()
    first = int(time.time()) if arguments.seed is None else arguments.seed
    total = play_for(arguments.seconds, first, lambda text: print(text, end="\r", flush=True))
    print(f"\nfirst seed {first}")
    for name, count in sorted(total.items()):
        print(f"{count:8} {name}")


if __name__ == "__main__":
    main()
