"""Makes the pictures in docs/images: `wcpod run` on a terminal, `wcpod report` on a desktop and a phone, and DevUI.

    python docs/screenshots.py [FOLDER]

Needs a machine that can run a sandbox, the extras podcast and devui, Debian's packages chromium and fonts-noto-cjk, and
the Python packages playwright and pyte.
"""

from __future__ import annotations

import html
import os
import pty
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import pyte
from playwright.sync_api import sync_playwright

IMAGES = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "images"
WCPOD = [sys.executable, "-m", "wcpod"]
COLUMNS, LINES = 118, 48
COLOURS = {"green": "#5fd787", "red": "#ff6b6b", "brown": "#e5c07b", "default": "#d7dae0"}
PAGE = """<!DOCTYPE html><meta charset="utf-8"><style>
body { margin: 0; background: #16181d; } pre { margin: 0; padding: 18px 22px; display: inline-block; color: #d7dae0;
font: 14px/1.38 "DejaVu Sans Mono", "Noto Sans Mono CJK SC", monospace; } .dim { color: #7d8590; }
</style><pre>"""


def main() -> None:
    """Make all of them."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium")
        (folder / "run.html").write_text(PAGE + run_on_a_terminal(folder) + "</pre>", encoding="utf-8")
        with_page(browser, (folder / "run.html").as_uri(), 1040, "run.png", element="pre")
        subprocess.run([*WCPOD, "report", "2026-06-15"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        report = (folder / "outputs/260615/260615.report.html").as_uri()
        with_page(browser, report, 1100, "report.png", height=1000)
        with_page(browser, report, 390, "report-phone.png", height=844)
        devui(browser, folder)
        browser.close()


def run_on_a_terminal(folder: Path) -> str:
    """What `wcpod run` leaves on a terminal, as HTML."""
    screen = pyte.Screen(COLUMNS, 400)
    stream = pyte.ByteStream(screen)
    stream.feed(b"$ wcpod run --date 2026-06-15\r\n")
    controller, terminal = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "LINES": "400", "TERM": "xterm-256color"}
    command = [*WCPOD, "run", "--date", "2026-06-15"]
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=terminal, stderr=terminal):
        os.close(terminal)
        while chunk := read(controller):
            stream.feed(chunk)
    os.close(controller)
    rows = [render(screen.buffer[row]) for row in range(screen.cursor.y)]
    return "\n".join([*rows[: LINES // 2 + 8], '<span class="dim">…</span>', *rows[-(LINES // 2 - 8) :]])


def read(controller: int) -> bytes:
    """The next bytes of the terminal; none when the program has ended."""
    try:
        return os.read(controller, 65536)
    except OSError:
        return b""


def render(row: Any) -> str:
    """One row of the screen as HTML."""
    cells = [row[column] for column in range(COLUMNS)]
    parts, last = [], None
    for cell in cells:
        style = f"color:{COLOURS.get(cell.fg, COLOURS['default'])}"
        if style != last:
            parts.append(f'{"</span>" if last else ""}<span style="{style}">')
            last = style
        parts.append(html.escape(cell.data))
    return "".join([*parts, "</span>"]).rstrip()


def with_page(
    browser: Any, address: str, width: int, name: str, *, height: int = 800, element: str | None = None
) -> None:
    """A picture of a page, or of one element of it."""
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
    page.goto(address)
    target = page.locator(element) if element else page
    target.screenshot(path=IMAGES / name)
    page.close()


def devui(browser: Any, folder: Path) -> None:
    """DevUI after a run."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    command = [*WCPOD, "devui", "--no-auth", "--port", str(port), "--out", "devui"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            wait_for(f"{address}/health")
            page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
            page.goto(address)
            page.get_by_text("Configure & Run").click()
            page.locator("textarea:visible, input[type=text]:visible").last.fill("2026-06-15")
            page.get_by_role("button", name="Run Workflow").click()
            page.get_by_text("Workflow Complete").wait_for()
            page.wait_for_timeout(500)  # it scrolls there
            page.screenshot(path=IMAGES / "devui.png")
            page.close()
        finally:
            server.terminate()


def wait_for(address: str) -> None:
    """Wait until a server answers."""
    for _ in range(300):
        try:
            urllib.request.urlopen(address).close()
            return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(address)


if __name__ == "__main__":
    main()
