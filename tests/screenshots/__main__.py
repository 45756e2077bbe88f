"""Pictures of the console for docs/, made of a real run on this machine: make screenshots."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

from panda_tui.app import ConsoleApp
from panda_tui.model import Link
from panda_tui.options import Options
from tests.support.consoles import until, until_shown

TARGET = Path(__file__).resolve().parents[2] / "docs" / "screenshots"
MAIN = "from panda.cli.main import main; main()"
PUBLISHERS = (
    ("P1", "ORCL", "10.0.1.4", 10001),
    ("P2", "AMZN", "10.0.1.3", 10002),
    ("P3", "IBM", "10.0.1.2", 10002),
)
SIZE = (120, 32)
BROKERS = 12


def topology() -> str:
    """A tree with quotes all over it, and a link that breaks."""
    words = ["generate", "tree", "--brokers", str(BROKERS), "--hosts", "4", "--subscribers", "6"]
    tree = panda(*words)
    steps = [
        f"2 ADD {name} {at} startSQpublisher.sh -i {name} -b {at}:{port} -s {symbol} -r 1200"
        for name, symbol, at, port in PUBLISHERS
    ]
    return tree + "\n".join(
        [*steps, "4 MARK warm", "10 CUT B2 B4 for 12s", "60 DELAY B1 B3 20ms for 30s", ""]
    )


def panda(*words: str, folder: Path | None = None, code: int = 0) -> str:
    command = [sys.executable, "-c", MAIN, *words]
    ended = subprocess.run(command, cwd=folder, check=False, stdout=subprocess.PIPE, text=True)
    assert ended.returncode == code, f"panda {words[0]} ended with {ended.returncode}"
    return ended.stdout


async def take(runs: Path) -> None:
    app = ConsoleApp(Options(runs, run="tree"))
    async with app.run_test(size=SIZE) as pilot:

        async def keep(name: str) -> None:
            await pilot.pause()
            svg = app.export_screenshot(title=f"panda console: {app.screen.title_}")  # type: ignore[attr-defined]
            (TARGET / f"{name}.svg").write_text(svg, encoding="utf-8")

        def links() -> tuple[Link, ...]:
            return app.watched.snapshot.overlay.links

        await until(
            pilot,
            lambda: sum(each.load.rate_in > 1 for each in app.watched.snapshot.overlay.brokers) == BROKERS,
            "every broker carries something",
        )
        await until_shown(pilot, "running")
        await keep("brokers")
        await pilot.press("3")
        await until(pilot, lambda: any(link.faults for link in links()), "the link breaks")
        await until(pilot, lambda: not all(link.up for link in links()), "and is seen to")
        await pilot.press("down", "down")
        await until_shown(pilot, "1 link down")
        await pilot.pause(1.0)  # the picture follows
        await keep("overlay")
        await pilot.press("5")
        await pilot.press("n")
        await until_shown(pilot, "heals in")
        await keep("schedule")
        await pilot.press("6")
        await until_shown(pilot, "answers")
        await keep("hosts")
        await pilot.press("7")
        await until_shown(pilot, "cut by a fault")
        await pilot.press("e")
        await keep("logs")


def main() -> None:
    TARGET.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="panda-screenshots-") as name:
        folder = Path(name)
        (folder / "tree.txt").write_text(topology())
        panda("deploy", "tree.txt", "--local", "--yes", "--detach", folder=folder, code=5)
        try:
            asyncio.run(take(folder / "runs"))
        finally:
            panda("stop", "tree", folder=folder)


if __name__ == "__main__":
    main()
