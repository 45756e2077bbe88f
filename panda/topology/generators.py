"""Decides what generated topologies look like: overlays of known shapes, and clients from weighted templates.

One seed, one topology. Rings, meshes and overlays with extra links have cycles: they are made, and say so.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from panda.topology.assembly import assemble
from panda.topology.model import Action, Place, Step, Topology
from panda.topology.nodes import Entries, Items, Node, Scalar, read_nodes
from panda.topology.problems import Problem, TopologyRefused, error, shown
from panda.topology.scanning import LineScanner, ScanningError

BROKERS_MAX: Final = 10_000
CLIENTS_MAX: Final = 100_000
LINKS_MAX: Final = 100_000
WEIGHT_MAX: Final = 1e6
FIRST_PORT: Final = 10_000
SUBSCRIBERS_AT_S: Final = 1.0
PUBLISHERS_AT_S: Final = 2.0
SYMBOLS: Final = ("YHOO", "MSFT", "IBM", "GOOG", "ORCL", "AMZN", "INTC", "HPQ")
CYCLIC_NOTE: Final = (
    "This overlay has cycles, which brokers do not support yet: validate and deploy refuse it."
)
_PLACE: Final = Place("generated")
_FIELDS: Final = ("id", "broker", "symbol", "number", "seed")


class Kind(StrEnum):
    CHAIN = "chain"
    STAR = "star"
    TREE = "tree"
    RING = "ring"
    MESH = "mesh"
    RANDOM = "random"


@dataclass(frozen=True, slots=True)
class Weighted:
    """A command with fields such as {id} and {broker}, and how often it is chosen."""

    weight: float
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClientTemplates:
    publishers: tuple[Weighted, ...]
    subscribers: tuple[Weighted, ...]


def _weighted(weight: float, *command: str) -> Weighted:
    return Weighted(weight, command)


DEFAULT_TEMPLATES: Final = ClientTemplates(
    publishers=(
        _weighted(
            1, "startSQpublisher.sh", "-i", "{id}", "-b", "{broker}", "-s", "{symbol}", "-r", "600",
            "--count", "100", "--seed", "{number}",
        ),
    ),
    subscribers=(
        _weighted(
            2, "startSQsubscriber.sh", "-i", "{id}", "-b", "{broker}", "-s",
            "[class,eq,'STOCK'],[symbol,eq,'{symbol}']",
        ),
        _weighted(
            1, "startSQsubscriber.sh", "-i", "{id}", "-b", "{broker}", "-s",
            "[class,eq,'STOCK'],[volume,>,500]",
        ),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What to generate; ValueError from `generate` says what cannot be."""

    kind: Kind
    brokers: int
    hosts: Sequence[str] = field(default=("10.0.1.1",))
    publishers: int = 0
    subscribers: int = 0
    fan_out: int = 2
    extra_links: int = 0
    seed: int = 0
    templates: ClientTemplates = DEFAULT_TEMPLATES


def generate(wish: Wish) -> tuple[Topology, tuple[str, ...]]:
    """The topology, and what its first lines say about it."""
    _refuse(wish)
    pairs = _pairs(wish)
    if len(pairs) > LINKS_MAX:
        raise ValueError(f"at most {LINKS_MAX} links are generated; this would have {len(pairs)}")
    addresses = _addresses(wish)
    steps = list(_broker_steps(addresses, pairs))
    steps += _client_steps(wish, addresses, "S", wish.subscribers, wish.templates.subscribers)
    steps += _client_steps(wish, addresses, "P", wish.publishers, wish.templates.publishers)
    about = f"{wish.kind} of {wish.brokers} brokers, generated with seed {wish.seed}"
    heading = (about, CYCLIC_NOTE) if len(pairs) >= wish.brokers else (about,)
    return assemble(str(wish.kind), "", steps), heading


def default_hosts(count: int) -> tuple[str, ...]:
    """Addresses like those of the papers: 10.0.1.1, 10.0.1.2 …"""
    return tuple(f"10.0.{1 + number // 250}.{1 + number % 250}" for number in range(count))


def read_client_templates(text: str, path: str) -> ClientTemplates:
    """`publishers:` and `subscribers:`, each a list of {weight, command}; else TopologyRefused."""
    node, problems = read_nodes(text, path)
    found: dict[str, tuple[Weighted, ...]] = {}
    if not isinstance(node, Entries):
        problems.append(error(Place(path), "templates are a mapping", "of publishers and subscribers"))
    else:
        for key, items in node.entries.items():
            if key not in ("publishers", "subscribers"):
                message = f"unknown key {shown(key)}"
                problems.append(error(node.keys[key], message, "known are publishers and subscribers"))
            else:
                found[key] = _read_weighted(items, problems)
    if problems:
        raise TopologyRefused(problems)
    return ClientTemplates(
        found.get("publishers", DEFAULT_TEMPLATES.publishers),
        found.get("subscribers", DEFAULT_TEMPLATES.subscribers),
    )


def _read_weighted(node: Node, problems: list[Problem]) -> tuple[Weighted, ...]:
    found = []
    example = "such as - {weight: 2, command: startSQpublisher.sh -i {id} …}, with the command in quotes"
    for item in node.items if isinstance(node, Items) else ():
        command = item.entries.get("command") if isinstance(item, Entries) else None
        weight = item.entries.get("weight") if isinstance(item, Entries) else None
        if not isinstance(command, Scalar) or (weight is not None and not isinstance(weight, Scalar)):
            problems.append(error(item.place, "a template has a command and perhaps a weight", example))
            continue
        try:
            heavy = _weight(weight.text if weight is not None else "1")
            words = tuple(token.text for token in LineScanner(command.text).words())
            _fill(words, dict.fromkeys(_FIELDS, ""))
        except ScanningError as problem:
            problems.append(error(command.place, problem.message, problem.hint))
        except ValueError as problem:
            problems.append(error(item.place, str(problem), example))
        else:
            found.append(Weighted(heavy, words))
    if not found and not problems:
        problems.append(error(node.place, "there is no template here", example))
    return tuple(found)


def _weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = 0.0
    if not 0 < weight <= WEIGHT_MAX:
        raise ValueError(f"{shown(text)}: a weight is a number more than 0, and at most {WEIGHT_MAX:g}")
    return weight


def _refuse(wish: Wish) -> None:
    for what, number, least, most in (
        ("brokers", wish.brokers, 1, BROKERS_MAX),
        ("publishers", wish.publishers, 0, CLIENTS_MAX),
        ("subscribers", wish.subscribers, 0, CLIENTS_MAX),
        ("fan-out", wish.fan_out, 1, BROKERS_MAX),
        ("extra links", wish.extra_links, 0, LINKS_MAX),
        ("hosts", len(wish.hosts), 1, BROKERS_MAX),
    ):
        if not least <= number <= most:
            raise ValueError(f"{what}: {number} is not from {least} to {most}")
    if wish.extra_links and wish.kind is not Kind.RANDOM:
        raise ValueError("extra links are for random overlays only")
    if wish.kind is Kind.RING and wish.brokers < 3:
        raise ValueError("a ring has at least 3 brokers")


def _pairs(wish: Wish) -> list[tuple[int, int]]:
    """Who dials whom, by number; a broker dials those before it."""
    others = range(1, wish.brokers)
    match wish.kind:
        case Kind.CHAIN:
            return [(number, number - 1) for number in others]
        case Kind.STAR:
            return [(number, 0) for number in others]
        case Kind.TREE:
            return [(number, (number - 1) // wish.fan_out) for number in others]
        case Kind.RING:
            return [*((number, number - 1) for number in others), (wish.brokers - 1, 0)]
        case Kind.MESH:
            if wish.brokers * (wish.brokers - 1) // 2 > LINKS_MAX:
                raise ValueError(f"at most {LINKS_MAX} links are generated; a mesh of so many has more")
            return [(number, earlier) for number in others for earlier in range(number)]
        case Kind.RANDOM:
            return _random_pairs(wish)


def _random_pairs(wish: Wish) -> list[tuple[int, int]]:
    """A random recursive tree, then links between any two that have none."""
    chance = random.Random(f"{wish.seed} overlay")
    pairs = [(number, chance.randrange(number)) for number in range(1, wish.brokers)]
    room = wish.brokers * (wish.brokers - 1) // 2 - len(pairs)
    if wish.extra_links > room:
        raise ValueError(f"extra links: there is room for {room} only")
    taken = set(pairs)
    while len(pairs) < wish.brokers - 1 + wish.extra_links:
        low, high = sorted(chance.sample(range(wish.brokers), 2))
        if (high, low) not in taken:
            taken.add((high, low))
            pairs.append((high, low))
    return pairs


def _addresses(wish: Wish) -> list[tuple[str, int]]:
    """Brokers take turns on the hosts; on each, ports count up."""
    hosts = list(dict.fromkeys(wish.hosts))
    addresses = [
        (hosts[number % len(hosts)], FIRST_PORT + number // len(hosts)) for number in range(wish.brokers)
    ]
    if addresses[-1][1] > 65_535 or addresses[0][1] > 65_535:
        raise ValueError("so many brokers need more hosts: the ports do not suffice")
    return addresses


def _broker_steps(addresses: Sequence[tuple[str, int]], pairs: Sequence[tuple[int, int]]) -> list[Step]:
    dialled: dict[int, list[str]] = {}
    for caller, called in pairs:
        dialled.setdefault(caller, []).append(_written(addresses[called]))
    steps = []
    for number, (host, port) in enumerate(addresses):
        id_ = f"B{number + 1}"
        command = ["startbroker.sh", "-hostname", host, "-p", str(port), "-i", id_]
        if number in dialled:
            command += ["-n", ",".join(dialled[number])]
        steps.append(_added(0.0, id_, host, command))
    return steps


def _client_steps(
    wish: Wish, addresses: Sequence[tuple[str, int]], letter: str, count: int, templates: Sequence[Weighted]
) -> list[Step]:
    """Each at a random broker, on that broker's host."""
    chance = random.Random(f"{wish.seed} {letter}")
    at_s = PUBLISHERS_AT_S if letter == "P" else SUBSCRIBERS_AT_S
    steps = []
    for number in range(1, count + 1):
        template = chance.choices(templates, [each.weight for each in templates])[0]
        address = addresses[chance.randrange(len(addresses))]
        fields = {
            "id": f"{letter}{number}",
            "broker": _written(address),
            "symbol": chance.choice(SYMBOLS),
            "number": str(number),
            "seed": str(wish.seed),
        }
        command = _fill(template.command, fields)
        steps.append(_added(at_s, fields["id"], address[0], command))
    return steps


def _fill(command: Sequence[str], fields: Mapping[str, str]) -> list[str]:
    filled = []
    for word in command:
        for name, value in fields.items():
            word = word.replace("{" + name + "}", value)
        filled.append(word)
    if not filled:
        raise ValueError("the command is empty")
    return filled


def _written(address: tuple[str, int]) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _added(at_s: float, id_: str, host: str, command: Sequence[str]) -> Step:
    return Step(
        number=0, at_s=at_s, action=Action.ADD, place=_PLACE, process=id_, host=host, command=tuple(command)
    )
