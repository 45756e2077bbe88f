"""The console in a real browser: the address opens it, keys lead about, a broker is paused and seen to be."""

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Page, async_playwright

from tests.support.local_brokers import LocalBrokers

FLAGS = (
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
TIMEOUT_MS = 60_000


class Terminal:
    """What the console sends to the browser's terminal, which draws it on a canvas, as pixels."""

    def __init__(self, page: Page) -> None:
        self._seen = b""
        self._news = asyncio.Event()
        page.on("websocket", lambda socket: socket.on("framereceived", self._take))

    def _take(self, frame: str | bytes) -> None:
        if isinstance(frame, bytes):
            self._seen += frame
            self._news.set()

    async def shows(self, text: str) -> None:
        """Wait for something new that has this in it."""
        try:
            async with asyncio.timeout(TIMEOUT_MS / 1000):
                while text.encode() not in self._seen:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(f"not shown: {text}\n{self._seen[-3000:]!r}") from None
        self._seen = self._seen.partition(text.encode())[2]


@pytest.fixture
async def address(brokers: LocalBrokers, tmp_path: Path) -> AsyncIterator[str]:
    here = await brokers.start("Alice")
    await brokers.start("Bob", "Alice")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "panda_tui", "--web", "--broker", here,
        cwd=tmp_path, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    yield (await process.stdout.readline()).decode().strip()
    process.terminate()
    await process.wait()


@pytest.fixture
async def page() -> AsyncIterator[Page]:
    path = shutil.which("chromium")
    assert path, "chromium is missing: make packages"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=list(FLAGS), timeout=TIMEOUT_MS)
        context = await browser.new_context(viewport={"width": 1400, "height": 900})
        context.set_default_timeout(TIMEOUT_MS)
        yield await context.new_page()
        await browser.close()


async def test_a_broker_is_paused_from_a_browser(address: str, page: Page, brokers: LocalBrokers) -> None:
    terminal = Terminal(page)
    await page.goto(address)
    assert "token" not in page.url
    await page.wait_for_selector("body.-first-byte")
    await page.locator("textarea").first.focus()
    await terminal.shows("Alice")
    await page.keyboard.press("6")
    await terminal.shows("drift")
    await page.keyboard.press("2")
    await terminal.shows("running")
    await page.keyboard.press("p")
    await terminal.shows("Pause broker Alice?")
    await page.keyboard.press("y")
    await terminal.shows("paused")
    assert brokers.servers["Alice"].broker.paused
