"""`panda demo`: a broker network on this machine, with a link that breaks while publications flow."""

from typing import Annotated

import typer

from panda.cli import printing
from panda.cli.exits import Exit


def demo(
    publications: Annotated[
        int, typer.Option(min=100, max=1_000_000, help="How many to publish while the link breaks.")
    ] = 20_000,
    cuts: Annotated[int, typer.Option(min=0, max=100, help="How often to break the link.")] = 3,
    as_json: printing.JsonOption = False,
) -> None:
    """Start three brokers and two clients, break a link, and show that nothing is lost or repeated."""
    import asyncio

    from panda.demo.story import Story, tell

    def say(text: str) -> None:
        if as_json:
            printing.note(text)
        else:
            printing.result({}, text)

    story: Story = asyncio.run(tell(publications, cuts, say))
    if as_json:
        printing.result(story.as_dict(), "", as_json=True)
    if not story.held:
        raise typer.Exit(Exit.FAILED)
