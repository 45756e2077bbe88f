"""`panda generate`: topologies of known shapes, from a seed."""

from pathlib import Path
from typing import Annotated

import typer

from panda.cli import printing
from panda.cli.convert import Form, put
from panda.cli.exits import Exit


def generate(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="chain, star, tree, ring, mesh or random.")],
    brokers: Annotated[int, typer.Option("--brokers", metavar="N", help="How many brokers.")] = 3,
    hosts: Annotated[int, typer.Option("--hosts", metavar="N", help="How many hosts: 10.0.1.1 …")] = 1,
    host: Annotated[
        list[str] | None, typer.Option("--host", metavar="ADDRESS", help="A host, instead of --hosts.")
    ] = None,
    publishers: Annotated[int, typer.Option("--publishers", metavar="N", help="How many.")] = 0,
    subscribers: Annotated[int, typer.Option("--subscribers", metavar="N", help="How many.")] = 0,
    templates: Annotated[
        Path | None, typer.Option("--templates", metavar="FILE", help="Weighted commands of clients, YAML.")
    ] = None,
    fan_out: Annotated[int, typer.Option("--fan-out", metavar="K", help="Children in a tree.")] = 2,
    extra_links: Annotated[
        int, typer.Option("--extra-links", metavar="N", help="Of a random overlay; they close cycles.")
    ] = 0,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Same seed, same topology.")] = 0,
    to: Annotated[Form, typer.Option("--to", help="The form to write.")] = Form.TEXT,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write here instead of to stdout.")
    ] = None,
) -> None:
    """Generate an overlay with publishers and subscribers.

    Example: panda generate tree --brokers 20 --hosts 5 --publishers 4 --subscribers 8 -o topo.txt
    """
    from broker_runtime.dialect.options import nearest
    from panda.topology import generators
    from panda.topology.problems import TopologyRefused
    from panda.topology.writing import write_text, write_yaml

    kinds = [each.value for each in generators.Kind]
    if kind not in kinds:
        hint = nearest(kind, kinds) or f" (it is one of {', '.join(kinds)})"
        raise typer.BadParameter(f"{kind}{hint}", param_hint="KIND")
    try:
        chosen = generators.DEFAULT_TEMPLATES
        if templates is not None:
            chosen = generators.read_client_templates(templates.read_text("utf-8"), str(templates))
        topology, heading = generators.generate(
            generators.Wish(
                kind=generators.Kind(kind),
                brokers=brokers,
                hosts=tuple(host) if host else generators.default_hosts(hosts),
                publishers=publishers,
                subscribers=subscribers,
                fan_out=fan_out,
                extra_links=extra_links,
                seed=seed,
                templates=chosen,
            )
        )
    except TopologyRefused as refused:
        for problem in refused.problems:
            printing.note(str(problem))
        raise typer.Exit(Exit.REFUSED) from None
    except OSError as error:
        printing.problem(f"{templates}: {error.strerror}")
        raise typer.Exit(Exit.REFUSED) from None
    except ValueError as error:
        printing.problem(str(error))
        raise typer.Exit(Exit.REFUSED) from None
    if generators.CYCLIC_NOTE in heading:
        printing.note(f"warning: {generators.CYCLIC_NOTE}")
    put(write_yaml(topology, heading) if to is Form.YAML else write_text(topology, heading), output)
